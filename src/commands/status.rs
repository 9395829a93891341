//! `tokenrun status`: who holds which token.

use super::{Failure, print, print_json};
use crate::exit::{self, Exit};
use crate::report::{json, tables};
use crate::store::{Store, Unreadable};
use crate::token::{GroupName, Row};

/// Shows every token, or one group's. A row that can't be read hides no other: it is shown
/// as unreadable, and the exit code says so.
///
/// # Errors
/// If the store can't be read, or the group is unknown.
pub fn status(
    store: &mut dyn Store,
    group: Option<&GroupName>,
    as_json: bool,
) -> Result<Exit, Failure> {
    let listing = store.list().map_err(|error| Failure::of_store(&error))?;
    let wanted = |row: &Row| group.is_none_or(|group| row.group == *group);
    let rows: Vec<Row> = listing.rows.into_iter().filter(wanted).collect();
    let wanted = |it: &Unreadable| group.is_none_or(|group| it.group == group.as_str());
    let unreadable: Vec<Unreadable> = listing.unreadable.into_iter().filter(wanted).collect();
    if let (Some(group), true, true) = (group, rows.is_empty(), unreadable.is_empty()) {
        return Err(unknown_group(store.name(), group));
    }
    let shown = if as_json {
        let tokens = rows.iter().map(|row| json::Token::of(row, &listing.now));
        let tokens = tokens.map(json::Listed::Token);
        let others = unreadable.iter().map(json::Listed::unreadable);
        let all: Vec<_> = tokens.chain(others).collect();
        print_json(&all)?
    } else {
        print(&tables::tokens(&rows, &unreadable, &listing.now))?
    };
    match unreadable.into_iter().next() {
        Some(first) => Err(Failure::of_store(&first.error)),
        None => Ok(shown),
    }
}

/// The failure of a verb whose group nobody has ever seen.
#[must_use]
pub fn unknown_group(store: &str, group: &GroupName) -> Failure {
    Failure::new(
        exit::CONFIG,
        "unknown_group",
        format!(
            "the store {store} has no group {group:?}; tokenrun status lists those that it has",
            group = group.as_str()
        ),
    )
}
