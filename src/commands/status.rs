//! `tokenrun status`: who holds which token.

use super::{Failure, print, print_json};
use crate::exit::{self, Exit};
use crate::report::{json, tables};
use crate::store::Store;
use crate::token::{GroupName, Row};

/// Shows every token, or one group's.
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
    let rows: Vec<Row> = listing
        .rows
        .iter()
        .filter(|row| wanted(row))
        .cloned()
        .collect();
    if let (Some(group), true) = (group, rows.is_empty()) {
        return Err(unknown_group(store.name(), group));
    }
    if as_json {
        let tokens: Vec<_> = rows
            .iter()
            .map(|row| json::Token {
                waiters: listing.waiters(&row.group),
                ..json::Token::of(row, &listing.now)
            })
            .collect();
        return print_json(&tokens);
    }
    print(&tables::tokens(&rows, &listing.now))
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
