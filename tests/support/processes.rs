//! Processes as `/proc` shows them, and signals to those that a test started.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::until;

/// A process's state and parent, from `/proc/PID/stat`.
fn stat(pid: i32) -> Option<(char, i32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let mut words = rest.split_whitespace();
    let state = words.next()?.chars().next()?;
    Some((state, words.next()?.parse().ok()?))
}

/// A process's state, as a letter.
pub(crate) fn state(pid: i32) -> Option<char> {
    stat(pid).map(|(state, _)| state)
}

/// Whether a process lives: a zombie does not.
pub(crate) fn alive(pid: i32) -> bool {
    stat(pid).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}

/// Waits until a process has ended, reaped or not.
pub(crate) fn until_dead(pid: i32) {
    until(&format!("process {pid} has ended"), || {
        if alive(pid) {
            Err(format!("{:?}", stat(pid)))
        } else {
            Ok(())
        }
    });
}

/// Waits until a process is stopped.
pub(crate) fn until_stopped(pid: i32) {
    until(&format!("process {pid} is stopped"), || match stat(pid) {
        Some(('T', _)) => Ok(()),
        other => Err(format!("{other:?}")),
    });
}

/// The living children of a process.
pub(crate) fn children(parent: i32) -> Vec<i32> {
    let of_parent = |pid: &i32| stat(*pid).is_some_and(|(_, its)| its == parent) && alive(*pid);
    all().into_iter().filter(of_parent).collect()
}

fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}

/// Sends a signal to a process that the test started.
pub(crate) fn signal(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).unwrap_or_else(|e| panic!("{signal} to {pid}: {e}"));
}

/// Kills what a test has started and left: those that it gave its folder's name
/// in the environment.
pub(super) fn kill_marked(folder: &Path) {
    let mark = format!("{}={}", super::run::MARK, folder.display());
    for pid in all() {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        if environment
            .split(|byte| *byte == 0)
            .any(|it| it == mark.as_bytes())
        {
            // It may have ended meanwhile.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}
