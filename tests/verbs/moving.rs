//! `move` and `revoke --wait`: a token goes to another node now, and the operator sees when.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::site::{GROUP, Site};
use crate::support::{Ended, Line, Run, Terminal, until, until_dead};

stories!(
    a_running_job_is_moved_without_overlap,
    an_idle_token_is_moved_at_once,
    a_job_that_runs_there_already_is_left_alone,
    a_move_says_what_it_waits_for_and_gives_up_in_time,
    a_move_waits_on_a_terminal_and_not_elsewhere,
    a_move_is_over_when_the_client_runs,
    an_agent_gives_way_to_a_move_and_waits_again,
    a_revoke_can_wait_for_the_end_of_the_job,
    a_revoke_of_a_dead_holder_waits_for_its_lease_alone,
);

/// A run that keeps its token, and whose heart beats fast.
fn run(site: &Site, client: &str) -> Line {
    let fast = ["--keep=1h", "--heartbeat=300ms", "--kill-grace=500ms"];
    site.run(client).with(&fast)
}

fn verb(site: &Site, words: &[&str]) -> Line {
    site.verb(words).with(&["-g", GROUP])
}

fn status(site: &Site) -> Value {
    let ended = verb(site, &["status", "--json"]).end().with_code(0);
    ended.json()[0].take()
}

/// The store knows node-b.
fn with_node_b(site: &Site) {
    site.short("node-b").end().with_code(0);
}

/// Does what waits for the end of node-a's job. The holder learns of it once the operator waits, for the job
/// could else have ended by then.
fn awaited(site: &Site, held: &Run, act: Line) -> Ended {
    site.store.suspend(held);
    let act = act.start();
    act.until_says("waiting for node-a to end its job of \"job\"");
    held.signal(Signal::SIGCONT);
    act.end().with_code(0)
}

fn a_running_job_is_moved_without_overlap(site: &Site) {
    with_node_b(site);
    let held = run(site, "node-a").start();
    let job = site.store.until_begun("node-a");
    let moved = verb(site, &["move", "--to", "node-b", "--wait", "--json"]);
    let moved = awaited(site, &held, moved);
    moved.tells(&[
        "goes to node-b when the job of node-a has ended",
        "node-a is asked to end its job",
        "node-b may have \"job\"",
        "its next run takes it",
    ]);
    until_dead(job);
    let acts = moved.json();
    let words = acts.as_array().unwrap().iter().map(|act| &act["act"]);
    assert_eq!(words.collect::<Vec<_>>(), ["handoff", "revoke"]);
    held.end().with_code(76);
    assert_eq!(status(site)["state"], "free");
    run(site, "node-a")
        .with(&["--head-start=1h"])
        .job(&["true"])
        .start()
        .until_says("leaving node-b a head start");
    let next = run(site, "node-b").script("echo $TOKENRUN_GRANT");
    assert_eq!(next.end().with_code(0).stdout, "handoff\n");
    site.store.assert_no_overlap();
}

fn an_idle_token_is_moved_at_once(site: &Site) {
    with_node_b(site);
    run(site, "node-a").job(&["true"]).end().with_code(0);
    let moved = verb(site, &["move", "--to", "node-b", "--wait=1h"]).end();
    moved
        .with_code(0)
        .tells(&["goes to node-b at its next run", "may have \"job\""]);
    run(site, "node-b").job(&["true"]).end().with_code(0);
}

fn a_job_that_runs_there_already_is_left_alone(site: &Site) {
    let held = run(site, "node-b").start();
    site.store.until_begun("node-b");
    let moved = verb(site, &["move", "--to", "node-b", "--wait", "--json"]).end();
    let moved = moved.with_code(0);
    moved.tells(&["node-b runs \"job\" in ", "already; nothing was changed"]);
    assert_eq!(moved.stdout, "[]\n");
    assert!(site.store.is_job_alive());
    assert_eq!(status(site)["handoff_to"], Value::Null);
    site.store.go(0);
    held.end().with_code(0);
}

fn a_move_says_what_it_waits_for_and_gives_up_in_time(site: &Site) {
    with_node_b(site);
    run(site, "node-a").job(&["true"]).end().with_code(0);
    verb(site, &["pause"]).end().with_code(0);
    let moved = verb(site, &["move", "--to", "node-b", "--wait=2s"]).end();
    moved.with_code(75).tells(&[
        "is paused by ",
        "waiting until node-b may have it",
        "in vain; what was asked for stays in force",
    ]);
    assert_eq!(status(site)["handoff_to"], "node-b");
    // It goes on when the reason is over.
    let moving = verb(site, &["move", "--to", "node-b", "--wait"]).start();
    moving.until_says("is paused by ");
    verb(site, &["resume"]).end().with_code(0);
    moving.end().with_code(0).tells(&["may have \"job\""]);
}

fn a_move_waits_on_a_terminal_and_not_elsewhere(site: &Site) {
    with_node_b(site);
    run(site, "node-a").job(&["true"]).end().with_code(0);
    verb(site, &["pause"]).end().with_code(0);
    let moved = verb(site, &["move", "--to", "node-b"]).end().with_code(0);
    assert!(!moved.stderr.contains("waiting"), "{moved:?}");
    let mut terminal = Terminal::new(&site.store, &site.verb(&[]));
    let shown = terminal.run(&format!("t move -g {GROUP} --to node-b --when-idle"));
    assert!(!shown.contains("waiting"), "{shown}");
    let line = format!("t move -g {GROUP} --to node-b");
    terminal.line(&line);
    terminal.until("waiting until node-b may have it");
    terminal.until("Ctrl-C ends this wait; what was asked for stays in force");
    terminal.key(crate::support::ctrl('c'));
    terminal.prompt();
    assert_eq!(terminal.status(), 130);
    terminal.line(&line);
    terminal.until("waiting until node-b may have it");
    verb(site, &["resume"]).end().with_code(0);
    terminal.until("node-b may have ");
    terminal.prompt();
    assert_eq!(terminal.status(), 0);
}

fn a_move_is_over_when_the_client_runs(site: &Site) {
    let held = run(site, "node-a").start();
    site.store.until_begun("node-a");
    // It waits in the queue, so that the store knows it, and takes the token between two looks.
    let next = run(site, "node-b").with(&["--wait"]).start();
    until(
        "node-b is in the queue",
        || match &status(site)["waiters"] {
            waiters if waiters.as_u64() > Some(0) => Ok(()),
            waiters => Err(format!("{waiters}: {}", next.stderr())),
        },
    );
    let moved = verb(site, &["move", "--to", "node-b", "--wait"]).end();
    let moved = moved.with_code(0);
    assert!(!moved.stderr.contains("never seen"), "{moved:?}");
    assert!(
        moved.stderr.contains("node-b runs \"job\"")
            || moved.stderr.contains("node-b may have \"job\""),
        "{moved:?}"
    );
    held.end().with_code(76);
    site.store.until_begun("node-b");
    site.store.go(0);
    next.end().with_code(0);
    site.store.assert_no_overlap();
}

fn an_agent_gives_way_to_a_move_and_waits_again(site: &Site) {
    with_node_b(site);
    let words = ["hold", "--client-id", "node-a", "--heartbeat", "300ms"];
    let agent = verb(site, &words).start();
    agent.until_says("node-a has the token of \"job\"");
    let moved = verb(site, &["move", "--to", "node-b", "--wait"]).end();
    moved.with_code(0).tells(&["may have \"job\""]);
    run(site, "node-b")
        .with(&["--keep=0"])
        .job(&["true"])
        .end()
        .with_code(0);
    crate::support::until("the agent has the token again", || {
        match agent.stderr().matches("node-a has the token of").count() {
            0 | 1 => Err(agent.stderr()),
            _ => Ok(()),
        }
    });
    agent.signal(Signal::SIGTERM);
    agent.end().with_code(0);
}

fn a_revoke_can_wait_for_the_end_of_the_job(site: &Site) {
    let held = run(site, "node-a").start();
    let job = site.store.until_begun("node-a");
    let revoked = awaited(site, &held, verb(site, &["revoke", "--wait"]));
    revoked.tells(&["node-a no longer holds \"job\"", "it is free"]);
    until_dead(job);
    held.end().with_code(76);
    // There is nothing to wait for.
    let again = verb(site, &["revoke", "--wait"]).end().with_code(0);
    again.tells(&["is not running"]);
}

fn a_revoke_of_a_dead_holder_waits_for_its_lease_alone(site: &Site) {
    let held = run(site, "node-a").start();
    let job = site.store.until_begun("node-a");
    held.signal(Signal::SIGKILL);
    held.end();
    until_dead(job);
    // Its locks prove on this host that it is dead.
    let revoked = verb(site, &["revoke", "--wait"]).end().with_code(0);
    revoked.tells(&["node-a is dead or silent", "other clients can have it"]);
}
