//! Signals that the job has got already, from a terminal or from a kill of the
//! whole process group: the guard is in that group too, so its own copy tells.
//! Pure: the guard feeds it.
//!
//! Two signals of a kind that come before the guard has read the first are one to
//! it, but may have been two to the others: then the job gets one too many.

use std::time::Duration;

use crate::token::Moment;

/// How long a signal waits for the guard's own copy of it. A kill of a whole
/// control group (systemd's) goes from process to process, and the supervisor may
/// ask before it has come to the guard.
const PATIENCE: Duration = Duration::from_millis(20);

/// How long a copy is remembered. Long enough for a supervisor that is slow; a
/// signal that somebody sent to the guard alone must not swallow a later one.
const MEMORY: Duration = Duration::from_secs(2);

/// Pairs each signal that is to be passed on with the guard's copy of it.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    copies: Vec<(i32, Moment)>,
    waiting: Vec<(i32, Moment)>,
    /// Whether it is known what of the copies the job's process threw away.
    settled: bool,
}

impl Echoes {
    /// The guard has got a signal itself.
    pub(super) fn hear(&mut self, now: Moment, signal: i32) {
        self.forget(now);
        if !self.settled || !take(&mut self.waiting, signal) {
            self.copies.push((signal, now));
        }
    }

    /// The job's program runs. Its process has thrown these signals away before: their
    /// copies stand for nothing. Nothing is paired or due until this is known.
    pub(super) fn settle(&mut self, now: Moment, discarded: &[i32]) {
        for signal in discarded {
            take(&mut self.copies, *signal);
        }
        self.settled = true;
        for (signal, _) in std::mem::take(&mut self.waiting) {
            self.pass(now, signal);
        }
    }

    /// The supervisor wants a signal passed on.
    pub(super) fn pass(&mut self, now: Moment, signal: i32) {
        self.forget(now);
        if !self.settled || !take(&mut self.copies, signal) {
            self.waiting.push((signal, now.plus(PATIENCE)));
        }
    }

    /// The signals of which no copy has come: the job has not got them.
    pub(super) fn due(&mut self, now: Moment) -> Vec<i32> {
        if !self.settled {
            return Vec::new();
        }
        let due = self.waiting.extract_if(.., |(_, until)| *until <= now);
        due.map(|(signal, _)| signal).collect()
    }

    /// When the next is due.
    pub(super) fn next(&self) -> Option<Moment> {
        let waiting = self.waiting.iter().map(|(_, until)| *until).min();
        waiting.filter(|_| self.settled)
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

    fn running() -> Echoes {
        let mut echoes = Echoes::default();
        echoes.settle(at(0), &[]);
        echoes
    }

    #[test]
    fn a_signal_to_the_supervisor_alone_is_passed_on_once() {
        let mut echoes = running();
        echoes.pass(at(0), 15);
        assert_eq!(echoes.due(at(19)), [0; 0]);
        assert_eq!(echoes.next(), Some(at(20)));
        assert_eq!(echoes.due(at(20)), [15]);
        assert_eq!(echoes.due(at(90)), [0; 0]);
        assert_eq!(echoes.next(), None);
    }

    #[test]
    fn a_signal_to_the_group_is_not_passed_on_whichever_comes_first() {
        let mut echoes = running();
        echoes.hear(at(0), 2);
        echoes.pass(at(5), 2);
        echoes.pass(at(10), 2);
        echoes.hear(at(15), 2);
        assert_eq!(echoes.due(at(100)), [0; 0]);
    }

    #[test]
    fn a_copy_stands_for_one_signal_of_its_kind() {
        let mut echoes = running();
        echoes.hear(at(0), 2);
        echoes.pass(at(1), 15);
        echoes.pass(at(1), 2);
        echoes.pass(at(1), 2);
        assert_eq!(echoes.due(at(100)), [15, 2]);
    }

    #[test]
    fn until_the_program_runs_nothing_is_paired() {
        let mut echoes = Echoes::default();
        for signal in [2, 15, 10] {
            echoes.hear(at(0), signal);
            echoes.pass(at(0), signal);
        }
        assert_eq!(echoes.next(), None);
        assert_eq!(echoes.due(at(500)), [0; 0]);
        // The process had thrown two of them away; it has got the third.
        echoes.settle(at(500), &[15, 10]);
        assert_eq!(echoes.due(at(519)), [0; 0]);
        assert_eq!(echoes.due(at(520)), [15, 10]);
    }

    #[test]
    fn a_signal_to_the_guard_alone_is_forgotten() {
        let mut echoes = running();
        echoes.hear(at(0), 15);
        echoes.pass(at(2_000), 15);
        assert_eq!(echoes.due(at(2_020)), [15]);
    }
}
