//! The queue of each group: the sessions that wait for its token, by arrival.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::{Reading, StoreError};
use crate::token::{GroupName, SessionId, Until, Waiter};

/// A descriptor that becomes readable when the token may have become free. The store's next
/// [`Queue::join`] or read of the token clears the notification.
#[derive(Debug, Clone)]
pub struct Notifier(pub Arc<OwnedFd>);

/// Keeps queues, and notifies waiters when the token may have become free.
pub trait Queue {
    /// Adds a session at the end of the queue, or renews the heartbeat of one that is in it, which
    /// keeps its position. Removes sessions without a heartbeat for a minute. Then looks, as
    /// [`super::Tokens::look`] does. After `expiry` it only looks: the sender of a late request may be dead.
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
    ///
    /// # Errors
    /// If the store is unusable.
    fn leave(&mut self, group: &GroupName, session: &SessionId) -> Result<(), StoreError>;

    /// The notifier of a session in the queue: to be fetched after each [`Self::join`] and each read
    /// of the token. `None`: there is none, and only regular looks help.
    fn notifier(&mut self) -> Option<Notifier> {
        None
    }
}
