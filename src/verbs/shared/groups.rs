//! The groups that a verb is about: those that the store has, and the name for all of them.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::failure::Failure;
use crate::exit;
use crate::report::printable::quoted;
use crate::store::{Listing, RefusalQuery, Store, StoreError, Unreadable};
use crate::token::operator::EVERY_GROUP;
use crate::token::{GroupName, GroupPattern, Groups, Memory, RefusalRecord, Row};

/// The event of a group that the store does not have, as JSON names it.
pub(crate) const UNKNOWN_GROUP: &str = "unknown_group";

/// What happened to groups is read for so long: a day more than the longest timeline of the page.
pub(crate) const PAST: Duration = Duration::from_secs(31 * 86_400);

/// How many refusals are read.
pub(crate) const MOST_REFUSALS: u32 = 20_000;

/// The groups of a store with the newest refusals. A group whose every try could not start its job was
/// never granted, and has no row: it is listed as free.
///
/// # Errors
/// If the store does not answer.
pub(crate) fn listed(store: &mut dyn Store) -> Result<(Listing, Vec<RefusalRecord>), StoreError> {
    let mut listing = store.list()?;
    let refusals = store.refusals(&RefusalQuery {
        since: Some(listing.now.wall_before(PAST)),
        limit: Some(MOST_REFUSALS),
        ..RefusalQuery::default()
    })?;
    let known: BTreeSet<GroupName> = all_of(&listing).into_iter().collect();
    let unstarted = refusals.iter().filter(|it| it.is_unstarted());
    let unstarted: BTreeSet<&GroupName> = unstarted.map(|it| &it.group).collect();
    let unwritten = unstarted.into_iter().filter(|it| !known.contains(*it));
    let unwritten = unwritten.map(|it| Row::unwritten(it.clone(), listing.now.clone()));
    let unwritten: Vec<Row> = unwritten.collect();
    listing.rows.extend(unwritten);
    listing
        .rows
        .sort_by(|one, other| one.group.cmp(&other.group));
    Ok((listing, refusals))
}

/// True if `status` lists the group.
///
/// # Errors
/// If the store does not answer.
pub(crate) fn is_listed(store: &mut dyn Store, group: &GroupName) -> Result<bool, StoreError> {
    Ok(all_of(&listed(store)?.0).contains(group))
}

/// Refuses names of groups that have never been seen. A pattern may match nothing.
pub(crate) fn known(listing: &Listing, groups: &Groups, store: &str) -> Result<()> {
    let all = all_of(listing);
    match groups.names().find(|name| !all.contains(name)) {
        Some(name) => Err(unknown_group(store, name).into()),
        None => Ok(()),
    }
}

/// The groups that a request selects, and what it names in vain.
pub(crate) struct Selected {
    pub(crate) groups: Vec<GroupName>,
    pub(crate) vain: Vec<Vain>,
}

/// A name or a pattern without a group, or `*` for all groups of a store without any.
pub(crate) struct Vain {
    pub(crate) named: String,
    pub(crate) failure: Failure,
}

/// Selects groups where each name and each pattern must stand for one at least.
pub(crate) fn selected(listing: &Listing, wanted: &Groups, store: &str) -> Selected {
    let all = all_of(listing);
    let vain = match wanted {
        Groups::All if all.is_empty() => vec![Vain {
            named: EVERY_GROUP.to_owned(),
            failure: no_group(format!("the store {store} has no group yet")),
        }],
        Groups::All => Vec::new(),
        Groups::Matching(patterns) => {
            let matches = |it: &GroupPattern| all.iter().any(|group| it.matches(group.as_str()));
            let vain = patterns.iter().filter(|it| !matches(it));
            vain.map(|it| Vain::of(it, store)).collect()
        }
    };
    let is_wanted = |it: &GroupName| wanted.has(it.as_str());
    Selected {
        groups: all.into_iter().filter(is_wanted).collect(),
        vain,
    }
}

impl Vain {
    fn of(pattern: &GroupPattern, store: &str) -> Self {
        let failure = pattern.name().map_or_else(
            || {
                let pattern = quoted(pattern.as_str());
                no_group(format!(
                    "no group of the store {store} matches {pattern}; tokenrun status lists those that it has"
                ))
            },
            |name| unknown_group(store, name),
        );
        let named = pattern.as_str().to_owned();
        Self { named, failure }
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
    no_group(format!(
        "the store {store} has no group {}; tokenrun status lists those that it has",
        quoted(group.as_str())
    ))
}

fn no_group(text: String) -> Failure {
    Failure::new(exit::CONFIG, UNKNOWN_GROUP, text)
}
