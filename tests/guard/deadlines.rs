//! A job does not outlive its deadline, nor its supervisor.

use nix::libc;
use tokenrun::job::{FromGuard, Leftovers, Received, ToGuard};
use tokenrun::sys::wait::Status;

use crate::harness::{Guarded, Test, alive, shell, status_of, until, until_dead, until_stopped};

pub(crate) const TESTS: &[Test] = &[
    (
        "a_deadline_that_passes_ends_the_tree",
        a_deadline_that_passes_ends_the_tree,
    ),
    (
        "a_job_that_ignores_term_is_killed",
        a_job_that_ignores_term_is_killed,
    ),
    (
        "a_new_deadline_is_acknowledged_and_holds",
        a_new_deadline_is_acknowledged_and_holds,
    ),
    (
        "news_after_the_deadline_are_heard_and_change_nothing",
        news_after_the_deadline_are_heard_and_change_nothing,
    ),
    (
        "a_process_that_left_the_session_is_killed",
        a_process_that_left_the_session_is_killed,
    ),
    (
        "a_stopped_process_gets_its_term",
        a_stopped_process_gets_its_term,
    ),
    (
        "without_supervisor_the_tree_ends",
        without_supervisor_the_tree_ends,
    ),
    (
        "without_supervisor_a_process_that_ignores_term_is_killed",
        without_supervisor_a_process_that_ignores_term_is_killed,
    ),
    (
        "a_tree_that_keeps_forking_is_killed",
        a_tree_that_keeps_forking_is_killed,
    ),
];

/// Ignores TERM, then says its pid in `file`, and stays.
const STUBBORN: &str = "trap '' TERM; echo $$ > $D/main; while :; do sleep 1; done";

fn a_deadline_that_passes_ends_the_tree() {
    let script = "(trap 'echo asked > $D/asked; exit' TERM; echo > $D/ready; \
                  while :; do sleep 0.01; done) & \
                  trap 'wait; exit 3' TERM; while :; do sleep 0.01; done";
    let mut guarded = Guarded::fork(shell(script), Leftovers::Kill, 3_600_000);
    guarded.start(Some(guarded.deadline(3_600_000, 7_200_000)));
    guarded.expect_started();
    guarded.line("ready");
    let deadline = guarded.deadline(50, 3_600_000);
    guarded.send(&ToGuard::Deadline { deadline });
    guarded.expect(FromGuard::Ack);
    guarded.expect(FromGuard::Expired);
    assert!(guarded.clock.now() >= deadline.term_at);
    guarded.expect_exited(Status::Exited(3));
    guarded.expect_gone();
    assert_eq!(guarded.line("asked"), "asked\n");
}

fn a_job_that_ignores_term_is_killed() {
    let mut guarded = Guarded::fork(shell(STUBBORN), Leftovers::Leave, 3_600_000);
    guarded.start(Some(guarded.deadline(3_600_000, 7_200_000)));
    let job = guarded.expect_started();
    assert_eq!(guarded.pid("main"), job);
    let deadline = guarded.deadline(20, 120);
    guarded.send(&ToGuard::Deadline { deadline });
    guarded.expect(FromGuard::Ack);
    guarded.expect(FromGuard::Expired);
    assert!(alive(job).is_some());
    guarded.expect_exited(Status::Signalled(libc::SIGKILL));
    assert!(guarded.clock.now() >= deadline.kill_at);
    guarded.expect_gone();
}

fn a_new_deadline_is_acknowledged_and_holds() {
    let mut guarded = Guarded::fork(shell("read line < $D/fifo"), Leftovers::Kill, 10_000);
    nix::unistd::mkfifo(&guarded.path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let first = guarded.deadline(1_000, 2_000);
    guarded.start(Some(first));
    guarded.expect_started();
    for _ in 0..3 {
        let deadline = guarded.deadline(3_600_000, 3_600_000);
        guarded.send(&ToGuard::Deadline { deadline });
        guarded.expect(FromGuard::Ack);
    }
    crate::harness::until("the first deadline passes", || {
        (guarded.clock.now() > first.kill_at).then_some(())
    });
    std::fs::write(guarded.path("fifo"), "go on\n").unwrap();
    guarded.expect_exited(Status::Exited(0));
    guarded.expect_gone();
}

fn news_after_the_deadline_are_heard_and_change_nothing() {
    let mut guarded = Guarded::fork(shell(STUBBORN), Leftovers::Kill, 10_000);
    guarded.start(Some(guarded.deadline(3_600_000, 3_600_000)));
    guarded.expect_started();
    guarded.line("main");
    let deadline = guarded.deadline(0, 200);
    guarded.send(&ToGuard::Deadline { deadline });
    guarded.expect(FromGuard::Ack);
    guarded.expect(FromGuard::Expired);
    let deadline = guarded.deadline(3_600_000, 3_600_000);
    guarded.send(&ToGuard::Deadline { deadline });
    guarded.expect(FromGuard::Ack);
    guarded.expect_exited(Status::Signalled(libc::SIGKILL));
    guarded.expect_gone();
}

fn a_process_that_left_the_session_is_killed() {
    // Twice forked, in a session of its own, adopted by the guard.
    let script = "setsid sh -c 'trap \"\" TERM; echo $$ > $D/far; while :; do sleep 1; done' & \
                  while :; do sleep 1; done";
    let mut guarded = Guarded::running(&format!("({script}) & {STUBBORN}"));
    let far = guarded.pid("far");
    guarded.line("main");
    guarded.send(&ToGuard::Kill);
    guarded.expect_exited(Status::Signalled(libc::SIGKILL));
    guarded.expect_gone();
    assert!(alive(far).is_none());
}

fn a_stopped_process_gets_its_term() {
    let mut guarded = Guarded::running("trap 'exit 5' TERM; kill -STOP $$; exit 6");
    let job = {
        let own = guarded.handle.pid();
        let child = tokenrun::sys::procfs::processes().unwrap();
        let child = child.into_iter().find(|process| process.parent == own);
        child.unwrap().pid
    };
    until_stopped(job);
    let kill_at = guarded.after(3_600_000);
    guarded.send(&ToGuard::End {
        kill_at,
        term_tree: true,
    });
    guarded.expect_exited(Status::Exited(5));
    guarded.expect_gone();
}

fn without_supervisor_the_tree_ends() {
    let guarded = Guarded::running(
        "setsid sh -c 'echo $$ > $D/far; while :; do sleep 1; done' & \
         trap 'echo asked > $D/asked; exit' TERM; echo $$ > $D/main; while :; do sleep 0.01; done",
    );
    let (main, far) = (guarded.pid("main"), guarded.pid("far"));
    let Guarded { handle, folder, .. } = guarded;
    let guard = handle.pid();
    drop(handle);
    assert_eq!(status_of(guard), Status::Exited(0));
    assert!(alive(main).is_none() && alive(far).is_none());
    let asked = crate::harness::line(&folder.path().join("asked"));
    assert_eq!(asked, "asked\n");
}

fn without_supervisor_a_process_that_ignores_term_is_killed() {
    let mut guarded = Guarded::fork(shell(STUBBORN), Leftovers::Leave, 3_600_000);
    // The deadline is nearer than the grace.
    guarded.start(Some(guarded.deadline(400, 500)));
    guarded.expect_started();
    let main = guarded.pid("main");
    let guard = guarded.handle.pid();
    drop(guarded);
    // A terminal's signals are for the supervisor's session.
    let its = nix::unistd::Pid::from_raw(guard);
    until("it has a session of its own", || {
        (nix::unistd::getsid(Some(its)) == Ok(its)).then_some(())
    });
    assert_eq!(status_of(guard), Status::Exited(0));
    until_dead(main);
}

fn a_tree_that_keeps_forking_is_killed() {
    // Each process replaces itself by a child in a new session, and leaves.
    let script = "#!/bin/sh\ntrap '' TERM\necho $$ >> $D/pids\nsetsid $D/again &\n";
    let mut guarded = Guarded::fork(
        shell("until test -x $D/again; do :; done; exec $D/again"),
        Leftovers::Kill,
        3_600_000,
    );
    guarded.start(None);
    let again = guarded.path("again");
    let new = guarded.path("new");
    std::fs::write(&new, script).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&new, executable).unwrap();
    std::fs::rename(new, again).unwrap();
    guarded.expect_started();
    guarded.expect_exited(Status::Exited(0));
    guarded.send(&ToGuard::Kill);
    loop {
        match guarded.next() {
            Received::Message(FromGuard::Gone) => break,
            Received::Message(FromGuard::Leftovers { .. } | FromGuard::Survivors { .. }) => {}
            other => panic!("unexpected: {other:?}"),
        }
    }
    guarded.expect_guard_ended();
    let pids = guarded.line("pids");
    let last = pids.lines().last().unwrap().parse().unwrap();
    assert!(alive(last).is_none());
}
