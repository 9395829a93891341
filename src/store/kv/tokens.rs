//! The entries of tokens, and the entry of the incarnation's note.

use std::collections::BTreeMap;
use std::time::Duration;

use super::entries::{DOCUMENT, GROUP, delete, fields};
use super::keys::{self, INCARNATION, TOKENS, WAITERS, list, whole};
use super::queue::{self, channel};
use super::{
    Announcement, Ask, Commit, Committed, Entry, Found, KvStore, Outcome, Put, Rank, records,
};
use crate::store::sql::cell::BadColumn;
use crate::store::sql::token::Columns;
use crate::store::sql::waiter;
use crate::store::{Listing, Reading, StoreError, Tokens, Unreadable};
use crate::sys::random;
use crate::token::{
    GroupName, IncarnationNote, Memory, NoteSwap, Row, StampOf, Swap, Swapped, Version,
};

const FENCE: &str = "fence";
const STATE: &str = "state";
const CLIENT_BOUND: &str = "client_bound";
const EXPECTED_CLIENT: &str = "expected_client";

/// A number as it is written here: a commit compares versions as texts.
fn number(column: &str, text: &str) -> Result<i64, BadColumn> {
    let wrong = |why| BadColumn::of(column, format!("is {text:?}: {why}"));
    let number: i64 = text.parse().map_err(wrong)?;
    match number.to_string() == text {
        true => Ok(number),
        false => Err(BadColumn::of(
            column,
            format!("is {text:?} in place of {number}"),
        )),
    }
}

fn token(key: &str, entry: &Entry) -> Result<Row, BadColumn> {
    let columns = Columns {
        group: entry.field(GROUP),
        version: number("version", &entry.version)?,
        fence: number(FENCE, entry.field(FENCE))?,
        state: entry.field(STATE),
        client_bound: entry.maybe(CLIENT_BOUND),
        expected_client: entry.maybe(EXPECTED_CLIENT),
        stamped: entry.stamp.clone(),
        document: entry.field(DOCUMENT).to_owned(),
    };
    let row = columns.row()?;
    if keys::token(&row.group) != key {
        return Err(BadColumn::of(GROUP, "is another's: the entry was renamed"));
    }
    Ok(row)
}

fn put_token(swap: &Swap) -> Put {
    let columns = Columns::of(&swap.to);
    Put {
        key: keys::token(swap.group()),
        version: columns.version.to_string(),
        fields: fields([
            (GROUP, columns.group),
            (FENCE, &columns.fence.to_string()),
            (STATE, columns.state),
            (CLIENT_BOUND, columns.client_bound.unwrap_or_default()),
            (EXPECTED_CLIENT, columns.expected_client.unwrap_or_default()),
            (DOCUMENT, &columns.document),
        ]),
        stamps: swap.stamp.is_some(),
        numbered: false,
        // Each time: a list that was removed by hand is whole again after a heartbeat of each holder.
        lists: vec![(TOKENS.to_owned(), Rank::At(0))],
    }
}

fn put_note(note: &IncarnationNote) -> Put {
    Put {
        key: INCARNATION.into(),
        version: text_of(note.version),
        fields: fields([(DOCUMENT, &note.to_json())]),
        stamps: true,
        numbered: false,
        lists: Vec::new(),
    }
}

fn text_of(version: Version) -> String {
    version.number().to_string()
}

/// True if waiters must look again after this swap: not after a grant or a heartbeat.
const fn may_free(swap: &Swap) -> bool {
    !matches!(
        swap.stamp,
        Some(StampOf::Created | StampOf::Granted | StampOf::Heartbeat)
    )
}

fn announcement(group: &GroupName) -> Announcement {
    Announcement {
        channel: channel(group),
        if_any_in: list(WAITERS, Some(group)),
    }
}

fn swapped(committed: Committed) -> Swapped {
    match committed.outcome {
        Outcome::Done => Swapped::Done(committed.found.now),
        Outcome::Conflict => Swapped::Conflict,
        Outcome::Expired => Swapped::Expired(committed.found.now),
    }
}

/// A swap, except for the run that it ends.
fn commit_of(swap: &Swap) -> Commit {
    let group = swap.group();
    let note = swap
        .note
        .as_ref()
        .map(|note| (INCARNATION.into(), Some(text_of(note.version))));
    let token = (keys::token(group), swap.from.map(text_of));
    let mut commit = Commit {
        compare: std::iter::once(token).chain(note).collect(),
        grants: swap.stamp == Some(StampOf::Granted),
        fence: Some((group.clone(), swap.to.fence)),
        until: Some(swap.expiry.clone()),
        announces: may_free(swap).then(|| announcement(group)),
        ..Commit::default()
    };
    if let Some(session) = &swap.leaves {
        let key = keys::waiter(group, session);
        commit.deletes.push(delete(key, WAITERS, group));
    }
    if let Some(act) = &swap.act {
        records::add_act(&mut commit, act);
    }
    commit
}

impl KvStore {
    /// What a look at a group needs.
    pub(super) fn asked(group: &GroupName, key: Option<&str>) -> Vec<Ask> {
        let mut asked = vec![
            Ask::One(keys::token(group)),
            whole(list(WAITERS, Some(group))),
            Ask::One(INCARNATION.into()),
        ];
        asked.extend(key.map(|key| Ask::One(keys::once(group, key))));
        asked
    }

    /// The reading in the answer to [`Self::asked`].
    pub(super) fn reading(
        &self,
        group: &GroupName,
        key: Option<&str>,
        mut found: Found,
    ) -> Result<Reading, StoreError> {
        let done = key.map(|key| records::mark_in(self, &mut found.entries, group, key));
        let key = keys::token(group);
        let row = found.entries.get(&key).map(|entry| self.row(&key, entry));
        let waiters = self.waiters(found.entries.iter())?.into_iter();
        Ok(Reading {
            row: row.transpose()?,
            queue: waiters.map(|(_, entry)| entry).collect(),
            memory: self.memory(&found)?,
            done: done.transpose()?.flatten().map(Box::new),
            now: found.now,
            refuses: found.refuses,
        })
    }

    /// What a read reports of the store's memory.
    fn memory(&self, found: &Found) -> Result<Memory, StoreError> {
        let note = found.entries.get(INCARNATION);
        let note = note.map(|entry| {
            let version = number("version", &entry.version).map(Version::from_stored);
            version.map(|version| IncarnationNote::from_json(entry.field(DOCUMENT), version))
        });
        let wrong = |bad| self.bad(INCARNATION, &bad);
        let mut note = note.transpose().map_err(wrong)?;
        if let Some(note) = note.as_mut().filter(|note| note.epoch == found.now.epoch) {
            // As late as it may have been: an observation never ends early.
            let step = i64::try_from(self.kv.step().as_millis()).unwrap_or(i64::MAX);
            let (seen, now) = (note.first_seen.tick_ms, found.now.stamp.tick_ms);
            note.first_seen.tick_ms = seen.max(seen.saturating_add(step).min(now));
        }
        Ok(Memory {
            incarnation: found.server.incarnation.clone(),
            durable: found.server.durable,
            note,
            unnoted: found.server.unnoted,
            lag: found.server.lag,
        })
    }

    /// Notes that the store has no past, on the word of the operator who makes it, unless there is a note.
    ///
    /// # Errors
    /// If it is unknown whether the note is written.
    pub fn init(&mut self, limit: Duration) -> Result<(), StoreError> {
        let found = self.kv.get(&[Ask::One(INCARNATION.into())])?;
        let (
            Memory {
                incarnation: Some(own),
                durable,
                note: None,
                ..
            },
            now,
        ) = (self.memory(&found)?, &found.now)
        else {
            return Ok(());
        };
        let drawn = random::bits64().map_err(StoreError::without_random)?;
        let note = NoteSwap {
            from: None,
            to: IncarnationNote::of_new(own, durable, now, Version::from_random(drawn)),
            expiry: now.until(limit),
            act: None,
        };
        // After a conflict there is a note.
        self.note(&note).map(drop)
    }

    fn row(&self, key: &str, entry: &Entry) -> Result<Row, StoreError> {
        token(key, entry).map_err(|bad| self.bad(key, &bad))
    }
}

impl Tokens for KvStore {
    fn look(&mut self, group: &GroupName, key: Option<&str>) -> Result<Reading, StoreError> {
        let found = self.kv.get(&Self::asked(group, key))?;
        self.reading(group, key, found)
    }

    fn swap(&mut self, swap: &Swap) -> Result<Swapped, StoreError> {
        // Its record exists only if another session has recorded it as unknown.
        let mut known = BTreeMap::new();
        self.persistently(|store| {
            let mut commit = commit_of(swap);
            let compared = commit.compare.clone();
            let keys = compared.iter().map(|(key, _)| Ask::One(key.clone()));
            let mut asked: Vec<Ask> = keys.collect();
            if let Some(run) = &swap.ended {
                asked.extend(records::add_run(&mut commit, run, &known));
            }
            commit.puts.push(put_token(swap));
            let committed = store.kv.commit(&commit)?;
            if committed.outcome != Outcome::Conflict || swap.ended.is_none() {
                return Ok(Some(swapped(committed)));
            }
            known = store.kv.get(&asked)?.entries;
            let is_as_read = |(key, version): &(String, Option<String>)| {
                known.get(key).map(|entry| &entry.version) == version.as_ref()
            };
            let is_another = !compared.iter().all(is_as_read);
            Ok(is_another.then_some(Swapped::Conflict))
        })
    }

    fn note(&mut self, swap: &NoteSwap) -> Result<Swapped, StoreError> {
        let mut commit = Commit {
            compare: vec![(INCARNATION.into(), swap.from.map(text_of))],
            until: Some(swap.expiry.clone()),
            ..Commit::default()
        };
        if let Some(act) = &swap.act {
            records::add_act(&mut commit, act);
        }
        commit.puts.push(put_note(&swap.to));
        self.kv.commit(&commit).map(swapped)
    }

    fn list(&mut self) -> Result<Listing, StoreError> {
        let asked = [whole(TOKENS.into()), whole(WAITERS.into())];
        let found = self.kv.get(&asked)?;
        let mut listing = Listing {
            rows: Vec::new(),
            unreadable: Vec::new(),
            queues: Vec::new(),
            now: found.now,
        };
        let waiters = found
            .entries
            .iter()
            .filter(|(key, _)| queue::is_waiter(key));
        let waiters = waiters.map(|(key, entry)| (keys::group_in(key), self.waiter(key, entry)));
        waiter::list(waiters, &mut listing);
        listing.queues.sort_by(|(one, of_one), (other, of_other)| {
            one.cmp(other).then(of_one.number.cmp(&of_other.number))
        });
        let tokens = found.entries.iter();
        for (key, entry) in tokens.filter(|(key, _)| key.starts_with("token:")) {
            match self.row(key, entry) {
                Ok(row) => listing.rows.push(row),
                Err(error) => listing.unreadable.push(Unreadable {
                    group: keys::group_in(key),
                    error,
                }),
            }
        }
        listing
            .rows
            .sort_by(|one, other| one.group.cmp(&other.group));
        Ok(listing)
    }
}

#[cfg(test)]
#[path = "token_tests.rs"]
pub(super) mod tests;
