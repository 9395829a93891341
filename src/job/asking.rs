//! Asking a tree to end, a part at a time.

use std::time::Duration;

use nix::libc;

use super::tree::Tree;
use super::walk::{Step, Walk};
use crate::token::Moment;

/// The signals that ask a process to end: stopped, it gets TERM only once it goes on.
const ASK: [i32; 2] = [libc::SIGTERM, libc::SIGCONT];

/// For how long this goes on at a time, and how long it pauses then. Whoever has used up
/// its share of the processor waits for the next one, and the time to kill may come
/// meanwhile.
const PART: Duration = Duration::from_micros(250);
const PAUSE: Duration = Duration::from_millis(1);

/// Sends everyone in a tree TERM.
#[derive(Debug, Default)]
pub(super) struct Asking {
    under_way: Option<(Walk, Moment)>,
}

impl Asking {
    /// Begins, at once.
    pub(super) fn begin(&mut self, now: Moment, tree: &Tree<'_>) {
        match Walk::new(tree) {
            Some(walk) => self.under_way = Some((walk, now)),
            None => tree.signal_known_child(&ASK),
        }
    }

    /// Whoever was not asked yet is not asked any more.
    pub(super) fn stop(&mut self) {
        self.under_way = None;
    }

    /// When the next part is due; `None` if everyone was asked.
    pub(super) fn next(&self) -> Option<Moment> {
        self.under_way.as_ref().map(|(_, next)| *next)
    }

    /// Goes on, if it is time to.
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
