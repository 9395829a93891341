//! What a job's end, and every other, looks like to the caller.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use crate::support::Store;

fn outcome(store: &Store) -> String {
    store.history()[0]["outcome"].as_str().unwrap().to_owned()
}

#[test]
fn the_jobs_own_exit_code_is_passed_through() {
    let store = Store::new();
    for (code, word) in [
        (0, "succeeded"),
        (3, "failed"),
        (75, "failed"),
        (255, "failed"),
    ] {
        let script = format!("exit {code}");
        let ended = store.free_run("node-a").script(&script).end();
        let ended = ended.with_code(code);
        match code {
            0 => assert_eq!(ended.stderr, ""),
            _ => ended.says(&["\"job\" failed: sh exited with", " after ", " on node-a"]),
        }
        assert_eq!(outcome(&store), word);
        assert_eq!(store.history()[0]["exit_code"], code);
    }
}

#[test]
fn a_job_killed_by_a_signal_gives_128_and_its_number() {
    let store = Store::new();
    for (signal, number) in [("KILL", 9), ("TERM", 15), ("INT", 2)] {
        let script = format!("kill -{signal} $$");
        let line = store.free_run("node-a").script(&script);
        let ended = line.under(&["env", "--default-signal"]).end();
        ended.with_code(128 + number);
        assert_eq!(outcome(&store), "killed");
        assert_eq!(store.history()[0]["signal"], number);
    }
}

#[test]
fn a_command_that_is_not_found_gives_127() {
    let store = Store::new();
    let line = store.free_run("node-a").job(&["no-such-command"]);
    line.end()
        .with_code(127)
        .says(&["no-such-command: command not found"]);
    assert_eq!(store.history()[0]["refused"], "not_started");
}

#[test]
fn a_command_that_can_not_be_executed_gives_126() {
    let store = Store::new();
    let file = store.file("no-program");
    fs::write(&file, "true\n").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let line = store.free_run("node-a").job(&[file.to_str().unwrap()]);
    line.end()
        .with_code(126)
        .says(&["no-program can't be executed", "Permission denied"]);
    let why = format!("could not start {}: Permission denied", file.display());
    assert_eq!(store.history()[0]["reason"], why);
}

#[test]
fn a_job_that_runs_too_long_gets_a_term_then_a_kill_and_gives_124() {
    let store = Store::new();
    let script = r"trap 'echo asked >> log' TERM; while :; do read -r line < go; done";
    let line = store.free_run("node-a").script(script);
    let ended = line.with(&["--timeout=1s", "--kill-grace=300ms"]).end();
    ended
        .with_code(124)
        .says(&["\"job\" timed out", "ran longer than 1s (--timeout)"]);
    assert_eq!(store.log(), ["asked"]);
    assert_eq!(outcome(&store), "timed_out");
    assert_eq!(store.history()[0]["signal"], 9);
}

#[test]
fn a_job_that_heeds_the_term_of_its_time_out_gives_124_too() {
    let store = Store::new();
    let script = r"trap 'exit 0' TERM; while :; do read -r line < go; done";
    let line = store.free_run("node-a").script(script);
    line.with(&["--timeout=1s"]).end().with_code(124);
    assert_eq!(outcome(&store), "timed_out");
}

#[test]
fn a_refusal_has_the_exit_code_that_was_asked_for() {
    let store = Store::new();
    let run = |client: &str| {
        let line = store.run(client).with(&["--keep=1h", "-E", "9"]);
        line.job(&["true"]).end()
    };
    run("node-a").with_code(0);
    run("node-b").with_code(9).says(&["belongs to node-a"]);
}
