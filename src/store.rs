//! Stores: databases that can compare-and-swap a row and report their time.
//!
//! A store decides nothing. The rule is in [`crate::token`]; a store carries a
//! swap out if the row's version is still the one that was read and the swap
//! has not expired, both judged in one transaction, and puts its own time into
//! the stamps that the swap names.

pub mod checkup;
pub mod etcd;
pub mod filesystem;
pub mod first_look;
pub mod history;
pub mod kv;
pub mod mysql;
pub mod net;
pub mod open;
pub mod postgres;
pub mod pruning;
pub mod redis;
pub mod sql;
pub mod sqlite;
pub mod url;
pub mod worker;
pub mod zookeeper;

mod error;
mod records;
mod request;
mod tokens;

#[cfg(test)]
pub(crate) mod conformance;
#[cfg(test)]
pub(crate) mod model;

use std::sync::Arc;
use std::time::Duration;

pub use self::error::{StoreError, Trouble};
pub use self::records::{
    ActQuery, Advanced, Marks, OUTPUT_BATCH, PRUNE_BATCH, Records, RefusalQuery, Retention,
    RunQuery,
};
pub use self::request::{Answer, Request};
pub use self::tokens::{
    Listing, Notifier, Queue, Reading, Tokens, Unreadable, check_reader, unknown_incarnation,
};

/// Checks whether a store has become two: only one of its servers may accept writes. A check waits
/// for servers, so it never runs on a thread that holds a deadline.
pub trait Lookout: Send + Sync {
    /// The servers that accept writes, the one in use first, if there are several; empty if no
    /// other does. `None` if that is unknown now, because a server does not answer.
    fn primaries(&self) -> Option<Vec<String>>;
}

/// A database that holds tokens. Calls block, each for at most the time-out
/// that the store was opened with; they are made from one thread at a time.
pub trait Store: Tokens + Queue + Records + Marks + Send {
    /// The store's name in messages. It never holds a password.
    fn name(&self) -> &str;

    /// Carries a request out if that takes no noticeable waiting. `None`: it would have to wait,
    /// and nothing happened. A store across a network never can.
    fn at_once(&mut self, request: &Request) -> Option<Answer> {
        let _ = request;
        None
    }

    /// The longest time of a call, to be changed, if the only servers are on this host and found
    /// without a thread.
    fn limit_of_near(&mut self) -> Option<&mut Duration> {
        None
    }

    /// The check for another server of this store that accepts writes. `None`: there is no other
    /// server.
    fn lookout(&self) -> Option<Arc<dyn Lookout>> {
        None
    }

    /// How many of its servers answered the last request, in words, of a store that is a majority of several. `None`: it
    /// depends on one.
    fn condition(&self) -> Option<String> {
        None
    }

    /// Called once when no request has come for a second: gives back what the next request can do
    /// without, such as a connection that others need.
    fn idle(&mut self) {}
}
