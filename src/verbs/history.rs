//! `tokenrun history`: the runs with their outcomes, the refused ones, and the acts of operators.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use anyhow::Result;
use clap::Args;

use super::shared::groups::{all_of, known};
use super::shared::options::{FormatOptions, GroupsOptions, ScreenOptions, StoreOptions};
use super::shared::span::Span;
use super::shared::stores::known_store;
use super::shared::terminal::{json_text, print, print_json, screen, zone};
use super::shared::{Action, Context};
use crate::cli::GivenTime;
use crate::cli::values::{self, Word};
use crate::exit::Exit;
use crate::report::history::{Entry, history as table};
use crate::report::screen::Screen;
use crate::store::history::runs as with_present;
use crate::store::{ActQuery, Listing, RefusalQuery, RunQuery, Store};
use crate::token::{
    ActRecord, ClientId, GroupName, Groups, Outcome, RefusalRecord, RunRecord, StoreTime,
};

/// How much is shown unless the line says.
const LIMIT: u32 = 50;

/// The words of `--outcome`.
static OUTCOMES: [Word<Outcome>; 8] = [
    word(Outcome::Running),
    word(Outcome::Succeeded),
    word(Outcome::Failed),
    word(Outcome::Signalled),
    word(Outcome::TimedOut),
    word(Outcome::Lost),
    word(Outcome::NotStarted),
    word(Outcome::Unknown),
];

const fn word(outcome: Outcome) -> Word<Outcome> {
    (outcome.word(), outcome, "")
}

/// Show past runs, and how each ended
#[derive(Debug, Args)]
pub(super) struct History {
    #[command(flatten)]
    groups: GroupsOptions,
    #[command(flatten)]
    store: StoreOptions,
    #[command(flatten)]
    screen: ScreenOptions,
    /// Only runs of this client
    #[arg(long, value_name = "ID", value_parser = values::client)]
    client: Option<ClientId>,
    /// Only runs with one of these outcomes, such as failed,lost
    #[arg(long, value_name = "OUTCOME", value_delimiter = ',', value_parser = values::one_of(&OUTCOMES))]
    outcome: Vec<Outcome>,
    /// Only what began at this time or later: 12h (ago), 02:00, yesterday, 2026-11-21, '2026-11-21
    /// 02:00'
    ///
    /// Times are in the zone of this host (TZ); with --utc they are in UTC. A day stands for its
    /// begin. A time of the day stands for the last time that the clock showed it.
    #[arg(long, value_name = "TIME", value_parser = GivenTime::parse)]
    since: Option<GivenTime>,
    /// Only what began before this time, given as for --since
    #[arg(long, value_name = "TIME", value_parser = GivenTime::parse)]
    until: Option<GivenTime>,
    /// Show refused runs too: the client, the reason, and how often
    #[arg(long, conflicts_with = "outcome")]
    refusals: bool,
    /// The newest N runs, refusals and acts of operators
    #[arg(short = 'n', long, value_name = "N", default_value_t = LIMIT)]
    limit: u32,
    #[command(flatten)]
    format: FormatOptions,
}

impl History {
    /// What `history --json` prints of these groups.
    pub(super) fn json_of(groups: &GroupsOptions, store: &mut dyn Store) -> Result<String> {
        let options = Self {
            groups: groups.clone(),
            store: StoreOptions::default(),
            screen: ScreenOptions::default(),
            client: None,
            outcome: Vec::new(),
            since: None,
            until: None,
            refusals: false,
            limit: LIMIT,
            format: FormatOptions::json(),
        };
        json_text(&options.entries(store)?.0)
    }

    /// Runs, acts of operators, and on request refusals, the newest first. A run whose job could not start is
    /// one of them. Also the store's time.
    fn entries(&self, store: &mut dyn Store) -> Result<(Vec<Entry>, StoreTime)> {
        let groups = self.groups.groups();
        let listing = store.list()?;
        let now = listing.now.stamp.wall;
        let zone = zone(self.screen.utc);
        let span = Span::between(self.since, self.until, now, &zone)?;
        let wanted = wanted(&listing, &groups);
        let refusals = refusals(store, self, &wanted, span)?;
        if !refusals.iter().any(|it| groups.single() == Some(&it.group)) {
            // A group that no node could run yet has no token.
            known(&listing, &groups, store.name())?;
        }
        let groups = wanted;
        let runs = runs(store, &listing, self, &groups, span)?;
        let runs = runs.into_iter().map(Box::new);
        let mut entries: Vec<Entry> = runs.map(Entry::Run).collect();
        if self.client.is_none() && self.outcome.is_empty() {
            let acts = acts(store, self.limit, &groups, span)?.into_iter();
            entries = merged(entries, acts.map(Box::new).map(Entry::Act).collect());
        }
        let refusals = refusals.into_iter().map(Box::new).map(Entry::Refusal);
        entries = merged(entries, refusals.collect());
        entries.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        Ok((entries, listing.now))
    }
}

impl Action for History {
    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        let store = &mut *known_store(&self.store, context.log)?;
        let (entries, now) = self.entries(store)?;
        if self.format.is_json() {
            return print_json(&entries);
        }
        let screen = screen(self.screen);
        let screen = Screen {
            width: screen.width.filter(|_| !self.format.is_wide()),
            ..screen
        };
        print(&table(&entries, &now, &screen))
    }
}

/// The groups to ask the store about, one by one; a single `None` stands for all at once.
fn wanted(listing: &Listing, groups: &Groups) -> Vec<Option<GroupName>> {
    if *groups == Groups::All {
        return vec![None];
    }
    let all = all_of(listing).into_iter();
    let all = all.filter(|it| groups.has(it.as_str()));
    let all: BTreeSet<GroupName> = all.chain(groups.single().cloned()).collect();
    all.into_iter().map(Some).collect()
}

/// What a query finds of each group, the newest first. The order of one query is right even where a
/// clock went back.
fn of_each<T, K: Ord>(
    groups: &[Option<GroupName>],
    mut query: impl FnMut(Option<GroupName>) -> Result<Vec<T>>,
    time: impl Fn(&T) -> K,
) -> Result<Vec<T>> {
    let mut found = Vec::new();
    for group in groups {
        found.extend(query(group.clone())?);
    }
    if groups.len() > 1 {
        found.sort_by_key(|it| Reverse(time(it)));
    }
    Ok(found)
}

/// The newest runs in the span, present ones too.
fn runs(
    store: &mut dyn Store,
    listing: &Listing,
    options: &History,
    groups: &[Option<GroupName>],
    span: Span,
) -> Result<Vec<RunRecord>> {
    let of_group = |group| {
        let query = RunQuery {
            group,
            client: options.client.clone(),
            outcomes: options.outcome.clone(),
            since: span.since,
            until: span.until,
            limit: Some(options.limit),
        };
        let over = store.runs(&query)?;
        Ok(with_present(listing, over, &query))
    };
    of_each(groups, of_group, |run| (run.started_at, run.fence))
}

/// The newest acts in the span.
fn acts(
    store: &mut dyn Store,
    limit: u32,
    groups: &[Option<GroupName>],
    span: Span,
) -> Result<Vec<ActRecord>> {
    let of_group = |group| {
        Ok(store.acts(&ActQuery {
            group,
            since: span.since,
            until: span.until,
            limit: Some(limit),
        })?)
    };
    of_each(groups, of_group, |act| act.at)
}

/// The newest refusals in the span, if they are wanted; otherwise those runs alone that could not start
/// their job: each is a failure, although it left no run.
fn refusals(
    store: &mut dyn Store,
    options: &History,
    groups: &[Option<GroupName>],
    span: Span,
) -> Result<Vec<RefusalRecord>> {
    let outcomes = &options.outcome;
    let fails = outcomes.is_empty() || outcomes.contains(&Outcome::NotStarted);
    let is_wanted = |it: &RefusalRecord| {
        let client = options.client.as_ref();
        client.is_none_or(|client| *client == it.client)
            && (options.refusals || fails && it.is_unstarted())
    };
    let of_group = |group| {
        let mut refusals = store.refusals(&RefusalQuery {
            group,
            since: span.since,
            until: span.until,
            // Some of them are picked here.
            limit: (options.refusals && options.client.is_none()).then_some(options.limit),
        })?;
        refusals.retain(is_wanted);
        Ok(refusals)
    };
    of_each(groups, of_group, |refusal| refusal.last_at)
}

/// Merges both, the newest first, each in the store's own order: the order of a group's runs is
/// right even where a clock went back.
fn merged(entries: Vec<Entry>, others: Vec<Entry>) -> Vec<Entry> {
    let mut merged = Vec::with_capacity(entries.len() + others.len());
    let mut others = others.into_iter().peekable();
    for entry in entries {
        while let Some(other) = others.next_if(|other| other.at() > entry.at()) {
            merged.push(other);
        }
        merged.push(entry);
    }
    merged.extend(others);
    merged
}
