//! `tokenrun init`: makes the store, or prints how an administrator makes it.

use super::{Failure, print};
use crate::exit::Exit;
use crate::report::printable::printable;
use crate::store::StoreError;

/// Says what became of making a store of this name.
///
/// # Errors
/// If it could not be made.
pub fn made(name: &str, result: Result<(), StoreError>) -> Result<Exit, Failure> {
    result.map_err(|error| Failure::of_store(&error))?;
    print(&format!("the store {} is there\n", printable(name)))
}
