//! The start of a job, or why there is none.

use std::ffi::OsString;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use nix::libc;
use tokenrun::job::{FromGuard, Leftovers, Stage, ToGuard};
use tokenrun::sys::wait::Status;

use crate::harness::{Guarded, PATIENCE, Test, shell, status_of};

pub(crate) const TESTS: &[Test] = &[
    ("an_exit_code_is_reported", an_exit_code_is_reported),
    (
        "a_death_by_signal_is_reported",
        a_death_by_signal_is_reported,
    ),
    (
        "a_death_by_a_real_time_signal_is_reported",
        a_death_by_a_real_time_signal_is_reported,
    ),
    ("a_missing_program_is_enoent", a_missing_program_is_enoent),
    (
        "a_program_that_is_not_executable_is_eacces",
        a_program_that_is_not_executable_is_eacces,
    ),
    (
        "a_script_without_an_interpreter_is_run_by_the_shell",
        a_script_without_an_interpreter_is_run_by_the_shell,
    ),
    (
        "a_start_after_the_deadline_is_refused",
        a_start_after_the_deadline_is_refused,
    ),
    (
        "a_guard_whose_start_does_not_come_in_time_leaves",
        a_guard_whose_start_does_not_come_in_time_leaves,
    ),
    (
        "a_guard_that_expects_no_start_any_more_waits_on",
        a_guard_that_expects_no_start_any_more_waits_on,
    ),
    (
        "a_lock_that_was_lost_on_its_way_is_no_start",
        a_lock_that_was_lost_on_its_way_is_no_start,
    ),
    (
        "an_end_before_the_start_is_all",
        an_end_before_the_start_is_all,
    ),
    (
        "a_guard_without_supervisor_leaves",
        a_guard_without_supervisor_leaves,
    ),
    (
        "an_environment_that_cannot_be_handed_over_is_refused",
        an_environment_that_cannot_be_handed_over_is_refused,
    ),
];

fn a_lock_that_was_lost_on_its_way_is_no_start() {
    let mut guarded = Guarded::fork(shell("true"), Leftovers::Kill, 10_000);
    guarded.send(&ToGuard::Lock { inherit: true });
    guarded.expect(FromGuard::NotStarted {
        stage: Stage::Fork,
        errno: libc::EMFILE,
        what: "lock".to_owned(),
    });
    guarded.expect_guard_ended();
}

fn started(script: &str) -> Guarded {
    let mut guarded = Guarded::fork(shell(script), Leftovers::Kill, 10_000);
    guarded.start(Some(guarded.deadline(3_600_000, 3_600_000)));
    guarded.expect_started();
    guarded
}

fn refused(argv: &[OsString]) -> (Stage, i32) {
    let mut guarded = Guarded::fork(argv.to_vec(), Leftovers::Kill, 10_000);
    guarded.start(None);
    let name = argv.first().unwrap().to_str().unwrap();
    let refusal = match guarded.next() {
        tokenrun::job::Received::Message(FromGuard::NotStarted { stage, errno, what }) => {
            assert_eq!(what, name);
            (stage, errno)
        }
        other => panic!("not refused: {other:?}"),
    };
    guarded.expect_guard_ended();
    refusal
}

fn an_exit_code_is_reported() {
    let mut guarded = started("exit 42");
    guarded.expect_exited(Status::Exited(42));
    guarded.expect_gone();
}

fn a_death_by_signal_is_reported() {
    let mut guarded = started("kill -KILL $$");
    guarded.expect_exited(Status::Signalled(libc::SIGKILL));
    guarded.expect_gone();
}

fn a_death_by_a_real_time_signal_is_reported() {
    let mut guarded = started("kill -40 $$");
    guarded.expect_exited(Status::Signalled(40));
    guarded.expect_gone();
}

fn a_missing_program_is_enoent() {
    for name in ["no-such-program-anywhere", "/no/such/program"] {
        assert_eq!(refused(&[name.into()]), (Stage::Exec, libc::ENOENT));
    }
}

fn a_program_that_is_not_executable_is_eacces() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for path in [file.path(), std::path::Path::new("/")] {
        assert_eq!(refused(&[path.into()]), (Stage::Exec, libc::EACCES));
    }
}

fn a_script_without_an_interpreter_is_run_by_the_shell() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "exit $(($1 + $#))\n").unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&script, executable).unwrap();
    let argv = vec![script.into(), "40".into(), "x".into()];
    let mut guarded = Guarded::fork(argv, Leftovers::Kill, 10_000);
    guarded.start(None);
    guarded.expect_started();
    guarded.expect_exited(Status::Exited(42));
    guarded.expect_gone();
}

fn a_start_after_the_deadline_is_refused() {
    let mut guarded = Guarded::fork(shell("echo > $D/ran"), Leftovers::Kill, 10_000);
    guarded.start(Some(guarded.deadline(0, 3_600_000)));
    guarded.expect_too_late();
    guarded.expect_guard_ended();
    assert!(!guarded.path("ran").exists());
}

fn an_end_before_the_start_is_all() {
    for message in [
        ToGuard::Kill,
        ToGuard::End {
            kill_at: Default::default(),
            term_tree: false,
        },
    ] {
        let mut guarded = Guarded::fork(shell("echo > $D/ran"), Leftovers::Kill, 10_000);
        guarded.send(&message);
        guarded.expect_gone();
        assert!(!guarded.path("ran").exists());
    }
}

fn a_guard_without_supervisor_leaves() {
    let guarded = Guarded::fork(shell("true"), Leftovers::Kill, 10_000);
    let pid = guarded.handle.pid();
    drop(guarded);
    assert_eq!(status_of(pid), Status::Exited(0));
}

fn an_environment_that_cannot_be_handed_over_is_refused() {
    let mut guarded = Guarded::fork(shell("true"), Leftovers::Kill, 10_000);
    guarded.send(&ToGuard::Start {
        deadline: None,
        env: vec![("A=B".to_owned(), String::new())],
    });
    guarded.expect(FromGuard::NotStarted {
        stage: Stage::Exec,
        errno: libc::EINVAL,
        what: "sh".to_owned(),
    });
    guarded.expect_guard_ended();
}

/// A lock for a guard: a descriptor, and another end that shows when all copies of it are closed.
fn lock() -> (UnixStream, UnixStream) {
    UnixStream::pair().unwrap()
}

/// Its supervisor is stopped between the grant and the start, for example. The lock goes with the
/// guard and with the process that it has made ready.
fn a_guard_whose_start_does_not_come_in_time_leaves() {
    let mut guarded = Guarded::fork(shell("echo > $D/ran"), Leftovers::Kill, 10_000);
    let (lock, mut other_end) = lock();
    guarded.handle.send_lock(lock.as_fd(), true).unwrap();
    drop(lock);
    let at = Some(guarded.after(200));
    guarded.send(&ToGuard::StartBy { at });
    // Until every copy is closed.
    other_end.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(other_end.read(&mut [0]).unwrap(), 0);
    guarded.expect_too_late();
    guarded.expect_guard_ended();
    assert!(!guarded.path("ran").exists());
}

fn a_guard_that_expects_no_start_any_more_waits_on() {
    let mut guarded = Guarded::fork(shell("exit 42"), Leftovers::Kill, 10_000);
    let at = Some(guarded.after(1_000));
    guarded.send(&ToGuard::StartBy { at });
    guarded.send(&ToGuard::StartBy { at: None });
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    guarded.start(None);
    guarded.expect_started();
    guarded.expect_exited(Status::Exited(42));
    guarded.expect_gone();
}
