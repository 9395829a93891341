//! `tokenrun once list`: the keys of `--once` that are done.

use anyhow::Result;

use super::status::unknown_group;
use super::{print, print_json};
use crate::exit::Exit;
use crate::report::{json, tables};
use crate::store::Store;
use crate::token::GroupName;

/// Shows keys, the newest first.
///
/// # Errors
/// If the store can't be read, or the group is unknown.
pub fn list(store: &mut dyn Store, group: Option<&GroupName>, as_json: bool) -> Result<Exit> {
    if let Some(group) = group {
        let reading = store.read(group);
        let reading = reading?;
        if reading.row.is_none() {
            return Err(unknown_group(store.name(), group).into());
        }
    }
    let marks = store.once_marks(group)?;
    if as_json {
        let objects: Vec<_> = marks.iter().map(json::Mark::of).collect();
        return print_json(&objects);
    }
    print(&tables::marks(&marks))
}
