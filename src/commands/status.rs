//! `tokenrun status`: the tokens and their holders.

use std::thread;

use anyhow::{Context as _, Result};

use super::failure::{Failure, reported};
use super::{json_text, print, put};
use crate::cli::StatusRequest;
use crate::exit::{self, Exit};
use crate::report::details::details;
use crate::report::printable::{printable, quoted};
use crate::report::{json, tables};
use crate::store::{Store, StoreError, Unreadable};
use crate::sys::terminal;
use crate::token::operator::EVERY_GROUP;
use crate::token::{GroupName, Memory, Row};

/// Shows every token, or one group's; with an interval again and again, until the reader has gone.
/// An unreadable row hides no other: it is shown as unreadable, and the exit code says so.
///
/// # Errors
/// If the store can't be read, or the group is unknown.
pub fn status(store: &mut dyn Store, request: &StatusRequest) -> Result<Exit> {
    let Some(every) = request.watch else {
        let shown = look(store, request)?;
        let exit = print(&shown.text)?;
        return shown.unreadable.map_or(Ok(exit), |error| Err(error.into()));
    };
    let clear = terminal::columns_of_stdout().map_or("\n", |_| CLEAR);
    let mut first = true;
    loop {
        let text = match look(store, request) {
            Ok(shown) => shown.text,
            // Once the table has been shown, an error does not end it.
            Err(error) if !first => format!("{}\n", printable(&reported(&error).message.text)),
            Err(error) => return Err(error),
        };
        let before = if first && clear != CLEAR { "" } else { clear };
        if !put(&format!("{before}{text}"))? {
            return Ok(Exit::OK);
        }
        first = false;
        thread::sleep(every);
    }
}

/// Moves to the upper left corner, and clears what is below.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

struct Shown {
    text: String,
    unreadable: Option<StoreError>,
}

fn look(store: &mut dyn Store, request: &StatusRequest) -> Result<Shown> {
    let listing = store.list()?;
    let memory = memory(store)?;
    let group = request.group.as_ref();
    let wanted = |row: &Row| group.is_none_or(|group| row.group == *group);
    let rows = listing.rows.iter().filter(|row| wanted(row));
    let rows: Vec<Row> = rows.cloned().collect();
    let wanted = |it: &&Unreadable| group.is_none_or(|group| it.group == group.as_str());
    let unreadable: Vec<&Unreadable> = listing.unreadable.iter().filter(wanted).collect();
    if let (Some(group), true, true) = (group, rows.is_empty(), unreadable.is_empty()) {
        return Err(unknown_group(store.name(), group).into());
    }
    let text = match (request.json, group, rows.first()) {
        (true, ..) => {
            let tokens = rows.iter().map(|row| json::Token {
                waiters: listing.waiters(&row.group),
                ..json::Token::of(row, &memory, &listing.now)
            });
            let tokens = tokens.map(Box::new).map(json::Listed::Token);
            let others = unreadable.iter().copied().map(json::Listed::unreadable);
            let all: Vec<_> = tokens.chain(others).collect();
            json_text(&all)?
        }
        (false, Some(_), Some(row)) => details(row, &memory, &listing.now),
        _ => tables::tokens(&rows, &unreadable, &memory, &listing.now),
    };
    Ok(Shown {
        text,
        unreadable: unreadable.first().map(|first| first.error.clone()),
    })
}

/// What the store may have forgotten, as a run would see it now.
///
/// # Errors
/// If the store can't be read.
pub fn memory(store: &mut dyn Store) -> Result<Memory> {
    let reading = store.read(&every_group()?);
    let reading = reading?;
    Ok(reading.memory.noted(&reading.now))
}

/// The name that stands for every group, which no group has.
///
/// # Errors
/// If it is no name: a bug.
pub fn every_group() -> Result<GroupName> {
    let every = GroupName::new(EVERY_GROUP);
    every.context("a bug")
}

/// The failure of a verb whose group has never been seen.
#[must_use]
pub fn unknown_group(store: &str, group: &GroupName) -> Failure {
    Failure::new(
        exit::CONFIG,
        "unknown_group",
        format!(
            "the store {store} has no group {}; tokenrun status lists those that it has",
            quoted(group.as_str())
        ),
    )
}
