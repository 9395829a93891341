//! `tokenrun init`: makes the store, or prints how an administrator makes it.

use anyhow::Result;

use super::print;
use crate::exit::Exit;
use crate::report::printable::printable;

/// Says that the store of this name is there.
///
/// # Errors
/// If stdout can't be written.
pub fn made(name: &str) -> Result<Exit> {
    print(&format!("the store {} is there\n", printable(name)))
}
