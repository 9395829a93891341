//! Real guards with real jobs. A guard is forked by a process with one thread, so
//! this test has its own main, which runs one test after the other.

// clippy.toml allows these in tests, and knows a test by an attribute that these lack.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "guard/deadlines.rs"]
mod deadlines;
#[path = "guard/harness.rs"]
mod harness;
#[path = "guard/inheritance.rs"]
mod inheritance;
#[path = "guard/killed.rs"]
mod killed;
#[path = "guard/leftovers.rs"]
mod leftovers;
#[path = "guard/processes.rs"]
mod processes;
#[path = "support/programs.rs"]
mod programs;
#[path = "guard/signals.rs"]
mod signals;
#[path = "guard/starting.rs"]
mod starting;
#[path = "guard/unruly.rs"]
mod unruly;
#[path = "guard/without_guard.rs"]
mod without_guard;

fn main() {
    // This program is its own nested run in a test.
    let args: Vec<String> = std::env::args().collect();
    if let [_, question, pid] = args.as_slice()
        && question == "--is-inside"
    {
        let is_inside = tokenrun::job::ancestry::is_inside(pid.parse().unwrap());
        std::process::exit(i32::from(!is_inside));
    }
    harness::run(&[
        processes::TESTS,
        starting::TESTS,
        deadlines::TESTS,
        leftovers::TESTS,
        signals::TESTS,
        inheritance::TESTS,
        without_guard::TESTS,
        unruly::TESTS,
    ]);
}
