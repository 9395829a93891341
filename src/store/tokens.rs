//! Tokens: one snapshot of a group, the compare-and-swap of its row, and the queue of those that wait for it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::StoreError;
use crate::token::hidden::quoted;
use crate::token::{
    GroupName, Memory, NoteSwap, OnceMark, QueueEntry, Row, SessionId, StoreTime, Swap, Swapped,
    Until, Waiter, document,
};

/// The result of a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The row; `None` if the group has never been seen.
    pub row: Option<Row>,
    /// The store's time at the read.
    pub now: StoreTime,
    /// The waiters, by arrival; some of them may be dead.
    pub queue: Vec<QueueEntry>,
    /// What the store may have forgotten.
    pub memory: Memory,
    /// Why the store grants nothing, whatever the rule says. A holder goes on.
    pub refuses: Option<StoreError>,
    /// The run that has made the key done that was looked up, if one has.
    pub done: Option<Box<OnceMark>>,
}

/// Every group, at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The rows, by group.
    pub rows: Vec<Row>,
    /// Malformed rows: they hide no others.
    pub unreadable: Vec<Unreadable>,
    /// The store's time.
    pub now: StoreTime,
    /// All waiters, by group; some of them may be dead.
    pub queues: Vec<(GroupName, QueueEntry)>,
}

impl Listing {
    /// The number of waiters for a group's token.
    pub fn waiters(&self, group: &GroupName) -> usize {
        self.waiting(group).count()
    }

    /// The waiters for a group's token, in order of arrival.
    pub fn waiting<'a>(&'a self, group: &GroupName) -> impl Iterator<Item = &'a Waiter> {
        let waits =
            |(of, entry): &&(GroupName, QueueEntry)| of == group && entry.is_alive(&self.now);
        let mut waiting: Vec<&QueueEntry> =
            self.queues.iter().filter(waits).map(|(_, it)| it).collect();
        waiting.sort_by_key(|entry| (entry.number, entry.waiter.session.as_str()));
        waiting.into_iter().map(|entry| &entry.waiter)
    }
}

/// A malformed row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The group, as far as it is readable.
    pub group: String,
    /// What is wrong with it.
    pub error: StoreError,
}

/// Reads and writes tokens. A store decides nothing: the rule is in [`crate::token`].
pub trait Tokens {
    /// Reads a group's row together with the store's time, and with the state of a key of `--once`.
    /// A key that another run makes done together with its release is done in a reading that shows
    /// the release.
    fn look(&mut self, group: &GroupName, key: Option<&str>) -> Result<Reading, StoreError>;

    /// A look without a key.
    fn read(&mut self, group: &GroupName) -> Result<Reading, StoreError> {
        self.look(group, None)
    }

    /// Writes a new row, and the records that the swap carries, if the version is still the one
    /// that was read and the swap has not expired.
    ///
    /// # Errors
    /// If it is unknown whether the swap happened, or will.
    fn swap(&mut self, swap: &Swap) -> Result<Swapped, StoreError>;

    /// Writes the note of the store's incarnation, if the last one is still the one that was read
    /// and the swap has not expired.
    ///
    /// # Errors
    /// If it is unknown whether the note is written.
    fn note(&mut self, swap: &NoteSwap) -> Result<Swapped, StoreError>;

    /// Lists every group.
    fn list(&mut self) -> Result<Listing, StoreError>;
}

/// The error of a store that does not report its incarnation: it grants nothing, and no waiting
/// changes that. Only PostgreSQL can refuse to report it.
pub fn unknown_incarnation() -> StoreError {
    StoreError::denied(
        "the store does not say which incarnation it is, so it may have forgotten a grant",
    )
    .remedy(
        "have a database administrator GRANT EXECUTE ON FUNCTION pg_control_system() to this role",
    )
}

/// Refuses a row whose document needs a newer program: this program neither grants its token nor
/// acts on it. A holder goes on, and carries the document unchanged.
///
/// # Errors
/// If the document needs a newer program.
pub fn check_reader(row: &Row) -> Result<(), StoreError> {
    if !row.document.needs_newer_program() {
        return Ok(());
    }
    Err(StoreError::misconfigured(format!(
        "the token of group {} is for programs that know version {} of it or later, and this tokenrun knows {}",
        quoted(row.group.as_str()),
        row.document.reader,
        document::VERSION
    )).remedy("install a newer tokenrun"))
}

/// A descriptor that becomes readable when the token may have become free. The store's next
/// [`Queue::join`] or read of the token clears the notification.
#[derive(Debug, Clone)]
pub struct Notifier(pub Arc<OwnedFd>);

#[cfg(test)]
impl Notifier {
    /// True if it signals within this time.
    pub(crate) fn signals_within(&self, limit: std::time::Duration) -> bool {
        use std::os::fd::AsFd as _;
        let sources = crate::sys::poll::Sources::new().and((), self.0.as_fd());
        sources.wait(Some(limit)).unwrap().has(&())
    }
}

/// Keeps queues, and notifies waiters when the token may have become free.
pub trait Queue {
    /// Adds a session at the end of the queue, or renews the heartbeat of one that is in it, which
    /// keeps its position. Removes sessions without a heartbeat for a minute. Then looks, as
    /// [`Tokens::look`] does. After `expiry` it only looks: the sender of a late request may be dead.
    ///
    /// # Errors
    /// If the store is unusable. Whether the session is in the queue is unknown then.
    fn join(
        &mut self,
        group: &GroupName,
        waiter: &Waiter,
        expiry: &Until,
        key: Option<&str>,
    ) -> Result<Reading, StoreError>;

    /// Removes a session from the queue, if it is in it.
    fn leave(&mut self, group: &GroupName, session: &SessionId) -> Result<(), StoreError>;

    /// The notifier of a session in the queue: to be fetched after each [`Self::join`] and each read
    /// of the token. `None`: there is none, and only regular looks help.
    fn notifier(&mut self) -> Option<Notifier> {
        None
    }
}
