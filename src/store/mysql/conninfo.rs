//! Connection strings, variables and option files as the `mysql` and `mariadb` clients take them. Pure:
//! callers pass in whatever is read from outside.

pub mod files;
pub mod resolve;
pub mod text;

use crate::store::net::address::BadAddress;

/// An error in a connection string, a variable or a file that belongs to it. It never repeats a
/// value that may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConninfoError(pub String);

impl ConninfoError {
    fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl From<BadAddress> for ConninfoError {
    fn from(bad: BadAddress) -> Self {
        Self(format!("the store's URL {bad}"))
    }
}

#[cfg(test)]
mod tests;
