//! What the behaviour tests share: a store of their own, the real binary in a clean
//! environment, and a job that proves when it was alive.

mod commits;
mod plain;
mod processes;
mod program;
pub(crate) mod programs;
mod run;
mod script;
mod store;
mod terminal;
mod timely;
mod traced;

#[allow(unused_imports)] // What is committed is one program's matter.
pub(crate) use commits::Commits;
pub(crate) use processes::{alive, children, signal, state, until_dead, until_stopped};
pub(crate) use program::TOKENRUN;
#[allow(unused_imports)] // Not every program of tests has processes 1.
pub(crate) use run::new_pid_namespace;
pub(crate) use run::{Ended, Line, Run};
pub(crate) use script::script;
#[allow(unused_imports)] // The tests on other stores bring their own lines.
pub(crate) use store::{PROVING, Store};
pub(crate) use terminal::{Terminal, ctrl};
#[allow(unused_imports)] // What must happen soon is some programs' matter.
pub(crate) use timely::within;
#[allow(unused_imports)] // What is asked of the disk is one program's matter.
pub(crate) use traced::{Call, calls};

use std::time::{Duration, Instant};

/// What no event may take longer than, on a machine however busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks again and again until there is an answer. What was seen last goes into the
/// message if there never is one.
pub(crate) fn until<R>(what: &str, mut ask: impl FnMut() -> Result<R, String>) -> R {
    let started = Instant::now();
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(seen) if started.elapsed() > PATIENCE => {
                panic!("waited in vain until {what}; seen: {seen}")
            }
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Whether this is root.
pub(crate) fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// The clock that a SQLite store judges ages by, in milliseconds.
pub(crate) fn boot_ms() -> i64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME).unwrap();
    now.tv_sec() * 1_000 + now.tv_nsec() / 1_000_000
}
