//! The entries of tokens, and the entry of the incarnation's note.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::queue::{WAITER, queue_of, waiter_key};
use super::{Commit, Committed, Entry, Found, Keys, Kv, KvStore, Put, TRIES, json, records};
use crate::store::sql::cell::BadColumn;
use crate::store::sql::token::Columns;
use crate::store::{Listing, Reading, StoreError, Tokens, Unreadable};
use crate::token::{GroupName, IncarnationNote, Memory, NoteSwap, Row, Swap, Swapped, Version};

const TOKEN: &str = "token\u{1f}";
/// The key of the incarnation's note.
const INCARNATION: &str = "incarnation";

fn token_key(group: &GroupName) -> String {
    format!("{TOKEN}{group}")
}

/// A token's value: its columns except the key, the version and the stamp.
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

fn tag_of(version: Version) -> String {
    version.number().to_string()
}

impl<K: Kv> KvStore<K> {
    /// What a read reports of the store's memory.
    fn memory(&self, found: &Found) -> Result<Memory, StoreError> {
        let note = found.entries.get(INCARNATION);
        let note = note.map(|entry| {
            let version = entry.tag.parse().map(Version::from_stored);
            version.map(|version| IncarnationNote::from_json(&entry.value, version))
        });
        let wrong = |why| self.bad(INCARNATION, &BadColumn::of("tag", why));
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
}

impl<K: Kv> Tokens for KvStore<K> {
    fn read(&mut self, group: &GroupName) -> Result<Reading, StoreError> {
        let key = token_key(group);
        let found = self.kv.get(&[
            Keys::One(key.clone()),
            Keys::Under(queue_of(group)),
            Keys::One(INCARNATION.into()),
        ])?;
        let row = found.entries.get(&key).map(|entry| self.row(&key, entry));
        let entries = self.entries(&found)?.into_iter();
        Ok(Reading {
            row: row.transpose()?,
            queue: entries.map(|(_, entry)| entry).collect(),
            memory: self.memory(&found)?,
            now: found.now,
        })
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
        // Its record exists only if another session has recorded it as unknown.
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

    fn list(&mut self) -> Result<Listing, StoreError> {
        let asked = [Keys::Under(TOKEN.into()), Keys::Under(WAITER.into())];
        let found = self.kv.get(&asked)?;
        let mut listing = Listing {
            rows: Vec::new(),
            unreadable: Vec::new(),
            queues: self.entries(&found)?,
            now: found.now,
        };
        listing
            .queues
            .sort_by(|(one, _), (other, _)| one.cmp(other));
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
}
