//! Stores that keep keys and values: the whole protocol over a small [`Kv`].
//!
//! A back end only compares and writes. Each entry has a *tag*, which a commit compares: a token's
//! tag is its version. The time comes from the store: an entry keeps the stamp of the last commit
//! that stamped it, and the revision of its creation, which orders the queue. The contents of an
//! entry are JSON. Names have no control characters, so one of those separates the parts of a key.

pub mod memory;

mod entries;
mod marks;
mod outputs;
mod queue;
mod records;
mod refusals;
mod tokens;

use std::collections::BTreeMap;

use serde::Serialize;

use super::sql::cell::BadColumn;
use super::{Notifier, Store, StoreError};
use crate::token::{Incarnation, Served, StoreTime, Until};

/// The operations of a key-value database for [`KvStore`]. Calls block, each for a bounded time.
pub trait Kv: Send {
    /// The store's name in messages. It never holds a password.
    fn name(&self) -> &str;

    /// The entries of these keys and the store's time, in one snapshot.
    ///
    /// # Errors
    /// If the store can't be read.
    fn get(&mut self, keys: &[Keys]) -> Result<Found, StoreError>;

    /// Compares and writes, as one transaction.
    ///
    /// # Errors
    /// If it is unknown whether the commit happened, or will.
    fn commit(&mut self, commit: &Commit) -> Result<Committed, StoreError>;

    /// The notifier of changed entries ([`super::Queue::notifier`]).
    fn notifier(&mut self) -> Option<Notifier> {
        None
    }
}

/// The entries to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keys {
    /// One key.
    One(String),
    /// Every key with this prefix.
    Under(String),
}

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub value: String,
    /// The text that a commit compares.
    pub tag: String,
    /// The time of its last stamp, by the store's clock.
    pub stamp: StoreTime,
    /// The revision of its creation. Revisions rise.
    pub created: i64,
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
}

/// The identity of the store that answered, in the same snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its incarnation, if it reports one. Another incarnation has another clock epoch.
    pub incarnation: Option<Incarnation>,
    /// Whether the store's commits survive a crash, by its present settings.
    pub durable: bool,
    /// What counts as served without a note: nothing, unless the store certainly has no past.
    pub unnoted: Served,
}

/// A conditional write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    /// The required tags of these keys; `None`: the key must be absent.
    pub compare: Vec<(String, Option<String>)>,
    /// The entries to write.
    pub puts: Vec<Put>,
    /// The keys to remove, if present.
    pub deletes: Vec<String>,
    /// After this time, and in another clock epoch, nothing happens.
    pub until: Option<Until>,
}

/// An entry to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    pub key: String,
    pub value: String,
    pub tag: String,
    /// Whether it is stamped. A new one always is.
    pub stamps: bool,
}

/// The answer to a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    /// It happened, at this time.
    Done(StoreTime),
    /// A tag differed: nothing happened.
    Conflict,
    /// It came too late: nothing happened.
    Expired(StoreTime),
}

/// How often an operation is retried after another writer interfered.
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

    /// The error after the last try.
    fn contended(&self) -> StoreError {
        StoreError::refused(format!(
            "the store {} kept changing; gave up after {TRIES} conflicts",
            self.kv.name()
        ))
        .remedy("try again")
    }
}

/// Separates the parts of a key. No name contains it.
const PART: char = '\u{1f}';

/// The values have texts as keys and whole numbers: nothing in them can fail.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

impl<K: Kv> Store for KvStore<K> {
    fn name(&self) -> &str {
        self.kv.name()
    }
}
