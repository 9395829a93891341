//! Stores that keep keys and values: everything that the protocol needs over a small [`Kv`].
//!
//! A back end compares and writes; it understands nothing. Each entry has a *tag*, which a commit
//! compares: a token's is its version. The time comes from the store: an entry keeps the stamp of
//! the last commit that stamped it, and the revision that it was created in, by which those in the
//! queue are ordered. What stands in an entry is JSON; names have no control characters, so that one
//! parts the pieces of a key.

pub mod memory;

mod records;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::sql::cell::BadColumn;
use super::sql::token::Columns;
use super::sql::waiter;
use super::{
    ActQuery, Advanced, Bell, Listing, Reading, Retention, RunQuery, Store, StoreError, Unreadable,
};
use crate::token::line::FORGOTTEN;
use crate::token::{
    ActRecord, Fence, GroupName, Incarnation, IncarnationNote, Memory, NoteSwap, OnceMark, Place,
    Recorded, ResourceName, Row, RunRecord, Served, SessionId, StoreTime, Swap, Swapped, Version,
    Waiter,
};

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

    /// What announces that an entry was written ([`Store::bell`]).
    fn bell(&mut self) -> Option<Bell> {
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
    /// The value.
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
    /// Which incarnation, if it says so. Another one is of another domain.
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
    /// After this time, and in another domain, nothing happens.
    pub until: Option<StoreTime>,
}

/// An entry that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Its tag.
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
            "the store {} was written by others at every try",
            self.kv.name()
        ))
        .remedy("try again")
    }

    /// What a reading says of the store's memory.
    fn memory(&self, found: &Found) -> Result<Memory, StoreError> {
        let note = found.entries.get(INCARNATION);
        let note = note.map(|entry| IncarnationNote::from_json(&entry.value));
        let wrong = |why| self.bad(INCARNATION, &BadColumn::of("value", why));
        Ok(Memory {
            incarnation: found.server.incarnation.clone(),
            durable: found.server.durable,
            note: note.transpose().map_err(wrong)?,
            unnoted: found.server.unnoted,
        })
    }

    fn row(&self, key: &str, entry: &Entry) -> Result<Row, StoreError> {
        token(key, entry).map_err(|bad| self.bad(key, &bad))
    }

    /// Those in a queue, by arrival, with their groups.
    fn places(&self, found: &Found) -> Result<Vec<(GroupName, Place)>, StoreError> {
        let mut places = Vec::new();
        for (key, entry) in &found.entries {
            let Some(rest) = key.strip_prefix(WAITER) else {
                continue;
            };
            let place = place(rest, entry).map_err(|bad| self.bad(key, &bad))?;
            places.push(place);
        }
        places.sort_by_key(|(_, place)| place.number);
        Ok(places)
    }
}

/// What parts the pieces of a key. No name has it.
const PART: char = '\u{1f}';

const TOKEN: &str = "token\u{1f}";
const WAITER: &str = "waiter\u{1f}";
/// The key of the incarnation's note.
const INCARNATION: &str = "incarnation";

const MARK: &str = "mark\u{1f}";

fn token_key(group: &GroupName) -> String {
    format!("{TOKEN}{group}")
}

fn queue_of(group: &GroupName) -> String {
    format!("{WAITER}{group}{PART}")
}

fn waiter_key(group: &GroupName, session: &SessionId) -> String {
    format!("{}{session}", queue_of(group))
}

/// A token's value: its columns but the key, the version and the stamp.
#[derive(Serialize, Deserialize)]
struct Token {
    fence: i64,
    state: String,
    client_bound: Option<String>,
    expected_client: Option<String>,
    document: String,
}

fn token(key: &str, entry: &Entry) -> Result<Row, BadColumn> {
    let wrong = |what: String| BadColumn::of("value", what);
    let version = entry.tag.parse().map_err(|why| BadColumn::of("tag", why))?;
    let value: Token =
        serde_json::from_str(&entry.value).map_err(|why| wrong(format!("is wrong: {why}")))?;
    let columns = Columns {
        group: key.strip_prefix(TOKEN).unwrap_or(key),
        version,
        fence: value.fence,
        state: &value.state,
        client_bound: value.client_bound.as_deref(),
        expected_client: value.expected_client.as_deref(),
        stamped: entry.stamp.clone(),
        document: value.document,
    };
    columns.row()
}

fn put_token(swap: &Swap) -> Put {
    let columns = Columns::of(&swap.to);
    let value = Token {
        fence: columns.fence,
        state: columns.state.to_owned(),
        client_bound: columns.client_bound.map(str::to_owned),
        expected_client: columns.expected_client.map(str::to_owned),
        document: columns.document,
    };
    Put {
        key: token_key(swap.group()),
        value: json(&value),
        tag: columns.version.to_string(),
        stamps: swap.stamp.is_some(),
    }
}

/// What is kept has texts as keys and whole numbers: nothing in it can fail.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn place(rest: &str, entry: &Entry) -> Result<(GroupName, Place), BadColumn> {
    let (group, session) = rest.split_once(PART).unwrap_or((rest, ""));
    let group = GroupName::new(group).map_err(|why| BadColumn::of("key", why))?;
    let seen = entry.stamp.clone();
    Ok((
        group,
        waiter::place(entry.created, session, seen, &entry.value)?,
    ))
}

fn tag_of(version: Version) -> String {
    version.number().to_string()
}

impl<K: Kv> Store for KvStore<K> {
    fn name(&self) -> &str {
        self.kv.name()
    }

    fn read(&mut self, group: &GroupName) -> Result<Reading, StoreError> {
        let key = token_key(group);
        let found = self.kv.get(&[
            Keys::One(key.clone()),
            Keys::Under(queue_of(group)),
            Keys::One(INCARNATION.into()),
        ])?;
        let row = found.entries.get(&key).map(|entry| self.row(&key, entry));
        let places = self.places(&found)?.into_iter();
        Ok(Reading {
            row: row.transpose()?,
            line: places.map(|(_, place)| place).collect(),
            memory: self.memory(&found)?,
            now: found.now,
        })
    }

    fn join(
        &mut self,
        group: &GroupName,
        waiter: &Waiter,
        expiry: &StoreTime,
    ) -> Result<Reading, StoreError> {
        let found = self.kv.get(&[Keys::Under(queue_of(group))])?;
        let forgotten = self.places(&found)?.into_iter().filter(|(_, place)| {
            let age = found
                .now
                .calendar_age_of(place.seen_at, Some(&place.domain));
            age >= FORGOTTEN && place.waiter.session != waiter.session
        });
        let sign = Put {
            key: waiter_key(group, &waiter.session),
            value: waiter::document(waiter),
            tag: String::new(),
            stamps: true,
        };
        self.kv.commit(&Commit {
            puts: vec![sign],
            deletes: forgotten
                .map(|(_, place)| waiter_key(group, &place.waiter.session))
                .collect(),
            until: Some(expiry.clone()),
            ..Commit::default()
        })?;
        self.read(group)
    }

    fn leave(&mut self, group: &GroupName, session: &SessionId) -> Result<(), StoreError> {
        let commit = Commit {
            deletes: vec![waiter_key(group, session)],
            ..Commit::default()
        };
        self.kv.commit(&commit).map(drop)
    }

    fn bell(&mut self) -> Option<Bell> {
        self.kv.bell()
    }

    fn swap(&mut self, swap: &Swap) -> Result<Swapped, StoreError> {
        let token = token_key(swap.group());
        let from = swap.from.map(tag_of);
        let mut commit = Commit {
            compare: vec![(token.clone(), from.clone())],
            puts: vec![put_token(swap)],
            until: Some(swap.expiry.clone()),
            ..Commit::default()
        };
        if let Some(session) = &swap.leaves {
            commit.deletes.push(waiter_key(swap.group(), session));
        }
        if let Some(act) = &swap.act {
            records::add_act(&mut commit, act);
        }
        // Its record is there only if another has called the run unknown.
        let mut known = BTreeMap::new();
        for _ in 0..TRIES {
            let mut commit = commit.clone();
            let mut keys = vec![Keys::One(token.clone())];
            if let Some(run) = &swap.ended {
                keys.extend(records::add_run(&mut commit, run, &known));
            }
            match self.kv.commit(&commit)? {
                Committed::Done(now) => return Ok(Swapped::Done(now)),
                Committed::Expired(now) => return Ok(Swapped::Expired(now)),
                Committed::Conflict => {}
            }
            known = self.kv.get(&keys)?.entries;
            let found = known.get(&token).map(|entry| entry.tag.clone());
            if found != from {
                return Ok(Swapped::Conflict);
            }
        }
        Err(self.contended())
    }

    fn note(&mut self, swap: &NoteSwap) -> Result<Swapped, StoreError> {
        let mut commit = Commit {
            compare: vec![(INCARNATION.into(), swap.from.map(tag_of))],
            puts: vec![Put {
                key: INCARNATION.into(),
                value: swap.to.to_json(),
                tag: tag_of(swap.to.version),
                stamps: true,
            }],
            until: Some(swap.expiry.clone()),
            ..Commit::default()
        };
        if let Some(act) = &swap.act {
            records::add_act(&mut commit, act);
        }
        Ok(match self.kv.commit(&commit)? {
            Committed::Done(now) => Swapped::Done(now),
            Committed::Conflict => Swapped::Conflict,
            Committed::Expired(now) => Swapped::Expired(now),
        })
    }

    fn record(&mut self, run: &RunRecord) -> Result<Recorded, StoreError> {
        for _ in 0..TRIES {
            let found = self.kv.get(&records::keys_of(run))?;
            let mut commit = Commit::default();
            records::add_run(&mut commit, run, &found.entries);
            if commit.puts.is_empty() {
                return Ok(Recorded::Already);
            }
            if let Committed::Done(_) = self.kv.commit(&commit)? {
                return Ok(Recorded::Written);
            }
        }
        Err(self.contended())
    }

    fn list(&mut self) -> Result<Listing, StoreError> {
        let asked = [Keys::Under(TOKEN.into()), Keys::Under(WAITER.into())];
        let found = self.kv.get(&asked)?;
        let mut listing = Listing {
            rows: Vec::new(),
            unreadable: Vec::new(),
            lines: self.places(&found)?,
            now: found.now,
        };
        listing.lines.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (key, entry) in &found.entries {
            let Some(group) = key.strip_prefix(TOKEN) else {
                continue;
            };
            match self.row(key, entry) {
                Ok(row) => listing.rows.push(row),
                Err(error) => listing.unreadable.push(Unreadable {
                    group: group.to_owned(),
                    error,
                }),
            }
        }
        Ok(listing)
    }

    fn runs(&mut self, query: &RunQuery) -> Result<Vec<RunRecord>, StoreError> {
        records::runs(self, query)
    }

    fn acts(&mut self, query: &ActQuery) -> Result<Vec<ActRecord>, StoreError> {
        records::acts(self, query)
    }

    fn once(&mut self, group: &GroupName, key: &str) -> Result<Option<OnceMark>, StoreError> {
        records::key(self, group, key)
    }

    fn once_marks(&mut self, group: Option<&GroupName>) -> Result<Vec<OnceMark>, StoreError> {
        records::keys(self, group)
    }

    fn advance(&mut self, resource: &ResourceName, fence: Fence) -> Result<Advanced, StoreError> {
        let key = format!("{MARK}{resource}");
        for _ in 0..TRIES {
            let found = self.kv.get(&[Keys::One(key.clone())])?;
            let tag = found.entries.get(&key).map(|entry| entry.tag.clone());
            let mark = tag.as_deref().map(str::parse::<i64>).transpose();
            let mark = mark.map_err(|why| self.bad(&key, &BadColumn::of("tag", why)))?;
            if let Some(mark) = mark.filter(|mark| *mark > fence.0) {
                return Ok(Advanced::Behind(Fence(mark)));
            }
            let commit = Commit {
                compare: vec![(key.clone(), tag)],
                puts: vec![Put {
                    key: key.clone(),
                    value: String::new(),
                    tag: fence.0.to_string(),
                    stamps: true,
                }],
                ..Commit::default()
            };
            if let Committed::Done(_) = self.kv.commit(&commit)? {
                return Ok(Advanced::Stored);
            }
        }
        Err(self.contended())
    }

    fn prune(&mut self, group: &GroupName, retention: Retention) -> Result<(), StoreError> {
        records::prune(self, group, retention)
    }
}
