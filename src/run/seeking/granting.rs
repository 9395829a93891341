//! From a grant that the rule allows to the start of the job.

use super::{Seeking, SeekingState};
use crate::moment::Moment;
use crate::run::ending::NotStarted;
use crate::run::ending::{JobEnd, Unstarted};
use crate::run::event::{Action, Granted, Note};
use crate::run::finishing::Finishing;
use crate::run::holding::Holding;
use crate::run::lease::{Lease, SeenTime, Sent};
use crate::run::machine::{Next, Step};
use crate::store::Reading;
use crate::store::Request;
use crate::token::mutant::{Mutant, is_mutant};
use crate::token::swap::Before;
use crate::token::{
    GrantKind, IncarnationNote, OnceMark, Row, RunRecord, SessionId, StoreTime, Version, swap,
};

/// A token that is held, whose job has not been started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::run) struct Held {
    pub(super) grant: Grant,
    seen: SeenTime,
}

/// A grant that the rule allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::run) struct Intent {
    pub(super) kind: GrantKind,
    pub(super) row: Option<Row>,
    pub(super) now: StoreTime,
    /// The session in the row is provably dead.
    pub(super) proven: bool,
    /// The store may have forgotten grants since the row's last one.
    pub(super) leaps: bool,
    /// The note of the store's incarnation.
    pub(super) note: Option<Box<IncarnationNote>>,
}

/// A grant that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::run) struct Grant {
    kind: GrantKind,
    pub(super) row: Row,
    pub(super) sent: Sent,
    /// The version of the row that it replaces.
    from: Option<Version>,
    vanished: Option<SessionId>,
    /// The previous session was provably dead; otherwise silent.
    proven: bool,
    /// The record that begins with the grant.
    run: Box<RunRecord>,
    /// What the grant replaces.
    before: Before,
}

impl Seeking {
    /// Requests the locks, which are held before a row names their file. They are taken once, and
    /// only now: a refusal must cost no file.
    pub(super) fn lock(&mut self, step: &mut Step<'_>, intent: Intent) -> Next {
        if self.locked || !step.limits.locks {
            return self.claim(step, intent);
        }
        step.act(Action::TakeLocks);
        let intent = Box::new(intent);
        self.state = SeekingState::Locking { intent };
        Next::Stay
    }

    pub(super) fn locked(&mut self, step: &mut Step<'_>, taken: Result<String, String>) -> Next {
        let intent = match std::mem::replace(&mut self.state, SeekingState::Fresh) {
            SeekingState::Locking { intent } => intent,
            doing => {
                self.state = doing;
                return Next::Stay;
            }
        };
        self.locked = true;
        if let Err(why) = taken {
            step.say(Note::NoLocks { why });
        }
        self.claim(step, *intent)
    }

    pub(super) fn claim(&mut self, step: &mut Step<'_>, intent: Intent) -> Next {
        let Intent {
            kind,
            row,
            now,
            proven,
            leaps,
            note,
        } = intent;
        let row = row.as_ref();
        let version = step.version_after(row.map(|row| row.version));
        let mut swap = swap::grant(step.claim, kind, row, &now, version);
        swap.note = note;
        if leaps {
            swap.leap(&now);
        }
        if let Some(over) = self.wait_ends_at(step.limits.wait) {
            // A session that has given up by then is granted nothing.
            let left = over.since(step.now).min(step.claim.timing.store_timeout);
            swap.expiry = now.until(left);
        }
        let Some(run) = RunRecord::of(&swap.to).map(Box::new) else {
            // The grant begins a run.
            return Next::Stay;
        };
        let joined = self.queued.is_joined();
        swap.leaves = joined.then(|| step.claim.session.clone());
        let grant = Box::new(Grant {
            kind,
            row: swap.to.clone(),
            sent: Sent {
                version,
                at: step.now,
            },
            from: row.map(|row| row.version),
            vanished: row.and_then(|row| row.session().cloned()),
            proven,
            run,
            before: Before::of(row, &now),
        });
        step.act(Action::Send(Request::Swap(Box::new(swap))));
        self.unsettled.push(grant.sent);
        self.state = SeekingState::Claiming { grant };
        Next::Stay
    }

    /// The earlier grant that happened although its answer was lost: the row's `session_version`
    /// shows it.
    pub(super) fn granted_before(
        &mut self,
        step: &mut Step<'_>,
        reading: &Reading,
        asked_at: Moment,
    ) -> Option<Next> {
        let row = reading.row.as_ref()?;
        let sent = self.unsettled.happened(row, &step.claim.session)?;
        let sent = if is_mutant(Mutant::TrustFromReread) {
            Sent {
                at: step.now,
                ..sent
            }
        } else {
            sent
        };
        let run = RunRecord::of(row).map(Box::new)?;
        let mut grant = self.last_grant.take()?;
        // It may be an earlier grant than the last one.
        grant.row = row.clone();
        grant.run = run;
        grant.sent = sent;
        let seen = SeenTime {
            time: reading.now.clone(),
            asked_at,
        };
        Some(self.hold(step, *grant, seen))
    }

    /// A grant without an answer may still happen: as far as is known, the row is the one that it replaces.
    pub(super) fn is_in_doubt(&self) -> bool {
        let from = self.last_grant.as_ref().and_then(|grant| grant.from);
        !self.unsettled.is_empty() && self.stands_at(from)
    }

    /// Repeats the request for the key's state. Without an answer no job starts: in the end it is
    /// too late.
    pub(super) fn check_again(&mut self, step: &mut Step<'_>) -> Next {
        let SeekingState::Checking { held, .. } =
            std::mem::replace(&mut self.state, SeekingState::Fresh)
        else {
            return Next::Stay;
        };
        let too_late = step.now >= step.claim.timing.last_start(held.grant.sent.at);
        if too_late || self.stopped.is_some() {
            return self.start(step, *held, None);
        }
        step.ask_once();
        let again_at = None;
        self.state = SeekingState::Checking { held, again_at };
        Next::Stay
    }

    /// The session has the token. The state of its key of `--once` is requested once more.
    pub(super) fn hold(&mut self, step: &mut Step<'_>, grant: Grant, seen: SeenTime) -> Next {
        if let Some(since) = self.queued.since {
            let waited = step.now.since(since);
            step.say(Note::Waited { waited });
        }
        let held = Held { grant, seen };
        if self.stopped.is_none() && step.ask_once() {
            self.state = SeekingState::Checking {
                held: Box::new(held),
                again_at: None,
            };
            return Next::Stay;
        }
        self.start(step, held, None)
    }

    /// Starts the job, unless its key is done, it is too late, or a stop was requested.
    pub(super) fn start(
        &mut self,
        step: &mut Step<'_>,
        held: Held,
        done: Option<Box<OnceMark>>,
    ) -> Next {
        let Held { grant, seen } = held;
        let granted = Granted {
            session: step.claim.session.clone(),
            fence: grant.row.fence,
            kind: Some(grant.kind),
            previous_client: grant.run.previous_client.clone(),
        };
        step.say(Note::Acquired {
            granted: granted.clone(),
            vanished: grant.vanished,
            proven: grant.proven,
        });
        let lease = Lease::new(grant.row, *grant.run, grant.before, grant.sent, seen);
        let deadline = lease.deadline(&step.claim.timing);
        let late = step.now >= deadline.term_at && !is_mutant(Mutant::LateStart);
        let why_not = match (self.stopped.take(), done) {
            (Some(why), _) => Some(why),
            (None, Some(mark)) => Some(Unstarted::Done(mark)),
            (None, None) if late => Some(Unstarted::Guard(NotStarted::TooLate)),
            (None, None) => None,
        };
        match why_not {
            Some(why) => Finishing::begin(step, lease, JobEnd::NotStarted(why), None),
            None => Holding::begin(step, lease, granted),
        }
    }
}
