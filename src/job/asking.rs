//! Sending TERM to a tree, in parts.

use std::time::Duration;

use super::tree::Tree;
use super::walk::{Step, Walk};
use crate::moment::Moment;
use crate::sys::signals::{SIGCONT, SIGTERM};

/// The signals that end a process in order: a stopped process gets TERM only once it continues.
const ASK: [i32; 2] = [SIGTERM, SIGCONT];

/// The length of a part, and of the pause after it. A process that has used up its share of the
/// processor waits for the next share, and the deadline for KILL may pass meanwhile.
const PART: Duration = Duration::from_micros(250);
const PAUSE: Duration = Duration::from_millis(1);

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
                Step::Met(member) => {
                    tree.send(member, &ASK);
                }
                Step::On => {}
                Step::Over => return self.stop(),
            }
            let now = clock();
            if now.since(begun) >= PART {
                *next = now.plus(PAUSE);
                return;
            }
        }
    }
}
