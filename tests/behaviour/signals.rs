//! Signals that reach tokenrun: the job gets them once, and the end is as the caller
//! of the job alone would see it.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Line, Run, Store, until};

/// Counts its signals; ends a while after its order.
const COUNTING: &str = r#"
for name in TERM INT HUP QUIT USR1 USR2 WINCH CONT; do
    trap "echo $name >> log" $name
done
echo "begin counting $$" >> log
until read -r status < go; do :; done
sleep 0.3
exit "$status"
"#;

/// The caller of the tests may ignore INT, as a shell does in the background.
fn with_signals(line: Line) -> Line {
    line.under(&["env", "--default-signal"])
}

fn counting(store: &Store) -> Run {
    let run = with_signals(store.free_run("node-a").script(COUNTING)).start();
    store.until_begun("counting");
    run
}

#[test]
fn a_job_gets_a_signal_that_tokenrun_gets_once() {
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGQUIT,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
        Signal::SIGWINCH,
        Signal::SIGCONT,
    ] {
        let store = Store::new();
        let run = counting(&store);
        run.signal(signal);
        let name = signal.as_str().strip_prefix("SIG").unwrap();
        store.until_logged(name);
        store.go(5);
        run.end().with_code(5);
        assert_eq!(store.log()[1..], [name]);
        assert_eq!(store.status()["state"], "free");
    }
}

#[test]
fn a_signal_to_the_whole_process_group_reaches_the_job_once() {
    for signal in [Signal::SIGTERM, Signal::SIGWINCH, Signal::SIGCONT] {
        let store = Store::new();
        let line = store.free_run("node-a").script(COUNTING).in_own_group();
        let run = with_signals(line).start();
        store.until_begun("counting");
        kill(Pid::from_raw(-run.pid()), signal).unwrap();
        let name = signal.as_str().strip_prefix("SIG").unwrap();
        store.until_logged(name);
        store.go(0);
        run.end().with_code(0);
        assert_eq!(store.log()[1..], [name]);
    }
}

#[test]
fn a_job_that_dies_of_the_term_gives_143() {
    let store = Store::new();
    let run = store.free_run("node-a").start();
    store.until_begun("node-a");
    run.signal(Signal::SIGTERM);
    run.end().with_code(143).says(&[
        "\"job\" failed: sh was killed by SIGTERM after ",
        " on node-a; tokenrun received signal 15",
    ]);
    assert!(!store.is_job_alive());
    assert_eq!(store.history()[0]["outcome"], "killed");
    assert_eq!(store.status()["state"], "free");
}

#[test]
fn tokenrun_dies_of_the_int_that_its_job_died_of() {
    for signal in [Signal::SIGINT, Signal::SIGQUIT] {
        let store = Store::new();
        let run = with_signals(store.free_run("node-a")).start();
        store.until_begun("node-a");
        run.signal(signal);
        let ended = run.end();
        assert_eq!(ended.signal, Some(signal as i32), "{ended:?}");
        assert_eq!(store.status()["state"], "free");
    }
}

const DEAF: &str = r#"
trap "" TERM
echo "begin deaf $$" >> log
until read -r status < go; do :; done
"#;

#[test]
fn a_job_that_does_not_heed_a_term_is_killed_after_its_grace() {
    let store = Store::new();
    let line = store.free_run("node-a").script(DEAF);
    let run = line.with(&["--kill-grace=500ms"]).start();
    store.until_begun("deaf");
    run.signal(Signal::SIGTERM);
    run.end().with_code(137);
    assert_eq!(store.history()[0]["signal"], 9);
}

#[test]
fn a_second_term_shortens_the_grace() {
    let store = Store::new();
    let line = store.free_run("node-a").script(DEAF);
    let mut run = line.with(&["--kill-grace=2m"]).start();
    store.until_begun("deaf");
    let started = Instant::now();
    run.signal(Signal::SIGTERM);
    until("the job is killed", || {
        if run.has_ended() {
            return Ok(());
        }
        run.signal(Signal::SIGTERM);
        std::thread::sleep(Duration::from_millis(100));
        Err(run.stderr())
    });
    // Two equal signals within a moment count as one.
    assert!(started.elapsed() >= Duration::from_secs(1));
    run.end().with_code(137);
}

#[test]
fn a_hangup_that_nohup_ignores_stays_ignored() {
    let store = Store::new();
    let line = store.free_run("node-a").script(COUNTING);
    let run = line.under(&["env", "--default-signal", "nohup"]).start();
    store.until_begun("counting");
    run.signal(Signal::SIGHUP);
    // Signals of different kinds are not ordered; this one shows that it was heard.
    run.signal(Signal::SIGUSR1);
    store.until_logged("USR1");
    store.go(0);
    run.end().with_code(0);
    assert_eq!(store.log()[1..], ["USR1"]);
}

#[test]
fn a_stop_before_the_job_is_started_ends_tokenrun_at_once() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let store = Store::new();
        let first = store.run("node-a").with(&["--keep=1ms"]);
        let first = first.with(&["--head-start=1h"]).job(&["true"]);
        first.end().with_code(0);
        let run = with_signals(store.run("node-b").job(&["touch", "ran"])).start();
        run.until_says("leaving node-a a head start");
        run.signal(signal);
        let ended = run.end();
        assert_eq!(ended.signal, Some(signal as i32), "{ended:?}");
        assert!(ended.stderr.contains("touch was not started"), "{ended:?}");
        assert!(!store.file("ran").exists());
        assert_eq!(store.history().len(), 1);
    }
}
