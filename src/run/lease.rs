//! The lease: what a session knows of the token that it holds, and how long it may trust that.
//! Trust starts when the last swap that happened was *sent*.

use std::fmt;
use std::time::Duration;

use crate::job::Deadline;
use crate::moment::Moment;
use crate::token::mutant::{Mutant, is_mutant};
use crate::token::swap::Before;
use crate::token::{
    Outcome, Row, RunRecord, SessionId, StoreTime, Swap, Timing, Until, Version, swap,
};

/// A swap of this session's own, and when it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sent {
    /// The version that it writes.
    pub version: Version,
    /// When it was sent, on the session's own clock.
    pub at: Moment,
}

/// A store time that an answer has brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenTime {
    /// What the store said.
    pub time: StoreTime,
    /// When the request for it was sent, on the session's own clock.
    pub asked_at: Moment,
}

/// Own swaps whose result is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Unsettled(Vec<Sent>);

impl Unsettled {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a swap that is being sent.
    pub fn push(&mut self, sent: Sent) {
        self.0.push(sent);
    }

    /// Removes a swap that has not happened and can't happen any more.
    pub fn forget(&mut self, version: Version) {
        self.0.retain(|sent| sent.version != version);
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The last one.
    pub fn last(&self) -> Option<Sent> {
        self.0.last().copied()
    }

    /// The one that the row shows to have happened: only `session_version` counts. The session's id
    /// in the row proves nothing about a particular swap (a VM that was cloned while it ran has the
    /// same session).
    pub fn happened(&self, row: &Row, session: &SessionId) -> Option<Sent> {
        if row.session() != Some(session) {
            return None;
        }
        let by_version = |sent: &&Sent| Some(sent.version) == row.document.session_version;
        self.0.iter().find(by_version).copied()
    }
}

/// Every version that a session has written since its grant, or may have. A failover may lose its
/// last heartbeats: one of these versions in the row proves that the session still holds the token.
/// Eight bytes for each heartbeat, searched only after a failover.
#[derive(Clone, PartialEq, Eq)]
struct Written(Vec<i64>);

/// Shows the count alone: a row with this session always has one of its versions, so the search
/// need not distinguish states by them.
impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Written")
    }
}

/// What a look at the row says about the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The token is still this session's. A later own swap has happened or not.
    Ours {
        /// True if trust has grown.
        renewed: bool,
    },
    /// The token belongs to another session, or to none.
    Lost,
}

/// A token that this session holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The row as last known.
    row: Row,
    /// The last own swap that is known to have happened.
    own: Sent,
    /// Later own swaps whose result is unknown.
    unsettled: Unsettled,
    /// Every version that this session wrote.
    written: Written,
    /// The last store time seen.
    seen: SeenTime,
    /// The record of the run of the grant. The session has it whole, whatever happens to the
    /// store's copy.
    run: RunRecord,
    /// What the grant has replaced, until the job has started.
    before: Before,
}

impl Lease {
    /// The lease of an own swap that happened: `row` is the row that it wrote, and `run` the record
    /// that began with it; `before` is what it has replaced.
    pub fn new(row: Row, run: RunRecord, before: Before, own: Sent, seen: SeenTime) -> Self {
        let granted_at = row.acquired_at().map(|stamp| stamp.wall);
        let started_at = granted_at.unwrap_or(run.started_at);
        Self {
            row,
            own,
            unsettled: Unsettled::new(),
            written: Written(vec![own.version.number()]),
            seen,
            run: RunRecord { started_at, ..run },
            before,
        }
    }

    /// The job has started: what the grant has replaced is over.
    pub fn job_started(&mut self) {
        self.before = Before::default();
    }

    /// The row as last known.
    pub const fn row(&self) -> &Row {
        &self.row
    }

    /// The record of the run of the grant.
    pub const fn run(&self) -> &RunRecord {
        &self.run
    }

    /// When the last own swap that is known to have happened was sent.
    pub const fn own_at(&self) -> Moment {
        self.own.at
    }

    /// When the job must be gone.
    pub const fn deadline(&self, timing: &Timing) -> Deadline {
        Deadline {
            term_at: timing.last_start(self.own.at),
            kill_at: timing.trusted_until(self.own.at),
        }
    }

    /// A heartbeat that expires, in the store's own time, soon after the request's own time-out:
    /// nothing is read first.
    pub fn heartbeat(&mut self, now: Moment, timing: &Timing, drawn: u64) -> Swap {
        let version = self.draw(drawn);
        self.unsettled.push(Sent { version, at: now });
        self.written.0.push(version.number());
        swap::heartbeat(&self.row, version, self.expiry(now, timing))
    }

    /// The swap that ends the run with this record.
    pub fn release(&mut self, now: Moment, timing: &Timing, run: RunRecord, drawn: u64) -> Swap {
        let version = self.draw(drawn);
        let expiry = self.expiry(now, timing);
        match run.outcome {
            Outcome::NotStarted => swap::give_back(&self.row, run, &self.before, version, expiry),
            _ => swap::release(&self.row, run, version, expiry),
        }
    }

    fn draw(&self, drawn: u64) -> Version {
        if is_mutant(Mutant::VersionIsCounter) {
            return Version::from_stored(self.row.version.number() + 1);
        }
        Version::from_random(drawn)
    }

    fn expiry(&self, now: Moment, timing: &Timing) -> Until {
        let SeenTime { time, asked_at } = &self.seen;
        let passed: Duration = now.since(*asked_at);
        time.until(passed.saturating_add(timing.store_timeout))
    }

    /// Records that the own heartbeat `sent` happened.
    pub fn renewed(&mut self, sent: Sent, now: StoreTime) {
        self.row.version = sent.version;
        self.row.document.session_version = Some(sent.version);
        self.own = sent;
        self.seen = SeenTime {
            time: now,
            asked_at: sent.at,
        };
        self.unsettled = Unsettled::new();
    }

    /// True if a store time belongs to another clock epoch than the last one.
    pub fn is_elsewhere(&self, time: &StoreTime) -> bool {
        self.seen.time.epoch != time.epoch
    }

    /// A swap expired: only the store's time is new.
    pub fn saw_time(&mut self, time: StoreTime, asked_at: Moment) {
        self.seen = SeenTime { time, asked_at };
    }

    /// The store has forgotten this session's last heartbeats, but not its grant: the session goes
    /// on from the row. Its trust still counts from the last confirmed heartbeat.
    fn rolled_back_to(&self, row: &Row) -> Option<Sent> {
        let version = row.document.session_version?;
        let known = self.written.0.contains(&version.number());
        (known && !is_mutant(Mutant::LostHeartbeatEndsHolder)).then_some(Sent {
            version,
            at: self.own.at,
        })
    }

    /// Takes in a look at the row that was requested at `asked_at`.
    pub fn looked(
        &mut self,
        row: Option<&Row>,
        time: StoreTime,
        asked_at: Moment,
        now: Moment,
    ) -> Found {
        let Some(row) = row.filter(|row| row.session() == Some(&self.run.session)) else {
            return Found::Lost;
        };
        let happened = self.unsettled.happened(row, &self.run.session);
        let standing = (row.document.session_version == Some(self.own.version)).then_some(self.own);
        let last_sent = self.unsettled.0.last().copied().unwrap_or(self.own);
        let sent = if is_mutant(Mutant::HeartbeatKnownBySession) {
            Some(last_sent)
        } else if is_mutant(Mutant::TrustFromReread) {
            let found = happened.or(standing).or_else(|| self.rolled_back_to(row));
            found.map(|sent| Sent { at: now, ..sent })
        } else {
            happened.or(standing).or_else(|| self.rolled_back_to(row))
        };
        let Some(sent) = sent else {
            return Found::Lost;
        };
        let renewed = sent.at > self.own.at;
        self.own = sent;
        self.seen = SeenTime { time, asked_at };
        if row.version != self.row.version {
            // An unsettled swap that starts from a version that no longer exists can't happen any
            // more. One that starts from the row's version still can.
            self.unsettled = Unsettled::new();
        }
        self.row = row.clone();
        Found::Ours { renewed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::rule::tests::fixture::{claim, s};
    use crate::token::{ClockEpoch, GrantKind, Stamp, WallTime};

    fn time(seconds: i64) -> StoreTime {
        StoreTime {
            epoch: ClockEpoch("epoch".into()),
            stamp: Stamp {
                tick_ms: seconds * 1_000,
                wall: WallTime(seconds * 1_000),
            },
        }
    }

    fn at(seconds: u64) -> Moment {
        Moment(s(seconds))
    }

    /// A lease that was granted at 10 s of the local clock and 1,000 s of the store's.
    fn lease() -> (Lease, Timing) {
        let claim = claim("a");
        let version = Version::from_stored(1);
        let swap = swap::grant(&claim, GrantKind::Bind, None, &time(1_000), version);
        let run = RunRecord::of(&swap.to).unwrap();
        let sent = Sent {
            version,
            at: at(10),
        };
        let seen = SeenTime {
            time: time(1_000),
            asked_at: at(10),
        };
        let before = Before::of(None, &time(1_000));
        (Lease::new(swap.to, run, before, sent, seen), claim.timing)
    }

    fn beats(lease: &mut Lease, timing: &Timing, seconds: u64) -> (Sent, Swap) {
        let swap = lease.heartbeat(at(seconds), timing, seconds << 32);
        let sent = Sent {
            version: swap.version(),
            at: at(seconds),
        };
        (sent, swap)
    }

    #[test]
    fn a_heartbeat_that_happened_is_what_the_next_ones_start_from() {
        let (mut lease, timing) = lease();
        let (first, _) = beats(&mut lease, &timing, 20);
        let (second, _) = beats(&mut lease, &timing, 30);
        // The store's clock runs faster than this one.
        lease.renewed(second, time(2_000));
        assert_eq!(lease.own_at(), at(30));
        assert_eq!(lease.row().document.session_version, Some(second.version));
        let (_, third) = beats(&mut lease, &timing, 40);
        let left = s(10) + timing.store_timeout;
        assert_eq!(third.expiry, time(2_000).until(left));
        // A failover goes back to the first: the time of the last one that is known to have happened counts.
        let mut row = lease.row().clone();
        row.document.session_version = Some(first.version);
        let found = lease.looked(Some(&row), time(2_020), at(50), at(50));
        assert!(matches!(found, Found::Ours { renewed: false }));
        assert_eq!(lease.own_at(), at(30));
    }

    #[test]
    fn an_unclear_heartbeat_may_still_happen_as_long_as_its_row_stands() {
        let (mut lease, timing) = lease();
        let (unclear, swap) = beats(&mut lease, &timing, 20);
        let stands = lease.row().clone();
        let found = lease.looked(Some(&stands), time(1_015), at(25), at(25));
        assert!(matches!(found, Found::Ours { renewed: false }));
        let happened = swap.to;
        let found = lease.looked(Some(&happened), time(1_020), at(30), at(30));
        assert!(matches!(found, Found::Ours { renewed: true }));
        assert_eq!(lease.own_at(), unclear.at);
    }

    /// A machine that was cloned while it ran has the same session.
    #[test]
    fn a_row_with_a_version_that_this_session_never_wrote_is_another_holders() {
        let (mut lease, _) = lease();
        let mut row = lease.row().clone();
        row.document.session_version = Some(Version::from_stored(99));
        let found = lease.looked(Some(&row), time(1_010), at(20), at(20));
        assert!(matches!(found, Found::Lost));
    }
}
