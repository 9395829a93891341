//! The queue of each group: the sessions that wait for its token, by arrival.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::{Reading, StoreError};
use crate::token::{GroupName, SessionId, Until, Waiter};

/// A descriptor that becomes readable when the token may have become free. The store's
/// next call takes back what made it so.
#[derive(Debug, Clone)]
pub struct Notifier(pub Arc<OwnedFd>);

/// Keeps queues, and tells those in them when the token may have become free.
pub trait Queue {
    /// Puts a session at the end of the queue, or renews the sign of life of one that is in it,
    /// which keeps its place. Removes sessions without a sign of life for a minute. Then reads.
    /// After `expiry` it only reads: the sender of a late request may be dead.
    ///
    /// # Errors
    /// If the store can't be used. Whether the session is in the queue is not known then.
    fn join(
        &mut self,
        group: &GroupName,
        waiter: &Waiter,
        expiry: &Until,
    ) -> Result<Reading, StoreError>;

    /// Puts a session out of the queue, if it is in it.
    ///
    /// # Errors
    /// If the store can't be used.
    fn leave(&mut self, group: &GroupName, session: &SessionId) -> Result<(), StoreError>;

    /// What tells who is in the queue that the token may have become free: asked after each
    /// [`Self::join`]. `None`: nothing does, and looking now and then is all that helps.
    fn notifier(&mut self) -> Option<Notifier> {
        None
    }
}
