//! Waiting in the queue.

mod said;

use std::time::Duration;

use super::rig::*;
use crate::run::ending::Ending;
use crate::run::event::{Action, Event, Note};
use crate::run::machine::{Limits, Wait};
use crate::store::Request;
use crate::store::{Queue as _, StoreError, Trouble};
use crate::sys::wait::Status;
use crate::token::operator::Act;
use crate::token::queue::LIVES;
use crate::token::rule::tests::fixture::{MS, but, client, s};
use crate::token::{Evidence, GroupName, SessionId, Waiter};

/// The machine's clock reads 100 s at the start.
const BEGUN: Duration = s(100);

fn waits(name: &str, wait: Wait, like: &Rig) -> Rig {
    let limits = Limits {
        wait,
        ..Limits::default()
    };
    Rig::of(claim_of(name), limits, like.store.clone())
}

/// A machine in the queue behind a holder, and the holder.
fn in_queue(wait: Wait) -> (Rig, Rig) {
    let holder = Rig::running();
    let mut rig = waits("b", wait, &holder);
    rig.answered();
    assert!(matches!(rig.out, Some(Request::Join(..))), "{:?}", rig.out);
    rig.answered();
    assert!(rig.out.is_none());
    (rig, holder)
}

fn queue(rig: &Rig) -> Vec<String> {
    let group = GroupName::new("g").unwrap();
    let contents = rig.store.contents();
    let clients = contents
        .queue_of(&group)
        .map(|entry| entry.waiter.client.to_string());
    clients.collect()
}

#[test]
fn a_refused_claim_joins_the_queue_and_reads_again_on_a_notification() {
    let (mut rig, mut holder) = in_queue(Wait::Forever);
    assert_eq!(queue(&rig), ["b"]);
    assert!(rig.machine.listens());
    holder.job_ends(Status::Exited(0));
    holder.answered();
    rig.tell(Event::Notified);
    assert!(!rig.machine.listens(), "a look is out");
    rig.answered();
    let did = rig.answered();
    assert!(queue(&rig).is_empty(), "the grant takes it out");
    assert!(words(&did, rig.now).contains("start"), "{did:?}");
}

#[test]
fn a_waiter_sends_a_heartbeat_within_each_second() {
    let (mut rig, _) = in_queue(Wait::Forever);
    for _ in 0..5 {
        rig.wait(Duration::from_millis(1_000));
        assert!(matches!(rig.out, Some(Request::Join(..))), "{:?}", rig.out);
        rig.answered();
    }
    assert_eq!(rig.machine.ending(), None);
}

/// The sender of a request that arrives late may be dead.
#[test]
fn a_waiters_heartbeat_expires_in_the_stores_time_and_the_next_one_counts() {
    let (mut rig, _) = in_queue(Wait::Forever);
    rig.wait(Duration::from_millis(1_000));
    let Some(Request::Join(_, _, expiry, _)) = &rig.out else {
        panic!("{:?}", rig.out);
    };
    assert_eq!(
        *expiry,
        rig.store.now().until(LIVES),
        "less than a time-out"
    );
    // The answer to the last look was late: the store's time in it counts from its arrival.
    let answer = rig.arrives();
    let looked_at = rig.store.now();
    rig.wait(s(3));
    rig.tell(answer);
    let Some(Request::Join(_, _, expiry, _)) = rig.out.clone() else {
        panic!("{:?}", rig.out);
    };
    assert_eq!(expiry, looked_at.until(LIVES));
    // It comes too late: that does not end the wait.
    assert!(rig.store.now().is_past(&expiry));
    rig.answered();
    let group = GroupName::new("g").unwrap();
    let is_alive = |rig: &Rig| {
        let contents = rig.store.contents();
        let mut queue = contents.queue_of(&group);
        queue.next().unwrap().is_alive(&rig.store.now())
    };
    assert!(!is_alive(&rig));
    rig.wait(s(1));
    rig.answered();
    assert!(is_alive(&rig));
    assert_eq!(rig.machine.ending(), None);
}

#[test]
fn the_beginning_and_the_end_of_the_wait_are_reported_once() {
    let newly = |a: &Action| matches!(a, Action::Say(Note::Queued { newly: true, .. }));
    let mut first = waits("b", Wait::Forever, &Rig::running());
    assert!(first.answered().iter().any(newly));
    let (mut rig, mut holder) = in_queue(Wait::Forever);
    let did = rig.tell(Event::Notified);
    assert!(!did.iter().any(|a| matches!(a, Action::Say(_))));
    let did = rig.answered();
    assert!(!did.iter().any(newly));
    holder.job_ends(Status::Exited(0));
    holder.answered();
    rig.tell(Event::Notified);
    rig.answered();
    let did = rig.answered();
    let over = did
        .iter()
        .filter(|a| matches!(a, Action::Say(Note::Waited { .. })));
    assert_eq!(over.count(), 1);
}

#[test]
fn the_time_to_wait_ends_to_the_millisecond_and_the_queue_is_left() {
    let (mut rig, _) = in_queue(Wait::For(BEGUN + Duration::from_millis(500)));
    assert_eq!(
        rig.machine.wake_at().map(|at| at.0),
        Some(BEGUN + Duration::from_millis(500))
    );
    rig.wait(Duration::from_millis(499));
    assert!(rig.out.is_none());
    rig.wait(MS);
    assert!(matches!(rig.out, Some(Request::Leave(..))), "{:?}", rig.out);
    rig.answered();
    assert!(queue(&rig).is_empty());
    assert_eq!(short(rig.ending()), "refused by clause 4");
}

#[test]
fn a_store_that_does_not_answer_the_leave_delays_no_end() {
    let (mut rig, _) = in_queue(Wait::For(BEGUN + s(1)));
    rig.wait(s(1));
    rig.wait(Duration::from_millis(249));
    assert_eq!(rig.machine.ending(), None);
    rig.wait(MS);
    assert_eq!(short(rig.ending()), "refused by clause 4");
}

#[test]
fn a_look_that_is_out_at_the_end_of_the_wait_is_awaited_for_a_moment_only() {
    let (mut rig, _) = in_queue(Wait::For(BEGUN + s(1)));
    rig.wait(Duration::from_millis(800));
    assert!(matches!(rig.out, Some(Request::Join(..))), "{:?}", rig.out);
    rig.now = rig.now.plus(Duration::from_millis(200));
    rig.tell(Event::Tick);
    rig.answered();
    assert!(matches!(rig.out, Some(Request::Leave(..))), "{:?}", rig.out);
    rig.answered();
    assert_eq!(short(rig.ending()), "refused by clause 4");
}

#[test]
fn a_stop_ends_the_wait_and_leaves_the_queue() {
    let (mut rig, _) = in_queue(Wait::Forever);
    rig.tell(Event::Signal {
        signal: 15,
        stop: true,
    });
    rig.answered();
    assert_eq!(short(rig.ending()), "stopped by 15");
    assert!(queue(&rig).is_empty());
}

#[test]
fn a_second_stop_does_not_wait_for_the_store() {
    let (mut rig, _) = in_queue(Wait::Forever);
    for signal in [15, 2] {
        rig.tell(Event::Signal { signal, stop: true });
    }
    assert_eq!(short(rig.ending()), "stopped by 15");
}

#[test]
fn a_store_that_is_away_is_waited_for_and_named_at_the_end() {
    let (mut rig, _) = in_queue(Wait::For(BEGUN + s(60)));
    while rig.machine.ending().is_none() {
        if rig.out.is_some() {
            rig.fails();
        }
        rig.wait(Duration::from_millis(250));
        assert!(rig.now.0 <= BEGUN + s(61));
    }
    assert_eq!(short(rig.ending()), "store failed, perhaps granted: false");
}

#[test]
fn a_store_that_is_away_from_the_first_look_on_is_waited_for_too() {
    let mut rig = waits("b", Wait::For(BEGUN + s(30)), &Rig::running());
    rig.fails();
    rig.wait(s(10));
    rig.answered();
    assert_eq!(rig.machine.ending(), None, "and now it waits in the queue");
    assert!(matches!(rig.out, Some(Request::Join(..))));
}

#[test]
fn a_store_that_never_answers_prolongs_no_wait() {
    let mut rig = waits("b", Wait::For(BEGUN + s(30)), &Rig::running());
    rig.wait(s(29));
    assert_eq!(
        rig.machine.ending(),
        None,
        "longer than one that does not wait"
    );
    rig.wait(s(1));
    assert_eq!(short(rig.ending()), "store failed, perhaps granted: false");
}

#[test]
fn a_store_that_denies_is_not_waited_for() {
    let mut rig = waits("b", Wait::Forever, &Rig::running());
    rig.out = None;
    rig.tell(Event::Looked(Err(StoreError::denied("no"))));
    assert_eq!(short(rig.ending()), "store failed, perhaps granted: false");
}

#[test]
fn an_unclear_grant_is_settled_and_the_wait_goes_on() {
    let (mut rig, mut holder) = in_queue(Wait::Forever);
    holder.job_ends(Status::Exited(0));
    holder.answered();
    rig.tell(Event::Notified);
    rig.answered();
    rig.fails();
    rig.wait(s(30));
    assert_eq!(rig.machine.ending(), None, "the grant never arrived");
    rig.answered();
    let did = rig.answered();
    assert!(words(&did, rig.now).contains("start"), "{did:?}");
}

/// A grant that is out in a slow store neither ends the wait before its time nor prolongs it: after
/// its expiry there is nothing to wait for.
#[test]
fn a_grant_without_an_answer_is_awaited_until_the_wait_is_over() {
    let (long, short_one) = (s(120), s(2));
    for (wait, stopped, ends) in [
        (Wait::For(BEGUN + long), false, Some(long)),
        (Wait::For(BEGUN + short_one), false, Some(short_one)),
        (Wait::For(BEGUN + short_one), true, Some(short_one)),
        (Wait::Forever, false, None),
        (Wait::Forever, true, Some(s(10))),
    ] {
        let (mut rig, mut holder) = in_queue(wait);
        holder.job_ends(Status::Exited(0));
        holder.answered();
        rig.tell(Event::Notified);
        rig.answered();
        let Some(Request::Swap(grant)) = &rig.out else {
            panic!("{:?}", rig.out);
        };
        let until = rig.store.now().until(ends.unwrap_or(s(5)).min(s(5)));
        assert_eq!(grant.expiry, until, "the store's time-out at most");
        if stopped {
            rig.tell(Event::Signal {
                signal: 15,
                stop: true,
            });
        }
        let begun = rig.now;
        while rig.machine.ending().is_none() && rig.now.since(begun) < long + long {
            rig.wait(Duration::from_millis(25));
        }
        let took = rig.machine.ending().map(|_| rig.now.since(begun));
        assert_eq!(took.is_some(), ends.is_some(), "{wait:?}");
        if let (Some(took), Some(ends)) = (took, ends) {
            let late = took.saturating_sub(ends);
            assert!(
                took >= ends && late <= Duration::from_millis(25),
                "{wait:?}: {took:?}"
            );
            assert_eq!(short(rig.ending()), "store failed, perhaps granted: true");
        }
    }
}

/// The row that another session has taken can't be what the lost grant started from.
#[test]
fn a_wait_behind_a_holder_ends_as_a_refusal_though_an_earlier_grant_has_no_answer() {
    let (mut rig, mut holder) = in_queue(Wait::For(BEGUN + s(6)));
    holder.job_ends(Status::Exited(0));
    holder.answered();
    rig.tell(Event::Notified);
    rig.answered();
    rig.fails();
    rig.taken_by_another();
    while rig.machine.ending().is_none() {
        rig.wait(Duration::from_millis(250));
        if rig.out.is_some() {
            rig.answered();
        }
        assert!(rig.now.0 <= BEGUN + s(7));
    }
    assert_eq!(short(rig.ending()), "refused by clause 4");
}

/// A waiter that has come in between refuses the session, and the grant may happen all the same.
#[test]
fn a_refusal_does_not_settle_a_grant_that_has_no_answer_while_the_row_stands() {
    for wait in [Wait::No, Wait::For(BEGUN + s(15))] {
        let mut holder = Rig::running();
        holder.job_ends(Status::Exited(0));
        holder.answered();
        let mut rig = waits("a", wait, &holder);
        rig.answered();
        assert!(matches!(rig.out, Some(Request::Swap(_))), "{:?}", rig.out);
        rig.fails();
        let other = claim_of("b");
        let other = Waiter {
            session: other.session,
            client: other.client,
            failback: false,
        };
        let expiry = rig.store.now().until(s(30));
        while rig.machine.ending().is_none() {
            let group = GroupName::new("g").unwrap();
            rig.store.join(&group, &other, &expiry, None).unwrap();
            rig.wait(Duration::from_millis(250));
            if rig.out.is_some() {
                rig.answered();
            }
            assert!(rig.now.0 <= BEGUN + s(20), "{wait:?}: {}", place(&rig));
        }
        assert_eq!(short(rig.ending()), "store failed, perhaps granted: true");
    }
}

/// Such a session knows by a lock of its own host what no other can know, and would delay the others.
#[test]
fn a_waiter_whose_host_shows_a_living_job_looks_again_and_leaves_its_place() {
    let (mut rig, _) = in_queue(Wait::Forever);
    rig.wait(s(61));
    let alive = |rig: &mut Rig| {
        let Event::Looked(Ok((reading, _))) = rig.arrives() else {
            panic!("it looks");
        };
        rig.tell(Event::Looked(Ok((reading, Evidence::Alive(Vec::new())))));
    };
    alive(&mut rig);
    assert!(rig.out.is_none(), "{:?}", rig.out);
    for _ in 0..3 {
        let due = rig.machine.wake_at().unwrap();
        let pause = due.since(rig.now);
        assert!(
            pause >= Duration::from_millis(10) && pause <= s(1),
            "{pause:?}"
        );
        rig.wait(due.since(rig.now));
        assert!(matches!(rig.out, Some(Request::Read(..))), "{:?}", rig.out);
        alive(&mut rig);
    }
    assert_eq!(rig.machine.ending(), None);
}

/// The final report names the obstacle, whatever happens to the last grant.
#[test]
fn a_row_that_stays_locked_until_the_wait_is_over_is_reported() {
    for expired in [false, true] {
        let (mut rig, mut holder) = in_queue(Wait::For(BEGUN + s(2)));
        holder.job_ends(Status::Exited(0));
        holder.answered();
        rig.tell(Event::Notified);
        rig.answered();
        rig.out = None;
        rig.tell(Event::Swapped(Err(StoreError::held("pid 7"))));
        rig.wait(s(1));
        rig.answered();
        assert!(matches!(rig.out, Some(Request::Swap(_))), "{:?}", rig.out);
        rig.wait(s(1) + MS);
        if expired {
            rig.answered();
        }
        // The session leaves the queue, if that takes no time.
        for _ in 0..2 {
            rig.wait(Duration::from_millis(250));
        }
        let Some(Ending::StoreFailed { error, .. }) = rig.machine.ending() else {
            panic!("{:?}", rig.machine.ending());
        };
        assert_eq!(error.trouble, Trouble::Held);
    }
}

#[test]
fn a_waiter_takes_over_from_a_silent_holder_at_the_first_moment() {
    let (mut rig, _dead) = in_queue(Wait::Forever);
    let begun = rig.now;
    while rig.out.is_some() || rig.machine.ending().is_none() && queue(&rig) == ["b"] {
        if rig.out.is_some() {
            rig.answered();
        } else {
            let due = rig.machine.wake_at().unwrap();
            rig.wait(due.since(rig.now).max(MS));
        }
    }
    assert!(queue(&rig).is_empty());
    let took = rig.now.since(begun);
    assert!(took >= s(59) && took <= s(61), "{took:?}");
}

#[test]
fn the_second_of_two_waiters_is_behind_the_first() {
    let (mut first, mut holder) = in_queue(Wait::Forever);
    let mut second = waits("c", Wait::Forever, &holder);
    second.answered();
    second.answered();
    holder.job_ends(Status::Exited(0));
    holder.answered();
    second.tell(Event::Notified);
    assert!(second.out.is_none(), "it is not its turn");
    assert!(!second.machine.listens(), "one notifier, one look");
    second.wait(Duration::from_millis(9));
    assert!(second.out.is_none(), "{:?}", second.out);
    second.wait(MS);
    second.answered();
    assert!(second.out.is_none(), "{:?}", second.out);
    assert!(second.machine.listens());
    // A session that does not wait is refused.
    let mut late = Rig::of(claim_of("a"), Limits::default(), holder.store.clone());
    late.answered();
    assert_eq!(short(late.ending()), "refused by clause 10");
    first.tell(Event::Notified);
    first.answered();
    first.answered();
    assert_eq!(queue(&first), ["c"]);
}

#[test]
fn a_dead_waiter_is_skipped() {
    let (_dead, mut holder) = in_queue(Wait::Forever);
    let mut second = waits("c", Wait::Forever, &holder);
    second.answered();
    second.answered();
    holder.job_ends(Status::Exited(0));
    holder.answered();
    let begun = second.now;
    while queue(&second).contains(&"c".to_owned()) {
        let due = second.machine.wake_at().unwrap();
        second.wait(due.since(second.now).max(MS));
        while second.out.is_some() {
            second.answered();
        }
    }
    assert!(second.now.since(begun) <= s(3));
}

#[test]
fn a_lost_position_is_requested_again() {
    let (mut rig, _) = in_queue(Wait::Forever);
    let group = GroupName::new("g").unwrap();
    let session = SessionId::new("b1").unwrap();
    rig.store.leave(&group, &session).unwrap();
    rig.wait(s(1));
    rig.answered();
    assert_eq!(queue(&rig), ["b"]);
}

#[test]
fn the_expected_client_waits_for_its_token_and_takes_it_back() {
    let mut holder = Rig::running();
    let mut rig = {
        let limits = Limits {
            wait: Wait::Forever,
            ..Limits::default()
        };
        let claim = but(claim_of("b"), |claim| claim.failback = true);
        Rig::of(claim, limits, holder.store.clone())
    };
    holder.operates(&Act::Expect(Some(client("b"))));
    rig.answered();
    rig.answered();
    // The holder adopts the operator's write.
    holder.wait(s(10));
    holder.answered();
    if holder.out.is_some() {
        holder.answered();
    }
    holder.job_ends(Status::Exited(0));
    while holder.out.is_some() {
        holder.answered();
    }
    rig.now = holder.now;
    for _ in 0..20 {
        if queue(&rig).is_empty() {
            return;
        }
        rig.tell(Event::Tick);
        while rig.out.is_some() {
            rig.answered();
        }
        rig.wait(s(1));
    }
    panic!("{:?}", rig.machine.phase());
}
