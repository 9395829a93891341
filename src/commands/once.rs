//! `tokenrun once list`: the keys of `--once` that are done.

use anyhow::Result;

use super::screen::screen;
use super::status::unknown_group;
use super::{print, print_json};
use crate::cli::OnceListRequest;
use crate::exit::Exit;
use crate::report::{json, tables};
use crate::store::Store;

/// Shows keys, the newest first.
///
/// # Errors
/// If the store can't be read, or the group is unknown.
pub fn list(store: &mut dyn Store, request: &OnceListRequest) -> Result<Exit> {
    let group = request.group.as_ref();
    if let Some(group) = group {
        let reading = store.read(group);
        let reading = reading?;
        if reading.row.is_none() {
            return Err(unknown_group(store.name(), group).into());
        }
    }
    let marks = store.once_marks(group)?;
    if request.json {
        let objects: Vec<_> = marks.iter().map(json::Mark::of).collect();
        return print_json(&objects);
    }
    print(&tables::marks(&marks, &screen(request.screen)))
}
