//! The proof of two locks on one host: that a run is dead, or that one of its processes is alive.

#[path = "locks/containers.rs"]
mod containers;
#[path = "locks/death.rs"]
mod death;
#[path = "locks/descriptors.rs"]
mod descriptors;
#[path = "locks/files.rs"]
mod files;
#[path = "locks/survivors.rs"]
mod survivors;
#[path = "locks/without.rs"]
mod without;

use nix::sys::signal::Signal;

use crate::support::{Ended, Line, Run, Store, signal, until, until_dead, until_stopped};

/// A run of another client that would end at once.
fn contender(store: &Store) -> Line {
    store.free_run("node-b").hasty().job(&["true"])
}

/// Kills supervisor and guard so that neither can react to the other's end.
fn kill_both(run: Run) {
    let guard = run.guard();
    signal(guard, Signal::SIGSTOP);
    until_stopped(guard);
    run.signal(Signal::SIGKILL);
    run.end();
    signal(guard, Signal::SIGKILL);
    until_dead(guard);
}

/// Retries until the refusal is no longer because of a recent heartbeat.
fn once_silent(line: &Line) -> Ended {
    until("the holder is silent", || {
        let ended = line.clone().end();
        match ended.stderr.contains("is held by") {
            true => Err(ended.stderr),
            false => Ok(ended),
        }
    })
}
