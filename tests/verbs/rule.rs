//! Every clause of the rule, from the command line, with two nodes. The number in a story's name is
//! the clause's in the table of `src/token.rs`.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::site::{GROUP, Site};
use crate::support::{Ended, Line, Run, TOKENRUN, signal, until, until_dead, until_stopped};

stories!(
    clause_0_a_store_that_may_have_forgotten_is_observed_first,
    clause_1_a_run_inside_of_a_run_has_its_lease,
    clause_2_a_dead_run_is_taken_over_at_once_on_its_host,
    clause_4_a_holder_with_recent_heartbeats_is_left_alone,
    clause_4_two_sessions_of_one_client_do_not_both_run,
    clause_4_the_primary_that_comes_into_a_running_job_has_the_next_slot,
    clause_5_the_silent_are_taken_over,
    clause_5_not_while_something_of_the_run_is_alive_here,
    clause_6_a_paused_token_is_granted_to_no_client,
    clause_7_a_run_too_soon_is_refused_on_both_nodes,
    clause_7_a_run_that_crashed_too_soon_is_refused_on_both_nodes,
    clause_8_a_handoff_is_granted_within_keep,
    clause_9_a_dead_target_blocks_no_client,
    clause_9_a_wait_that_ends_within_the_head_start_is_a_refusal,
    clause_10_a_session_outside_the_queue_comes_after_waiters,
    clause_11_a_kept_token_is_renewed_by_its_node,
    clause_12_the_primary_does_not_run_the_same_slot_again,
    clause_13_a_late_clock_is_refused_but_not_a_waiter,
    clause_14_a_new_group_is_reserved_for_the_expected_node,
    clause_15_a_preferred_client_does_not_wait,
    clause_15_the_primary_takes_back_what_is_open,
    clause_16_another_leaves_a_head_start_and_takes_over,
    clause_16_a_run_during_the_head_start_begins_it_anew,
    ;
    about tables:
    clause_3_a_stamp_of_another_clock_is_watched,
    clause_3_a_wait_that_ends_within_the_observation_is_a_refusal,
);

/// A short run that says how it came to the token.
fn short(site: &Site, client: &str) -> Line {
    let script = "echo $TOKENRUN_GRANT$TOKENRUN_PREVIOUS_CLIENT";
    site.run(client).script(script)
}

/// The same, for a client that keeps the token for a time.
fn keeping(site: &Site, client: &str, keep: &str) -> Line {
    short(site, client).with(&[&format!("--keep={keep}")])
}

fn hasty(site: &Site, client: &str) -> Line {
    short(site.made(), client).hasty()
}

fn ran(line: Line) -> String {
    line.end().with_code(0).stdout.trim_end().to_owned()
}

fn refused(line: Line, words: &[&str]) {
    line.end().with_code(75).says(words);
}

/// Tries until it is not refused any more.
fn once_granted(line: &Line) -> String {
    let ended = until("it is granted", || {
        let ended = line.clone().end();
        match ended.code {
            Some(75) => Err(ended.stderr),
            _ => Ok(ended),
        }
    });
    ended.with_code(0).stdout.trim_end().to_owned()
}

/// Tries until the holder is silent.
fn once_silent(line: &Line) -> Ended {
    until("the holder is silent", || {
        let ended = line.clone().end();
        match ended.stderr.contains("is held by") {
            true => Err(ended.stderr),
            false => Ok(ended),
        }
    })
}

/// A run of node-a, once its job has begun.
fn held(site: &Site) -> Run {
    let run = site.made().run("node-a").hasty().start();
    site.store.until_begun("node-a");
    run
}

fn let_go(site: &Site, run: Run) {
    site.store.go(0);
    run.end().with_code(0);
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

fn status(site: &Site) -> Value {
    let line = site.verb(&["status", "--json", "-g", GROUP]);
    line.end().with_code(0).json()[0].take()
}

fn clause_0_a_store_that_may_have_forgotten_is_observed_first(site: &Site) {
    assert_eq!(ran(hasty(site, "node-a")), "bind");
    site.verb(&["distrust", "--yes"]).end().with_code(0);
    let ended = hasty(site, "node-a").end().with_code(0);
    ended.says(&["may have forgotten a grant", "(clause 0)"]);
    assert_eq!(ended.stdout.trim_end(), "bind");
}

fn waits(site: &Site, client: &str, more: &[&str]) -> Run {
    let run = site.run(client).with(&["--wait"]).with(more).start();
    until("it is in the queue", || match &status(site)["waiters"] {
        waiters if waiters.as_u64() > Some(0) => Ok(()),
        waiters => Err(format!("{waiters}: {}", run.stderr())),
    });
    run
}

fn clause_1_a_run_inside_of_a_run_has_its_lease(site: &Site) {
    let inner = format!("{TOKENRUN} -s '{}' -g {GROUP} -- echo inner", site.url);
    assert_eq!(ran(site.run("node-a").script(&inner)), "inner");
    // The same words outside of it, while node-a runs: refused.
    let run = held(site);
    refused(site.short("node-b"), &["\"job\" is held by node-a"]);
    let_go(site, run);
}

fn clause_2_a_dead_run_is_taken_over_at_once_on_its_host(site: &Site) {
    let run = site.run("node-a").start();
    let job = site.store.until_begun("node-a");
    kill_both(run);
    until_dead(job);
    site.store.until_job_gone();
    // takeover-after is five minutes: nothing but proof opens it now.
    assert_eq!(ran(short(site, "node-b")), "takeovernode-a");
    assert_eq!(status(site)["losses"], 1);
}

fn clause_3_a_stamp_of_another_clock_is_watched(site: &Site) {
    keeping(site, "node-a", "1500ms").end().with_code(0);
    site.sql("UPDATE tokens SET clock_epoch = 'a clock that is gone'");
    let took = short(site, "node-b").end().with_code(0);
    let words = "stamped by another clock (a clock that is gone";
    assert!(took.stderr.contains(words), "{took:?}");
    assert_eq!(took.stdout, "takeovernode-a\n");
    // The owner of a token need not know its age.
    keeping(site, "node-a", "1h").end().with_code(0);
    site.sql("UPDATE tokens SET clock_epoch = 'another one'");
    assert_eq!(ran(short(site, "node-a")), "renew");
}

fn clause_3_a_wait_that_ends_within_the_observation_is_a_refusal(site: &Site) {
    let reserved = short(site, "node-b").with(&["--expected=node-a"]);
    refused(reserved.clone(), &["reserved for node-a"]);
    site.sql("UPDATE tokens SET clock_epoch = 'a clock that is gone'");
    let ended = reserved.with(&["--wait=2s"]).end().with_code(75);
    let words = "another clock stamped it; it is observed for";
    assert!(ended.stderr.contains(words), "{ended:?}");
}

fn clause_4_a_holder_with_recent_heartbeats_is_left_alone(site: &Site) {
    let words = ["\"job\" is held by node-a", "its last heartbeat is"];
    let run = held(site);
    refused(hasty(site, "node-b"), &words);
    let_go(site, run);
    // The holder's takeover-after counts, and not node-b's own.
    let run = site.run("node-a").with(&["--heartbeat=30s"]).start();
    site.store.until_begun("node-a");
    until("the silence exceeds node-b's takeover-after of 5 s", || {
        let ended = hasty(site, "node-b").end().with_code(75);
        ended.says(&words);
        let (_, age) = ended.message().split_once(words[1]).unwrap();
        let age = age.split_once(" old").unwrap().0.trim();
        match humantime::parse_duration(age).unwrap() {
            age if age > Duration::from_secs(6) => Ok(()),
            age => Err(format!("{age:?}")),
        }
    });
    let_go(site, run);
    site.store.assert_no_overlap();
}

fn clause_4_two_sessions_of_one_client_do_not_both_run(site: &Site) {
    let run = held(site);
    let words = ["is held by node-a, in an earlier run on this host"];
    refused(short(site, "node-a"), &words);
    let_go(site, run);
}

fn clause_4_the_primary_that_comes_into_a_running_job_has_the_next_slot(site: &Site) {
    deputy_has_run(site, "1h");
    let run = site.run("node-b").with(&["--keep=1h"]).start();
    site.store.until_begun("node-b");
    let primary = || keeping(site, "node-a", "1h").with(&["--failback"]);
    refused(primary(), &["is held by node-b"]);
    assert_eq!(status(site)["handoff_to"], "node-a");
    refused(primary(), &["is held by node-b"]);
    let_go_of(site, run);
    assert_eq!(ran(primary()), "handoffnode-b");
}

fn clause_5_the_silent_are_taken_over(site: &Site) {
    let run = held(site);
    site.store.suspend(&run);
    // Its guard ends the job by itself, before another node may start.
    let took = once_silent(&hasty(site, "node-b")).with_code(0);
    assert!(took.stderr.contains("whose holder is silent"), "{took:?}");
    assert_eq!(took.stdout, "takeovernode-a\n");
    assert!(!site.store.is_job_alive());
    run.signal(Signal::SIGCONT);
    run.end().with_code(76);
    let history = site.verb(&["history", "--json"]).end().with_code(0).json();
    // It has recorded its end, late.
    assert_eq!(history[1]["outcome"], "lost");
}

/// Leaves a process behind that left the session and is an orphan.
const LEAVING: &str = r#"
(setsid sh -c 'echo "begin left $$" >> log; exec sleep 300' > /dev/null 2>&1 &)
until grep -q 'begin left' log 2> /dev/null; do sleep 0.01; done
until read -r line < go; do :; done
"#;

fn clause_5_not_while_something_of_the_run_is_alive_here(site: &Site) {
    let run = site.made().run("node-a").hasty().script(LEAVING).start();
    let left = site.store.until_begun("left");
    kill_both(run);
    let ended = once_silent(&hasty(site, "node-b")).with_code(75);
    ended.says(&[
        "its run is still alive here: ",
        &format!("sleep (pid {left})"),
    ]);
    signal(left, Signal::SIGKILL);
    until_dead(left);
    assert_eq!(ran(hasty(site, "node-b")), "takeovernode-a");
}

fn clause_6_a_paused_token_is_granted_to_no_client(site: &Site) {
    let run = site.run("node-a").start();
    let job = site.store.until_begun("node-a");
    let pause = ["pause", "-g", GROUP, "--reason", "database migration"];
    site.verb(&pause).end().with_code(0);
    kill_both(run);
    until_dead(job);
    site.store.until_job_gone();
    for client in ["node-a", "node-b"] {
        refused(short(site, client), &["is paused by", "database migration"]);
    }
    site.verb(&["resume", "-g", GROUP]).end().with_code(0);
    assert_eq!(ran(short(site, "node-b")), "takeovernode-a");
}

fn clause_7_a_run_too_soon_is_refused_on_both_nodes(site: &Site) {
    let at_least = |client: &str| short(site, client).with(&["--at-least=1h"]);
    ran(at_least("node-a"));
    for client in ["node-a", "node-b"] {
        refused(
            at_least(client),
            &["ran too recently for its --at-least", "it can run again in"],
        );
        // What the last run asked for counts.
        refused(short(site, client), &["ran too recently"]);
    }
    // An operator lets it run again. The refusal says how.
    let refusal = short(site, "node-b").end().with_code(75);
    refusal.says(&["or after tokenrun release -g \"job\""]);
    let release = || site.verb(&["release", "-g", GROUP]).end().with_code(0);
    release().says(&["\"job\"", "is free, and its --at-least is over, of which"]);
    release().says(&["is free already"]);
    ran(short(site, "node-b"));
    // A job that failed has run, too.
    let failing = site.in_group("other", "node-a").with(&["--at-least=1h"]);
    failing.job(&["false"]).end().with_code(1);
    let line = site.in_group("other", "node-b").job(&["true"]);
    refused(line, &["ran too recently"]);
}

fn clause_7_a_run_that_crashed_too_soon_is_refused_on_both_nodes(site: &Site) {
    let run = site.run("node-a").with(&["--at-least=1h"]).start();
    site.store.until_begun("node-a");
    refused(
        short(site, "node-b"),
        &["is held by node-a", "but not before"],
    );
    run.signal(Signal::SIGKILL);
    for client in ["node-a", "node-b"] {
        until("its death is proven", || {
            let ended = short(site, client).end().with_code(75);
            if ended.stderr.contains("is held by") {
                return Err(ended.stderr);
            }
            ended.says(&["ran too recently for its --at-least", "it can run again in"]);
            Ok(())
        });
    }
}

fn clause_8_a_handoff_is_granted_within_keep(site: &Site) {
    ran(keeping(site, "node-a", "1h"));
    refused(short(site, "node-b"), &["belongs to node-a"]);
    let handoff = ["move", "--when-idle", "-g", GROUP, "--to", "node-b"];
    site.verb(&handoff).end().with_code(0);
    assert_eq!(ran(keeping(site, "node-b", "1h")), "handoffnode-a");
    refused(short(site, "node-a"), &["belongs to node-b"]);
}

fn clause_9_a_dead_target_blocks_no_client(site: &Site) {
    ran(keeping(site, "node-a", "1s"));
    let handoff = ["move", "--when-idle", "-g", GROUP, "--to", "node-dead"];
    site.verb(&handoff).end().with_code(0);
    // node-a itself leaves the target a head start, then goes on as usual.
    let took = short(site, "node-a").end().with_code(0);
    let words = "leaving node-dead a head start of 0.1s";
    assert!(took.stderr.contains(words), "{took:?}");
    assert_eq!(took.stdout, "renew\n");
    // A late clock that keep refuses stays refused.
    ran(keeping(site, "node-a", "1h"));
    site.verb(&handoff).end().with_code(0);
    refused(short(site, "node-b"), &["belongs to node-a"]);
}

fn clause_9_a_wait_that_ends_within_the_head_start_is_a_refusal(site: &Site) {
    ran(keeping(site, "node-a", "1s").with(&["--head-start=1m"]));
    let handoff = ["move", "--when-idle", "-g", GROUP, "--to", "node-b"];
    site.verb(&handoff).end().with_code(0);
    let waits = short(site, "node-a").with(&["--wait=2s"]);
    let ended = waits.end().with_code(75);
    let words = "is open, and node-b has a head start of";
    assert!(ended.stderr.contains(words), "{ended:?}");
}

fn clause_10_a_session_outside_the_queue_comes_after_waiters(site: &Site) {
    let run = held(site);
    let waiting = waits(site, "node-b", &[]);
    site.store.go(0);
    site.store.until_begun("node-b");
    let third = waits(site, "node-c", &[]);
    site.store.suspend(&third);
    let_go_of(site, waiting);
    // node-c is first and can't come just now: no other overtakes it.
    refused(
        short(site, "node-a"),
        &["another session is ahead in the queue"],
    );
    signal(third.pid(), Signal::SIGCONT);
    site.store.until_begun("node-c");
    let_go_of(site, third);
    run.end().with_code(0);
    site.store.assert_no_overlap();
}

fn let_go_of(site: &Site, run: Run) {
    site.store.go(0);
    run.end().with_code(0);
}

fn clause_11_a_kept_token_is_renewed_by_its_node(site: &Site) {
    assert_eq!(ran(keeping(site, "node-a", "1h")), "bind");
    for _ in 0..2 {
        refused(keeping(site, "node-b", "1h"), &["belongs to node-a"]);
        assert_eq!(ran(keeping(site, "node-a", "1h")), "renew");
    }
    assert_eq!(status(site)["client"], "node-a");
}

/// A primary, its deputy, and one run of the deputy's.
fn deputy_has_run(site: &Site, keep: &str) {
    let terms = ["--expected=node-a", "--head-start=0"];
    ran(keeping(site, "node-a", "1ms").with(&terms));
    let deputy = keeping(site, "node-b", keep).with(&terms);
    assert_eq!(once_granted(&deputy), "takeovernode-a");
}

fn clause_12_the_primary_does_not_run_the_same_slot_again(site: &Site) {
    deputy_has_run(site, "1h");
    let primary = || keeping(site, "node-a", "1h").with(&["--failback"]);
    refused(primary(), &["belongs to node-b"]);
    assert_eq!(status(site)["handoff_to"], "node-a");
    // The next slot is its own, although keep is not over.
    assert_eq!(ran(primary()), "handoffnode-b");
    assert_eq!(status(site)["expected_client"], "node-a");
}

fn clause_13_a_late_clock_is_refused_but_not_a_waiter(site: &Site) {
    let run = site.run("node-a").with(&["--keep=1h"]).start();
    site.store.until_begun("node-a");
    let waiting = waits(site, "node-b", &["--keep=1h"]);
    let_go(site, run);
    site.store.until_begun("node-b");
    let_go_of(site, waiting);
    let words = ["belongs to node-b", "other clients can have it in"];
    refused(short(site, "node-a"), &words);
}

fn clause_14_a_new_group_is_reserved_for_the_expected_node(site: &Site) {
    let expected = |client: &str| hasty(site, client).with(&["--expected=node-a"]);
    refused(expected("node-b"), &["new and reserved for node-a"]);
    assert_eq!(ran(expected("node-a")), "bind");
    // One that never comes holds a new group up for takeover-after, and no longer. On a busy machine a guard may need
    // more than a second for an answer.
    let other = || {
        let line =
            expected("node-b").without(&["-g", GROUP, "--heartbeat=1s", "--takeover-after=5s"]);
        let line = line.with(&["--heartbeat=2s", "--takeover-after=10s"]);
        line.with(&["-g", "other", "--expected=node-dead"])
    };
    refused(other(), &["new and reserved for node-dead"]);
    assert_eq!(once_granted(&other()), "bind");
}

fn clause_15_a_preferred_client_does_not_wait(site: &Site) {
    // No client is expected: node-a.
    let quiet = |line: Line, grant: &str| {
        let ended = line.end().with_code(0);
        assert_eq!(ended.messages(), [""; 0]);
        assert_eq!(ended.stdout.trim_end(), grant);
    };
    let slow = ["--head-start=1h"];
    quiet(keeping(site, "node-a", "0").with(&slow), "bind");
    quiet(keeping(site, "node-b", "1ms").with(&slow), "bind");
    // keep is over: it is node-b's all the same.
    quiet(keeping(site, "node-b", "1ms").with(&slow), "renew");
}

fn clause_15_the_primary_takes_back_what_is_open(site: &Site) {
    deputy_has_run(site, "1ms");
    let slow = ["--head-start=1h", "--failback"];
    let back = once_granted(&keeping(site, "node-a", "1h").with(&slow));
    // It may have looked within that millisecond.
    assert!(
        back == "failbacknode-b" || back == "handoffnode-b",
        "{back}"
    );
}

fn clause_16_another_leaves_a_head_start_and_takes_over(site: &Site) {
    ran(keeping(site, "node-a", "1ms").with(&["--head-start=700ms"]));
    let begun = std::time::Instant::now();
    let took = until("keep is over", || {
        let ended = short(site, "node-b").end();
        match ended.code {
            Some(75) => Err(ended.stderr),
            _ => Ok(ended),
        }
    });
    // The last holder's head start counts, as its keep does.
    assert!(begun.elapsed() >= std::time::Duration::from_millis(700));
    let words = "leaving node-a a head start of 0.7s";
    assert!(took.stderr.contains(words), "{took:?}");
    assert_eq!(took.with_code(0).stdout, "takeovernode-a\n");
}

fn clause_16_a_run_during_the_head_start_begins_it_anew(site: &Site) {
    let terms = ["--head-start=3s", "--keep=1ms"];
    ran(short(site, "node-a").with(&terms));
    // A clock may count in steps.
    until("the keep is over", || {
        let explain = ["explain", "--json", "-g", GROUP, "--client-id", "node-b"];
        let explained = site.verb(&explain).end().with_code(0).json();
        match explained[0]["clause"] == 16 {
            true => Ok(()),
            false => Err(explained.to_string()),
        }
    });
    let early = short(site, "node-b").with(&terms).start();
    early.until_says("leaving node-a a head start");
    // node-a's clock is a little late: it has the token all the same, and keeps it.
    assert_eq!(ran(keeping(site, "node-a", "1h")), "renew");
    early.end().with_code(75);
    assert_eq!(status(site)["client"], "node-a");
}

/// What the table of `src/token.rs` has, the stories have.
#[test]
fn every_clause_of_the_table_has_a_story() {
    let table = include_str!("../../src/token.rs").lines();
    let clauses = table.filter_map(|line| {
        let cells = line.strip_prefix("//! | ")?;
        cells.split(' ').next()?.parse::<u32>().ok()
    });
    let clauses: Vec<u32> = clauses.collect();
    assert_eq!(clauses, (0..=16).collect::<Vec<_>>());
    let stories = include_str!("rule.rs");
    for clause in clauses {
        let name = format!("\nfn clause_{clause}_");
        assert!(stories.contains(&name), "clause {clause} has no story");
    }
}
