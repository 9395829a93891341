//! A run that is provably dead is taken over at once on its host. Its takeover-after is
//! five minutes here, so that nothing else can be what opened the token.

use nix::sys::signal::Signal;

use super::kill_both;
use crate::support::{Line, Run, Store, alive, signal, until, until_dead, until_stopped};

fn start(store: &Store) -> Run {
    let run = store.free_run("node-a").start();
    store.until_begun("node-a");
    run
}

fn next(store: &Store, client: &str) -> Line {
    let script = "echo \"$TOKENRUN_GRANT from $TOKENRUN_PREVIOUS_CLIENT\"";
    store.free_run(client).script(script)
}

#[test]
fn killed_with_guard_and_job_it_is_taken_over_by_the_next_look() {
    let store = Store::new();
    let run = start(&store);
    let job = store.until_begun("node-a");
    let file: String = store.field("run.lock_file");
    kill_both(run);
    until_dead(job);
    assert!(store.lock_files().contains(&file));

    let ended = next(&store, "node-a").end().with_code(0);
    ended.says(&["took \"job\", whose holder is dead, in", "(renew, "]);
    assert_eq!(ended.stdout, "renew from \n");
    let history = store.history();
    assert_eq!(history[0]["outcome"], "succeeded");
    assert_eq!(history[1]["outcome"], "unknown");
    assert_eq!(store.status()["losses"], 1);
    // The file proves nothing more.
    assert_eq!(store.lock_files(), [""; 0]);
}

#[test]
fn another_client_leaves_it_the_head_start_and_no_more() {
    let store = Store::new();
    let run = start(&store);
    let job = store.until_begun("node-a");
    kill_both(run);
    until_dead(job);
    let ended = next(&store, "node-b").end().with_code(0);
    assert_eq!(ended.stdout, "takeover from node-a\n");
    let [waiting, took] = ended.messages()[..] else {
        panic!("{ended:?}");
    };
    assert!(waiting.contains("leaving node-a a head start of 0.1s"));
    assert!(took.contains("took \"job\" from node-a, whose holder is dead"));
}

#[test]
fn a_supervisor_killed_alone_is_taken_over_once_its_guard_has_ended_the_job() {
    let store = Store::new();
    // It takes its time: TERM is ignored, and the grace is long.
    let script = "trap '' TERM; echo \"begin node-a - $$\" >> log; while :; do sleep 0.1; done";
    let line = store.free_run("node-a").with(&["--kill-grace=1m"]);
    let run = line.script(script).start();
    let job = store.until_begun("node-a");
    let guard = run.guard();
    run.signal(Signal::SIGKILL);
    run.end();

    for _ in 0..3 {
        let early = next(&store, "node-a").end().with_code(75);
        early.says(&["\"job\" is held by node-a, in an earlier run on this host"]);
    }
    assert!(alive(job));
    signal(job, Signal::SIGKILL);
    until_dead(guard);
    next(&store, "node-a").end().with_code(0);
}

#[test]
fn a_stopped_supervisor_is_not_dead_and_delays_no_other_once_it_is_silent() {
    let store = Store::new();
    let run = store.free_run("node-a").hasty().start();
    store.until_begun("node-a");
    let guard = run.guard();
    store.suspend(&run);
    store.until_job_gone();
    until_dead(guard);
    let file: String = store.field("run.lock_file");

    let ended = super::once_silent(&super::contender(&store)).with_code(0);
    assert!(ended.stderr.contains("whose holder is silent"), "{ended:?}");
    // It is its owner's to remove.
    assert_eq!(store.lock_files(), [file]);
    run.signal(Signal::SIGCONT);
    run.end().with_code(76);
    assert_eq!(store.lock_files(), [""; 0]);
}

#[test]
fn a_guard_that_lives_is_no_death_and_no_silence_either() {
    let store = Store::new();
    let run = store.free_run("node-a").hasty().start();
    store.until_begun("node-a");
    let guard = run.guard();
    signal(guard, Signal::SIGSTOP);
    until_stopped(guard);
    run.signal(Signal::SIGKILL);
    run.end();
    // The guard is stopped before it could end the job, which goes on.
    let refused = super::once_silent(&super::contender(&store)).with_code(75);
    let guard_named = format!("lease-guard (pid {guard})");
    refused.says(&["its run is still alive here: ", &guard_named, "sh (pid "]);
    assert!(store.is_job_alive());
    signal(guard, Signal::SIGCONT);
    until_dead(guard);
    super::contender(&store).end().with_code(0);
}

#[test]
fn of_many_that_find_it_dead_at_once_one_runs() {
    let store = Store::new();
    kill_both(start(&store));
    let mut runs: Vec<Run> = (0..20)
        .map(|number| store.free_run(&format!("node-{number}")).start())
        .collect();
    store.until_logged("begin node-");
    until("all but one are refused", || {
        for index in (0..runs.len()).rev() {
            if runs[index].has_ended() {
                let refused = runs.remove(index).end().with_code(75);
                assert!(refused.stderr.contains("is held by"), "{refused:?}");
            }
        }
        (runs.len() <= 1)
            .then_some(())
            .ok_or(format!("{} are left", runs.len()))
    });
    store.go(0);
    runs.pop().unwrap().end().with_code(0);
    store.assert_no_overlap();
    assert_eq!(store.history().len(), 2);
    assert_eq!(store.lock_files(), [""; 0]);
}

#[test]
fn a_run_whose_end_was_not_recorded_is_dead_too() {
    let store = Store::new();
    let durations = ["--heartbeat=300ms", "--store-timeout=1s"];
    let run = store.free_run("node-a").with(&durations).start();
    store.until_begun("node-a");
    let blocker = store.sql();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    store.go(3);
    let ended = run.end().with_code(3);
    assert!(ended.stderr.contains("a claimant on this host need not"));
    drop(blocker);
    assert_eq!(store.status()["state"], "running");
    next(&store, "node-a").end().with_code(0);
    assert_eq!(store.history()[1]["outcome"], "unknown");
    assert_eq!(store.lock_files(), [""; 0]);
}

#[test]
fn a_paused_token_is_not_taken_from_the_dead() {
    let store = Store::new();
    kill_both(start(&store));
    store.set(
        &[("pause", r#"{"by": "ann", "reason": "maintenance"}"#)],
        &[],
    );
    let refused = next(&store, "node-a").end().with_code(75);
    refused.says(&["is paused by ann"]);
}

#[test]
fn a_run_inside_of_a_run_has_the_outer_ones_locks() {
    let store = Store::new();
    let inner = store.free_run("node-a").script("ls state/tokens.db-locks");
    let words: Vec<String> = inner.words().iter().map(quoted).collect();
    let outer = store.free_run("node-a").script(&words.join(" "));
    let ended = outer.end().with_code(0);
    let files: Vec<&str> = ended.stdout.lines().collect();
    let locks = files.iter().filter(|name| name.starts_with("run-"));
    assert_eq!(locks.count(), 1, "{files:?}");
    assert_eq!(store.lock_files(), [""; 0]);
}

fn quoted(word: &std::ffi::OsString) -> String {
    format!("'{}'", word.to_str().unwrap())
}

#[test]
fn a_killed_guards_run_is_over_in_order() {
    let store = Store::new();
    let run = start(&store);
    signal(run.guard(), Signal::SIGKILL);
    run.end().with_code(76);
    assert_eq!(store.lock_files(), [""; 0]);
    assert_eq!(store.field::<Option<String>>("run.lock_file"), None);
}
