//! Signals that the job already has, from a terminal or from a kill of the whole process group: the
//! guard is in that group too, so it gets a copy of its own. Pure: the guard feeds it.
//!
//! Limit: two signals of a kind that arrive before the guard has read the first are one signal to
//! the guard, but may be two to the job: then the job gets one too many.

use std::time::Duration;

use crate::moment::Moment;

/// How long a signal waits for the guard's own copy. A kill of a whole control group (systemd's)
/// goes from process to process, and the supervisor's message may come before the guard's copy.
const PATIENCE: Duration = Duration::from_millis(20);

/// How long a copy is remembered: long enough for a slow supervisor. A signal that was sent to the
/// guard alone must not swallow a later one.
const MEMORY: Duration = Duration::from_secs(2);

/// Pairs each signal to be passed on with the guard's own copy.
#[derive(Debug)]
pub(super) struct SignalDeduplication {
    copies: Vec<(i32, Moment)>,
    waiting: Vec<(i32, Moment)>,
    /// Signals that the supervisor wanted passed on before the job's program ran. `None` once the
    /// program runs.
    early: Option<Vec<i32>>,
}

impl Default for SignalDeduplication {
    fn default() -> Self {
        Self {
            copies: Vec::new(),
            waiting: Vec::new(),
            early: Some(Vec::new()),
        }
    }
}

impl SignalDeduplication {
    /// The guard has received a signal itself.
    pub(super) fn hear(&mut self, now: Moment, signal: i32) {
        self.forget(now);
        if !take(&mut self.waiting, signal) {
            self.copies.push((signal, now));
        }
    }

    /// The job's program runs. Its process discarded these signals before: their copies do not
    /// count, and those of them that were passed on are passed on again.
    pub(super) fn settle(&mut self, now: Moment, discarded: &[i32]) {
        let early = self.early.take().unwrap_or_default();
        for signal in discarded {
            self.copies.retain(|(copy, _)| copy != signal);
            let is_waiting = self.waiting.iter().any(|(other, _)| other == signal);
            if early.contains(signal) && !is_waiting {
                self.waiting.push((*signal, now));
            }
        }
    }

    /// The supervisor wants a signal passed on.
    pub(super) fn pass(&mut self, now: Moment, signal: i32) {
        self.forget(now);
        if let Some(early) = &mut self.early {
            early.push(signal);
        }
        if !take(&mut self.copies, signal) {
            self.waiting.push((signal, now.plus(PATIENCE)));
        }
    }

    /// The signals without a copy: the job has not received them.
    pub(super) fn due(&mut self, now: Moment) -> Vec<i32> {
        let due = self.waiting.extract_if(.., |(_, until)| *until <= now);
        due.map(|(signal, _)| signal).collect()
    }

    /// When the next signal is due.
    pub(super) fn next(&self) -> Option<Moment> {
        self.waiting.iter().map(|(_, until)| *until).min()
    }

    fn forget(&mut self, now: Moment) {
        self.copies.retain(|(_, heard)| now.since(*heard) < MEMORY);
    }
}

fn take(from: &mut Vec<(i32, Moment)>, signal: i32) -> bool {
    let found = from.iter().position(|(other, _)| *other == signal);
    found.map(|index| from.remove(index)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment(Duration::from_millis(millis))
    }

    fn running() -> SignalDeduplication {
        let mut deduplication = SignalDeduplication::default();
        deduplication.settle(at(0), &[]);
        deduplication
    }

    #[test]
    fn a_signal_to_the_supervisor_alone_is_passed_on_once() {
        let mut deduplication = running();
        deduplication.pass(at(0), 15);
        assert_eq!(deduplication.due(at(19)), [0; 0]);
        assert_eq!(deduplication.next(), Some(at(20)));
        assert_eq!(deduplication.due(at(20)), [15]);
        assert_eq!(deduplication.due(at(90)), [0; 0]);
        assert_eq!(deduplication.next(), None);
    }

    #[test]
    fn a_signal_to_the_group_is_not_passed_on_whichever_comes_first() {
        let mut deduplication = running();
        deduplication.hear(at(0), 2);
        deduplication.pass(at(5), 2);
        deduplication.pass(at(10), 2);
        deduplication.hear(at(15), 2);
        assert_eq!(deduplication.due(at(100)), [0; 0]);
    }

    #[test]
    fn a_copy_stands_for_one_signal_of_its_kind() {
        let mut deduplication = running();
        deduplication.hear(at(0), 2);
        deduplication.pass(at(1), 15);
        deduplication.pass(at(1), 2);
        deduplication.pass(at(1), 2);
        assert_eq!(deduplication.due(at(100)), [15, 2]);
    }

    #[test]
    fn signals_that_the_jobs_process_discarded_are_passed_on_again() {
        let mut deduplication = SignalDeduplication::default();
        // Both were sent: the job's process still has one of them.
        for signal in [2, 15] {
            deduplication.hear(at(0), signal);
            deduplication.pass(at(0), signal);
        }
        // One to the supervisor alone, and one to the group that the supervisor has not passed on
        // yet.
        deduplication.pass(at(0), 10);
        deduplication.hear(at(0), 12);
        assert_eq!(deduplication.due(at(20)), [10]);
        // One to the group that the job's process keeps.
        deduplication.hear(at(20), 3);
        deduplication.settle(at(21), &[15, 10, 12]);
        assert_eq!(deduplication.due(at(21)), [15, 10]);
        deduplication.pass(at(22), 12);
        deduplication.pass(at(22), 3);
        assert_eq!(deduplication.due(at(42)), [12]);
        assert_eq!(deduplication.next(), None);
    }

    #[test]
    fn a_signal_that_is_due_already_is_not_passed_on_twice() {
        let mut deduplication = SignalDeduplication::default();
        deduplication.pass(at(0), 15);
        deduplication.settle(at(1), &[15]);
        assert_eq!(deduplication.due(at(20)), [15]);
        assert_eq!(deduplication.next(), None);
    }

    #[test]
    fn a_signal_to_the_guard_alone_is_forgotten() {
        let mut deduplication = running();
        deduplication.hear(at(0), 15);
        deduplication.pass(at(2_000), 15);
        assert_eq!(deduplication.due(at(2_020)), [15]);
        for second in 3..100 {
            deduplication.hear(at(second * 1_000), 15);
        }
        assert_eq!(deduplication.copies.len(), 2, "of the last two seconds");
    }
}
