//! What a job is given: what tokenrun was given, and nothing of ours.

use std::os::fd::{AsFd, AsRawFd};

use nix::libc;
use tokenrun::job::{Leftovers, ToGuard};
use tokenrun::sys::limits::run_first;
use tokenrun::sys::process::{Forked, fork, signal_child};
use tokenrun::sys::wait::Status;

use crate::harness::{
    Guarded, Test, alive, given_signal_lines, shell, signal_lines, status_of, until,
};

pub(crate) const TESTS: &[Test] = &[
    (
        "the_job_has_no_descriptor_of_ours",
        the_job_has_no_descriptor_of_ours,
    ),
    (
        "the_guard_holds_no_descriptor_of_the_users",
        the_guard_holds_no_descriptor_of_the_users,
    ),
    (
        "the_job_has_the_signals_that_we_were_given",
        the_job_has_the_signals_that_we_were_given,
    ),
    (
        "the_job_is_in_our_group_and_session",
        the_job_is_in_our_group_and_session,
    ),
    (
        "the_guard_has_its_own_name_and_blocks_everything",
        the_guard_has_its_own_name_and_blocks_everything,
    ),
    (
        "the_guard_has_all_the_precedence_it_may_have_and_its_job_has_none",
        the_guard_has_all_the_precedence_it_may_have_and_its_job_has_none,
    ),
    (
        "the_lock_lives_as_long_as_the_job",
        the_lock_lives_as_long_as_the_job,
    ),
    (
        "a_lock_that_is_not_inherited_ends_with_the_guard",
        a_lock_that_is_not_inherited_ends_with_the_guard,
    ),
];

const WAIT: &str = "echo $$ > $D/main; until test -e $D/go; do sleep 0.01; done";

fn go_on(guarded: &mut Guarded) {
    std::fs::write(guarded.path("go"), "").unwrap();
    guarded.expect_exited(Status::Exited(0));
    guarded.expect_gone();
}

fn open_files(pid: i32) -> Vec<(i32, String)> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let mut all: Vec<_> = entries
        .filter_map(|entry| {
            let entry = entry.unwrap();
            let target = std::fs::read_link(entry.path()).ok()?;
            let fd = entry.file_name().to_str()?.parse().ok()?;
            Some((fd, target.to_string_lossy().into_owned()))
        })
        .collect();
    all.sort_unstable();
    all
}

fn the_job_has_no_descriptor_of_ours() {
    let given = std::fs::File::open("/etc/passwd").unwrap();
    tokenrun::sys::fds::keep_on_exec(given.as_fd()).unwrap();
    let mut guarded = Guarded::running(WAIT);
    let job = guarded.pid("main");
    let own = std::process::id().try_into().unwrap();
    let is_given = |file: &(i32, String)| file.0 <= 2 || file.0 == given.as_raw_fd();
    let mut expected = open_files(own);
    expected.retain(is_given);
    // The shell may have opened some for itself, from 10 on, and still have its
    // output where it has just written its pid.
    until("the job has what it was given and no more", || {
        let mut found = open_files(job);
        found.retain(|file| file.0 < 10);
        (found == expected).then_some(())
    });
    go_on(&mut guarded);
}

fn the_guard_holds_no_descriptor_of_the_users() {
    let given = std::fs::File::open("/etc/passwd").unwrap();
    let mut guarded = Guarded::running(WAIT);
    guarded.line("main");
    let files = open_files(guarded.handle.pid());
    for (fd, file) in &files {
        let is_ours = file.starts_with("socket:") || file.starts_with("anon_inode:");
        assert!(file == "/dev/null" || (*fd > 2 && is_ours), "{files:?}");
    }
    drop(given);
    go_on(&mut guarded);
}

fn the_job_has_the_signals_that_we_were_given() {
    let argv = ["sleep", "600"].map(Into::into).to_vec();
    let mut guarded = Guarded::fork(argv, Leftovers::Kill, 10);
    guarded.start(None);
    let job = guarded.expect_started();
    assert_eq!(signal_lines(job), given_signal_lines());
    // Ours are others: the comparison is not trivial.
    let own = std::process::id().try_into().unwrap();
    assert_ne!(signal_lines(own), given_signal_lines());
    guarded.send(&ToGuard::Kill);
    guarded.expect_exited(Status::Signalled(libc::SIGKILL));
    guarded.expect_gone();
}

fn the_job_is_in_our_group_and_session() {
    let mut guarded = Guarded::running(WAIT);
    let job = nix::unistd::Pid::from_raw(guarded.pid("main"));
    let guard = nix::unistd::Pid::from_raw(guarded.handle.pid());
    for pid in [job, guard] {
        assert_eq!(
            nix::unistd::getpgid(Some(pid)).unwrap(),
            nix::unistd::getpgrp()
        );
        assert_eq!(
            nix::unistd::getsid(Some(pid)).unwrap(),
            nix::unistd::getsid(None).unwrap()
        );
    }
    go_on(&mut guarded);
}

fn the_guard_has_its_own_name_and_blocks_everything() {
    let mut guarded = Guarded::running(WAIT);
    let guard = guarded.handle.pid();
    assert_eq!(alive(guard).unwrap().name, "lease-guard");
    for signal in [
        libc::SIGTERM,
        libc::SIGTSTP,
        libc::SIGTTOU,
        libc::SIGALRM,
        40,
    ] {
        tokenrun::sys::process::signal_child(guard, signal).unwrap();
    }
    go_on(&mut guarded);
}

/// How a process is scheduled: priority, niceness, real-time priority and policy, as proc_pid_stat(5) counts.
fn precedence(pid: i32) -> Vec<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    let from_third: Vec<&str> = rest.split_whitespace().collect();
    let fields = [18, 19, 40, 41].map(|field| from_third[field - 3].to_owned());
    fields.to_vec()
}

fn the_guard_has_all_the_precedence_it_may_have_and_its_job_has_none() {
    let mut guarded = Guarded::running(WAIT);
    let (guard, job) = (guarded.handle.pid(), guarded.pid("main"));
    let (said, says) = std::io::pipe().unwrap();
    let Forked::Parent { child } = fork().unwrap() else {
        run_first();
        drop(says);
        loop {
            std::thread::park();
        }
    };
    drop(says);
    std::io::read_to_string(said).unwrap();
    let most = precedence(child);
    signal_child(child, libc::SIGKILL).unwrap();
    status_of(child);
    until("the guard has it", || {
        (precedence(guard) == most).then_some(())
    });
    assert_eq!(
        precedence(job),
        precedence(std::process::id().cast_signed())
    );
    go_on(&mut guarded);
}

fn lock(path: &std::path::Path) -> Option<std::fs::File> {
    let file = std::fs::File::create(path).unwrap();
    file.try_lock().is_ok().then_some(file)
}

/// A guard that was given the only descriptor of a lock, with a job that waits and
/// is to leave a process behind that waits as well.
fn with_lock(inherit: bool) -> Guarded {
    let script = "setsid sh -c 'echo $$ > $D/left; until test -e $D/end; do sleep 0.01; done' & \
                  until test -e $D/go; do sleep 0.01; done";
    let mut guarded = Guarded::fork(shell(script), Leftovers::Leave, 10_000);
    let file = lock(&guarded.path("lock")).unwrap();
    guarded.handle.send_lock(file.as_fd(), inherit).unwrap();
    drop(file);
    guarded.start(None);
    guarded.expect_started();
    guarded.line("left");
    assert!(lock(&guarded.path("lock")).is_none());
    guarded
}

fn end_what_was_left(guarded: &mut Guarded) {
    std::fs::write(guarded.path("end"), "").unwrap();
    until("it ends", || {
        (!guarded.handle.reap_orphans().unwrap()).then_some(())
    });
    assert!(lock(&guarded.path("lock")).is_some());
}

fn the_lock_lives_as_long_as_the_job() {
    let mut guarded = with_lock(true);
    go_on(&mut guarded);
    assert!(lock(&guarded.path("lock")).is_none());
    end_what_was_left(&mut guarded);
}

fn a_lock_that_is_not_inherited_ends_with_the_guard() {
    let mut guarded = with_lock(false);
    go_on(&mut guarded);
    assert!(alive(guarded.pid("left")).is_some());
    assert!(lock(&guarded.path("lock")).is_some());
    end_what_was_left(&mut guarded);
}
