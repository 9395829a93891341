//! What a transaction comes to.

use crate::store::StoreError;

/// What a transaction answers, and whether it is committed.
pub(super) enum Kept<T> {
    Yes(T),
    No(T),
}

/// What can go wrong while a transaction is open.
pub(super) enum WriteError {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for WriteError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}
