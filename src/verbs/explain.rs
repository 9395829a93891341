//! `tokenrun explain`: which clause of the rule decides for a client now, and when that changes, or what
//! happened to a group in a span of time. It runs the rule itself, and writes nothing.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use super::shared::failure::Failure;
use super::shared::groups::{is_listed, unknown_group};
use super::shared::node::{bystander, client_id, runs_inside};
use super::shared::options::{ScreenOptions, StoreOptions};
use super::shared::span::Span;
use super::shared::stores::{LISTING_TIMEOUT, known_store_with_locks};
use super::shared::terminal::{print, print_json, screen, zone};
use super::shared::{Action, Context};
use crate::cli::{GivenTime, values};
use crate::exit::{self, Exit};
use crate::report::explain::{Explanation, changes_in};
use crate::report::rfc3339;
use crate::report::screen::Times;
use crate::report::story::Story;
use crate::run::locking::evidence_of;
use crate::store::history::runs;
use crate::store::open::Opened;
use crate::store::{ActQuery, Reading, RefusalQuery, RunQuery, Store, check_reader};
use crate::sys::process;
use crate::token::{
    ActRecord, Claim, ClientId, Decision, Evidence, GroupName, Look, QueuePosition, RunRecord,
    Verdict, WallTime, decide, queue,
};

/// Explain whether a client may run now, and when that changes
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// The group
    #[arg(short, long, value_name = "NAME", value_parser = values::group)]
    group: GroupName,
    #[command(flatten)]
    store: StoreOptions,
    /// Explain it for this client [default: $CLIENT_ID, else the host name]
    #[arg(long, value_name = "ID", env = "TOKENRUN_CLIENT_ID", value_parser = values::client)]
    client_id: Option<ClientId>,
    /// As if the client came with --failback
    #[arg(long, env = "TOKENRUN_FAILBACK")]
    failback: bool,
    /// Explain what happened around this time, a quarter of an hour before and after: 02:00,
    /// 'yesterday 02:00', '2026-11-21 02:00', 12h (ago)
    ///
    /// It tells which clients came, which were refused and why, and which ran. A run that is
    /// refused records its refusal.
    #[arg(long, value_name = "TIME", value_parser = GivenTime::parse, conflicts_with = "since")]
    at: Option<GivenTime>,
    /// Explain what happened since this time, given as for --at, or a day: yesterday, 2026-11-21
    #[arg(long, value_name = "TIME", value_parser = GivenTime::parse)]
    since: Option<GivenTime>,
    /// Explain what happened before this time, with --since
    #[arg(long, value_name = "TIME", value_parser = GivenTime::parse, requires = "since")]
    until: Option<GivenTime>,
    /// Times in UTC, given and shown, instead of the zone of this host (TZ)
    #[arg(long)]
    utc: bool,
    /// An array of one JSON object instead of sentences
    #[arg(long)]
    json: bool,
}

impl Action for Explain {
    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        let Opened { mut store, locks } =
            known_store_with_locks(&self.store, LISTING_TIMEOUT, context.log)?;
        if self.at.is_some() || self.since.is_some() {
            return self.story(store.as_mut());
        }
        let host = process::host_name().ok();
        let client = client_id(self.client_id.as_ref(), host.as_deref())?;
        let reading = store.read(&self.group)?;
        if let Some(row) = &reading.row {
            check_reader(row)?;
        }
        let mut claim = bystander(&self.group, client, reading.row.as_ref())?;
        claim.failback = self.failback;
        claim.nested_in = reading.row.as_ref().and_then(runs_inside);
        let evidence = evidence(locks.as_deref(), &reading, &claim);
        let decided = at(&claim, &reading, &evidence, Duration::ZERO, Duration::ZERO);
        // The store may have forgotten the group itself.
        let observed = matches!(decided.verdict, Verdict::ObserveStore { .. });
        if reading.row.is_none() && !observed && !is_listed(store.as_mut(), &self.group)? {
            return Err(unknown_group(store.name(), &self.group).into());
        }
        let then = changes_in(&decided.verdict, &reading.now).map(|wait| {
            // An observation goes on by this process's own clock.
            let watched = match &decided.verdict {
                Verdict::Observe(_) | Verdict::Wait(_) | Verdict::ObserveStore { .. } => wait,
                _ => Duration::ZERO,
            };
            (wait, at(&claim, &reading, &evidence, wait, watched))
        });
        let row = reading.row.as_ref();
        let incarnation = reading.memory.incarnation.as_ref();
        let (now, then) = (&reading.now, then.as_ref());
        let explanation = Explanation::of(&claim, row, now, &decided, then, incarnation);
        match self.json {
            true => print_json(&[explanation]),
            false => print(&explanation.text()),
        }
    }
}

impl Explain {
    /// What happened to a group then.
    fn story(&self, store: &mut dyn Store) -> Result<Exit> {
        let zone = zone(self.utc);
        let span = |now| match self.at {
            Some(at) => Ok(Span::around(at, now, &zone)),
            None => Span::between(self.since, self.until, now, &zone),
        };
        let options = ScreenOptions {
            utc: self.utc,
            ..ScreenOptions::default()
        };
        let times = screen(options).times;
        story(store, &self.group, span, &times, self.json)
    }
}

/// What this host can prove about the run in the row, by the locks of the store's runs on it.
pub(super) fn evidence(locks: Option<&Path>, reading: &Reading, claim: &Claim) -> Evidence {
    locks.map_or(Evidence::None, |locks| {
        evidence_of(locks.to_owned(), reading, &claim.session)
    })
}

/// The decision so much later, if nothing else changes.
pub(super) fn at(
    claim: &Claim,
    reading: &Reading,
    evidence: &Evidence,
    later: Duration,
    unchanged_for: Duration,
) -> Decision {
    let now = reading.now.plus(later);
    let memory = reading.memory.noted(&reading.now);
    let look = Look {
        row: reading.row.as_ref(),
        now: &now,
        memory: &memory,
        position: QueuePosition::default(),
        evidence,
        unchanged_for,
        heard: false,
    };
    let position = queue::position(claim, &look, &reading.queue);
    decide(claim, &Look { position, ..look })
}

/// At most so many runs, refusals and acts are read.
const MOST: u32 = 1_000;

/// Tells what happened to a group in a span of time. `span` is computed from the store's time.
fn story(
    store: &mut dyn Store,
    group: &GroupName,
    span: impl FnOnce(WallTime) -> Result<Span, Failure>,
    times: &Times,
    as_json: bool,
) -> Result<Exit> {
    let listing = store.list()?;
    let is_known = listing.rows.iter().any(|row| row.group == *group);
    let now = listing.now.stamp.wall;
    let span = span(now)?;
    let (from, until) = (span.since.unwrap_or(now), span.until.unwrap_or(now));
    if from > now {
        let text = format!("{} lies ahead; give a time in the past", rfc3339(from));
        return Err(Failure::new(exit::USAGE, "usage", text).into());
    }
    let query = RunQuery {
        group: Some(group.clone()),
        until: Some(until),
        limit: Some(MOST),
        ..RunQuery::default()
    };
    let over = store.runs(&query)?;
    let begun = runs(&listing, over, &query);
    let refusals = store.refusals(&RefusalQuery {
        group: Some(group.clone()),
        since: Some(from),
        until: Some(until),
        limit: Some(MOST),
    })?;
    if !is_known && begun.is_empty() && refusals.is_empty() {
        return Err(unknown_group(store.name(), group).into());
    }
    let went_on = |run: &&RunRecord| run.ended_at.is_none_or(|at| at >= from);
    let story = Story {
        group,
        from,
        until: until.min(now),
        now,
        runs: begun.iter().rev().filter(went_on).cloned().collect(),
        refusals: refusals.into_iter().rev().collect(),
        acts: acts(store, group, Some(from), until)?,
        paused: pause_before(store, group, from)?,
        before: begun.iter().find(|run| !went_on(run)).cloned(),
        after: first_after(store, group, until)?,
    };
    match as_json {
        true => print_json(&[story.object()]),
        false => print(&story.text(times)),
    }
}

/// The acts on a group, the oldest first.
fn acts(
    store: &mut dyn Store,
    group: &GroupName,
    since: Option<WallTime>,
    until: WallTime,
) -> Result<Vec<ActRecord>> {
    let mut found = store.acts(&ActQuery {
        group: Some(group.clone()),
        since,
        until: Some(until),
        limit: Some(MOST),
    })?;
    found.reverse();
    Ok(found)
}

/// The pause that is in effect at a time.
fn pause_before(
    store: &mut dyn Store,
    group: &GroupName,
    at: WallTime,
) -> Result<Option<ActRecord>> {
    let acts = acts(store, group, None, at)?;
    let last = (acts.into_iter().rev()).find(|act| act.act == "pause" || act.act == "resume");
    let lasts = |act: &ActRecord| act.act == "pause" && act.until.is_none_or(|until| until > at);
    Ok(last.filter(lasts))
}

/// The first run that began at a time or later.
fn first_after(
    store: &mut dyn Store,
    group: &GroupName,
    at: WallTime,
) -> Result<Option<RunRecord>> {
    let runs = store.runs(&RunQuery {
        group: Some(group.clone()),
        since: Some(at),
        limit: Some(MOST),
        ..RunQuery::default()
    })?;
    // If there are more, the first is not among them.
    let has_all = u32::try_from(runs.len()).is_ok_and(|count| count < MOST);
    Ok(runs.into_iter().next_back().filter(|_| has_all))
}
