//! Connection strings in libpq's syntax: URLs, `key=value`, the variables `PG…`, service files and
//! password files. Pure: callers pass in whatever is read from outside.

pub mod options;
pub mod passfile;
pub mod resolve;
pub mod service;
pub mod settings;
pub mod text;

use crate::store::net::address::BadAddress;

/// An error in a connection string, a variable or a file that belongs to it. It never repeats a
/// value that may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConninfoError(pub String);

impl From<BadAddress> for ConninfoError {
    fn from(bad: BadAddress) -> Self {
        Self(format!("the store's URL {bad}"))
    }
}

impl ConninfoError {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

#[cfg(test)]
mod tests;
