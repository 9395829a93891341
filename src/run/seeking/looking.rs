//! A look at the token, and its judgement by the rule.

use std::time::Duration;

use super::granting::Intent;
use super::waiting::SHORTEST;
use super::{Seeking, SeekingState, ending_of};
use crate::moment::Moment;
use crate::run::ending::{Ending, Unstarted};
use crate::run::event::{Action, Note};
use crate::run::holding::Holding;
use crate::run::machine::{Next, Step};
use crate::store::Request;
use crate::store::{Reading, StoreError, check_reader, unknown_incarnation};
use crate::token::{
    Clause, Decision, Doubt, Evidence, IncarnationNote, Look, QueuePosition, Refusal, Row, Swap,
    Verdict, Version, decide, queue, rule, swap,
};

/// A row that is being watched: since when its version has stood unchanged, at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Watch {
    version: Version,
    since: Moment,
    /// The holder's own last swap, if the row is running.
    holders: Option<Version>,
    /// The holder has written since the first look: it is alive.
    heard: bool,
}

impl Seeking {
    pub(super) fn looked(
        &mut self,
        step: &mut Step<'_>,
        reading: &Reading,
        evidence: &Evidence,
    ) -> Next {
        let SeekingState::Looking { sent_at } = self.state else {
            return Next::Stay;
        };
        // Nothing is out any more.
        self.state = SeekingState::Waiting { until: step.now };
        self.queued.saw_time(step, &reading.now);
        if let Some(next) = self.granted_before(step, reading, sent_at) {
            return next;
        }
        let mut why = self.stopped.take();
        if self.unsettled.is_empty() {
            // A grant that may still happen would leave the token with a session that is gone. Then the
            // run goes on, and looks the key up again once it has the token.
            why = why.or_else(|| reading.done.clone().map(Unstarted::Done));
        }
        if let Some(why) = why {
            return self.leave(step, ending_of(why));
        }
        if let Some(Err(error)) = reading.row.as_ref().map(check_reader) {
            return self.failed(step, error);
        }
        if !rule::is_nested(step.claim, reading.row.as_ref()) {
            if let Some(error) = &reading.refuses {
                return self.failed(step, error.clone());
            }
            let drawn = || Version::from_random((step.draw)());
            if let Some(note) = reading.memory.next_note(&reading.now, drawn) {
                return self.note(step, reading, note);
            }
        }
        let unchanged_for = self.watch(step.now, sent_at, reading.row.as_ref());
        let mut look = Look {
            row: reading.row.as_ref(),
            now: &reading.now,
            memory: &reading.memory,
            position: QueuePosition::default(),
            evidence,
            unchanged_for,
            heard: self.watch.is_some_and(|watch| watch.heard),
        };
        look.position = queue::position(step.claim, &look, &reading.queue);
        let Decision { clause, verdict } = decide(step.claim, &look);
        step.say(Note::Decided {
            row: reading.row.clone().map(Box::new),
            now: reading.now.clone(),
            clause,
            verdict: verdict.clone(),
        });
        let proven = *evidence == Evidence::Dead;
        self.follow(step, reading, clause, verdict, proven)
    }

    /// Watches the row. Returns how long its version has stood unchanged, at least: from the answer
    /// to the first look at it until the sending of this look.
    fn watch(&mut self, now: Moment, sent_at: Moment, row: Option<&Row>) -> Duration {
        let Some(row) = row else {
            self.watch = None;
            return Duration::ZERO;
        };
        if let Some(watch) = self.watch.filter(|watch| watch.version == row.version) {
            return sent_at.since(watch.since);
        }
        let holders = row.session().and(row.document.session_version);
        let wrote = |watch: Watch| watch.holders != holders;
        self.watch = Some(Watch {
            version: row.version,
            since: now,
            holders,
            heard: holders.is_some() && self.watch.is_some_and(wrote),
        });
        Duration::ZERO
    }

    /// The row stands at this version, as far as is known.
    pub(super) fn stands_at(&self, version: Option<Version>) -> bool {
        self.watch
            .is_none_or(|watch| Some(watch.version) == version)
    }

    fn follow(
        &mut self,
        step: &mut Step<'_>,
        reading: &Reading,
        clause: Clause,
        verdict: Verdict,
        proven: bool,
    ) -> Next {
        match (verdict, &reading.row) {
            (Verdict::Refused(why), _) => self.refused(step, reading, clause, why),
            (Verdict::Grant(kind), row) => {
                let length = rule::forgotten_lease(step.claim, row.as_ref());
                let drawn = || Version::from_random((step.draw)());
                if let Some(note) = reading.memory.raised(&reading.now, length, drawn) {
                    return self.note(step, reading, note);
                }
                let intent = Intent {
                    kind,
                    row: row.clone(),
                    now: reading.now.clone(),
                    proven,
                    leaps: row
                        .as_ref()
                        .is_some_and(|row| reading.memory.is_newer_than_grant(row)),
                    note: reading.memory.note.clone().map(Box::new),
                };
                self.lock(step, intent)
            }
            (Verdict::ObserveStore { wait, doubt }, _) => {
                self.observe_store(step, reading, wait, doubt)
            }
            (Verdict::Create, _) => {
                let version = step.version_after(None);
                let swap = swap::creation(step.claim, &reading.now, version);
                self.mark(step, swap, None)
            }
            (Verdict::RefusedWithHandoff(why), Some(row)) => {
                let version = step.version_after(Some(row.version));
                let swap = swap::handoff_to_self(step.claim, row, &reading.now, version);
                self.mark(step, swap, Some((clause, why)))
            }
            (verdict @ (Verdict::Observe(wait) | Verdict::Wait(wait)), Some(row)) => {
                // Only here: where a swap follows, an answered read proves nothing about the swap,
                // and the swap would be retried for ever.
                let again = self.answers_again(step);
                let newly = self.watch.is_none_or(|watch| watch.since == step.now);
                if newly || again {
                    step.say(Note::Staying {
                        row: Box::new(row.clone()),
                        now: reading.now.clone(),
                        clause,
                        observing: matches!(verdict, Verdict::Observe(_)),
                        wait,
                    });
                }
                let why = match verdict {
                    Verdict::Observe(_) => Refusal::Observed { wait },
                    _ => Refusal::HeadStart {
                        of: row.next_client().cloned(),
                        wait,
                    },
                };
                self.queued.refused(clause, why);
                // A live holder writes within its heartbeat, and then the wait is over.
                let soon = wait.min(step.claim.timing.heartbeat);
                let until = step.now.plus(soon.max(SHORTEST));
                self.wait_until(step, until)
            }
            (Verdict::Nested, Some(_)) if step.claim.about.once_key.is_some() => {
                Next::End(Ending::StoreFailed {
                    error: StoreError::misconfigured(
                        "--once needs a run of its own: inside the job of its own group the outer run's success is what counts",
                    ).remedy("give the key to the outer run"),
                    perhaps_granted: false,
                })
            }
            (Verdict::Nested, Some(row)) => Holding::nested(step, row),
            // Only a row that exists leads to these.
            (
                Verdict::RefusedWithHandoff(_)
                | Verdict::Observe(_)
                | Verdict::Wait(_)
                | Verdict::Nested,
                None,
            ) => self.look(step),
        }
    }

    /// Waits without writing to the token until the store has stood for long enough.
    fn observe_store(
        &mut self,
        step: &mut Step<'_>,
        reading: &Reading,
        wait: Duration,
        doubt: Doubt,
    ) -> Next {
        if doubt == Doubt::Unknown {
            return self.failed(step, unknown_incarnation());
        }
        let again = self.answers_again(step);
        // The announced end is corrected when it moves: after a restart, or an operator's act.
        let announced = self.queued.observing.replace(wait);
        if again || announced.is_none_or(|announced| wait > announced) {
            step.say(Note::ObservingStore {
                incarnation: reading.memory.incarnation.clone(),
                doubt,
                now: reading.now.clone(),
                wait,
            });
        }
        self.queued
            .refused(Clause::ForgetfulStore, Refusal::Forgetful { wait, doubt });
        // The store may be another one by then, or an operator may have settled it.
        let soon = wait.min(step.claim.timing.heartbeat);
        let until = step.now.plus(soon.max(SHORTEST));
        self.wait_until(step, until)
    }

    /// Writes the note of the store's incarnation, then looks again.
    fn note(&mut self, step: &mut Step<'_>, reading: &Reading, note: IncarnationNote) -> Next {
        step.note(reading, note);
        self.state = SeekingState::Marking {
            sent_at: step.now,
            then: None,
        };
        Next::Stay
    }

    fn mark(&mut self, step: &mut Step<'_>, swap: Swap, then: Option<(Clause, Refusal)>) -> Next {
        step.act(Action::Send(Request::Swap(Box::new(swap))));
        self.state = SeekingState::Marking {
            sent_at: step.now,
            then,
        };
        Next::Stay
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::rule::tests::fixture::{but, free, running, s};

    fn version(row: Row, number: i64) -> Row {
        let version = Version::from_stored(number);
        but(row, |row| {
            row.version = version;
            row.document.session_version = Some(version);
        })
    }

    #[test]
    fn a_version_stands_from_the_first_answer_to_the_sending_of_the_last_look() {
        let mut seeking = Seeking::new();
        let mut watch =
            |now, sent, row: Option<&Row>| seeking.watch(Moment(s(now)), Moment(s(sent)), row);
        let row = version(running("a"), 1);
        assert_eq!(watch(2, 1, Some(&row)), s(0));
        assert_eq!(watch(7, 5, Some(&row)), s(3));
        let next = version(running("a"), 2);
        assert_eq!(watch(9, 8, Some(&next)), s(0));
        assert_eq!(watch(12, 11, Some(&next)), s(2));
        // A row that was gone meanwhile did not stand.
        assert_eq!(watch(14, 13, None), s(0));
        assert_eq!(watch(16, 15, Some(&next)), s(0));
    }

    #[test]
    fn a_holder_is_heard_that_writes_while_it_is_watched() {
        let mut seeking = Seeking::new();
        let mut hears = |row: Option<&Row>| {
            seeking.watch(Moment(s(1)), Moment(s(1)), row);
            seeking.watch.is_some_and(|watch| watch.heard)
        };
        let row = version(running("a"), 1);
        assert!(!hears(Some(&row)), "it may have been silent for long");
        let paused = but(row.clone(), |row| row.version = Version::from_stored(2));
        assert!(!hears(Some(&paused)), "an operator wrote");
        assert!(hears(Some(&version(row.clone(), 3))));
        assert!(!hears(Some(&version(free(), 4))), "it has no holder");
        assert!(hears(Some(&version(row, 5))), "it was granted just now");
        assert!(!hears(None));
    }
}
