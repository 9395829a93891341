use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command};
use std::thread;

use super::*;
use crate::job::tree::tests::process;
use crate::sys::process::pid;
use crate::sys::wait::is_running;

fn at(millis: u64) -> Moment {
    Moment(Duration::from_millis(millis))
}

fn no_tree<R>(body: impl FnOnce(&Tree<'_>) -> R) -> R {
    // A process that does not exist has no children.
    body(&Tree::new(i32::MAX, None, false, &|_| true))
}

#[test]
fn tries_come_at_growing_distances() {
    no_tree(|tree| {
        let mut killing = Killing::default();
        assert_eq!(killing.next(), None);
        let mut now = at(0);
        let mut pauses = Vec::new();
        for _ in 0..10 {
            killing.run(|| now, tree);
            let next = killing.next().unwrap();
            pauses.push(next.since(now).as_millis());
            now = next;
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000]);
    });
}

#[test]
fn a_try_before_its_time_does_nothing() {
    no_tree(|tree| {
        let mut killing = Killing::default();
        killing.run(|| at(0), tree);
        killing.run(|| at(9), tree);
        assert_eq!(killing.next(), Some(at(10)));
    });
}

#[test]
fn survivors_are_reported_once_per_change() {
    let mut killing = Killing::default();
    let one = vec![Survivor {
        pid: 1,
        name: "sudo".to_owned(),
        why: Unkillable::NotPermitted,
    }];
    let mut news = |ms, survivors: &[Survivor]| killing.news(at(ms), survivors.to_vec());
    assert_eq!(news(0, &[]), None);
    assert_eq!(news(1, &one), Some(one.clone()));
    assert_eq!(news(2, &one), None);
    assert_eq!(news(2, &[]), None);
    assert_eq!(news(1_001, &[]), Some(Vec::new()));
}

#[test]
fn a_tree_that_grows_is_tried_at_once_and_then_at_half_of_the_time() {
    let mut killing = Killing::default();
    let growing = Found {
        growing: true,
        ..Found::default()
    };
    let millis = Duration::from_millis;
    let mut pause = |found, for_ms, took| killing.pause(found, millis(for_ms), millis(took));
    assert_eq!(pause(&growing, 0, 50), Duration::ZERO);
    assert_eq!(pause(&growing, 1_999, 50), Duration::ZERO);
    assert_eq!(pause(&growing, 2_000, 50), millis(50));
    assert_eq!(pause(&growing, 2_000, 0), millis(1));
    assert_eq!(pause(&Found::default(), 0, 0), FIRST_PAUSE);
}

#[test]
fn a_new_process_is_tried_soon_again() {
    let mut killing = Killing::default();
    let found = |pids: &[i32]| Found {
        pids: pids.iter().copied().collect(),
        ..Found::default()
    };
    killing.under_way = Some(UnderWay {
        since: at(0),
        next: at(0),
        pause: Duration::from_millis(300),
    });
    let mut pause = |pids: &[i32]| killing.pause(&found(pids), Duration::ZERO, Duration::ZERO);
    assert_eq!(pause(&[7, 8]), FIRST_PAUSE);
    assert_eq!(pause(&[7, 8]), Duration::from_millis(600));
    assert_eq!(pause(&[8]), Duration::from_millis(600));
    assert_eq!(pause(&[7]), FIRST_PAUSE);
}

#[test]
fn those_that_may_not_be_killed_are_survivors_at_once_and_the_others_in_time() {
    let struck = [
        (1, Delivery::Sent),
        (2, Delivery::NotPermitted),
        (3, Delivery::Gone),
        (4, Delivery::Sent),
    ];
    let look_up = |pid| {
        let state = if pid == 4 { 'D' } else { 'S' };
        Some(Process {
            state,
            ..process(pid, 1)
        })
    };
    let pids = |patient| {
        let found = survivors(&struck, patient, look_up);
        let found = found.into_iter().map(|it| (it.pid, it.why));
        found.collect::<Vec<_>>()
    };
    let forbidden = (2, Unkillable::NotPermitted);
    assert_eq!(pids(true), [forbidden]);
    let (late, uninterruptible) = (
        (1, Unkillable::NotYetGone),
        (4, Unkillable::Uninterruptible),
    );
    assert_eq!(pids(false), [late, forbidden, uninterruptible]);
    assert_eq!(survivors(&struck, false, |_| None), []);
    let zombie = |pid| {
        Some(Process {
            state: 'Z',
            ..process(pid, 1)
        })
    };
    assert_eq!(survivors(&struck, false, zombie), []);
}

#[test]
fn so_many_survivors_are_reported_and_no_more() {
    let struck: Vec<_> = (1..100).map(|pid| (pid, Delivery::NotPermitted)).collect();
    let found = survivors(&struck, true, |pid| Some(process(pid, 1)));
    assert_eq!(found.len(), MOST_REPORTED);
}

/// So many children of this process.
struct Family(Vec<Child>);

impl Family {
    fn of(children: usize) -> Self {
        let child = |_| Command::new("sleep").arg("600").spawn().unwrap();
        Self((0..children).map(child).collect())
    }

    fn with_tree<R>(&self, body: impl FnOnce(&Tree<'_>) -> R) -> R {
        let pids = self.0.iter().map(|it| i32::try_from(it.id()).unwrap());
        let pids: BTreeSet<i32> = pids.collect();
        let belongs = |child: &Process| pids.contains(&child.pid);
        body(&Tree::new(pid(), None, false, &belongs))
    }

    /// Reaps them: each has been killed.
    fn end(self) {
        for mut child in self.0 {
            let status = child.wait().unwrap();
            assert_eq!(status.signal(), Some(SIGKILL));
        }
    }
}

/// A patient try that kills four in any case.
const FOUR: Plan = Plan {
    signal: SIGKILL,
    least: 4,
    patient: true,
};

#[test]
fn a_rehearsal_kills_no_process() {
    let mut family = Family::of(4);
    family.with_tree(|tree| {
        let met = strike(tree, REHEARSAL, || true);
        assert_eq!((met.pids.len(), met.survivors.len()), (4, 4));
        rehearse(tree);
    });
    for child in &mut family.0 {
        assert_eq!(child.try_wait().unwrap(), None);
        child.kill().unwrap();
    }
    family.end();
}

#[test]
fn a_small_tree_is_killed_although_its_time_is_over() {
    let family = Family::of(4);
    family.with_tree(|tree| {
        let mut found = Found::default();
        let struck = sweep(tree, &mut found, FOUR, || false).unwrap();
        assert_eq!(struck.len(), 4);
        assert!(
            struck
                .iter()
                .all(|(_, delivery)| *delivery == Delivery::Sent)
        );
        assert_eq!(found.pids.len(), 4);
        // Another round would show that there is none.
        assert!(found.growing);
    });
    family.end();
}

#[test]
fn a_tree_is_killed_until_none_is_new() {
    let family = Family::of(4);
    family.with_tree(|tree| {
        let found = strike(tree, FOUR, || true);
        assert_eq!(found.pids.len(), 4);
        assert!(!found.growing);
        assert_eq!(found.survivors, []);
    });
    family.end();
}

#[test]
fn of_a_larger_tree_a_part_is_killed_when_the_time_is_over() {
    for (may_go_on, expected) in [(false, 4), (true, 6)] {
        let family = Family::of(6);
        family.with_tree(|tree| {
            let mut found = Found::default();
            let struck = sweep(tree, &mut found, FOUR, || may_go_on).unwrap();
            assert_eq!(struck.len(), expected);
            assert_eq!(found.growing, !may_go_on);
            sweep(tree, &mut Found::default(), FOUR, || true).unwrap();
        });
        family.end();
    }
}

/// True if a try on this tree says that there are survivors which it does not see.
fn says_unseen(tree: &Tree<'_>, patient: bool) -> bool {
    strike(tree, Plan { patient, ..FOUR }, || true).survivors == [UNSEEN]
}

#[test]
fn a_living_child_that_proc_does_not_show_is_a_survivor() {
    let mut family = Family::of(1);
    // The children of a process that does not exist are not seen.
    let unseen = Tree::new(i32::MAX, None, true, &|_| true);
    assert!(!says_unseen(&unseen, true));
    no_tree(|strangers_too| assert!(!says_unseen(strangers_too, false)));
    // Other tests have children, too: for moments they have ended and are not reaped.
    while !says_unseen(&unseen, false) {
        thread::yield_now();
    }
    let mut ended = Command::new("true").spawn().unwrap();
    let ends = i32::try_from(ended.id()).unwrap();
    while is_running(ends) == Some(true) {
        thread::yield_now();
    }
    assert!(!says_unseen(&unseen, false));
    ended.wait().unwrap();
    for child in &mut family.0 {
        child.kill().unwrap();
    }
    family.end();
}
