//! What is asked of keys and values for a token, and what is made of the answers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::*;
use crate::store::Queue as _;
use crate::store::conformance::memory_kv::MemoryKv;
use crate::store::conformance::{claim, version};
use crate::store::kv::Kv;
use crate::token::record::fixture::{SUCCESS, run_of};
use crate::token::swap::{creation, grant, heartbeat, release};
use crate::token::{ClockEpoch, Fence, GrantKind, Stamp, StoreTime, Waiter, WallTime};

const STEP: Duration = Duration::from_secs(2);

pub(in crate::store::kv) fn time(tick_ms: i64) -> StoreTime {
    StoreTime {
        epoch: ClockEpoch("e".into()),
        stamp: Stamp {
            tick_ms,
            wall: WallTime(tick_ms),
        },
    }
}

/// What was asked of [`Stepping`].
#[derive(Default)]
struct Asked {
    looks: usize,
    commits: Vec<Commit>,
}

/// Entries in memory, by a clock that counts in steps.
#[derive(Clone)]
struct Stepping {
    memory: MemoryKv,
    asked: Arc<Mutex<Asked>>,
}

impl Stepping {
    fn new() -> Self {
        Self {
            memory: MemoryKv::new(time(1_000)),
            asked: Arc::default(),
        }
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self) -> KvStore {
        KvStore::new(self.clone())
    }

    /// The last commit, of this many.
    fn commit_of(&self, count: usize) -> Commit {
        let asked = self.asked();
        assert_eq!(asked.commits.len(), count);
        asked.commits[count - 1].clone()
    }
}

impl Kv for Stepping {
    fn name(&self) -> &str {
        self.memory.name()
    }

    fn has_ticks(&self) -> bool {
        self.memory.has_ticks()
    }

    fn step(&self) -> Duration {
        STEP
    }

    fn get(&mut self, asked: &[Ask]) -> Result<Found, StoreError> {
        self.asked().looks += 1;
        self.memory.get(asked)
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, StoreError> {
        self.asked().commits.push(commit.clone());
        self.memory.commit(commit)
    }
}

/// An observation never ends early: the note may have been written up to a step after its time.
#[test]
fn a_note_by_a_clock_in_steps_was_seen_as_late_as_it_may_have_been() {
    let kv = Stepping::new();
    let mut store = kv.store();
    store.init(STEP).unwrap();
    let mut seen_at = |tick_ms, epoch: &str| {
        kv.memory.set_clock(StoreTime {
            epoch: ClockEpoch(epoch.into()),
            ..time(tick_ms)
        });
        let reading = store.read(&claim("g", "a", "s").group).unwrap();
        reading.memory.note.unwrap().first_seen.tick_ms
    };
    assert_eq!(seen_at(9_000, "e"), 3_000);
    assert_eq!(seen_at(2_500, "e"), 2_500);
    assert_eq!(seen_at(500, "e"), 1_000);
    // A time by another clock is only shown.
    assert_eq!(seen_at(9_000, "other"), 1_000);
}

#[test]
fn a_store_is_noted_to_be_new_once() {
    let kv = Stepping::new();
    for _ in 0..2 {
        kv.store().init(STEP).unwrap();
        let noted = kv.commit_of(1);
        assert_eq!(noted.compare, [(INCARNATION.to_owned(), None)]);
        assert_eq!(noted.until, Some(time(1_000).until(STEP)));
    }
}

/// A server that may lose tokens grants none, and takes every other commit. Waiters look again only where they may win.
#[test]
fn a_commit_says_whether_it_grants_and_whom_it_concerns() {
    let kv = Stepping::new();
    let mut store = kv.store();
    let (now, me) = (time(1_000), claim("g", "a", "s"));
    let mut commit_after = |swap: &Swap, count| {
        assert!(matches!(store.swap(swap).unwrap(), Swapped::Done(_)));
        let commit = kv.commit_of(count);
        let row = store.read(&me.group).unwrap().row.unwrap();
        (commit.grants, commit.announces.is_some(), commit.fence, row)
    };
    let made = commit_after(&creation(&me, &now, version(1)), 1);
    assert_eq!((made.0, made.1), (false, false));
    let swap = grant(&me, GrantKind::Bind, Some(&made.3), &now, version(2));
    let granted = commit_after(&swap, 2);
    assert_eq!((granted.0, granted.1), (true, false));
    assert_eq!(granted.2, Some((me.group.clone(), granted.3.fence)));
    assert!(granted.3.fence > Fence(0));
    let beat = heartbeat(&granted.3, version(3), now.until(STEP));
    let beaten = commit_after(&beat, 3);
    assert_eq!((beaten.0, beaten.1), (false, false));
    let run = run_of(&beaten.3).ended(SUCCESS);
    let released = release(&beaten.3, run, version(4), now.until(STEP));
    let released = commit_after(&released, 4);
    assert_eq!((released.0, released.1), (false, true));
}

/// Only a run's record may be what has changed.
#[test]
fn a_swap_without_a_run_conflicts_without_another_look() {
    let kv = Stepping::new();
    let mut swap = creation(&claim("g", "a", "s"), &time(1_000), version(1));
    swap.from = Some(version(9));
    assert_eq!(kv.store().swap(&swap).unwrap(), Swapped::Conflict);
    assert_eq!(kv.asked().looks, 0);
}

/// The keys have another order than the names: `:` is escaped.
#[test]
fn groups_are_listed_by_name_and_their_waiters_by_arrival() {
    let kv = Stepping::new();
    let mut store = kv.store();
    let now = time(1_000);
    for (n, group) in ["a:", "a+"].into_iter().enumerate() {
        let me = claim(group, "a", "s");
        let swap = creation(&me, &now, version(n as u64));
        assert!(matches!(store.swap(&swap).unwrap(), Swapped::Done(_)));
        for session in ["z", "b"] {
            let waits = Waiter::of(&claim(group, "a", session));
            let until = now.until(STEP);
            store.join(&me.group, &waits, &until, None).unwrap();
        }
    }
    let listing = store.list().unwrap();
    let rows: Vec<&str> = listing.rows.iter().map(|row| row.group.as_str()).collect();
    assert_eq!(rows, ["a+", "a:"]);
    let places = listing.queues.iter();
    let places = places.map(|(group, place)| (group.as_str(), place.waiter.session.as_str()));
    let places: Vec<(&str, &str)> = places.collect();
    assert_eq!(places, [("a+", "z"), ("a+", "b"), ("a:", "z"), ("a:", "b")]);
}
