//! The result of a transaction.

use crate::store::StoreError;

/// A transaction's answer, and whether to commit.
pub(super) enum Kept<T> {
    Yes(T),
    No(T),
}

/// The errors of an open transaction.
pub(super) enum WriteError {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for WriteError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}
