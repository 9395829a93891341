//! `tokenrun status`: the tokens and their holders.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use super::shared::failure::reported;
use super::shared::groups::{known, listed, memory};
use super::shared::options::{FormatOptions, GroupsOptions, ScreenOptions, StoreOptions};
use super::shared::stores::known_store;
use super::shared::terminal::{json_text, print, put, screen};
use super::shared::{Action, Context};
use crate::cli::values::{self, Word};
use crate::exit::{self, Exit};
use crate::report::acts::client_pause;
use crate::report::details::details;
use crate::report::group::{Condition, Group, Known, LastRun, Snapshot};
use crate::report::json::{Listed, Token};
use crate::report::message::Message;
use crate::report::overview::overview;
use crate::report::printable::printable;
use crate::report::screen::Screen;
use crate::store::{RunQuery, Store, StoreError, Unreadable};
use crate::sys::terminal::size_of_stdout;
use crate::token::{ClientId, GroupPattern, Groups, Outcome, RefusalRecord, Row, WallTime};

/// The least pause between two reads of a store.
const LEAST_WATCH: Duration = Duration::from_millis(100);

/// The words of `--state`.
static STATES: [Word<Condition>; 8] = [
    ("running", Condition::Running, ""),
    ("idle", Condition::Idle, ""),
    ("free", Condition::Free, ""),
    (
        "silent",
        Condition::Silent,
        "The holder has been silent for longer than --takeover-after",
    ),
    ("paused", Condition::Paused, ""),
    (
        "failed",
        Condition::Failed,
        "The last run was not a success",
    ),
    (
        "observed",
        Condition::Observed,
        "Nothing is granted, because the store may have forgotten a grant",
    ),
    ("unreadable", Condition::Unreadable, ""),
];

/// Show the state of every token
#[derive(Debug, Args)]
pub(super) struct Status {
    /// Only this group, or the groups that match a pattern such as 'etl-*'; can be repeated
    ///
    /// A single name shows every value of its token.
    #[arg(short, long, value_name = "NAME", value_parser = values::pattern)]
    group: Vec<GroupPattern>,
    /// Only groups that this client has, is expected to have, gets next or waits for
    #[arg(long, value_name = "ID", value_parser = values::client)]
    client: Option<ClientId>,
    #[command(flatten)]
    store: StoreOptions,
    /// Only groups in one of these states
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = values::one_of(&STATES))]
    state: Vec<Condition>,
    #[command(flatten)]
    screen: ScreenOptions,
    /// Show it again after each DURATION, until it is interrupted [default: no; without a DURATION
    /// 2s]
    #[arg(long, value_name = "DURATION", value_parser = values::duration, num_args = 0..=1, require_equals = true, default_missing_value = "2s")]
    watch: Option<Duration>,
    #[command(flatten)]
    format: FormatOptions,
    /// Exit with 1 if a group is in trouble: its last run was no success, or its holder is silent
    #[arg(long, conflicts_with = "watch")]
    exit_code: bool,
}

impl Action for Status {
    /// With an interval again and again, until the reader has gone. An unreadable row hides no other: it
    /// is shown as unreadable, and the exit code says so.
    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        let store = &mut *known_store(&self.store, context.log)?;
        if let Some(every) = self.watch {
            return watch(every.max(LEAST_WATCH), self.screen, |screen| {
                look(store, self, screen).map(|shown| shown.text)
            });
        }
        let shown = look(store, self, &screen(self.screen))?;
        let exit = print(&shown.text)?;
        if let Some(pause) = shown.pause {
            context.log.write(&pause, false);
        }
        let exit = match self.exit_code && shown.is_in_trouble {
            true => exit.worse(Exit::Code(exit::NOTHING)),
            false => exit,
        };
        shown.unreadable.map_or(Ok(exit), |error| Err(error.into()))
    }
}

impl Status {
    /// What `status --json` prints of these groups.
    pub(super) fn json_of(groups: &GroupsOptions, store: &mut dyn Store) -> Result<String> {
        let options = Self {
            group: groups.patterns(),
            client: None,
            store: StoreOptions::default(),
            state: Vec::new(),
            screen: ScreenOptions::default(),
            watch: None,
            format: FormatOptions::json(),
            exit_code: false,
        };
        look(store, &options, &Screen::plain()).map(|shown| shown.text)
    }
}

struct Shown {
    /// A group needs a look.
    is_in_trouble: bool,
    /// The client of `--client` is paused.
    pause: Option<Message>,
    text: String,
    unreadable: Option<StoreError>,
}

fn look(store: &mut dyn Store, options: &Status, screen: &Screen) -> Result<Shown> {
    let (listing, refused) = listed(store)?;
    let memory = memory(store)?;
    let wanted: Groups = options.group.clone().into();
    known(&listing, &wanted, store.name())?;
    let is_wanted = |row: &&Row| wanted.has(row.group.as_str());
    let lasts = last_runs(store, listing.rows.iter().filter(is_wanted))?;
    let name = store.name().to_owned();
    let servers = store.condition().map(|it| format!(", {it}"));
    let shown_name = format!("{name}{}", servers.unwrap_or_default());
    let at = Snapshot {
        store: &shown_name,
        memory: &memory,
        now: &listing.now,
    };
    let mut groups = Vec::with_capacity(lasts.len());
    for (row, last) in lasts {
        let waiters = listing.waiting(&row.group).collect();
        let group = Group {
            last_success: last_success(store, row, last.as_ref())?,
            ..Group::new(row, last, waiters, at)
        };
        groups.push(group.with_unstarted(unstarted(store, row, last.as_ref(), &refused)?));
    }
    let is_in = |all: &[Condition]| {
        let asked = &options.state;
        asked.is_empty() || all.iter().any(|it| asked.contains(it))
    };
    let has = |it: &Group<'_>| {
        options
            .client
            .as_ref()
            .is_none_or(|client| it.concerns(client))
    };
    let groups = groups.into_iter();
    let groups = groups.filter(|it| is_in(&it.conditions) && has(it));
    let groups: Vec<Group<'_>> = groups.collect();
    let unreadable = listing.unreadable.iter();
    let unreadable: Vec<&Unreadable> = unreadable
        .filter(|it| wanted.has(&it.group) && is_in(&[Condition::Unreadable]))
        .filter(|_| options.client.is_none())
        .collect();
    let text = match (options.format.is_json(), wanted.single(), groups.as_slice()) {
        (true, ..) => json(&groups, &unreadable, at)?,
        (false, Some(_), [group]) if !options.format.is_wide() => details(group, at, screen),
        _ => overview(&groups, &unreadable, at, options.format.is_wide(), screen),
    };
    let pause = options.client.as_ref().and_then(|client| {
        let pause = memory.pause_of(client, &listing.now)?;
        Some(client_pause(client, pause, &name))
    });
    let is_in_trouble = groups.iter().any(Group::is_in_trouble);
    Ok(Shown {
        is_in_trouble,
        pause,
        text,
        unreadable: unreadable.first().map(|first| first.error.clone()),
    })
}

fn json(groups: &[Group<'_>], unreadable: &[&Unreadable], at: Snapshot<'_>) -> Result<String> {
    let token = |group| Listed::Token(Box::new(Token::of(group, at)));
    let tokens = groups.iter().map(token);
    let others = unreadable.iter().copied().map(Listed::unreadable);
    json_text(&tokens.chain(others).collect::<Vec<_>>())
}

/// The rows with their last finished runs. History is asked only for what a row does not say
/// itself: the store may be far away.
fn last_runs<'a>(
    store: &mut dyn Store,
    rows: impl Iterator<Item = &'a Row>,
) -> Result<Vec<(&'a Row, Option<LastRun>)>> {
    let mut found = Vec::new();
    for row in rows {
        let last = match LastRun::known(row) {
            Known::Never => None,
            Known::All(last) => Some(last),
            Known::Part(part) => {
                let query = RunQuery {
                    group: Some(row.group.clone()),
                    limit: Some(1),
                    ..RunQuery::default()
                };
                let newest = store.runs(&query)?;
                newest.first().map(LastRun::of).or(part)
            }
        };
        found.push((row, last));
    }
    Ok(found)
}

/// Why the last try ran no job, if it did not: the reason in the last run's record, or the newest record of a
/// client that came after that run began.
fn unstarted(
    store: &mut dyn Store,
    row: &Row,
    last: Option<&LastRun>,
    refused: &[RefusalRecord],
) -> Result<Option<String>> {
    let own = refused
        .iter()
        .filter(|it| it.group == row.group && it.is_unstarted());
    let newest = own.max_by_key(|it| it.last_at);
    let began = last.and_then(LastRun::started_at);
    let began = began.max(row.run().and(row.acquired_at()).map(|at| at.wall));
    if let Some(it) = newest.filter(|it| began.is_none_or(|began| it.last_at > began)) {
        let why = it.error.as_deref().unwrap_or("could not start its job");
        return Ok(Some(format!("{} {why}", it.client)));
    }
    if last.is_none_or(|last| last.outcome() != Outcome::NotStarted) {
        return Ok(None);
    }
    let query = RunQuery {
        group: Some(row.group.clone()),
        limit: Some(1),
        ..RunQuery::default()
    };
    let newest = store.runs(&query)?.into_iter().next();
    Ok(newest.and_then(|run| Some(format!("{} {}", run.client, run.reason?))))
}

/// When the last run that succeeded ended. History is asked only after another end.
fn last_success(
    store: &mut dyn Store,
    row: &Row,
    last: Option<&LastRun>,
) -> Result<Option<WallTime>> {
    if let Some(at) = last.and_then(LastRun::succeeded_at) {
        return Ok(Some(at));
    }
    if row.document.counters.runs == 0 {
        return Ok(None);
    }
    let query = RunQuery {
        group: Some(row.group.clone()),
        outcomes: vec![Outcome::Succeeded],
        limit: Some(1),
        ..RunQuery::default()
    };
    let newest = store.runs(&query)?;
    Ok(newest.first().and_then(|run| run.ended_at))
}

/// Moves to the upper left corner.
const HOME: &str = "\u{1b}[H";
/// Clears the whole screen.
const CLEAR: &str = "\u{1b}[2J";
/// Clears the rest of the line.
const REST_OF_LINE: &str = "\u{1b}[K";
/// Clears what is below.
const BELOW: &str = "\u{1b}[J";

/// Shows what `look` finds, every so often, until the reader has gone.
///
/// # Errors
/// If the first look fails. Once something has been shown, an error takes its place.
fn watch(
    every: Duration,
    options: ScreenOptions,
    mut look: impl FnMut(&Screen) -> Result<String>,
) -> Result<Exit> {
    let mut first = true;
    loop {
        let terminal = size_of_stdout();
        let lines = terminal.and_then(|size| size.lines);
        let screen = Screen {
            // The line of the cursor stays free.
            height: lines.map(|lines| lines.saturating_sub(1).max(1)),
            ..screen(options)
        };
        let text = match look(&screen) {
            Ok(text) => text,
            Err(error) if !first => format!("{}\n", printable(&reported(&error).message.text)),
            Err(error) => return Err(error),
        };
        let shown = match terminal {
            Some(_) => redrawn(&text, first),
            None if first => text,
            None => format!("\n{text}"),
        };
        if !put(&shown)? {
            return Ok(Exit::OK);
        }
        first = false;
        thread::sleep(every);
    }
}

/// The text over the one before: each line replaces the old one, so that nothing is ever blank.
fn redrawn(text: &str, first: bool) -> String {
    let mut drawn = HOME.to_owned();
    if first {
        drawn.push_str(CLEAR);
    }
    for line in text.lines() {
        drawn.push_str(line);
        drawn.push_str(REST_OF_LINE);
        drawn.push('\n');
    }
    drawn.push_str(BELOW);
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_replaces_the_old_one() {
        let expected = "\u{1b}[Ha\u{1b}[K\nb\u{1b}[K\n\u{1b}[J";
        assert_eq!(redrawn("a\nb\n", false), expected);
        assert!(redrawn("a\n", true).starts_with("\u{1b}[H\u{1b}[2Ja"));
    }
}
