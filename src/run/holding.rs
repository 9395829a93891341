//! While the token is held: heartbeats go on, and the job runs or is being ended. The two are
//! independent: a store that does not answer leaves the job guarded, and the token is renewed as
//! long as any process of the job lives.

mod guard;
mod heart;

use std::time::Duration;

use self::guard::Guard;
pub(crate) use self::heart::Heart;
use super::ending::NotStarted;
use super::ending::{JobEnd, Loss, Unstarted, Why};
use super::event::{Action, Event, Granted, Note};
use super::finishing::Finishing;
use super::lease::Lease;
use super::machine::{Next, Step};
use crate::moment::Moment;
use crate::sys::wait::Status;
use crate::token::mutant::{Mutant, is_mutant};
use crate::token::{Claim, Row};

/// A second stop signal counts only so long after the first: a terminal and a service manager may
/// both deliver the first one.
const SECOND_STOP_AFTER: Duration = Duration::from_secs(1);

/// The progress of the job.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Job {
    /// The guard has the order to start it.
    Starting,
    /// It runs, and may until `timeout_at`.
    Running { timeout_at: Option<Moment> },
    /// It is being ended.
    Ending {
        why: Why,
        begun: Moment,
        kill_at: Moment,
        /// When the guard is reminded that the tree should be gone.
        remind_at: Moment,
    },
}

/// How the job's own process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Exited {
    status: Status,
    /// True if it was made to.
    forced: bool,
}

/// A session that holds the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// `None` under an outer session's lease, which it does not renew.
    lease: Option<Lease>,
    heart: Heart,
    /// How many requests in a row brought no new trust.
    fruitless: u32,
    /// True if the store failed and a note was sent.
    in_trouble: bool,
    job: Job,
    /// True if the guard has reported the start of the job.
    started: bool,
    guard: Guard,
    /// How the job's own process ended.
    exited: Option<Exited>,
    stopped_by: Option<i32>,
}

impl Holding {
    /// The token was granted: starts the job.
    pub(crate) fn begin(step: &mut Step<'_>, lease: Lease, granted: Granted) -> Next {
        let timing = &step.claim.timing;
        let deadline = lease.deadline(timing);
        let until = step.now.plus(timing.heartbeat);
        step.act(Action::StartJob {
            deadline: Some(deadline),
            granted,
        });
        Next::Hold(Box::new(Self::new(Some(lease), Heart::Resting { until })))
    }

    /// An outer session holds the token: starts the job under its lease.
    pub(crate) fn nested(step: &mut Step<'_>, row: &Row) -> Next {
        let Some(session) = row.session() else {
            return Next::Stay;
        };
        let granted = Granted {
            session: session.clone(),
            fence: row.fence,
            kind: None,
            previous_client: None,
        };
        step.act(Action::StartJob {
            deadline: None,
            granted,
        });
        Next::Hold(Box::new(Self::new(None, Heart::Still)))
    }

    const fn new(lease: Option<Lease>, heart: Heart) -> Self {
        Self {
            lease,
            heart,
            fruitless: 0,
            in_trouble: false,
            job: Job::Starting,
            started: false,
            guard: Guard::Quits,
            exited: None,
            stopped_by: None,
        }
    }

    pub(crate) fn wake_at(&self, claim: &Claim) -> Option<Moment> {
        let heart = match self.heart {
            Heart::Resting { until } => Some(until),
            Heart::Beating { .. }
            | Heart::Asking { .. }
            | Heart::Noting
            | Heart::Lapsed
            | Heart::Still => None,
        };
        let deadline = self.lease.as_ref().map(|l| l.deadline(&claim.timing));
        let job = match &self.job {
            Job::Starting => deadline.map(|d| d.term_at),
            Job::Running { timeout_at } => {
                let term_at = deadline.map(|d| d.term_at);
                earliest(*timeout_at, term_at)
            }
            Job::Ending { .. } if self.guard == Guard::Gone => None,
            Job::Ending { remind_at, .. } => Some(*remind_at),
        };
        earliest(earliest(heart, job), self.guard.due())
    }

    pub(crate) fn step(&mut self, step: &mut Step<'_>, event: Event) -> Next {
        self.look_at_deadlines(step);
        if matches!(event, Event::GuardAnswered) {
            // Before an answer is missed: a supervisor that was delayed proves nothing about the
            // guard.
            self.guard_answered();
        }
        self.look_at_guard(step);
        match event {
            Event::Tick => {}
            Event::Swapped(Ok(swapped)) => self.swapped(step, swapped),
            Event::Looked(Ok((reading, _))) => self.looked(step, &reading),
            Event::Swapped(Err(error)) | Event::Looked(Err(error)) => self.failed(step, error),
            Event::Recorded(_)
            | Event::OnceLooked(_)
            | Event::LocksTaken(_)
            | Event::Left(_)
            | Event::Notified => {}
            Event::JobStarted => self.started(step),
            Event::JobNotStarted(why) => return self.not_started(step, why),
            Event::JobExited { status, forced } => self.exited = Some(Exited { status, forced }),
            Event::TreeGone => return self.tree_gone(step),
            Event::GuardAnswered => {}
            Event::GuardGone => self.guard_gone(step),
            Event::Signal { signal, stop } => self.signal(step, signal, stop),
        }
        self.beat_if_due(step);
        self.release_early_if_mutated(step)
    }

    /// Checked first, whatever the event: the clock may have leapt.
    fn look_at_deadlines(&mut self, step: &mut Step<'_>) {
        let Some(lease) = &self.lease else {
            return self.look_at_timeout(step);
        };
        let deadline = lease.deadline(&step.claim.timing);
        if step.now >= deadline.term_at && !self.is_ending_for_loss() {
            self.end(step, Why::Loss(Loss::Untrusted), deadline.kill_at);
        }
        self.look_at_timeout(step);
    }

    fn look_at_timeout(&mut self, step: &mut Step<'_>) {
        if let Job::Running {
            timeout_at: Some(at),
        } = self.job
            && step.now >= at
        {
            let kill_at = step.now.plus(step.claim.timing.kill_grace);
            self.end(step, Why::Timeout, kill_at);
        }
    }

    const fn is_ending(&self) -> bool {
        matches!(self.job, Job::Ending { .. })
    }

    const fn is_ending_for_loss(&self) -> bool {
        matches!(
            self.job,
            Job::Ending {
                why: Why::Loss(_),
                ..
            }
        )
    }

    /// Begins to end the job, or ends it for a graver reason and no later.
    fn end(&mut self, step: &mut Step<'_>, why: Why, kill_at: Moment) {
        let (begun, kill_at) = match self.job {
            Job::Ending {
                begun,
                kill_at: old,
                ..
            } => (begun, old.min(kill_at)),
            Job::Starting | Job::Running { .. } => (step.now, kill_at),
        };
        let guard_gone = why == Why::Loss(Loss::GuardGone);
        // Before the start, there may be no job to report on.
        if self.started || guard_gone {
            step.say(Note::Stopping {
                why: why.clone(),
                kill_in: kill_at.since(step.now),
            });
        }
        if guard_gone {
            step.act(Action::EndWithoutGuard);
        } else {
            let term_tree = !matches!(why, Why::Signal(_));
            step.act(Action::End { term_tree, kill_at });
            let until = self.answer_by(step, &why, kill_at);
            self.expect_answer(step.now, until);
        }
        self.job = Job::Ending {
            why,
            begun,
            kill_at,
            remind_at: kill_at,
        };
    }

    fn started(&mut self, step: &mut Step<'_>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        step.say(Note::Started);
        if let Some(lease) = &mut self.lease {
            lease.job_started();
        }
        match &self.job {
            Job::Starting => {
                let timeout_at = step.limits.timeout.map(|timeout| step.now.plus(timeout));
                self.job = Job::Running { timeout_at };
            }
            Job::Ending { why, kill_at, .. } => step.say(Note::Stopping {
                why: why.clone(),
                kill_in: kill_at.since(step.now),
            }),
            Job::Running { .. } => {}
        }
    }

    fn not_started(&mut self, step: &mut Step<'_>, why: NotStarted) -> Next {
        let why = match self.stopped_by {
            Some(signal) if why == NotStarted::TooLate => Unstarted::Signal(signal),
            _ => Unstarted::Guard(why),
        };
        self.finish(step, JobEnd::NotStarted(why))
    }

    fn signal(&mut self, step: &mut Step<'_>, signal: i32, stop: bool) {
        step.act(Action::Pass(signal));
        if !stop {
            return;
        }
        self.stopped_by = Some(signal);
        match &self.job {
            Job::Starting | Job::Running { .. } => {
                let kill_at = step.now.plus(step.claim.timing.kill_grace);
                self.end(step, Why::Signal(signal), kill_at);
            }
            Job::Ending { why, begun, .. } => {
                if step.now >= begun.plus(SECOND_STOP_AFTER) {
                    let why = why.clone();
                    self.end(step, why, step.now);
                }
            }
        }
    }

    /// No process of the job is left. Returns the end of the job.
    fn tree_gone(&mut self, step: &mut Step<'_>) -> Next {
        let why = match &self.job {
            Job::Ending { why, .. } => Some(why.clone()),
            Job::Starting | Job::Running { .. } => None,
        };
        let end = match (self.exited, why) {
            (Some(exited), _) if !exited.forced => JobEnd::Itself(exited.status),
            (Some(exited), Some(Why::Timeout)) => JobEnd::TimedOut(exited.status),
            (Some(exited), Some(Why::Signal(_) | Why::HandedOff)) => JobEnd::Itself(exited.status),
            (_, Some(Why::Loss(loss))) => JobEnd::Lost(loss),
            // The guard ended the job without an order: its deadline had passed, or the status is
            // unknown.
            (_, None | Some(Why::Signal(_) | Why::Timeout | Why::HandedOff)) => {
                JobEnd::Lost(Loss::Untrusted)
            }
        };
        self.finish(step, end)
    }

    fn finish(&mut self, step: &mut Step<'_>, end: JobEnd) -> Next {
        let own = self.heart != Heart::Still;
        match (&end, own) {
            (JobEnd::Itself(_), false) if self.lease.is_some() => step.say(Note::LostAfterEnd),
            _ => {}
        }
        let Some(lease) = self.lease.take() else {
            return Finishing::nested(end, self.stopped_by);
        };
        match self.heart {
            Heart::Still => Finishing::lost(step, lease, end, self.stopped_by),
            Heart::Resting { .. } | Heart::Lapsed => {
                Finishing::begin(step, lease, end, self.stopped_by)
            }
            heart @ (Heart::Beating { .. } | Heart::Asking { .. } | Heart::Noting) => {
                Finishing::after(step, lease, end, self.stopped_by, heart)
            }
        }
    }

    fn release_early_if_mutated(&mut self, step: &mut Step<'_>) -> Next {
        if is_mutant(Mutant::ReleaseBeforeReaped)
            && let Some(exited) = self.exited
        {
            return self.finish(step, JobEnd::Itself(exited.status));
        }
        Next::Stay
    }
}

fn earliest(one: Option<Moment>, other: Option<Moment>) -> Option<Moment> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
