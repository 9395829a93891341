//! Compare-and-swap: every change of a row, computed here and carried out by a store.

use std::time::Duration;

use super::claim::Claim;
use super::document::{Document, Handoff, Others, Run, StampOf, VERSION};
use super::incarnation::IncarnationNote;
use super::names::{ClientId, GroupName, SessionId, Version};
use super::outcome::{GrantKind, Outcome};
use super::record::{ActRecord, RunRecord};
use super::row::{Row, State};
use super::time::{StoreTime, Until};

use super::names::Fence;

/// The step that keeps the fence rising through a failover to a clock that is behind: one minute.
pub const EPOCH_FENCE_STEP: i64 = 60_000;

/// Writes a new row if the row's version is still the one that was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Swap {
    /// The version that was read; `None` if there was no row.
    pub from: Option<Version>,
    /// The new row, with a version that was drawn for this swap.
    pub to: Row,
    /// The event that the row's new stamp records; the stamp is the store's time of the swap.
    /// `None`: the row keeps its stamp.
    pub stamp: Option<StampOf>,
    /// The store rejects the swap after this time.
    pub expiry: Until,
    /// The note of the incarnation by which a grant was judged. The store rejects the grant if the note has
    /// changed since, or is no longer true.
    pub note: Option<Box<IncarnationNote>>,
    /// The run that loses or releases the token. The same transaction records it, unless its own
    /// session has reported its end, and marks its key as done.
    pub ended: Option<Box<RunRecord>>,
    /// The session that leaves the queue in the same transaction.
    pub leaves: Option<SessionId>,
    /// The act of an operator, recorded in the same transaction. The store sets its time.
    pub act: Option<Box<ActRecord>>,
}

/// How a store answered a swap.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Swapped {
    /// The row is written.
    Done(StoreTime),
    /// Another client wrote since the row and its note were read: nothing happened.
    Conflict,
    /// The swap came too late: nothing happened. The token is not lost by that.
    Expired(StoreTime),
}

impl Swap {
    /// The group whose row is written.
    pub const fn group(&self) -> &GroupName {
        &self.to.group
    }

    /// The version that the swap writes.
    pub const fn version(&self) -> Version {
        self.to.version
    }

    /// Gives a grant the fence of the first grant in a clock epoch: the store may have forgotten
    /// grants in this one.
    pub(crate) fn leap(&mut self, now: &StoreTime) {
        let ahead = now.stamp.wall.0.saturating_add(EPOCH_FENCE_STEP);
        self.to.fence = self.to.fence.max(Fence(ahead));
    }

    /// The row that the swap has written, carried out at `now`.
    pub fn written(&self, now: &StoreTime) -> Row {
        let mut row = self.to.clone();
        if self.stamp.is_some() {
            row.stamped = now.clone();
        }
        row
    }
}

/// The row that a first look creates.
pub fn creation(claim: &Claim, now: &StoreTime, version: Version) -> Swap {
    Swap {
        from: None,
        to: new_row(claim, now, version),
        stamp: Some(StampOf::Created),
        expiry: now.until(claim.timing.store_timeout),
        ended: None,
        note: None,
        leaves: None,
        act: None,
    }
}

/// The grant of the token to the claimant, after the look that allowed it.
pub fn grant(
    claim: &Claim,
    kind: GrantKind,
    row: Option<&Row>,
    now: &StoreTime,
    version: Version,
) -> Swap {
    let mut to = row.map_or_else(|| new_row(claim, now, version), next_of);
    let previous = to.client_bound().filter(|c| **c != claim.client).cloned();
    let vanished = row.and_then(RunRecord::vanished);
    to.fence = next_fence(&to, now);
    to.version = version;
    to.state = State::Running {
        client: claim.client.clone(),
        run: Box::new(Run {
            session: claim.session.clone(),
            lock_file: claim.about.lock_file.clone(),
            program: claim.about.program.clone(),
            once_key: claim.about.once_key.clone(),
            grant: kind,
            previous_client: previous.clone(),
            move_on_failure: claim.about.move_on_failure,
            other: Others::new(),
        }),
    };
    let document = &mut to.document;
    document.stamp_of = StampOf::Granted;
    document.acquired = None;
    document.granted_epoch = Some(now.epoch.clone());
    document.session_version = Some(version);
    document.counters.count_grant(previous.is_some());
    if vanished.is_some() {
        document.counters.count_end(Outcome::Unknown, false);
        document.last_outcome = Some(Outcome::Unknown);
    }
    set_terms(document, claim);
    document.not_before = claim.timing.at_least;
    document.handoff = None;
    document.gives_way = None;
    document.revoke_requested = false;
    Swap {
        from: row.map(|row| row.version),
        stamp: Some(StampOf::Granted),
        expiry: now.until(claim.timing.store_timeout),
        ended: vanished.map(Box::new),
        note: None,
        leaves: None,
        act: None,
        to,
    }
}

/// A heartbeat of the session in the row.
pub fn heartbeat(row: &Row, version: Version, expiry: Until) -> Swap {
    let mut to = next_of(row);
    to.version = version;
    to.document.stamp_of = StampOf::Heartbeat;
    to.document.session_version = Some(version);
    Swap {
        from: Some(row.version),
        to,
        stamp: Some(StampOf::Heartbeat),
        expiry,
        ended: None,
        note: None,
        leaves: None,
        act: None,
    }
}

/// What a grant replaces of a token. A run that starts no job gives it back: a node that can't run the
/// job must not keep it from those that can.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Before {
    /// The client that the token belonged to.
    client: Option<ClientId>,
    /// How long other clients were still refused for it.
    keep: Duration,
    handoff: Option<Handoff>,
    /// The client that gave way.
    gives_way: Option<ClientId>,
}

impl Before {
    /// What a grant on this row, read at `now`, replaces.
    pub fn of(row: Option<&Row>, now: &StoreTime) -> Self {
        let Some(row) = row else {
            return Self::default();
        };
        Self {
            client: row.client_bound().cloned(),
            keep: match row.state {
                // All of it, if the age is unknown.
                State::Idle { .. } => {
                    let age = row.age(now).unwrap_or_default();
                    row.document.keep.saturating_sub(age)
                }
                State::Free | State::Running { .. } => Duration::ZERO,
            },
            handoff: row.document.handoff.clone(),
            gives_way: row.document.gives_way.clone(),
        }
    }
}

/// The end of `run`, whose record says how it ended. The token stays with its client until the next
/// run; without keep, or after a revoke, it belongs to no client. After a failed run with
/// `--move-on-failure` no client is preferred.
pub fn release(row: &Row, mut run: RunRecord, version: Version, expiry: Until) -> Swap {
    let moves = row.run().is_some_and(|run| run.move_on_failure);
    run.moved_on = moves && run.outcome.is_failure();
    let mut to = next_of(row);
    to.version = version;
    let document = &mut to.document;
    document.stamp_of = StampOf::Released;
    document.session_version = None;
    document.last_outcome = Some(run.outcome);
    document.counters.count_end(run.outcome, run.revoked);
    if run.moved_on {
        document.gives_way = Some(run.client.clone());
    }
    let is_kept = !document.keep.is_zero() && !document.revoke_requested;
    document.revoke_requested = false;
    to.state = match to.state {
        State::Running { client, .. } if is_kept => State::Idle { client },
        _ => State::Free,
    };
    Swap {
        from: Some(row.version),
        to,
        stamp: Some(StampOf::Released),
        expiry,
        ended: Some(Box::new(run)),
        note: None,
        leaves: None,
        act: None,
    }
}

/// The end of a `run` that has started no job. The token is as it was `before` the grant, with a
/// higher fence. No time of `--at-least` was left then: no token is granted within it.
pub fn give_back(
    row: &Row,
    run: RunRecord,
    before: &Before,
    version: Version,
    expiry: Until,
) -> Swap {
    let mut swap = release(row, run, version, expiry);
    let is_revoked = row.document.revoke_requested;
    let client = before.client.clone().filter(|_| !is_revoked);
    swap.to.state = client.map_or(State::Free, |client| State::Idle { client });
    let document = &mut swap.to.document;
    document.keep = before.keep;
    document.not_before = Duration::ZERO;
    document.handoff = document.handoff.take().or_else(|| before.handoff.clone());
    document.gives_way.clone_from(&before.gives_way);
    swap
}

/// A hand-off that the expected client requests for itself, when it is refused while the job runs
/// or in the slot that has just run. It gets the token at its next look at an idle one.
pub fn handoff_to_self(claim: &Claim, row: &Row, now: &StoreTime, version: Version) -> Swap {
    let mut to = row.clone();
    to.version = version;
    to.document.handoff = Some(Handoff {
        to: claim.client.clone(),
        at: now.stamp.wall,
        for_failback: true,
        other: Others::new(),
    });
    Swap {
        from: Some(row.version),
        to,
        stamp: None,
        expiry: now.until(claim.timing.store_timeout),
        ended: None,
        note: None,
        leaves: None,
        act: None,
    }
}

/// The row that follows this one, to be stamped anew.
fn next_of(row: &Row) -> Row {
    let mut to = row.clone();
    to.keep_stamp();
    to
}

/// `max(fence + 1, the store's time in ms since 1970)` in the clock epoch of the last grant. In
/// another clock epoch the store's time counts with a minute more: no earlier fence is so far ahead
/// of its clock. The same holds for a row that was never granted, since a failover may have lost a
/// grant. So the fence rises through any number of failovers and restored backups, whatever they
/// lost, as long as the new clock is less than a minute behind. The first grant after a failover
/// uses that minute up: for the next minute, a further failover may only be behind by the time that
/// has passed since. Failovers without a grant in between share the one minute.
fn next_fence(row: &Row, now: &StoreTime) -> Fence {
    let same = row.document.granted_epoch.as_ref() == Some(&now.epoch);
    let lead = if same { 0 } else { EPOCH_FENCE_STEP };
    let time = now.stamp.wall.0.saturating_add(lead);
    Fence(row.fence.0.saturating_add(1).max(time))
}

/// The fence that an operator sets: `to`, or a minute more than the next grant would get. It never
/// falls.
pub(super) fn raised_fence(row: &Row, now: &StoreTime, to: Option<Fence>) -> Fence {
    let risen = row.fence.0.saturating_add(1).max(now.stamp.wall.0);
    to.map_or(Fence(risen.saturating_add(EPOCH_FENCE_STEP)), |to| {
        row.fence.max(to)
    })
}

fn new_row(claim: &Claim, now: &StoreTime, version: Version) -> Row {
    let mut document = Document {
        reader: VERSION,
        ..Document::default()
    };
    set_terms(&mut document, claim);
    Row {
        version,
        expected_client: claim.expected.clone(),
        document,
        ..Row::unwritten(claim.group.clone(), now.clone())
    }
}

/// The terms that contenders honour: the holder's.
fn set_terms(document: &mut Document, claim: &Claim) {
    document.takeover_after = claim.timing.takeover_after;
    let longest = &mut document.longest_takeover_after;
    *longest = (*longest).max(claim.timing.takeover_after);
    document.keep = claim.timing.keep;
    document.head_start = claim.timing.head_start;
    document.host.clone_from(&claim.about.host);
    document.pid = claim.about.pid;
    document.label.clone_from(&claim.about.label);
}

#[cfg(test)]
#[path = "swap_tests.rs"]
mod tests;
