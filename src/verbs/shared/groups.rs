//! The groups that a verb is about: those that the store has, and the name for all of them.

use anyhow::{Context as _, Result};

use super::failure::Failure;
use crate::exit;
use crate::report::printable::quoted;
use crate::store::{Listing, Store, Unreadable};
use crate::token::operator::EVERY_GROUP;
use crate::token::{GroupName, Groups, Memory, Row};

/// Refuses names of groups that have never been seen. A pattern may match nothing.
pub(crate) fn known(listing: &Listing, groups: &Groups, store: &str) -> Result<()> {
    let is_known = |name: &&GroupName| {
        let readable = listing.rows.iter().any(|row| row.group == **name);
        let unreadable = listing.unreadable.iter();
        readable || unreadable.into_iter().any(|it| it.group == name.as_str())
    };
    match groups.names().find(|name| !is_known(name)) {
        Some(name) => Err(unknown_group(store, name).into()),
        None => Ok(()),
    }
}

/// The row of a group, which must have been seen.
pub(crate) fn known_row(store: &mut dyn Store, group: &GroupName) -> Result<Row> {
    let row = store.read(group)?.row;
    row.ok_or_else(|| unknown_group(store.name(), group).into())
}

/// The groups of a listing, by name, also those whose row is unreadable.
pub(crate) fn all_of(listing: &Listing) -> Vec<GroupName> {
    let readable = listing.rows.iter().map(|row| row.group.clone());
    let name = |it: &Unreadable| GroupName::new(&it.group).ok();
    let unreadable = listing.unreadable.iter().filter_map(name);
    let mut all: Vec<_> = readable.chain(unreadable).collect();
    all.sort();
    all.dedup();
    all
}

/// What the store may have forgotten, as a run would see it now.
pub(crate) fn memory(store: &mut dyn Store) -> Result<Memory> {
    let reading = store.read(&every_group()?)?;
    Ok(reading.memory.noted(&reading.now))
}

/// The name that stands for every group, which no group has.
pub(crate) fn every_group() -> Result<GroupName> {
    let every = GroupName::new(EVERY_GROUP);
    every.context("a bug")
}

/// The failure of a verb whose group has never been seen.
pub(crate) fn unknown_group(store: &str, group: &GroupName) -> Failure {
    Failure::new(
        exit::CONFIG,
        "unknown_group",
        format!(
            "the store {store} has no group {}; tokenrun status lists those that it has",
            quoted(group.as_str())
        ),
    )
}
