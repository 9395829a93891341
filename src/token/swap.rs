//! Compare-and-swap: every change of a row, computed here and carried out by a store.

use std::time::Duration;

use super::claim::Claim;
use super::names::{GroupName, SessionId, Version};
use super::operator::ActRecord;
use super::record::{GrantKind, Outcome, RunRecord};
use super::row::{Counters, Handoff, Row, State, Touch};
use super::time::StoreTime;

use super::names::Fence;

/// What rises the fence through a failover to a clock that is behind: one minute.
pub const DOMAIN_FENCE_STEP: i64 = 60_000;

/// Writes a new row if the version is still the one that was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Swap {
    /// The version that was read; `None` if there was no row.
    pub from: Option<Version>,
    /// The new row. Its version was drawn for this swap.
    pub to: Row,
    /// Which stamps the store sets to its own time.
    pub touch: Touch,
    /// After this time the store carries the swap out no more.
    pub expiry: StoreTime,
    /// What happens to history in the same swap.
    pub history: History,
}

/// What a swap does to history.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum History {
    /// Nothing.
    Nothing,
    /// A run begins. The open record of `vanished`, if any, becomes *unknown*.
    /// The store sets the start to its own wall time.
    Begin {
        /// The new run's record.
        run: Box<RunRecord>,
        /// The session that the token was taken from while it was running.
        vanished: Option<SessionId>,
        /// The session leaves the line, which it is in.
        waited: bool,
    },
    /// An operator's act is recorded. The store sets its time to its own.
    Act(Box<ActRecord>),
    /// A run ends: its whole record, which history may have lost since the run began. The
    /// store sets the end to its own wall time.
    End(Box<RunRecord>),
}

/// How a store answered a swap.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Swapped {
    /// The row is written.
    Done(StoreTime),
    /// Another wrote since the row was read: nothing happened.
    Conflict,
    /// It came too late: nothing happened. That is neither a conflict nor a loss.
    Expired(StoreTime),
}

impl Swap {
    /// The group whose row is written.
    #[must_use]
    pub const fn group(&self) -> &GroupName {
        &self.to.group
    }

    /// The version that the swap writes.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.to.version
    }
}

/// Who writes what for the first time: the row that a first look creates.
#[must_use]
pub fn creation(claim: &Claim, now: &StoreTime, version: Version) -> Swap {
    Swap {
        from: None,
        to: new_row(claim, now, version),
        touch: Touch::Creation,
        expiry: now.plus(claim.timing.store_timeout),
        history: History::Nothing,
    }
}

/// The grant of the token to the claimant, after the look that allowed it.
#[must_use]
pub fn grant(
    claim: &Claim,
    kind: GrantKind,
    row: Option<&Row>,
    now: &StoreTime,
    version: Version,
) -> Swap {
    let mut to = row.cloned().unwrap_or_else(|| new_row(claim, now, version));
    let previous = to.client_bound().filter(|c| **c != claim.client).cloned();
    let vanished = to.session().cloned();
    to.fence = next_fence(&to, now);
    to.granted_domain = Some(now.domain.clone());
    to.version = version;
    to.session_version = Some(version);
    to.counters.runs = to.counters.runs.saturating_add(1);
    let takeover = i64::from(previous.is_some());
    to.counters.takeovers = to.counters.takeovers.saturating_add(takeover);
    if vanished.is_some() {
        to.counters.losses = to.counters.losses.saturating_add(1);
        to.counters.outcomes.count(Outcome::Unknown);
        to.last_outcome = Some(Outcome::Unknown);
    }
    to.state = State::Running {
        client: claim.client.clone(),
        session: claim.session.clone(),
        heartbeat_at: now.stamp,
    };
    set_terms(&mut to, claim);
    to.not_before = claim.timing.at_least;
    to.handoff = None;
    to.revoke_requested = false;
    let run = Box::new(RunRecord {
        group: claim.group.clone(),
        fence: to.fence,
        session: claim.session.clone(),
        client: claim.client.clone(),
        previous_client: previous,
        host: to.host.clone(),
        pid: to.pid,
        label: to.label.clone(),
        program: claim.about.program.clone(),
        once_key: claim.about.once_key.clone(),
        grant: kind,
        started_at_ms: now.stamp.wall_ms,
        ended_at_ms: None,
        outcome: Outcome::Running,
        exit_code: None,
        signal: None,
    });
    Swap {
        from: row.map(|row| row.version),
        touch: Touch::Grant {
            creates: row.is_none(),
        },
        expiry: now.plus(claim.timing.store_timeout),
        history: History::Begin {
            run,
            vanished,
            waited: false,
        },
        to,
    }
}

/// A sign of life of the session in the row.
#[must_use]
pub fn heartbeat(row: &Row, version: Version, expiry: StoreTime) -> Swap {
    let mut to = row.clone();
    to.version = version;
    to.session_version = Some(version);
    Swap {
        from: Some(row.version),
        to,
        touch: Touch::Heartbeat,
        expiry,
        history: History::Nothing,
    }
}

/// The end of `run`, whose record says how it ended: the token goes to its client until the next run, or to
/// nobody if its keep is zero or an operator revoked it.
#[must_use]
pub fn release(row: &Row, run: RunRecord, version: Version, expiry: StoreTime) -> Swap {
    let mut to = row.clone();
    to.version = version;
    to.session_version = None;
    to.last_outcome = Some(run.outcome);
    count_end(&mut to.counters, run.outcome);
    to.lock_file = None;
    to.state = match &to.state {
        State::Running {
            client,
            heartbeat_at,
            ..
        } if !to.keep.is_zero() && !to.revoke_requested => State::Idle {
            client: client.clone(),
            released_at: *heartbeat_at,
        },
        _ => State::Free,
    };
    to.revoke_requested = false;
    Swap {
        from: Some(row.version),
        to,
        touch: Touch::Release,
        expiry,
        history: History::End(Box::new(run)),
    }
}

/// The expected client, refused while the job runs or in the slot that has just run, has
/// the token handed off to itself for its next look at an idle token.
#[must_use]
pub fn handoff_to_self(claim: &Claim, row: &Row, now: &StoreTime, version: Version) -> Swap {
    let mut to = row.clone();
    to.version = version;
    to.handoff = Some(Handoff {
        to: claim.client.clone(),
        at_wall_ms: now.stamp.wall_ms,
        for_failback: true,
    });
    Swap {
        from: Some(row.version),
        to,
        touch: Touch::Nothing,
        expiry: now.plus(claim.timing.store_timeout),
        history: History::Nothing,
    }
}

/// `max(fence + 1, the store's time in ms since 1970)`, a minute more when the
/// domain is not the one of the last grant (or the row has never been granted:
/// it may have been, in what a failover lost). So it rises through a lossy
/// failover and a restored backup as long as the new clock is less than a minute
/// behind. That minute is used up by the first grant after a failover: for the
/// next minute, a further failover may be behind by what has passed since. Failovers
/// without a grant in between have the one minute together.
fn next_fence(row: &Row, now: &StoreTime) -> Fence {
    let same = row.granted_domain.as_ref() == Some(&now.domain);
    let step = if same { 0 } else { DOMAIN_FENCE_STEP };
    Fence(risen(row, now).saturating_add(step))
}

/// The fence that an operator raises the row's to: `to`, or what a grant after a failover
/// would have. It never falls.
pub(super) fn raised_fence(row: &Row, now: &StoreTime, to: Option<Fence>) -> Fence {
    match to {
        Some(to) => row.fence.max(to),
        None => Fence(risen(row, now).saturating_add(DOMAIN_FENCE_STEP)),
    }
}

fn risen(row: &Row, now: &StoreTime) -> i64 {
    row.fence.0.saturating_add(1).max(now.stamp.wall_ms)
}

fn new_row(claim: &Claim, now: &StoreTime, version: Version) -> Row {
    let mut row = Row {
        group: claim.group.clone(),
        version,
        session_version: None,
        fence: Fence::default(),
        granted_domain: None,
        state: State::Free,
        expected_client: claim.expected.clone(),
        domain: now.domain.clone(),
        created_at: now.stamp,
        acquired_at: None,
        takeover_after: Duration::ZERO,
        keep: Duration::ZERO,
        head_start: Duration::ZERO,
        not_before: Duration::ZERO,
        host: None,
        pid: None,
        lock_file: None,
        label: None,
        paused: None,
        handoff: None,
        revoke_requested: false,
        last_outcome: None,
        counters: Counters::default(),
    };
    set_terms(&mut row, claim);
    row.lock_file = None;
    row
}

/// The terms that contenders honour are the holder's.
fn set_terms(row: &mut Row, claim: &Claim) {
    row.takeover_after = claim.timing.takeover_after;
    row.keep = claim.timing.keep;
    row.head_start = claim.timing.head_start;
    row.host.clone_from(&claim.about.host);
    row.pid = claim.about.pid;
    row.lock_file.clone_from(&claim.about.lock_file);
    row.label.clone_from(&claim.about.label);
}

const fn count_end(counters: &mut Counters, outcome: Outcome) {
    counters.outcomes.count(outcome);
    match outcome {
        Outcome::Failed | Outcome::Signalled | Outcome::TimedOut => {
            counters.failures = counters.failures.saturating_add(1);
        }
        Outcome::Lost => counters.losses = counters.losses.saturating_add(1),
        Outcome::Running | Outcome::Succeeded | Outcome::NotStarted | Outcome::Unknown => {}
    }
}

#[cfg(test)]
#[path = "swap_tests.rs"]
mod tests;
