//! `tokenrun init`: makes the store, or prints how an administrator makes it.

use anyhow::Result;

use super::print;
use crate::exit::Exit;
use crate::report::printable::printable;

/// Reports that the store of this name exists.
///
/// # Errors
/// If stdout can't be written.
pub fn made(name: &str) -> Result<Exit> {
    print(&format!("the store {} is there\n", printable(name)))
}
