//! Work in batches with pauses: TERM for a whole tree, and reaping. A process with a deadline does neither at
//! once.

use std::io;
use std::time::Duration;

use super::tree::Tree;
use super::walk::{Step, Walk};
use crate::moment::Moment;
use crate::sys::signals::{SIGCONT, SIGTERM};
use crate::sys::wait::{Left, Status, reap};

/// The signals that end a process in order: a stopped process gets TERM only once it continues.
const ASK: [i32; 2] = [SIGTERM, SIGCONT];

/// The longest time for a batch of TERMs.
const ASKING: Duration = Duration::from_micros(250);

/// Sends TERM to every process of a tree.
#[derive(Debug, Default)]
pub(super) struct Asking {
    under_way: Option<(Walk, Moment)>,
}

impl Asking {
    /// Begins now.
    pub(super) fn begin(&mut self, now: Moment, tree: &Tree<'_>) {
        match Walk::new(tree) {
            Some(walk) => self.under_way = Some((walk, now)),
            None => tree.signal_known_child(&ASK),
        }
    }

    /// Stops: the processes that have not been reached get no TERM.
    pub(super) fn stop(&mut self) {
        self.under_way = None;
    }

    /// When the next part is due; `None` if every process has got TERM.
    pub(super) fn next(&self) -> Option<Moment> {
        self.under_way.as_ref().map(|(_, next)| *next)
    }

    /// Continues, if a part is due.
    pub(super) fn run(&mut self, clock: impl Fn() -> Moment, tree: &Tree<'_>) {
        let begun = clock();
        let Some((walk, next)) = self.under_way.as_mut().filter(|(_, next)| *next <= begun) else {
            return;
        };
        loop {
            match walk.step(tree) {
                Step::Found(member) => {
                    tree.send(member, &ASK);
                }
                Step::Nothing => {}
                Step::Done => return self.stop(),
            }
            let now = clock();
            if now.since(begun) >= ASKING {
                *next = now.plus(PAUSE);
                return;
            }
        }
    }
}

/// How many children one batch reaps. It takes less than a millisecond.
const REAPED: usize = 32;

/// The pause between two batches. A process that does nothing else soon uses up its share of the
/// processor, and then waits for the next share when a deadline comes. Batches at this distance still
/// reap more than several processors can fork.
const PAUSE: Duration = Duration::from_millis(1);

/// Reaps ended children. There may be more of them at any time than a process with a deadline may
/// reap at once.
#[derive(Debug, Default)]
pub(super) struct Reaping {
    next: Option<Moment>,
}

impl Reaping {
    /// A child has ended.
    pub(super) fn note(&mut self) {
        // This is as good as now; a pause under way goes on.
        self.next.get_or_insert_default();
    }

    /// When the next batch is due. `None` if no child is known to have ended.
    pub(super) const fn next(&self) -> Option<Moment> {
        self.next
    }

    pub(super) fn is_due(&self, now: Moment) -> bool {
        self.next.is_some_and(|at| at <= now)
    }

    /// True if more children have ended, during a pause.
    pub(super) fn rests(&self, now: Moment) -> bool {
        self.next.is_some_and(|at| at > now)
    }

    /// Reaps a batch and passes each child to `on`. Returns true if children may be left.
    pub(super) fn run(
        &mut self,
        clock: impl Fn() -> Moment,
        on: impl FnMut(i32, Status),
    ) -> io::Result<bool> {
        let left = reap(REAPED, on)?;
        self.next = (left == Left::Unknown).then(|| clock().plus(PAUSE));
        Ok(left != Left::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeSet;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    use super::*;
    use crate::sys::process::pid;
    use crate::sys::procfs::Process;
    use crate::sys::signals::SIGKILL;

    fn at(micros: u64) -> Moment {
        Moment(Duration::from_micros(micros))
    }

    #[test]
    fn a_tree_is_asked_in_batches_with_pauses() {
        let child = |_| Command::new("sleep").arg("600").spawn().unwrap();
        let mut children: Vec<_> = (0..10).map(child).collect();
        let pids = children.iter().map(|it| i32::try_from(it.id()).unwrap());
        let pids: BTreeSet<i32> = pids.collect();
        let belongs = |child: &Process| pids.contains(&child.pid);
        let tree = Tree::new(pid(), None, false, &belongs);
        let mut asking = Asking::default();
        assert_eq!(asking.next(), None);
        asking.begin(at(500), &tree);
        assert_eq!(asking.next(), Some(at(500)));
        // A clock that is read more often shows a later time.
        let now = Cell::new(499);
        let clock = || at(now.get());
        asking.run(clock, &tree);
        assert_eq!(asking.next(), Some(at(500)));
        let clock = || {
            now.set(now.get() + 125);
            at(now.get())
        };
        let mut parts = 0;
        while let Some(next) = asking.next() {
            now.set(u64::try_from(next.0.as_micros()).unwrap() - 125);
            asking.run(clock, &tree);
            parts += 1;
            // Two steps, after which the clock shows that the time of the batch is over.
            let pause = asking.next().map(|after| after.since(next));
            assert!(pause.is_none_or(|it| it == ASKING + PAUSE), "{pause:?}");
        }
        // A step lists a child, and another meets it.
        assert!(parts >= 10, "{parts}");
        for child in &mut children {
            assert_eq!(child.wait().unwrap().signal(), Some(SIGTERM));
        }
    }

    #[test]
    fn those_that_are_not_reached_in_time_are_not_asked() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let its = i32::try_from(child.id()).unwrap();
        let belongs = |child: &Process| child.pid == its;
        let tree = Tree::new(pid(), None, false, &belongs);
        let mut asking = Asking::default();
        asking.begin(at(0), &tree);
        asking.stop();
        assert_eq!(asking.next(), None);
        asking.run(|| at(1), &tree);
        // An earlier TERM would have ended it.
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(SIGKILL));
    }

    #[test]
    fn reaping_is_due_at_once_and_rests_in_a_pause() {
        let mut reaping = Reaping::default();
        assert!(!reaping.is_due(at(9)) && !reaping.rests(at(0)));
        reaping.note();
        assert_eq!(reaping.next(), Some(at(0)));
        assert!(reaping.is_due(at(0)) && !reaping.rests(at(0)));
        reaping.next = Some(at(5));
        // Another child that ends does not shorten a pause.
        reaping.note();
        assert!(reaping.rests(at(4)) && !reaping.is_due(at(4)));
        assert!(!reaping.rests(at(5)) && reaping.is_due(at(5)));
    }
}
