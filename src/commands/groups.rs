//! `tokenrun groups`: names alone, for a shell that completes a line.

use anyhow::Result;

use super::print;
use crate::exit::Exit;
use crate::store::Store;
use crate::token::hidden::is_hidden;

/// Prints the name of each group, a line each, including groups whose token is unreadable. Names
/// that no option accepts are left out.
///
/// # Errors
/// If the store can't be read, or the names can't be printed.
pub fn groups(store: &mut dyn Store) -> Result<Exit> {
    let listing = store.list()?;
    let rows = listing.rows.iter().map(|row| row.group.to_string());
    let unreadable = listing.unreadable.iter().map(|row| row.group.clone());
    let names = rows
        .chain(unreadable)
        .filter(|name| !name.contains(is_hidden));
    let names: String = names.map(|name| name + "\n").collect();
    print(&names)
}
