//! After the job: none of its processes is left. One swap records its outcome and releases the
//! token; for a token that is lost already, only the record is left to write.

use super::ending::{Ending, JobEnd};
use super::event::{Action, Event, Note};
use super::holding::Heart;
use super::lease::{Found, Lease};
use super::machine::{Next, Step};
use crate::moment::Moment;
use crate::store::Request;
use crate::store::{Reading, StoreError, Trouble};
use crate::token::{Recorded, RunRecord, Swapped};

/// How many store time-outs long the end of a run is retried.
const PATIENCE: u32 = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FinishingState {
    /// A heartbeat or a read from before is out.
    Heart(Heart),
    /// The release is out.
    Releasing,
    /// A read is out, to learn whether the release happened.
    Asking { sent_at: Moment },
    /// The record is out.
    Recording,
    /// Nothing is out until the next try.
    Waiting { until: Moment, then: Then },
}

/// The next try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Ask,
    Record,
}

/// A run that is being recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finishing {
    /// The record of the run, which is over.
    run: RunRecord,
    /// A release was sent and its answer did not come: it may have happened.
    perhaps_released: bool,
    /// The warning that the token was lost has been sent.
    warned_of_loss: bool,
    /// `None` once the token is known to belong to another session, or to none.
    lease: Option<Lease>,
    end: JobEnd,
    stopped_by: Option<i32>,
    state: FinishingState,
    failures: u32,
    error: Option<StoreError>,
    give_up_at: Moment,
}

impl Finishing {
    /// The job is gone and nothing is out: release the token.
    pub(crate) fn begin(
        step: &mut Step<'_>,
        lease: Lease,
        end: JobEnd,
        stopped_by: Option<i32>,
    ) -> Next {
        let mut this = Self::new(step, lease, end, stopped_by);
        this.release(step);
        Next::Finish(Box::new(this))
    }

    /// The job is gone, and so is the token: only the record is left to write.
    pub(crate) fn lost(
        step: &mut Step<'_>,
        lease: Lease,
        end: JobEnd,
        stopped_by: Option<i32>,
    ) -> Next {
        let mut this = Self::new(step, lease, end, stopped_by);
        this.lease = None;
        this.warned_of_loss = true;
        this.record(step);
        Next::Finish(Box::new(this))
    }

    /// The job is gone while the heart's request is out.
    pub(crate) fn after(
        step: &mut Step<'_>,
        lease: Lease,
        end: JobEnd,
        stopped_by: Option<i32>,
        heart: Heart,
    ) -> Next {
        let mut this = Self::new(step, lease, end, stopped_by);
        this.state = FinishingState::Heart(heart);
        Next::Finish(Box::new(this))
    }

    /// A job under an outer session's lease has nothing to release or record.
    pub(crate) const fn nested(end: JobEnd, stopped_by: Option<i32>) -> Next {
        Next::End(Ending::Ran {
            end,
            stopped_by,
            recorded: true,
        })
    }

    fn new(step: &Step<'_>, lease: Lease, end: JobEnd, stopped_by: Option<i32>) -> Self {
        let timing = &step.claim.timing;
        let output = step.limits.output;
        let run = RunRecord {
            output: output.filter(|_| !matches!(end, JobEnd::NotStarted(_))),
            ..lease.run().clone().ended(end.record())
        };
        let give_up_at = if run.makes_key_done() {
            // No other node runs the job while the lease can be trusted: retrying is worthwhile.
            let trusted_until = lease.deadline(timing).kill_at;
            trusted_until.max(step.now.plus(timing.store_timeout))
        } else {
            step.now.plus(timing.store_timeout.saturating_mul(PATIENCE))
        };
        Self {
            run,
            perhaps_released: false,
            warned_of_loss: false,
            lease: Some(lease),
            end,
            stopped_by,
            state: FinishingState::Recording,
            failures: 0,
            error: None,
            give_up_at,
        }
    }

    pub(crate) fn wake_at(&self) -> Moment {
        match self.state {
            FinishingState::Waiting { until, .. } => until.min(self.give_up_at),
            FinishingState::Heart(_)
            | FinishingState::Releasing
            | FinishingState::Asking { .. }
            | FinishingState::Recording => self.give_up_at,
        }
    }

    pub(crate) fn step(&mut self, step: &mut Step<'_>, event: Event) -> Next {
        match event {
            Event::Tick => self.tick(step),
            Event::Swapped(Ok(swapped)) => self.swapped(step, swapped),
            Event::Looked(Ok((reading, _))) => self.looked(step, &reading),
            Event::Recorded(Ok(recorded)) => {
                if recorded == Recorded::Written {
                    // No release has written the record: the token was lost before one could.
                    self.warn_of_loss(step);
                }
                self.ended(true)
            }
            Event::Swapped(Err(error)) | Event::Looked(Err(error)) => {
                self.failed(step, error, Then::Ask)
            }
            Event::Recorded(Err(error)) => self.failed(step, error, Then::Record),
            // The job is over: a stop signal now only means not to linger. It may be the signal
            // that the job died of, received after its end.
            Event::Signal { stop: true, signal } => {
                self.stopped_by.get_or_insert(signal);
                self.give_up_at = self
                    .give_up_at
                    .min(step.now.plus(step.claim.timing.store_timeout));
                Next::Stay
            }
            Event::Signal { .. }
            | Event::LocksTaken(_)
            | Event::Left(_)
            | Event::Notified
            | Event::OnceLooked(_)
            | Event::JobStarted
            | Event::JobNotStarted(_)
            | Event::JobExited { .. }
            | Event::TreeGone
            | Event::GuardAnswered
            | Event::GuardGone => Next::Stay,
        }
    }

    fn ended(&self, recorded: bool) -> Next {
        Next::End(Ending::Ran {
            end: self.end.clone(),
            stopped_by: self.stopped_by,
            recorded,
        })
    }

    fn tick(&mut self, step: &mut Step<'_>) -> Next {
        if step.now >= self.give_up_at {
            return self.gives_up(step);
        }
        match self.state {
            FinishingState::Waiting { until, then } if step.now >= until => match then {
                Then::Ask => self.ask(step),
                Then::Record => self.record(step),
            },
            FinishingState::Waiting { .. }
            | FinishingState::Heart(_)
            | FinishingState::Releasing
            | FinishingState::Asking { .. }
            | FinishingState::Recording => {}
        }
        Next::Stay
    }

    /// Ends the run although the store has not confirmed the record.
    fn gives_up(&self, step: &mut Step<'_>) -> Next {
        step.say(Note::NotRecorded {
            error: self.error.clone(),
            once: self.run.makes_key_done(),
        });
        self.ended(false)
    }

    fn release(&mut self, step: &mut Step<'_>) {
        let Some(lease) = &mut self.lease else {
            return self.record(step);
        };
        let drawn = (step.draw)();
        let run = self.run.clone();
        let swap = lease.release(step.now, &step.claim.timing, run, drawn);
        step.act(Action::Send(Request::Swap(Box::new(swap))));
        self.state = FinishingState::Releasing;
    }

    fn ask(&mut self, step: &mut Step<'_>) {
        step.read();
        self.state = FinishingState::Asking { sent_at: step.now };
    }

    fn record(&mut self, step: &mut Step<'_>) {
        step.act(Action::Send(Request::Record(Box::new(self.run.clone()))));
        self.state = FinishingState::Recording;
    }

    /// A job that was ended for the loss needs no warning.
    fn warn_of_loss(&mut self, step: &mut Step<'_>) {
        let warned = std::mem::replace(&mut self.warned_of_loss, true);
        if !warned && matches!(self.end, JobEnd::Itself(_)) {
            step.say(Note::LostAfterEnd);
        }
    }

    fn swapped(&mut self, step: &mut Step<'_>, swapped: Swapped) -> Next {
        match (self.state, swapped) {
            (FinishingState::Releasing, Swapped::Done(_)) => return self.ended(true),
            (FinishingState::Heart(Heart::Noting), _) => self.release(step),
            (FinishingState::Heart(Heart::Beating { sent }), Swapped::Done(time)) => {
                if let Some(lease) = &mut self.lease {
                    lease.renewed(sent, time);
                }
                self.release(step);
            }
            (FinishingState::Releasing | FinishingState::Heart(_), Swapped::Conflict) => {
                self.ask(step)
            }
            // The read brings the store's time.
            (FinishingState::Releasing, Swapped::Expired(_)) => self.wait(step, Then::Ask),
            (FinishingState::Heart(_), Swapped::Expired(_)) => self.ask(step),
            (
                FinishingState::Asking { .. }
                | FinishingState::Recording
                | FinishingState::Waiting { .. },
                _,
            )
            | (FinishingState::Heart(_), Swapped::Done(_)) => {}
        }
        Next::Stay
    }

    /// The row shows whether the token is still this session's to release. If not, another run may
    /// be in the row by now: then the run's record shows whether the release happened.
    fn looked(&mut self, step: &mut Step<'_>, reading: &Reading) -> Next {
        let sent_at = match self.state {
            FinishingState::Asking { sent_at }
            | FinishingState::Heart(Heart::Asking { sent_at }) => sent_at,
            FinishingState::Heart(_)
            | FinishingState::Releasing
            | FinishingState::Recording
            | FinishingState::Waiting { .. } => return Next::Stay,
        };
        let found = self.lease.as_mut().map(|lease| {
            lease.looked(reading.row.as_ref(), reading.now.clone(), sent_at, step.now)
        });
        match found {
            Some(Found::Ours { .. }) => self.release(step),
            Some(Found::Lost) | None => {
                self.lease = None;
                if !self.perhaps_released {
                    self.warn_of_loss(step);
                }
                self.record(step);
            }
        }
        Next::Stay
    }

    fn failed(&mut self, step: &mut Step<'_>, error: StoreError, then: Then) -> Next {
        let is_gone = error.trouble == Trouble::Gone;
        self.error = Some(error);
        if is_gone {
            // The store that was opened does not come back.
            return self.gives_up(step);
        }
        self.perhaps_released |= matches!(self.state, FinishingState::Releasing);
        self.wait(step, then);
        Next::Stay
    }

    fn wait(&mut self, step: &mut Step<'_>, then: Then) {
        let until = step.now.plus(step.pause_after(self.failures));
        self.failures += 1;
        self.state = FinishingState::Waiting { until, then };
    }
}
