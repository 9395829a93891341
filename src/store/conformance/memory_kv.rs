//! Keys and values in memory, with a clock that its owner sets. They end with the process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::store::StoreError;
use crate::store::kv::{
    Ask, Commit, Committed, Delete, Entry, Fields, Found, Kv, Outcome, Part, Put, Rank, Server,
};
use crate::token::{Incarnation, Served, StoreTime};

#[derive(Debug)]
struct Inner {
    entries: BTreeMap<String, Entry>,
    /// The ranks of the keys in each list.
    lists: BTreeMap<String, BTreeMap<String, i64>>,
    last_number: i64,
    clock: StoreTime,
    server: Server,
}

/// A map in memory. Clones share it, and its clock.
#[derive(Debug, Clone)]
pub(crate) struct MemoryKv {
    inner: Arc<Mutex<Inner>>,
}

impl MemoryKv {
    /// An empty map, at this time.
    pub(crate) fn new(clock: StoreTime) -> Self {
        Self {
            inner: Arc::new(Mutex::new(Inner {
                entries: BTreeMap::new(),
                lists: BTreeMap::new(),
                last_number: 0,
                clock,
                // A new store has no past, and exists until it is dropped.
                server: Server {
                    incarnation: Some(Incarnation("memory".into())),
                    durable: true,
                    unnoted: Served::Everything,
                    lag: Duration::ZERO,
                },
            })),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store's time.
    pub(crate) fn now(&self) -> StoreTime {
        self.inner().clock.clone()
    }

    /// Sets the clock: another time, another clock epoch.
    pub(crate) fn set_clock(&self, to: StoreTime) {
        self.inner().clock = to;
    }
}

impl Inner {
    fn found(&self, asked: &[Ask]) -> Found {
        let keys = asked.iter().flat_map(|asked| match asked {
            Ask::One(key) => vec![key],
            Ask::Part(part) => self.part(part),
        });
        let entries = keys.filter_map(|key| Some((key.clone(), self.entries.get(key)?.clone())));
        Found {
            entries: entries.collect(),
            now: self.clock.clone(),
            server: self.server.clone(),
            refuses: None,
        }
    }

    fn part(&self, part: &Part) -> Vec<&String> {
        let (from, to) = part.ranks;
        let list = self.lists.get(&part.list).into_iter().flatten();
        let mut keys: Vec<(i64, &String)> = list
            .map(|(key, rank)| (*rank, key))
            .filter(|(rank, _)| (from..=to).contains(rank))
            .collect();
        keys.sort_unstable();
        if part.newest_first {
            keys.reverse();
        }
        let keys = keys.into_iter().map(|(_, key)| key);
        keys.skip(part.skip as usize)
            .take(part.limit as usize)
            .collect()
    }

    fn put(&mut self, put: &Put) {
        let before = self.entries.get(&put.key);
        let stamp = before
            .filter(|_| !put.stamps)
            .map(|entry| entry.stamp.clone());
        let number = match before {
            Some(entry) => entry.number,
            None if put.numbered => {
                self.last_number += 1;
                self.last_number
            }
            None => 0,
        };
        let mut fields = before.map_or_else(Fields::new, |entry| entry.fields.clone());
        fields.extend(put.fields.clone());
        let entry = Entry {
            version: put.version.clone(),
            stamp: stamp.unwrap_or_else(|| self.clock.clone()),
            number,
            fields,
        };
        self.entries.insert(put.key.clone(), entry);
        for (list, rank) in &put.lists {
            let rank = match rank {
                Rank::At(rank) => *rank,
                Rank::Now => self.clock.stamp.wall.0,
                Rank::Number => number,
            };
            let list = self.lists.entry(list.clone()).or_default();
            list.insert(put.key.clone(), rank);
        }
    }

    fn delete(&mut self, delete: &Delete) {
        self.entries.remove(&delete.key);
        for list in &delete.lists {
            if let Some(list) = self.lists.get_mut(list) {
                list.remove(&delete.key);
            }
        }
    }
}

impl Kv for MemoryKv {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn has_ticks(&self) -> bool {
        true
    }

    fn get(&mut self, asked: &[Ask]) -> Result<Found, StoreError> {
        Ok(self.inner().found(asked))
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, StoreError> {
        let mut inner = self.inner();
        let version = |key: &str| Some(inner.entries.get(key)?.version.as_str());
        let outcome = commit.outcome(version, &inner.clock);
        if outcome == Outcome::Done {
            for put in &commit.puts {
                inner.put(put);
            }
            for delete in &commit.deletes {
                inner.delete(delete);
            }
        }
        Ok(Committed {
            outcome,
            found: inner.found(&commit.then),
        })
    }
}
