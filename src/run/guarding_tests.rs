use std::process::{Command, Stdio};
use std::thread;

use super::*;
use crate::job::{Survivor, Unkillable};
use crate::sys::socket::{Packet, Packets};

#[test]
fn a_guard_has_answered_by_a_message_or_if_in_doubt_by_having_run() {
    let ms = |ms| Some(Duration::from_millis(ms));
    let mut owed = Owed::default();
    owed.asked(ms(10));
    assert!(!owed.is_given(false, || ms(30)), "it has time");
    owed.continued();
    assert!(!owed.is_given(false, || ms(10)), "it has not run");
    assert!(!owed.is_given(false, || None), "it is gone");
    assert!(owed.is_given(false, || ms(11)));
    assert!(!owed.is_given(false, || ms(12)), "until it is asked again");

    owed.continued();
    assert!(owed.is_given(true, || ms(10)));
    assert!(!owed.is_given(false, || ms(30)), "no doubt is left");
    owed.continued();
    owed.asked(ms(30));
    assert!(!owed.is_given(false, || ms(40)));
}

const fn ms(ms: u64) -> Moment {
    Moment(Duration::from_millis(ms))
}

/// No process has this pid: what a defect would do to a guard and its tree does no harm.
const NO_PROCESS: i32 = i32::MAX;

/// A guard that a test plays, with this pid, before the job's start.
fn played(pid: i32) -> (Guarding, Played) {
    let (handle, guards_end) = GuardHandle::played(pid);
    let argv = vec!["job".into()];
    (Guarding::new(handle, argv), Played(guards_end))
}

/// The guard's side.
struct Played(Packets);

impl Played {
    fn say(&self, message: &FromGuard) {
        let message = serde_json::to_vec(message).unwrap();
        self.0.send(&message, None).unwrap();
    }

    /// The next message to the guard, if it was sent.
    fn hear(&self) -> Option<ToGuard> {
        match self.0.receive().unwrap() {
            Packet::Data(message, _) => Some(serde_json::from_slice(&message).unwrap()),
            Packet::Nothing | Packet::Closed => None,
        }
    }
}

fn what_happened(guarding: &mut Guarding, now: Moment) -> Vec<String> {
    let heard = guarding.events(now).unwrap();
    heard.iter().map(|it| format!("{it:?}")).collect()
}

#[test]
fn a_waiting_guard_learns_each_new_time_of_its_start_once() {
    let (mut guarding, guard) = played(NO_PROCESS);
    guarding.start_by(None);
    assert_eq!(guard.hear(), None, "it expects none");
    for at in [Some(ms(5)), Some(ms(7)), None] {
        guarding.start_by(at);
        guarding.start_by(at);
        assert_eq!(guard.hear(), Some(ToGuard::StartBy { at }));
        assert_eq!(guard.hear(), None, "it knows that already");
    }
    guarding.start(None, Vec::new());
    assert!(matches!(guard.hear(), Some(ToGuard::Start { .. })));
    guarding.start_by(Some(ms(9)));
    assert_eq!(guard.hear(), None, "the job is started");
}

#[test]
fn a_start_that_cannot_be_sent_is_a_job_that_is_not_started() {
    let (mut guarding, guard) = played(NO_PROCESS);
    drop(guard);
    guarding.start(None, Vec::new());
    let heard = guarding.events(ms(0)).unwrap();
    assert!(matches!(
        heard.first(),
        Some(Heard::Event(Event::JobNotStarted(NotStarted::NoProcess(_))))
    ));
}

#[test]
fn a_guard_is_heard_until_it_closes_its_socket() {
    let (mut guarding, guard) = played(NO_PROCESS);
    guarding.start(None, Vec::new());
    assert!(guarding.fd().is_some() && guarding.has_job());
    guard.say(&FromGuard::Started { pid: 2 });
    guard.say(&FromGuard::Ack);
    drop(guard);
    let heard = what_happened(&mut guarding, ms(0));
    assert_eq!(
        heard,
        [
            "Event(JobStarted)",
            "Event(GuardAnswered)",
            "Event(GuardGone)"
        ]
    );
    assert!(guarding.fd().is_none(), "a closed socket is always ready");
    assert_eq!(what_happened(&mut guarding, ms(1)), [""; 0]);
}

#[test]
fn a_guard_that_leaves_after_its_last_message_is_not_missed() {
    let stage = Stage::TooLate;
    let last = [
        FromGuard::Gone,
        FromGuard::NotStarted {
            stage,
            errno: 0,
            what: String::new(),
        },
    ];
    for message in last {
        let (mut guarding, guard) = played(NO_PROCESS);
        guarding.start(None, Vec::new());
        guard.say(&message);
        drop(guard);
        assert_eq!(
            guarding.events(ms(0)).unwrap().len(),
            1,
            "after {message:?}"
        );
        assert!(!guarding.has_job());
    }
}

#[test]
fn an_answer_is_heard_once_and_before_the_rest() {
    let (mut guarding, guard) = played(NO_PROCESS);
    guarding.start(None, Vec::new());
    assert!(!guarding.has_answered().unwrap());
    guard.say(&FromGuard::Started { pid: 2 });
    guard.say(&FromGuard::Ending);
    assert!(guarding.has_answered().unwrap());
    assert!(!guarding.has_answered().unwrap());
    assert_eq!(what_happened(&mut guarding, ms(0)), ["Event(JobStarted)"]);
}

#[test]
fn children_of_another_are_looked_for_every_second_while_a_job_may_run() {
    let (mut guarding, _guard) = played(NO_PROCESS);
    let looks_at = |guarding: &mut Guarding, now| {
        guarding.events(now).unwrap();
        guarding.look_at
    };
    assert_eq!(looks_at(&mut guarding, ms(10)), ms(0), "there is no job");
    guarding.start(None, Vec::new());
    assert_eq!(looks_at(&mut guarding, ms(20)), ms(1_020));
    assert_eq!(looks_at(&mut guarding, ms(1_019)), ms(1_020));
    assert_eq!(looks_at(&mut guarding, ms(1_020)), ms(2_020));
}

#[test]
fn an_end_without_the_guard_goes_on_until_nothing_is_left() {
    let (mut guarding, _guard) = played(NO_PROCESS);
    guarding.state = State::Alone { again_at: ms(0) };
    let survivor = Survivor {
        pid: 3,
        name: "stuck".to_owned(),
        why: Unkillable::Uninterruptible,
    };
    guarding.note_end(TreeEnd::Ending {
        again_at: ms(7),
        survivors: Some(vec![survivor.clone()]),
    });
    assert_eq!(guarding.state, State::Alone { again_at: ms(7) });
    assert_eq!(guarding.wake_at(), Some(ms(7)));
    assert!(matches!(
        &*std::mem::take(&mut guarding.heard),
        [Heard::News(GuardNews::Survivors(found))] if *found == [survivor]
    ));
    assert_eq!(what_happened(&mut guarding, ms(6)), [""; 0], "not yet");

    guarding.child_ended();
    assert_eq!(guarding.state, State::Alone { again_at: ms(0) });
    assert_eq!(guarding.wake_at(), Some(ms(0)));

    guarding.note_end(TreeEnd::Gone);
    assert_eq!(guarding.state, State::Over);
    assert!(!guarding.has_job());
    assert!(matches!(&*guarding.heard, [Heard::Event(Event::TreeGone)]));
}

#[test]
fn a_stopped_guard_is_continued() {
    let mut stopped = Command::new("sh")
        .args(["-c", "kill -STOP $$; exit 3"])
        .spawn()
        .unwrap();
    let pid = i32::try_from(stopped.id()).unwrap();
    let (mut guarding, _guard) = played(pid);
    while procfs::process(pid).is_none_or(|it| it.state != 'T') {
        thread::yield_now();
    }
    guarding.continue_guard();
    assert_eq!(stopped.wait().unwrap().code(), Some(3));
}

/// It may be ending hundreds of processes, and better than its supervisor could.
#[test]
fn a_guard_that_has_run_since_it_was_asked_and_continued_has_answered() {
    let mut busy = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .unwrap();
    let pid = i32::try_from(busy.id()).unwrap();
    let (mut guarding, _guard) = played(pid);
    guarding.start(None, Vec::new());
    guarding.end(false, ms(9));
    guarding.continue_guard();
    while !guarding.has_answered().unwrap() {
        thread::yield_now();
    }
    busy.kill().unwrap();
    busy.wait().unwrap();
}

#[test]
fn the_end_of_a_run_waits_for_the_end_of_its_guard() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let (mut guarding, guard) = played(i32::try_from(child.id()).unwrap());
    thread::scope(|scope| {
        scope.spawn(|| {
            while guard.hear() != Some(ToGuard::Kill) {
                thread::yield_now();
            }
            drop(child.stdin.take());
        });
        guarding.dismiss_within(Duration::from_secs(60));
    });
    assert!(child.wait().is_err(), "it is reaped already");
}
