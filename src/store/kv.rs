//! Stores that keep keys and values: everything that the protocol needs over a small [`Kv`].
//!
//! A back end compares and writes; it understands nothing. Each entry has a *tag*, which a commit
//! compares: a token's is its version. The time comes from the store: an entry keeps the stamp of
//! the last commit that stamped it, and the revision that it was created in, by which those in the
//! queue are ordered. What stands in an entry is JSON; names have no control characters, so that one
//! parts the pieces of a key.

pub mod memory;

mod marks;
mod queue;
mod records;
mod tokens;

use std::collections::BTreeMap;

use serde::Serialize;

use super::sql::cell::BadColumn;
use super::{Notifier, Store, StoreError};
use crate::token::{Incarnation, Served, StoreTime, Until};

/// What a database with keys and values does for [`KvStore`]. Calls block, each for a bounded time.
pub trait Kv: Send {
    /// The store's name in messages. It never holds a password.
    fn name(&self) -> &str;

    /// The entries of these keys and the store's time, in one snapshot.
    ///
    /// # Errors
    /// If the store can't be read.
    fn get(&mut self, keys: &[Keys]) -> Result<Found, StoreError>;

    /// Compares and writes, all of it or nothing.
    ///
    /// # Errors
    /// If it is not known whether the commit happened, or will.
    fn commit(&mut self, commit: &Commit) -> Result<Committed, StoreError>;

    /// What announces that an entry was written ([`super::Queue::notifier`]).
    fn notifier(&mut self) -> Option<Notifier> {
        None
    }
}

/// Which entries are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keys {
    /// One key.
    One(String),
    /// Every key that begins like this.
    Under(String),
}

/// What a key holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub value: String,
    /// What a commit compares.
    pub tag: String,
    /// When it was last stamped, by the store's clock.
    pub stamp: StoreTime,
    /// The revision that it was created in. Revisions rise.
    pub created: i64,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The entries that are there, by key.
    pub entries: BTreeMap<String, Entry>,
    /// The store's time.
    pub now: StoreTime,
    /// Which store answered.
    pub server: Server,
}

/// What a store is that has answered, in the same snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Which incarnation, if it says so. Another one is of another clock epoch.
    pub incarnation: Option<Incarnation>,
    /// Whether its commits survive a crash, as it is set now.
    pub durable: bool,
    /// For how long it has stood if no note says it: nothing, unless it surely has no past.
    pub unnoted: Served,
}

/// What is written, if everything is as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    /// The tags that these keys must have; `None`: the key must be absent.
    pub compare: Vec<(String, Option<String>)>,
    /// What is written.
    pub puts: Vec<Put>,
    /// The keys that are removed, if they are there.
    pub deletes: Vec<String>,
    /// After this time, and in another clock epoch, nothing happens.
    pub until: Option<Until>,
}

/// An entry that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    pub key: String,
    pub value: String,
    pub tag: String,
    /// Whether it is stamped. A new one always is.
    pub stamps: bool,
}

/// How a store answered a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    /// It happened, at this time.
    Done(StoreTime),
    /// A tag was another: nothing happened.
    Conflict,
    /// It came too late: nothing happened.
    Expired(StoreTime),
}

/// How often something is tried again that another has changed meanwhile.
const TRIES: usize = 8;

/// A token store over keys and values.
#[derive(Debug, Clone)]
pub struct KvStore<K> {
    kv: K,
}

impl<K: Kv> KvStore<K> {
    /// The store over this back end.
    pub const fn new(kv: K) -> Self {
        Self { kv }
    }

    fn bad(&self, key: &str, bad: &BadColumn) -> StoreError {
        let key = key.replace(PART, "/");
        StoreError::misconfigured(format!(
            "the store {} can't be used: in the entry {key:?}, {} {}",
            self.kv.name(),
            bad.column,
            bad.what
        ))
        .remedy("correct it there")
    }

    /// What others change at every try.
    fn contended(&self) -> StoreError {
        StoreError::refused(format!(
            "the store {} kept changing; gave up after {TRIES} conflicts",
            self.kv.name()
        ))
        .remedy("try again")
    }
}

/// What parts the pieces of a key. No name has it.
const PART: char = '\u{1f}';

/// What is kept has texts as keys and whole numbers: nothing in it can fail.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

impl<K: Kv> Store for KvStore<K> {
    fn name(&self) -> &str {
        self.kv.name()
    }
}
