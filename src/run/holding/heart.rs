//! Heartbeats while the token is held, and what their answers mean.

use std::time::Duration;

use super::Holding;
use crate::moment::Moment;
use crate::run::ending::{Loss, Why};
use crate::run::event::{Action, Note};
use crate::run::lease::{Found, Sent};
use crate::run::machine::Step;
use crate::store::Request;
use crate::store::{Reading, StoreError, Trouble};
use crate::token::{Swapped, Version};

/// The state of the heartbeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heart {
    /// No request is out; the next is due at `until`.
    Resting { until: Moment },
    /// A heartbeat is out.
    Beating { sent: Sent },
    /// A read is out, because a heartbeat conflicted or the store's clock epoch changed.
    Asking { sent_at: Moment },
    /// The note of the store's incarnation is out.
    Noting,
    /// The lease can no longer be trusted: no request is sent until the job is gone.
    Lapsed,
    /// The token is gone; no more requests.
    Still,
}

impl Holding {
    pub(super) fn beat_if_due(&mut self, step: &mut Step<'_>) {
        let (Heart::Resting { until }, Some(lease)) = (self.heart, &mut self.lease) else {
            return;
        };
        // No heartbeat is sent for a lease that can no longer be trusted.
        let trusted_until = lease.deadline(&step.claim.timing).kill_at;
        if step.now >= trusted_until {
            self.heart = Heart::Lapsed;
            return;
        }
        if step.now < until {
            return;
        }
        let version = (step.draw)();
        let swap = lease.heartbeat(step.now, &step.claim.timing, version);
        let sent = Sent {
            version: swap.version(),
            at: step.now,
        };
        step.act(Action::Send(Request::Swap(Box::new(swap))));
        self.heart = Heart::Beating { sent };
    }

    pub(super) fn swapped(&mut self, step: &mut Step<'_>, swapped: Swapped) {
        if self.heart == Heart::Noting {
            // Even if another client wrote the note first: the heartbeat is what counts.
            return self.rest(step.now);
        }
        let (Heart::Beating { sent }, Some(lease)) = (self.heart, &mut self.lease) else {
            return;
        };
        match swapped {
            Swapped::Done(time) => {
                lease.renewed(sent, time);
                self.trust_grew(step, sent.at);
            }
            Swapped::Conflict => {
                self.heart = Heart::Asking { sent_at: step.now };
                step.read();
            }
            Swapped::Expired(time) => {
                // Neither conflict nor loss: the heartbeat came too late, or the store's clock
                // epoch changed. Retry, at once the first time.
                if lease.is_elsewhere(&time) {
                    // The store may be another one that has forgotten grants: that is noted first.
                    self.heart = Heart::Asking { sent_at: step.now };
                    return step.read();
                }
                lease.saw_time(time, sent.at);
                self.try_again(step);
            }
        }
    }

    pub(super) fn looked(&mut self, step: &mut Step<'_>, reading: &Reading) {
        let (Heart::Asking { sent_at }, Some(lease)) = (self.heart, &mut self.lease) else {
            return;
        };
        let elsewhere = lease.is_elsewhere(&reading.now);
        match lease.looked(reading.row.as_ref(), reading.now.clone(), sent_at, step.now) {
            Found::Ours { renewed } => {
                if !elsewhere {
                    step.say(Note::Adopted);
                }
                let revoked = lease.row().document.revoke_requested;
                let handoff = lease.row().document.handoff.as_ref();
                let handed_off = handoff.is_some_and(|handoff| {
                    handoff.to != step.claim.client && !handoff.for_failback
                });
                if renewed {
                    let own_at = lease.own_at();
                    self.trust_grew(step, own_at);
                } else {
                    // The same row again, and yet a conflict: a store may answer so while another
                    // transaction holds the row.
                    self.try_again(step);
                }
                if elsewhere {
                    self.note_if_new(step, reading);
                }
                if revoked && !self.is_ending_for_loss() {
                    let kill_at = step.now.plus(step.claim.timing.kill_grace);
                    self.end(step, Why::Loss(Loss::Revoked), kill_at);
                } else if handed_off && step.limits.yields && !self.is_ending() {
                    let kill_at = step.now.plus(step.claim.timing.kill_grace);
                    self.end(step, Why::HandedOff, kill_at);
                }
            }
            Found::Lost => self.lost(step, Loss::Taken),
        }
    }

    /// Begins the observation of a store whose incarnation differs from the last note: a holder is
    /// often the first to see that.
    fn note_if_new(&mut self, step: &mut Step<'_>, reading: &Reading) {
        let drawn = || Version::from_random((step.draw)());
        let Some(note) = reading.memory.next_note(&reading.now, drawn) else {
            return;
        };
        step.note(reading, note);
        self.heart = Heart::Noting;
    }

    const fn rest(&mut self, until: Moment) {
        self.heart = Heart::Resting { until };
    }

    fn lost(&mut self, step: &mut Step<'_>, loss: Loss) {
        self.heart = Heart::Still;
        if !self.is_ending_for_loss() {
            let kill_at = step.now.plus(step.claim.timing.kill_grace);
            self.end(step, Why::Loss(loss), kill_at);
        }
    }

    fn trust_grew(&mut self, step: &mut Step<'_>, sent_at: Moment) {
        let timing = &step.claim.timing;
        if std::mem::take(&mut self.in_trouble) {
            step.say(Note::TroubleEnded);
        }
        self.fruitless = 0;
        self.heart = Heart::Resting {
            until: sent_at.plus(timing.heartbeat),
        };
        if let Some(lease) = &self.lease {
            let deadline = lease.deadline(timing);
            step.act(Action::Extend(deadline));
            self.expect_answer(step.now, step.now.plus(timing.heartbeat));
            step.say(Note::Renewed {
                trusted_for: deadline.kill_at.since(step.now),
            });
        }
    }

    /// The store failed while a request was out. Whether a heartbeat happened is unknown; the next
    /// starts from the same version, so at most one happens.
    pub(super) fn failed(&mut self, step: &mut Step<'_>, error: StoreError) {
        match self.heart {
            Heart::Beating { .. } | Heart::Asking { .. } | Heart::Noting => {}
            Heart::Resting { .. } | Heart::Lapsed | Heart::Still => return,
        }
        if error.trouble == Trouble::Gone {
            return self.lost(step, Loss::StoreGone);
        }
        if !self.in_trouble {
            self.in_trouble = true;
            let deadline = self.lease.as_ref().map(|l| l.deadline(&step.claim.timing));
            let job_ends_in = deadline.map(|deadline| deadline.term_at.since(step.now));
            step.say(Note::TroubleBegan { error, job_ends_in });
        }
        self.fruitless = self.fruitless.max(1);
        self.try_again(step);
    }

    /// Schedules the next heartbeat: at once the first time, then after growing pauses.
    fn try_again(&mut self, step: &mut Step<'_>) {
        let pause = match self.fruitless {
            0 => Duration::ZERO,
            times => step.pause_after(times - 1),
        };
        self.fruitless = self.fruitless.saturating_add(1);
        self.heart = Heart::Resting {
            until: step.now.plus(pause),
        };
    }
}
