//! Stores that keep keys and values: the whole protocol over a small [`Kv`].
//!
//! A back end compares, writes and lists, and decides nothing. An *entry* has a key and a few fields
//! of text. Its *version* is the field that a commit compares. The time comes from the store: an
//! entry keeps the stamp of the last commit that stamped it. *Lists* order entries by a rank, so
//! that the newest ones are found without reading the others. Keys are readable texts: `:` separates
//! their parts, and is escaped in names.

mod entries;
pub(in crate::store) mod flights;
pub(in crate::store) mod keys;
mod marks;
mod pruning;
mod queue;
mod records;
mod refusals;
#[cfg(test)]
pub(in crate::store) mod test_entries;
mod tokens;
pub(in crate::store) mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::sql::cell::BadColumn;
use super::{Lookout, Notifier, Store, StoreError};
use crate::sys::random;
use crate::token::{Fence, GroupName, Incarnation, Served, StoreTime, Until};

/// The operations of a key-value database for [`KvStore`]. Calls block, each for a bounded time.
pub trait Kv: Send {
    /// The store's name in messages. It never holds a password.
    fn name(&self) -> &str;

    /// True if the ticks of its time come from a clock that is never set.
    fn has_ticks(&self) -> bool;

    /// How much later than it says its time may be: that of a clock that counts in steps.
    fn step(&self) -> Duration {
        Duration::ZERO
    }

    /// Reads entries and the store's time, in one snapshot.
    fn get(&mut self, asked: &[Ask]) -> Result<Found, StoreError>;

    /// Compares and writes, as one transaction, and reads in the same one. An error means that it is
    /// unknown whether the commit happened, or will.
    fn commit(&mut self, commit: &Commit) -> Result<Committed, StoreError>;

    /// Gives back a connection that others may need ([`super::Store::idle`]).
    fn rest(&mut self) {}

    /// The longest time of a call, if the server is on this host ([`super::Store::limit_of_near`]).
    fn limit_of_near(&mut self) -> Option<&mut Duration> {
        None
    }

    /// The check for another server that accepts writes ([`super::Store::lookout`]).
    fn lookout(&self) -> Option<Arc<dyn Lookout>> {
        None
    }

    /// How many of its servers answer ([`super::Store::condition`]).
    fn condition(&self) -> Option<String> {
        None
    }

    /// Makes this channel's announcements reach [`Self::notifier`], and clears the notifier, as
    /// [`Self::get`] does.
    fn subscribe(&mut self, channel: &str) {
        let _ = channel;
    }

    /// The notifier of announcements ([`super::Queue::notifier`]).
    fn notifier(&mut self) -> Option<Notifier> {
        None
    }
}

/// Entries to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// The entry with this key.
    One(String),
    /// Entries of a list.
    Part(Part),
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub list: String,
    /// The lowest and the highest rank.
    pub ranks: (i64, i64),
    /// True if the highest rank comes first.
    pub newest_first: bool,
    /// How many are left out at first.
    pub skip: u32,
    /// At most so many.
    pub limit: u32,
}

/// The fields of an entry, by name.
pub type Fields = BTreeMap<String, String>;

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The text that a commit compares.
    pub version: String,
    /// The time of its last stamp, by the store's clock.
    pub stamp: StoreTime,
    /// The entry's number, if the writer asked for one; else 0. Numbers rise.
    pub number: i64,
    pub fields: Fields,
}

/// The result of a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The existing entries, by key.
    pub entries: BTreeMap<String, Entry>,
    /// The store's time.
    pub now: StoreTime,
    /// The store that answered.
    pub server: Server,
    /// Why it grants nothing ([`super::Reading::refuses`]), if the incarnation's note was read.
    pub refuses: Option<StoreError>,
}

/// The identity of the store that answered, in the same snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The server's incarnation, if it reports one. Another incarnation has another clock epoch.
    pub incarnation: Option<Incarnation>,
    /// True if the store's commits survive a crash, by its present settings.
    pub durable: bool,
    /// What counts as served without a note: nothing, unless the store certainly has no past, or has
    /// certainly kept it for so long.
    pub unnoted: Served,
    /// How long another server may have accepted heartbeats since ([`crate::token::Memory::lag`]).
    pub lag: Duration,
}

impl Server {
    /// That of a cluster that loses no commit.
    pub(in crate::store) const fn of_cluster(incarnation: Incarnation) -> Self {
        Self {
            incarnation: Some(incarnation),
            durable: true,
            unnoted: Served::NOTHING,
            lag: Duration::ZERO,
        }
    }
}

/// A conditional write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    /// The required versions of these keys; `None`: the key must be absent.
    pub compare: Vec<(String, Option<String>)>,
    /// The entries to write. One that was compared comes last: a back end that can't take a part of
    /// a commit back writes in this order.
    pub puts: Vec<Put>,
    /// The entries to remove, if present.
    pub deletes: Vec<Delete>,
    /// True if it grants a token: a store that may remove one by itself refuses.
    pub grants: bool,
    /// The fence of a token that is written, with its group. A back end whose jobs can compare a key in a transaction
    /// of their own publishes it there.
    pub fence: Option<(GroupName, Fence)>,
    /// After this time, and in another clock epoch, nothing happens.
    pub until: Option<Until>,
    /// What is announced if it happens.
    pub announces: Option<Announcement>,
    /// What is read afterwards, whether it happened or not.
    pub then: Vec<Ask>,
}

impl Commit {
    /// The keys that it compares, writes or removes.
    pub(in crate::store) fn touched(&self) -> BTreeSet<&String> {
        let compared = self.compare.iter().map(|(key, _)| key);
        let written = self.puts.iter().map(|it| &it.key);
        let removed = self.deletes.iter().map(|it| &it.key);
        compared.chain(written).chain(removed).collect()
    }

    /// What becomes of it at this time. `version`: that of an entry, if there is one.
    pub(in crate::store) fn outcome<'a>(
        &self,
        version: impl Fn(&str) -> Option<&'a str>,
        now: &StoreTime,
    ) -> Outcome {
        let mut compared = self.compare.iter();
        let is_late = |until| now.is_past(until);
        match compared.all(|(key, expected)| version(key) == expected.as_deref()) {
            false => Outcome::Conflict,
            true if self.until.as_ref().is_some_and(is_late) => Outcome::Expired,
            true => Outcome::Done,
        }
    }
}

/// An entry to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    pub key: String,
    pub version: String,
    /// Fields of another name stay as they are.
    pub fields: Fields,
    /// True if it is stamped. A new one always is.
    pub stamps: bool,
    /// True if a new one gets a number. An old one keeps its own.
    pub numbered: bool,
    /// The lists that it is in, with its rank there.
    pub lists: Vec<(String, Rank)>,
}

/// An entry's place in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    At(i64),
    /// The store's wall time at the commit, in milliseconds.
    Now,
    /// The entry's number.
    Number,
}

/// An entry to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete {
    pub key: String,
    /// The lists that it is in.
    pub lists: Vec<String>,
}

/// A message on a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    pub channel: String,
    /// Only if this list has entries.
    pub if_any_in: String,
}

/// The answer to a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    pub outcome: Outcome,
    /// What was asked for, with the time of the commit.
    pub found: Found,
}

/// What a commit did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It happened.
    Done,
    /// A version differed: nothing happened.
    Conflict,
    /// It came too late: nothing happened.
    Expired,
}

/// How often an operation is retried after another writer interfered.
const TRIES: usize = 32;

/// The pause after this many tries that another writer has overtaken, drawn from 0 up to 2 to their power, in
/// milliseconds: writers that all wait for the same time meet again.
pub(in crate::store) fn drawn_pause(tries: usize) -> Duration {
    const MOST: usize = 7;
    let most = Duration::from_millis(1 << tries.min(MOST));
    let drawn = random::bits64().unwrap_or_default() >> u32::BITS;
    let drawn = u32::try_from(drawn).unwrap_or_default();
    most.mul_f64(f64::from(drawn) / f64::from(u32::MAX))
}

/// A token store over keys and values. The program has the protocol once, for all back ends.
pub struct KvStore {
    kv: Box<dyn Kv>,
}

impl KvStore {
    /// The store over this back end.
    pub fn new(kv: impl Kv + 'static) -> Self {
        Self { kv: Box::new(kv) }
    }

    fn bad(&self, key: &str, bad: &BadColumn) -> StoreError {
        StoreError::misconfigured(format!(
            "the store {} can't be used: in the entry {key:?}, {} {}",
            self.kv.name(),
            bad.column,
            bad.what
        ))
        .remedy("correct it there")
    }

    /// What `once` returns; `None`: another writer has interfered, and it is tried again after a pause.
    fn persistently<T>(
        &mut self,
        mut once: impl FnMut(&mut Self) -> Result<Option<T>, StoreError>,
    ) -> Result<T, StoreError> {
        for tried in 0..TRIES {
            if let Some(done) = once(self)? {
                return Ok(done);
            }
            thread::sleep(drawn_pause(tried));
        }
        Err(self.contended())
    }

    /// The error after the last try.
    fn contended(&self) -> StoreError {
        StoreError::refused(format!(
            "the store {} kept changing; gave up after {TRIES} conflicts",
            self.kv.name()
        ))
        .remedy("try again")
    }
}

impl Store for KvStore {
    fn name(&self) -> &str {
        self.kv.name()
    }

    fn limit_of_near(&mut self) -> Option<&mut Duration> {
        self.kv.limit_of_near()
    }

    fn lookout(&self) -> Option<Arc<dyn Lookout>> {
        self.kv.lookout()
    }

    fn condition(&self) -> Option<String> {
        self.kv.condition()
    }

    fn idle(&mut self) {
        self.kv.rest();
    }
}
