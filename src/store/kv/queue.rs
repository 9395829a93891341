//! The entries of waiters.

use super::{Commit, Entry, Found, Keys, Kv, KvStore, PART, Put};
use crate::store::sql::cell::BadColumn;
use crate::store::sql::waiter;
use crate::store::{Notifier, Queue, Reading, StoreError, Tokens as _};
use crate::token::queue::FORGOTTEN;
use crate::token::{GroupName, QueueEntry, SessionId, Until, Waiter};

pub(super) const WAITER: &str = "waiter\u{1f}";

pub(super) fn queue_of(group: &GroupName) -> String {
    format!("{WAITER}{group}{PART}")
}

pub(super) fn waiter_key(group: &GroupName, session: &SessionId) -> String {
    format!("{}{session}", queue_of(group))
}

fn queue_entry(rest: &str, entry: &Entry) -> Result<(GroupName, QueueEntry), BadColumn> {
    let (group, session) = rest.split_once(PART).unwrap_or((rest, ""));
    let group = GroupName::new(group).map_err(|why| BadColumn::of("key", why))?;
    let seen = entry.stamp.clone();
    Ok((
        group,
        waiter::entry(entry.created, session, seen, &entry.value)?,
    ))
}

impl<K: Kv> KvStore<K> {
    /// The waiters, by arrival, with their groups.
    pub(super) fn entries(
        &self,
        found: &Found,
    ) -> Result<Vec<(GroupName, QueueEntry)>, StoreError> {
        let mut entries = Vec::new();
        for (key, entry) in &found.entries {
            let Some(rest) = key.strip_prefix(WAITER) else {
                continue;
            };
            let entry = queue_entry(rest, entry).map_err(|bad| self.bad(key, &bad))?;
            entries.push(entry);
        }
        entries.sort_by_key(|(_, entry)| entry.number);
        Ok(entries)
    }
}

impl<K: Kv> Queue for KvStore<K> {
    fn join(
        &mut self,
        group: &GroupName,
        waiter: &Waiter,
        expiry: &Until,
    ) -> Result<Reading, StoreError> {
        let found = self.kv.get(&[Keys::Under(queue_of(group))])?;
        let forgotten = self.entries(&found)?.into_iter().filter(|(_, entry)| {
            let age = found.now.calendar_age_of(entry.seen_at, Some(&entry.epoch));
            age >= FORGOTTEN && entry.waiter.session != waiter.session
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
                .map(|(_, entry)| waiter_key(group, &entry.waiter.session))
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

    fn notifier(&mut self) -> Option<Notifier> {
        self.kv.notifier()
    }
}
