//! A host that stood still for longer than the lease: stopping every process is as
//! near to it as a test can come without stopping the machine.

use nix::sys::signal::Signal;

use crate::support::{
    Commits, Run, Store, alive, boot_ms, signal, until, until_dead, until_stopped,
};

const TAKEOVER_AFTER_MS: i64 = 5_000;

fn stop(pids: &[i32]) {
    for pid in pids {
        signal(*pid, Signal::SIGSTOP);
    }
    for pid in pids {
        until_stopped(*pid);
    }
}

/// A run whose guard and supervisor are stopped, who they are, and the commits from then on.
fn stopped(store: &Store, with_job: bool) -> (Run, [i32; 2], Commits) {
    let run = store.free_run("node-a").hasty().start();
    let job = store.until_begun("node-a");
    let both = [run.pid(), run.guard()];
    store.suspend(&run);
    stop(&both);
    if with_job {
        stop(&[job]);
    }
    (run, both, store.commits())
}

fn until_lapsed(store: &Store) {
    until("the lease has ended", || {
        let age = boot_ms() - store.cell::<i64>("stamped_tick");
        (age > TAKEOVER_AFTER_MS)
            .then_some(())
            .ok_or(age.to_string())
    });
}

#[test]
fn on_waking_the_job_is_ended_and_no_heartbeat_is_sent() {
    // All are stopped, the guard's last; either of the two wakes first.
    for supervisor_first in [true, false] {
        let store = Store::new();
        let (run, mut both, commits) = stopped(&store, true);
        let job = store.until_begun("node-a");
        until_lapsed(&store);
        let version: i64 = store.cell("version");
        if !supervisor_first {
            both.reverse();
        }
        for pid in both {
            signal(pid, Signal::SIGCONT);
        }
        let ended = run.end().with_code(76);
        assert!(!alive(job) && !store.is_job_alive());
        assert!(ended.stderr.contains("could not be renewed"), "{ended:?}");
        // The closing swap, from the very version that stood before.
        assert_eq!(store.swaps(&commits), [(version, "free".to_owned())]);
        assert_eq!(store.history()[0]["outcome"], "lost");
    }
}

#[test]
fn on_waking_a_token_of_another_session_is_left_alone() {
    let store = Store::new();
    let (run, both, commits) = stopped(&store, true);
    let job = store.until_begun("node-a");
    until_lapsed(&store);
    // Another host can't see the locks of what stands still.
    store.set(&[("run.lock_file", "null")], &[]);
    let line = store.free_run("node-b").hasty().script("sleep 1; exit 0");
    let mut second = line.start();
    until("node-b has it", || {
        let client: Option<String> = store.cell("client_bound");
        assert!(!second.has_ended(), "{}", second.stderr());
        (client.as_deref() == Some("node-b"))
            .then_some(())
            .ok_or(second.stderr())
    });
    let before = store.swaps(&commits).len();
    for pid in both {
        signal(pid, Signal::SIGCONT);
    }
    run.end().with_code(76);
    until_dead(job);
    second.end().with_code(0);
    let writes = store.swaps(&commits);
    // Node-b's heartbeats and its release; nothing else.
    assert_eq!(writes.last().unwrap().1, "free");
    let others = &writes[before..writes.len() - 1];
    assert!(
        others.iter().all(|(_, state)| state == "running"),
        "{writes:?}"
    );
    let history = store.history();
    assert_eq!(history[0]["outcome"], "succeeded");
    assert_eq!(history[1]["outcome"], "lost");
    assert_eq!(store.field::<i64>("takeovers"), 1);
}

#[test]
fn a_job_that_ended_by_itself_meanwhile_gives_its_own_code() {
    let store = Store::new();
    let (run, both, commits) = stopped(&store, false);
    let job = store.until_begun("node-a");
    store.go(4);
    until_dead(job);
    until_lapsed(&store);
    for pid in both {
        signal(pid, Signal::SIGCONT);
    }
    run.end().with_code(4);
    assert_eq!(store.swaps(&commits).len(), 1);
    let history = store.history();
    assert_eq!(history[0]["outcome"], "failed");
    assert_eq!(history[0]["exit_code"], 4);
}

/// Its job's lock, which the guard holds, would prove a life that is none.
#[test]
fn a_supervisor_that_is_stopped_before_the_start_loses_its_guard_in_time() {
    let store = Store::new();
    store.free_run("node-b").job(&["true"]).end().with_code(0);
    let blocker = store.sql();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let line = store.free_run("node-a").hasty().with(&["--wait"]);
    let run = line.job(&["touch", "ran"]).start();
    let guard = run.guard();
    until("the grant waits for the lock", || {
        let threads = format!("/proc/{}/task", run.pid());
        match std::fs::read_dir(threads).unwrap().count() {
            1 => Err("one thread".to_owned()),
            _ => Ok(()),
        }
    });
    stop(&[run.pid()]);
    until_dead(guard);
    signal(run.pid(), Signal::SIGCONT);
    blocker.execute_batch("ROLLBACK").unwrap();
    run.end().with_code(69).says(&["touch was not started"]);
    assert!(!store.file("ran").exists());
}

#[test]
fn a_run_in_another_time_namespace_keeps_the_same_time() {
    let elsewhere = ["unshare", "-r", "--time", "--boottime", "100000", "--fork"];
    let store = Store::new();
    let run = store.free_run("node-a").hasty().under(&elsewhere).start();
    store.until_begun("node-a");
    let age = boot_ms() - store.cell::<i64>("stamped_tick");
    assert!((-1..TAKEOVER_AFTER_MS).contains(&age), "{age} ms");
    let refused = store.free_run("node-b").end().with_code(75);
    refused.says(&["\"job\" is held by node-a"]);
    // Its deadlines come when they should, too.
    let blocker = store.sql();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let last: i64 = store.cell("stamped_tick");
    store.until_job_gone();
    let took = boot_ms() - last;
    assert!((3_000..TAKEOVER_AFTER_MS).contains(&took), "{took} ms");
    run.end().with_code(76);
}
