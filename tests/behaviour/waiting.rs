//! `--wait`: in the queue, in the order of arrival, until the token comes or the time is over.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rusqlite::Connection;

use crate::support::{
    Line, Run, Store, Terminal, children, ctrl, signal, until, until_dead, until_stopped, within,
};

/// A waiting session of this client, once it is in the queue.
fn waits(store: &Store, client: &str) -> Run {
    in_queue(store, store.free_run(client).with(&["--wait"]))
}

fn in_queue(store: &Store, line: Line) -> Run {
    let before = places(store).len();
    let run = line.start();
    until("it is in the queue", || {
        let queue = places(store);
        if queue.len() > before {
            Ok(())
        } else {
            Err(format!("{queue:?}, {}", run.stderr()))
        }
    });
    run
}

/// The clients in the table, by arrival.
fn places(store: &Store) -> Vec<String> {
    let sqlite = store.sql();
    let mut rows = sqlite
        .prepare("SELECT document ->> 'client' FROM waiters ORDER BY position")
        .unwrap();
    let rows = rows.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

fn begun(store: &Store) -> Vec<String> {
    let log = store.log();
    let begun = log.iter().filter_map(|line| line.strip_prefix("begin "));
    begun
        .map(|rest| rest.split(' ').next().unwrap().to_owned())
        .collect()
}

fn holder(store: &Store) -> Run {
    let holder = store.free_run("holder").start();
    store.until_begun("holder");
    holder
}

#[test]
fn five_waiters_run_in_the_order_of_their_arrival() {
    let store = Store::new();
    let holder = holder(&store);
    let names = ["e", "b", "d", "a", "c"];
    let runs: Vec<Run> = names.iter().map(|name| waits(&store, name)).collect();
    assert_eq!(places(&store), names);
    assert_eq!(store.status()["waiters"], 5);
    for name in ["holder"].iter().chain(&names) {
        store.until_begun(name);
        store.go(0);
    }
    for run in [holder].into_iter().chain(runs) {
        run.end().with_code(0);
    }
    assert_eq!(begun(&store), ["holder", "e", "b", "d", "a", "c"]);
    assert!(places(&store).is_empty());
    store.assert_no_overlap();
}

#[test]
fn a_killed_waiter_delays_no_other_for_longer_than_three_seconds() {
    within(Duration::from_millis(3_300), || {
        let store = Store::new();
        let holder = holder(&store);
        let first = waits(&store, "first");
        let dead = waits(&store, "dead");
        let last = waits(&store, "last");
        dead.signal(Signal::SIGKILL);
        let killed = Instant::now();
        until_dead(dead.pid());
        store.go(0);
        store.until_begun("first");
        store.go(0);
        store.until_begun("last");
        let took = killed.elapsed();
        store.go(0);
        for run in [holder, first, last] {
            run.end().with_code(0);
        }
        assert_eq!(begun(&store), ["holder", "first", "last"]);
        took
    });
}

/// The process that will be the job: it exists while its run waits, which may take long.
fn waiting_job(run: &Run) -> i32 {
    let guard = run.guard();
    until("the guard has a child", || {
        children(guard).pop().ok_or_else(String::new)
    })
}

#[test]
fn a_waiter_whose_jobs_process_is_killed_still_runs_its_job_once() {
    let store = Store::new();
    let holder = holder(&store);
    let waiter = waits(&store, "waiter");
    let killed = waiting_job(&waiter);
    signal(killed, Signal::SIGKILL);
    // A process that dies after its go-ahead is the job's death, even if it had no turn before.
    until_dead(killed);
    store.go(0);
    store.until_begun("waiter");
    store.go(3);
    holder.end().with_code(0);
    waiter.end().with_code(3);
    assert_eq!(begun(&store), ["holder", "waiter"]);
    assert_eq!(store.lock_files(), [""; 0]);
}

#[test]
fn a_waiter_whose_jobs_process_was_stopped_lets_it_continue() {
    let store = Store::new();
    let holder = holder(&store);
    let waiter = waits(&store, "waiter");
    let waiting = waiting_job(&waiter);
    signal(waiting, Signal::SIGSTOP);
    until_stopped(waiting);
    store.go(0);
    store.until_begun("waiter");
    store.go(3);
    holder.end().with_code(0);
    waiter.end().with_code(3);
}

#[test]
fn a_signal_to_the_guard_alone_during_the_wait_hides_no_signal_to_the_job() {
    let store = Store::new();
    let holder = holder(&store);
    let script = "trap 'exit 9' TERM; echo begin waiter bind $$ >> log; \
                  while :; do sleep 0.02; done";
    let waiter = in_queue(
        &store,
        store.free_run("waiter").with(&["--wait"]).script(script),
    );
    waiting_job(&waiter);
    signal(waiter.guard(), Signal::SIGTERM);
    store.go(0);
    store.until_begun("waiter");
    waiter.signal(Signal::SIGTERM);
    waiter.end().with_code(9);
    holder.end().with_code(0);
}

#[test]
fn a_waiter_that_gave_up_leaves_neither_locks_nor_processes() {
    let store = Store::new();
    let holder = holder(&store);
    let (waiter, stopped) = (waits(&store, "waiter"), waits(&store, "stopped"));
    let mut left = Vec::new();
    for run in [&waiter, &stopped] {
        left.extend([run.guard(), waiting_job(run)]);
    }
    assert_eq!(store.lock_files().len(), 3);
    stopped.signal(Signal::SIGTERM);
    assert_eq!(stopped.end().signal, Some(15));
    waiter.signal(Signal::SIGTERM);
    assert_eq!(waiter.end().signal, Some(15));
    left.into_iter().for_each(until_dead);
    assert_eq!(store.lock_files().len(), 1, "the holder's");
    store.go(0);
    holder.end().with_code(0);
}

#[test]
fn a_stopped_waiter_is_skipped_and_keeps_its_position() {
    let store = Store::new();
    let holder = holder(&store);
    let stopped = waits(&store, "stopped");
    let next = waits(&store, "next");
    store.suspend(&stopped);
    store.go(0);
    store.until_begun("next");
    stopped.signal(Signal::SIGCONT);
    store.go(0);
    store.until_begun("stopped");
    store.go(0);
    for run in [holder, next, stopped] {
        run.end().with_code(0);
    }
}

#[test]
fn a_session_outside_the_queue_does_not_overtake_waiters() {
    let store = Store::new();
    store.free_run("before").job(&["true"]).end().with_code(0);
    store.set(&[("pause", r#"{"by": "admin", "reason": "because"}"#)], &[]);
    let first = waits(&store, "first");
    first.until_says("is paused by admin");
    store.suspend(&first);
    store.set(&[("pause", "null")], &["version = version + 1"]);
    let late = store.free_run("late").job(&["true"]).end().with_code(75);
    late.says(&[
        "another session is ahead in the queue",
        "true was not started",
    ]);
    first.signal(Signal::SIGCONT);
    store.until_begun("first");
    store.go(0);
    first.end().with_code(0);
}

#[test]
fn a_wait_ends_when_its_time_is_over_with_75_and_the_queue_is_left() {
    let store = Store::new();
    let holder = holder(&store);
    for ms in [0, 300, 1_500] {
        let limit = format!("--wait={ms}ms");
        // The start of the process included.
        within(Duration::from_millis(ms + 50), || {
            let begun = Instant::now();
            let ended = store.free_run("b").with(&[&limit]).end().with_code(75);
            let took = begun.elapsed();
            assert!(took >= Duration::from_millis(ms), "{took:?}");
            assert!(ended.stderr.contains("held by holder"), "{ended:?}");
            assert!(places(&store).is_empty());
            took
        });
    }
    let other = store.free_run("b").with(&["--wait=0", "-E", "9"]);
    other.end().with_code(9);
    store.go(0);
    holder.end().with_code(0);
}

#[test]
fn a_log_says_once_that_it_waits_and_once_that_it_waits_no_more() {
    let store = Store::new();
    let holder = holder(&store);
    let run = in_queue(&store, store.free_run("b").with(&["--wait=1h"]));
    let behind = waits(&store, "c");
    behind.until_says("waiting in the queue, behind another");
    store.go(0);
    store.until_begun("b");
    store.go(0);
    let ended = run.end().with_code(0);
    let messages = ended.messages();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[0].contains("held by holder"), "{messages:?}");
    assert!(
        messages[0].contains("waiting in the queue, for at most 1h")
            || messages[0].contains("for at most 59m"),
        "{messages:?}"
    );
    assert!(messages[1].contains("waited "), "{messages:?}");
    store.until_begun("c");
    store.go(0);
    behind.end().with_code(0);
    holder.end().with_code(0);
}

#[test]
fn a_signal_ends_the_wait_at_once_and_the_queue_is_left() {
    let store = Store::new();
    let holder = holder(&store);
    for which in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        // What does not end at once ends with its next heartbeat, 800 ms after it has joined. The limit
        // is that event and no time: on a busy machine one of many tries is quick enough.
        until(
            &format!("{which} ends it before its next heartbeat"),
            || {
                // With default signals: an ignored one ends nothing.
                let line = store.free_run("b").with(&["--wait"]);
                let run = in_queue(&store, line.under(&["env", "--default-signal"]));
                let commits = store.commits();
                run.signal(which);
                let ended = run.end();
                assert_eq!(ended.signal, Some(which as i32), "{ended:?}");
                assert!(ended.stderr.contains("was not started"), "{ended:?}");
                assert!(places(&store).is_empty());
                // Its document as it joined, then none: each heartbeat makes another.
                let sql = "SELECT group_concat(document) FROM waiters";
                let mut rows = commits.rows(sql, |row| row.get::<_, Option<String>>(0));
                rows.dedup();
                let beats = rows.len() - 2;
                (beats == 0)
                    .then_some(())
                    .ok_or(format!("{beats} heartbeats"))
            },
        );
    }
    store.go(0);
    holder.end().with_code(0);
    assert_eq!(begun(&store), ["holder"]);
}

#[test]
fn a_store_that_is_locked_is_waited_for_until_the_time_is_over() {
    let store = Store::new();
    store.free_run("before").job(&["true"]).end().with_code(0);
    let sqlite = store.sql();
    sqlite.execute_batch("BEGIN IMMEDIATE").unwrap();
    let quick = |line: Line| line.with(&["--store-timeout=200ms"]);
    within(Duration::from_millis(1_550), || {
        let begun = Instant::now();
        let run = quick(store.free_run("b")).with(&["--wait=1500ms"]);
        let ended = run.job(&["true"]).end().with_code(69);
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(1_500), "{took:?}");
        assert!(
            ended.stderr.contains("waiting for the store too"),
            "{ended:?}"
        );
        took
    });
    // A grant that is out must not delay the end, nor happen afterwards.
    within(Duration::from_millis(1_050), || {
        let begun = Instant::now();
        let run = store
            .free_run("b")
            .with(&["--store-timeout=10s", "--wait=1s"]);
        let ended = run.job(&["true"]).end().with_code(69);
        let took = begun.elapsed();
        assert!(took >= Duration::from_secs(1), "{took:?}");
        ended.says(&["until the time to wait was over", "true was not started"]);
        took
    });
    // And once it is back, the job runs.
    let run = quick(store.free_run("c")).with(&["--wait=1m"]);
    let run = run.job(&["true"]).start();
    run.until_says("waiting for the store too");
    sqlite.execute_batch("ROLLBACK").unwrap();
    run.end().with_code(0);
}

#[test]
fn a_store_that_can_not_be_opened_yet_is_waited_for() {
    let store = Store::new();
    store.free_run("before").job(&["true"]).end().with_code(0);
    let exclusive = Connection::open(store.database()).unwrap();
    exclusive
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; UPDATE tokens SET fence = fence; COMMIT")
        .unwrap();
    let quick = |client: &str| {
        store
            .free_run(client)
            .with(&["--store-timeout=200ms"])
            .job(&["true"])
    };
    quick("b").end().with_code(69);
    within(Duration::from_millis(1_050), || {
        let begun = Instant::now();
        quick("b").with(&["--wait=1s"]).end().with_code(69);
        let took = begun.elapsed();
        assert!(took >= Duration::from_secs(1), "{took:?}");
        took
    });
    let run = quick("c").with(&["--wait=1m"]).start();
    // Its attempts are invisible: it has no store yet.
    drop(exclusive);
    run.end().with_code(0);
}

#[test]
fn a_waiter_takes_over_from_a_killed_holder() {
    let store = Store::new();
    let holder = store.run("holder").start();
    let job = store.until_begun("holder");
    let run = waits(&store, "b");
    let guard = holder.guard();
    holder.signal(Signal::SIGKILL);
    let killed = Instant::now();
    until_dead(guard);
    until_dead(job);
    store.until_begun("b");
    // The locks prove it: takeover-after is five minutes.
    assert!(
        killed.elapsed() < Duration::from_secs(20),
        "{:?}",
        killed.elapsed()
    );
    store.go(0);
    run.end().with_code(0);
    let history = store.history();
    assert_eq!(history[0]["grant"], "takeover");
    assert_eq!(history[1]["outcome"], "unknown");
    store.assert_no_overlap();
}

#[test]
fn a_waiter_takes_over_from_a_silent_holder_without_proof_of_death() {
    let store = Store::new();
    store.free_run("before").job(&["true"]).end().with_code(0);
    let holder = store.free_run("holder").hasty().elsewhere(&store).start();
    store.until_begun("holder");
    let run = in_queue(&store, store.free_run("b").hasty().with(&["--wait"]));
    holder.signal(Signal::SIGKILL);
    store.until_begun("b");
    store.go(0);
    run.end().with_code(0);
    store.assert_no_overlap();
    assert_eq!(store.history()[0]["grant"], "takeover");
}

#[test]
fn a_waiter_takes_a_kept_token_and_leaves_a_handed_off_one() {
    let store = Store::new();
    store
        .run("a")
        .with(&["--keep=1h"])
        .job(&["true"])
        .end()
        .with_code(0);
    let run = store
        .run("b")
        .with(&["--keep=1h", "--wait=1m"])
        .job(&["true"]);
    run.end().with_code(0);
    // Now b's, and handed off to a, which does not come: b waits a's head start.
    let handoff = r#"{"to": "a", "at_ms": 1795226400000}"#;
    store.set(&[("handoff", handoff), ("head_start_ms", "700")], &[]);
    let begun = Instant::now();
    let run = store.run("c").with(&["--wait=1m"]).job(&["true"]);
    run.end().with_code(0);
    assert!(
        begun.elapsed() >= Duration::from_millis(700),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_waiter_waits_for_the_end_of_at_least_and_of_a_pause() {
    within(Duration::from_millis(2_500), || {
        let store = Store::new();
        let run = |word: &str| {
            let line = store.free_run("a").with(&[word]);
            line.job(&["true"]).end().with_code(0);
        };
        let begun = Instant::now();
        run("--at-least=1500ms");
        run("--wait=1m");
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(1_500), "{took:?}");
        took
    });
}

#[test]
fn many_hand_overs_in_a_row_lose_no_waiter() {
    let store = Store::new();
    let count = store.file("count");
    fs::write(&count, "").unwrap();
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do \"$@\" || exit; done";
    let runs: Vec<Run> = (0..8)
        .map(|n| {
            let line = store.free_run(&format!("n{n}")).with(&["--wait=1m", "-q"]);
            let line = line.job(&["sh", "-c", "echo x >> count"]);
            line.under(&["sh", "-c", script, "sh"]).start()
        })
        .collect();
    for run in runs {
        run.end().with_code(0);
    }
    assert_eq!(fs::read_to_string(count).unwrap().lines().count(), 80);
    assert!(places(&store).is_empty());
}

/// The processor time of a process so far, in ms.
fn processor_ms(pid: i32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e6
}

#[test]
fn an_idle_waiter_uses_next_to_nothing_of_a_processor() {
    let store = Store::new();
    let holder = holder(&store);
    let runs: Vec<Run> = (0..3).map(|n| waits(&store, &format!("w{n}"))).collect();
    // By the processes' own account, which a busy machine does not change.
    let used = |run: &Run| processor_ms(run.pid()) + processor_ms(run.guard());
    let before: Vec<f64> = runs.iter().map(used).collect();
    let begun = Instant::now();
    // Closing the database would notify the waiter.
    let sqlite = store.sql();
    let stamp = || -> i64 {
        let sql = "SELECT seen_tick FROM waiters WHERE document ->> 'client' = 'w0'";
        sqlite.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let first = stamp();
    until("it has given signs of life for ten seconds", || {
        let now = stamp();
        if now - first > 10_000 {
            Ok(())
        } else {
            Err(format!("{now}"))
        }
    });
    let wall = begun.elapsed().as_secs_f64() * 1_000.0;
    for (run, before) in runs.iter().zip(before) {
        let share = (used(run) - before) / wall;
        println!("an idle waiter uses {:.3} % of a processor", share * 100.0);
        // The bound of a thousandth is for an optimized build on an unshared processor: see
        // benches/handover.rs.
        assert!(share < 0.005, "{share}");
    }
    for run in runs {
        run.signal(Signal::SIGTERM);
        run.end();
    }
    store.go(0);
    holder.end().with_code(0);
}

#[test]
fn a_terminal_shows_the_wait_and_nothing_of_it_remains() {
    let store = Store::new();
    let holder = holder(&store);
    let line = store.free_run("b").with(&["--wait"]);
    let mut terminal = Terminal::new(&store, &line);
    terminal.line("t -- echo up");
    let seen = terminal.until("takeover possible in");
    assert!(seen.contains("held by holder for"), "{seen}");
    assert!(seen.contains("next in the queue"), "{seen}");
    terminal.key(ctrl('c'));
    let seen = terminal.prompt();
    assert!(seen.contains("received signal 2"), "{seen}");
    assert_eq!(terminal.status(), 130);
    terminal.line("t -- echo up");
    terminal.until("takeover possible in");
    store.go(0);
    holder.end().with_code(0);
    let seen = terminal.prompt();
    // The display is cleared before the job writes.
    let before = seen.split("up\r\n").next().unwrap();
    assert!(
        before.ends_with("\x1b[2K") || before.ends_with("\x1b[K"),
        "{before:?}"
    );
    assert!(!seen.contains("tokenrun: "), "{seen}");
}

#[test]
fn a_stopped_terminal_delays_no_job() {
    let store = Store::new();
    let holder = holder(&store);
    let mut terminal = Terminal::new(&store, &store.free_run("b").with(&["--wait"]));
    terminal.line("t -- sh -c 'echo ran >> ran'");
    terminal.until("takeover possible in");
    terminal.key(ctrl('s'));
    store.go(0);
    holder.end().with_code(0);
    store.until_line("ran");
    until("tokenrun has ended", || {
        match store.status()["state"].as_str() {
            Some("free") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    terminal.key(ctrl('q'));
    terminal.prompt();
    assert_eq!(terminal.status(), 0);
}
