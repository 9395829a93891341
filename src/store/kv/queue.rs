//! The entries of waiters.

use super::entries::{delete, put};
use super::keys::{self, WAITERS};
use super::{Commit, Entry, KvStore, Put, Rank};
use crate::store::sql::cell::BadColumn;
use crate::store::sql::waiter;
use crate::store::{Notifier, Queue, Reading, StoreError};
use crate::token::queue::FORGOTTEN;
use crate::token::{GroupName, QueueEntry, SessionId, Until, Waiter};

const SESSION: &str = "session";

/// The channel of a group's releases.
pub(super) fn channel(group: &GroupName) -> String {
    keys::key([&"released", group])
}

fn put_waiter(group: &GroupName, waiter: &Waiter) -> Put {
    let key = keys::waiter(group, &waiter.session);
    let mut put = put(key, "", group, waiter::document(waiter));
    put.fields
        .insert(SESSION.into(), waiter.session.to_string());
    Put {
        numbered: true,
        ..put.listed(WAITERS, group, [Rank::Number; 2])
    }
}

pub(super) fn is_waiter(key: &str) -> bool {
    key.starts_with("waiter:")
}

fn queue_entry(entry: &Entry) -> Result<(GroupName, QueueEntry), BadColumn> {
    let seen = entry.stamp.clone();
    let document = entry.field(super::entries::DOCUMENT);
    let place = waiter::entry(entry.number, entry.field(SESSION), seen, document)?;
    Ok((entry.group()?, place))
}

impl KvStore {
    /// The waiters among these entries, by arrival, with their groups.
    pub(super) fn waiters<'a>(
        &self,
        entries: impl Iterator<Item = (&'a String, &'a Entry)>,
    ) -> Result<Vec<(GroupName, QueueEntry)>, StoreError> {
        let mut waiters = Vec::new();
        for (key, entry) in entries.filter(|(key, _)| is_waiter(key)) {
            waiters.push(self.waiter(key, entry)?);
        }
        waiters.sort_by_key(|(_, entry)| entry.number);
        Ok(waiters)
    }

    pub(super) fn waiter(
        &self,
        key: &str,
        entry: &Entry,
    ) -> Result<(GroupName, QueueEntry), StoreError> {
        queue_entry(entry).map_err(|bad| self.bad(key, &bad))
    }

    /// Removes waiters and reads.
    fn forget(
        &mut self,
        group: &GroupName,
        sessions: &[SessionId],
        until: &Until,
        key: Option<&str>,
    ) -> Result<Reading, StoreError> {
        let delete = |session| delete(keys::waiter(group, session), WAITERS, group);
        let committed = self.kv.commit(&Commit {
            deletes: sessions.iter().map(delete).collect(),
            until: Some(until.clone()),
            then: Self::asked(group, key),
            ..Commit::default()
        })?;
        self.reading(group, key, committed.found)
    }
}

impl Queue for KvStore {
    fn join(
        &mut self,
        group: &GroupName,
        waiter: &Waiter,
        expiry: &Until,
        key: Option<&str>,
    ) -> Result<Reading, StoreError> {
        // Before the read: a release in between is announced.
        self.kv.subscribe(&channel(group));
        let committed = self.kv.commit(&Commit {
            puts: vec![put_waiter(group, waiter)],
            until: Some(expiry.clone()),
            then: Self::asked(group, key),
            ..Commit::default()
        })?;
        let reading = self.reading(group, key, committed.found)?;
        let is_forgotten = |entry: &&QueueEntry| {
            let age = reading
                .now
                .calendar_age_of(entry.seen_at, Some(&entry.epoch));
            age >= FORGOTTEN && entry.waiter.session != waiter.session
        };
        let session = |entry: &QueueEntry| entry.waiter.session.clone();
        let forgotten: Vec<_> = reading
            .queue
            .iter()
            .filter(is_forgotten)
            .map(session)
            .collect();
        if forgotten.is_empty() || reading.now.is_past(expiry) {
            return Ok(reading);
        }
        self.forget(group, &forgotten, expiry, key)
    }

    fn leave(&mut self, group: &GroupName, session: &SessionId) -> Result<(), StoreError> {
        let commit = Commit {
            deletes: vec![delete(keys::waiter(group, session), WAITERS, group)],
            ..Commit::default()
        };
        self.kv.commit(&commit).map(drop)
    }

    fn notifier(&mut self) -> Option<Notifier> {
        self.kv.notifier()
    }
}
