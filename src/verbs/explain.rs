//! `tokenrun explain`: which clause of the rule decides for a client now, and when that
//! changes. It runs the rule itself, and writes nothing.

mod story;

use std::time::Duration;

use anyhow::Result;
use clap::Args;

use super::shared::action::{Action, Context};
use super::shared::groups::unknown_group;
use super::shared::node::{bystander, client_id, runs_inside};
use super::shared::options::{ScreenOptions, StoreOptions};
use super::shared::printing::{print, print_json};
use super::shared::screen::{screen, zone};
use super::shared::span::Span;
use super::shared::stores::{LISTING_TIMEOUT, known_store_with_locks};
use crate::cli::GivenTime;
use crate::cli::values;
use crate::exit::Exit;
use crate::report::explain::{Explanation, changes_in};
use crate::run::locking::evidence_of;
use crate::store::open::Opened;
use crate::store::{Reading, Store, check_reader};
use crate::sys::process;
use crate::token::{
    Claim, ClientId, Decision, Evidence, GroupName, Look, QueuePosition, Verdict, decide, queue,
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
    fn store(&self) -> Option<&StoreOptions> {
        Some(&self.store)
    }

    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        let Opened { mut store, locks } =
            known_store_with_locks(&self.store, LISTING_TIMEOUT, context.log)?;
        if self.at.is_some() || self.since.is_some() {
            return self.story(store.as_mut());
        }
        let host = process::host_name().ok();
        let client = client_id(self.client_id.as_ref(), host.as_deref())?;
        let mut claim = bystander(&self.group, client)?;
        claim.failback = self.failback;
        let prove = |reading: &Reading, claim: &mut Claim| {
            claim.nested_in = reading.row.as_ref().and_then(runs_inside);
            let evidence = |locks| evidence_of(locks, reading, &claim.session);
            locks.map_or(Evidence::None, evidence)
        };
        explain(store.as_mut(), &mut claim, prove, self.json)
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
        story::story(store, &self.group, span, &times, self.json)
    }
}

/// Explains the rule's decision on a claim. `prove` returns this host's evidence about the run in
/// the row, and whether the claim comes from inside it.
///
/// # Errors
/// If the store can't be read, or the group is unknown.
fn explain(
    store: &mut dyn Store,
    claim: &mut Claim,
    prove: impl FnOnce(&Reading, &mut Claim) -> Evidence,
    as_json: bool,
) -> Result<Exit> {
    let reading = store.read(&claim.group)?;
    if let Some(row) = &reading.row {
        check_reader(row)?;
        // The next run of this group probably has the options of the last one.
        claim.timing.takeover_after = row.document.takeover_after;
    }
    let evidence = prove(&reading, claim);
    let decided = at(claim, &reading, &evidence, Duration::ZERO, Duration::ZERO);
    // The store may have forgotten the group itself.
    let observed = matches!(decided.verdict, Verdict::ObserveStore { .. });
    if reading.row.is_none() && !observed {
        return Err(unknown_group(store.name(), &claim.group).into());
    }
    let then = changes_in(&decided.verdict, &reading.now).map(|wait| {
        // An observation goes on by this process's own clock.
        let watched = match &decided.verdict {
            Verdict::Observe(_) | Verdict::Wait(_) | Verdict::ObserveStore { .. } => wait,
            _ => Duration::ZERO,
        };
        (wait, at(claim, &reading, &evidence, wait, watched))
    });
    let row = reading.row.as_ref();
    let explanation = Explanation::of(claim, row, &reading.now, &decided, then.as_ref());
    if as_json {
        return print_json(&[explanation]);
    }
    print(&explanation.text())
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
