//! Keys and values in memory, with a clock that its owner sets. They end with the process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Commit, Committed, Entry, Found, Keys, Kv, Server};
use crate::store::StoreError;
use crate::token::{Incarnation, Served, StoreTime};

#[derive(Debug)]
struct Inner {
    entries: BTreeMap<String, Entry>,
    revision: i64,
    clock: StoreTime,
    server: Server,
}

/// A map in memory. Clones share it, and its clock.
#[derive(Debug, Clone)]
pub struct MemoryKv {
    inner: Arc<Mutex<Inner>>,
}

impl MemoryKv {
    /// An empty map, at this time.
    #[must_use]
    pub fn new(clock: StoreTime) -> Self {
        Self {
            inner: Arc::new(Mutex::new(Inner {
                entries: BTreeMap::new(),
                revision: 0,
                clock,
                // A new store has no past, and exists until it is dropped.
                server: Server {
                    incarnation: Some(Incarnation("memory".into())),
                    durable: true,
                    unnoted: Served::Everything,
                },
            })),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store's time.
    #[must_use]
    pub fn now(&self) -> StoreTime {
        self.inner().clock.clone()
    }

    /// Makes it another store, with the same entries.
    pub fn become_another(&self, server: Server) {
        self.inner().server = server;
    }

    /// Sets the clock: another time, another clock epoch.
    pub fn set_clock(&self, to: StoreTime) {
        self.inner().clock = to;
    }
}

impl Kv for MemoryKv {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn get(&mut self, keys: &[Keys]) -> Result<Found, StoreError> {
        let inner = self.inner();
        let is_asked = |key: &String| {
            keys.iter().any(|asked| match asked {
                Keys::One(one) => one == key,
                Keys::Under(prefix) => key.starts_with(prefix),
            })
        };
        let entries = inner.entries.iter().filter(|(key, _)| is_asked(key));
        Ok(Found {
            entries: entries
                .map(|(key, entry)| (key.clone(), entry.clone()))
                .collect(),
            now: inner.clock.clone(),
            server: inner.server.clone(),
        })
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, StoreError> {
        let mut inner = self.inner();
        let now = inner.clock.clone();
        let holds = |(key, tag): &(String, Option<String>)| {
            inner.entries.get(key).map(|entry| &entry.tag) == tag.as_ref()
        };
        if !commit.compare.iter().all(holds) {
            return Ok(Committed::Conflict);
        }
        if commit
            .until
            .as_ref()
            .is_some_and(|until| now.is_past(until))
        {
            return Ok(Committed::Expired(now));
        }
        inner.revision += 1;
        for put in &commit.puts {
            let before = inner.entries.get(&put.key);
            let stamp = before
                .filter(|_| !put.stamps)
                .map(|entry| entry.stamp.clone());
            let entry = Entry {
                value: put.value.clone(),
                tag: put.tag.clone(),
                stamp: stamp.unwrap_or_else(|| now.clone()),
                created: before.map_or(inner.revision, |entry| entry.created),
            };
            inner.entries.insert(put.key.clone(), entry);
        }
        for key in &commit.deletes {
            inner.entries.remove(key);
        }
        Ok(Committed::Done(now))
    }
}
