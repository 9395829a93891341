//! A stop that comes before the job, between its fork and its exec, or after it.

use std::time::{Duration, Instant};

use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use rusqlite::Connection;

use crate::support::{
    Line, Run, Store, alive, children, signal, state, until, until_dead, until_stopped,
};

/// The caller of the tests may ignore INT, as a shell does in the background.
fn with_signals(line: Line) -> Line {
    line.under(&["env", "--default-signal"])
}

/// The store, locked by the test: reads pass, swaps wait.
fn lock(store: &Store) -> Connection {
    let connection = store.sql();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}

fn unlock(connection: &Connection) {
    connection.execute_batch("ROLLBACK").unwrap();
}

/// A store that has been used once.
fn used() -> Store {
    let store = Store::new();
    store.free_run("node-a").job(&["true"]).end().with_code(0);
    store
}

/// A process's name.
fn name(pid: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    name.unwrap_or_default().trim().to_owned()
}

#[test]
fn a_stop_before_the_grant_starts_no_job() {
    for which in [Signal::SIGTERM, Signal::SIGINT] {
        let store = used();
        let locked = lock(&store);
        let line = store.free_run("node-a").job(&["touch", "ran"]);
        let run = with_signals(line.with(&["-v"])).start();
        run.until_says("take the token");
        run.guard();
        run.signal(which);
        unlock(&locked);
        let ended = run.end();
        assert_eq!(ended.signal, Some(which as i32), "{ended:?}");
        assert!(ended.stderr.contains("touch was not started"), "{ended:?}");
        assert!(!store.file("ran").exists());
        assert_eq!(store.status()["state"], "free");
    }
}

#[test]
fn a_stop_while_the_store_can_not_even_be_opened_ends_tokenrun_at_once() {
    let store = used();
    let locked = store.sql();
    locked
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
        .unwrap();
    let run = store.free_run("node-a").with(&["--store-timeout=1m"]);
    for line in [run.job(&["touch", "ran"]), store.verb(&["history"])] {
        let run = with_signals(line).start();
        until_waiting(&run);
        let asked = Instant::now();
        run.signal(Signal::SIGTERM);
        let ended = run.end();
        assert_eq!(ended.signal, Some(15), "{ended:?}");
        assert!(asked.elapsed() < Duration::from_secs(5), "{ended:?}");
    }
    assert!(!store.file("ran").exists());
}

/// Waits until tokenrun has opened the file, which it can't use.
fn until_waiting(run: &Run) {
    until("tokenrun has opened the store", || {
        let folder = format!("/proc/{}/fd", run.pid());
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let files: Vec<_> = files.flat_map(|it| std::fs::read_link(it.path())).collect();
        if files.iter().any(|file| file.ends_with("tokens.db")) {
            Ok(())
        } else {
            Err(format!("{files:?}"))
        }
    });
}

/// Whether a signal has been sent to a process, which blocks it.
fn has_pending(pid: i32, signal: Signal) -> Result<(), String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
    let pending = u64::from_str_radix(line.unwrap().trim(), 16).unwrap();
    if pending & (1 << (signal as i32 - 1)) == 0 {
        return Err(format!("{pending:x}"));
    }
    Ok(())
}

/// The guard of a run that has no token yet, and the process that waits to be its job.
fn guard_and_forked(run: &Run) -> (i32, i32) {
    let only_child = |what: &str, parent: i32| {
        until(what, || match children(parent)[..] {
            [one] => Ok(one),
            ref other => Err(format!("{other:?}")),
        })
    };
    let guard = only_child("there is a guard", run.pid());
    (guard, only_child("the guard has forked", guard))
}

/// Stops a process in a way that its parent does not see.
fn trace(pid: i32) -> Pid {
    let traced = Pid::from_raw(pid);
    ptrace::seize(traced, ptrace::Options::empty()).unwrap();
    ptrace::interrupt(traced).unwrap();
    waitpid(traced, None).unwrap();
    traced
}

#[test]
fn a_job_that_stops_itself_at_once_is_not_continued() {
    let store = used();
    let locked = lock(&store);
    let line = store.free_run("node-a").with(&["-v"]);
    let run = line.job(&["sh", "-c", "kill -STOP $$; exit 4"]).start();
    let (guard, forked) = guard_and_forked(&run);
    // The guard is held up after each step until that process has done what it can.
    let traced = trace(guard);
    unlock(&locked);
    let rests = || match (state(forked), name(forked).as_str()) {
        (Some('T'), _) => Ok(true),
        (Some('S'), "lease-guard") => Ok(false),
        other => Err(format!("{other:?}")),
    };
    while !until("it rests", rests) {
        ptrace::syscall(traced, None).unwrap();
        waitpid(traced, None).unwrap();
    }
    ptrace::detach(traced, None).unwrap();
    run.until_says("sh started");
    assert_eq!(state(forked), Some('T'));
    signal(forked, Signal::SIGCONT);
    run.end().with_code(4);
}

#[test]
fn a_process_that_is_stopped_before_its_exec_is_continued() {
    let store = used();
    let locked = lock(&store);
    let line = store.free_run("node-a").job(&["sh", "-c", "exit 4"]);
    let run = with_signals(line).start();
    let (_, forked) = guard_and_forked(&run);
    let traced = trace(forked);
    unlock(&locked);
    store.until_state("running");
    run.signal(Signal::SIGWINCH);
    until("its word was sent, and this behind it", || {
        has_pending(forked, Signal::SIGWINCH)
    });
    signal(forked, Signal::SIGSTOP);
    ptrace::detach(traced, None).unwrap();
    run.end().with_code(4);
}

#[test]
fn a_stop_between_fork_and_exec_is_not_lost() {
    let store = used();
    let locked = lock(&store);
    let run = with_signals(store.free_run("node-a").job(&["sleep", "300"])).start();
    // One that was merely stopped is continued.
    let (_, forked) = guard_and_forked(&run);
    let traced = trace(forked);
    unlock(&locked);
    store.until_state("running");
    run.signal(Signal::SIGTERM);
    until("it is passed on", || has_pending(forked, Signal::SIGTERM));
    assert_eq!(name(forked), "lease-guard");
    ptrace::detach(traced, None).unwrap();
    run.end().with_code(143);
    assert!(!alive(forked));
    assert_eq!(store.history()[0]["signal"], 15);
}

#[test]
fn the_end_of_a_job_that_never_started_is_not_reported() {
    let store = Store::new();
    let first = store.run("node-a").with(&["--keep=1ms"]);
    let first = first.with(&["--head-start=1s"]).job(&["true"]);
    first.end().with_code(0);
    let line = store.free_run("node-b").hasty().job(&["touch", "ran"]);
    let line = line.with(&["--heartbeat=2500ms", "--takeover-after=6s"]);
    let run = line.start();
    run.until_says("leaving node-a a head start");
    // The guard reads the start only after both continue, too late.
    let guard = run.guard();
    signal(guard, Signal::SIGSTOP);
    until_stopped(guard);
    store.until_state("running");
    run.signal(Signal::SIGSTOP);
    let lease = Duration::from_secs(6);
    let granted = Instant::now();
    until("the lease has ended", || {
        let left = lease.saturating_sub(granted.elapsed());
        if left.is_zero() {
            Ok(())
        } else {
            Err(format!("{left:?}"))
        }
    });
    run.signal(Signal::SIGCONT);
    signal(guard, Signal::SIGCONT);
    let ended = run.end().with_code(69);
    assert!(ended.stderr.contains("touch was not started"), "{ended:?}");
    assert!(!ended.stderr.contains("is ended"), "{ended:?}");
    assert!(!store.file("ran").exists());
    assert_eq!(store.history()[0]["outcome"], "not_started");
}

#[test]
fn a_stop_during_the_release_changes_nothing_about_how_the_job_ended() {
    let store = used();
    let run = with_signals(store.free_run("node-a")).start();
    let job = store.until_begun("node-a");
    let locked = lock(&store);
    store.go(5);
    until_dead(job);
    run.signal(Signal::SIGTERM);
    unlock(&locked);
    run.end().with_code(5).says_failed();
    assert_eq!(store.status()["state"], "free");
    assert_eq!(store.history()[0]["exit_code"], 5);
}

#[test]
fn blocked_signals_do_no_harm_and_reach_tokenrun() {
    let store = Store::new();
    let blocking = ["env", "--default-signal", "--block-signal=TERM,CHLD,ALRM"];
    let line = || store.free_run("node-a").under(&blocking);
    line().script("exit 5").end().with_code(5);
    // The job has TERM blocked as well, and is killed for it.
    let run = line().job(&["sleep", "300"]).with(&["--kill-grace=300ms"]);
    let run = run.start();
    until("the job runs", || {
        let guards = children(run.pid());
        let job = guards.iter().flat_map(|guard| children(*guard)).next();
        let runs = |pid: &i32| name(*pid) == "sleep";
        job.filter(runs).map(drop).ok_or(format!("{guards:?}"))
    });
    run.signal(Signal::SIGTERM);
    run.end().with_code(137);
    assert_eq!(store.status()["state"], "free");
}

#[test]
fn a_parent_that_ignores_its_childrens_ends_is_no_hindrance() {
    let store = Store::new();
    let ignoring = ["env", "--ignore-signal=CHLD"];
    let line = store.free_run("node-a").under(&ignoring);
    line.script("(exit 3); exit 6").end().with_code(6);
}

#[test]
fn a_child_from_before_the_run_is_left_alone() {
    let store = Store::new();
    let before = "sleep 300 & echo $! > earlier; sleep 0 & exec \"$@\"";
    let line = store.free_run("node-a").script("exit 6");
    let ended = line.under(&["sh", "-c", before, "sh"]).end().with_code(6);
    ended.says_failed();
    let earlier = std::fs::read_to_string(store.file("earlier")).unwrap();
    let earlier = earlier.trim().parse().unwrap();
    assert!(alive(earlier));
    signal(earlier, Signal::SIGKILL);
}
