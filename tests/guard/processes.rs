//! What a process does to itself, seen from outside: each in a fork of its own.

use nix::libc;
use tokenrun::sys::fds::{fill_standard, silence_standard};
use tokenrun::sys::process::{Forked, exit_now, fork};
use tokenrun::sys::signals::die_of;
use tokenrun::sys::wait::Status;

use crate::harness::{Test, own_signals, status_of};

pub(crate) const TESTS: &[Test] = &[
    ("a_death_by_signal_is_visible", a_death_by_signal_is_visible),
    (
        "closed_standard_descriptors_are_filled",
        closed_standard_descriptors_are_filled,
    ),
    (
        "silenced_standard_descriptors_lead_nowhere",
        silenced_standard_descriptors_lead_nowhere,
    ),
    (
        "a_signal_is_read_with_its_sender",
        a_signal_is_read_with_its_sender,
    ),
];

fn in_a_fork(body: impl FnOnce() -> i32) -> Status {
    match fork().unwrap() {
        Forked::Parent { child } => status_of(child),
        Forked::Child => exit_now(body()),
    }
}

fn a_death_by_signal_is_visible() {
    // Blocked as well, and one of them is ignored.
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE] {
        assert_eq!(in_a_fork(|| die_of(signal)), Status::Signalled(signal));
    }
    // Does nothing by default.
    let status = in_a_fork(|| die_of(libc::SIGWINCH));
    assert_eq!(status, Status::Exited(128 + libc::SIGWINCH));
}

fn closes_on_exec(fd: i32) -> Option<bool> {
    // By way of /proc, because it may be closed.
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let flags = i32::from_str_radix(flags.trim(), 8).ok()?;
    Some(flags & libc::O_CLOEXEC != 0)
}

fn closed_standard_descriptors_are_filled() {
    let status = in_a_fork(|| {
        let _ = nix::unistd::close(0);
        let _ = nix::unistd::close(2);
        let filled = fill_standard().is_ok();
        let given_back_closed = closes_on_exec(0) == Some(true) && closes_on_exec(2) == Some(true);
        let untouched = closes_on_exec(1) == Some(false);
        i32::from(!(filled && given_back_closed && untouched))
    });
    assert_eq!(status, Status::Exited(0));
}

fn silenced_standard_descriptors_lead_nowhere() {
    let status = in_a_fork(|| {
        silence_standard();
        let null = std::path::Path::new("/dev/null");
        let leads_nowhere = |fd: &i32| {
            std::fs::read_link(format!("/proc/self/fd/{fd}")).is_ok_and(|file| file == null)
        };
        i32::from(![0, 1, 2].iter().all(leads_nowhere))
    });
    assert_eq!(status, Status::Exited(0));
}

fn a_signal_is_read_with_its_sender() {
    let signals = own_signals();
    let sender = match fork().unwrap() {
        Forked::Parent { child } => child,
        Forked::Child => {
            let parent = tokenrun::sys::process::parent_pid();
            let _ = tokenrun::sys::process::signal_child(parent, libc::SIGUSR2);
            exit_now(0)
        }
    };
    status_of(sender);
    let received = std::iter::from_fn(|| signals.read());
    let received = received
        .filter(|it| it.signal == libc::SIGUSR2)
        .last()
        .unwrap();
    assert_eq!((received.from_pid, received.code), (sender, libc::SI_USER));
    assert_eq!(signals.read(), None);
}
