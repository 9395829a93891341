//! A node is taken out of service: `pause --client`, `move --from` and `status --client`.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::site::{GROUP, Site};
use crate::support::{Line, Run, until_dead};

stories!(
    clause_6_a_paused_client_gets_no_token_of_any_group,
    a_waiter_whose_client_is_paused_is_not_granted,
    a_node_is_drained_and_comes_back,
    a_token_moves_away_from_a_node_to_any_other,
    all_tokens_of_a_node_go_to_another,
    a_revoke_of_a_paused_clients_run_waits_for_its_end,
    after_a_failed_run_another_client_comes_first,
);

/// The options of a run that keeps its token, and whose heart beats fast.
const FAST: [&str; 3] = ["--keep=1h", "--heartbeat=300ms", "--kill-grace=500ms"];

fn run(site: &Site, group: &str, client: &str) -> Line {
    site.in_group(group, client).with(&FAST)
}

/// A run of node-a with a long job.
fn held(site: &Site) -> Run {
    site.run("node-a").with(&FAST).start()
}

fn succeeded(line: Line) {
    line.job(&["true"]).end().with_code(0);
}

fn status(site: &Site, words: &[&str]) -> Vec<Value> {
    let line = site.verb(&["status", "--json"]).with(words);
    let ended = line.end().with_code(0);
    ended.json().as_array().unwrap().clone()
}

fn clause_6_a_paused_client_gets_no_token_of_any_group(site: &Site) {
    for group in [GROUP, "other"] {
        succeeded(run(site, group, "node-a"));
    }
    let pause = ["pause", "--client", "node-a", "--reason", "new disk"];
    let paused = site.verb(&pause).end().with_code(0);
    paused.says(&[
        "\"node-a\" gets no token in ",
        "until it is resumed",
        "move --from",
    ]);
    for group in [GROUP, "other", "never-seen"] {
        let refused = run(site, group, "node-a")
            .job(&["true"])
            .end()
            .with_code(75);
        refused.says(&["node-a gets no token in ", "it is paused by ", "(new disk)"]);
    }
    // Its groups go on elsewhere, after what they are kept for.
    site.verb(&["release", "-g", GROUP]).end().with_code(0);
    succeeded(run(site, GROUP, "node-b"));
    let explained = site.verb(&["explain", "--json", "-g", "other", "--client-id", "node-a"]);
    let explained = explained.end().with_code(0).json()[0].take();
    assert_eq!(explained["refused"], "client_paused");
    assert_eq!(explained["clause"], 6);
    let shown = status(site, &["-g", "other"]);
    assert_eq!(shown[0]["client_paused_reason"], "new disk");
    let of_client = status(site, &["--client", "node-a"]);
    assert_eq!(of_client.len(), 1, "{of_client:?}");
    assert_eq!(of_client[0]["group"], "other");
    let refusals = ["history", "--refusals", "--json", "-g", "other"];
    let refusals = site.verb(&refusals).end().with_code(0).json();
    assert!(refusals.to_string().contains("client_paused"), "{refusals}");
    // A shorter pause changes nothing, and the end of it is an act too.
    let shorter = site
        .verb(&["pause", "--client", "node-a", "--for", "1h"])
        .end();
    shorter.with_code(0).says(&["stays paused", "no shorter"]);
    let resume = ["resume", "--client", "node-a", "--json"];
    let resumed = site.verb(&resume).end().with_code(0).json();
    assert_eq!(resumed[0]["act"], "resume_client");
    assert_eq!(resumed[0]["client"], "node-a");
    let again = site.verb(&resume).end().with_code(0);
    again.says(&["\"node-a\" in ", "is not paused; nothing was changed"]);
    succeeded(run(site, "other", "node-a"));
}

fn a_waiter_whose_client_is_paused_is_not_granted(site: &Site) {
    // A waiter has looked, and looks again when the token is free: by then its client is paused.
    let held = held(site);
    site.store.until_begun("node-a");
    let waiting = run(site, GROUP, "node-b")
        .with(&["--wait=6s"])
        .job(&["true"])
        .start();
    waiting.until_says("waiting in the queue");
    site.verb(&["pause", "--client", "node-b"])
        .end()
        .with_code(0);
    site.verb(&["move", "-g", GROUP, "--any"])
        .end()
        .with_code(0);
    held.end().with_code(76);
    let refused = waiting.end().with_code(75);
    refused.tells(&["node-b gets no token in "]);
}

fn a_node_is_drained_and_comes_back(site: &Site) {
    let held = held(site);
    let job = site.store.until_begun("node-a");
    succeeded(run(site, "other", "node-a"));
    site.verb(&["pause", "--client", "node-a"])
        .end()
        .with_code(0);
    assert!(site.store.is_job_alive());
    // Without a terminal a selection by client needs --yes, as a pattern does.
    let moved = ["move", "--from", "node-a", "--any", "--wait"];
    site.verb(&moved)
        .end()
        .with_code(64)
        .says(&["--from", "--yes"]);
    let moved = site
        .verb(&moved)
        .with(&["--yes", "--json"])
        .end()
        .with_code(0);
    let acts = moved.json();
    let acts = acts.as_array().unwrap();
    assert_eq!(acts.len(), 2);
    assert!(
        acts.iter()
            .all(|act| act["act"] == "move_away" && act["client"] == "node-a")
    );
    until_dead(job);
    held.end().with_code(76);
    for group in [GROUP, "other"] {
        let shown = status(site, &["-g", group]);
        assert_eq!(
            (&shown[0]["state"], &shown[0]["gives_way"]),
            (&"free".into(), &"node-a".into())
        );
        succeeded(run(site, group, "node-b"));
        assert_eq!(status(site, &["-g", group])[0]["gives_way"], Value::Null);
    }
    let again = site
        .verb(&["move", "--from", "node-a", "--any", "--yes"])
        .end();
    again.with_code(0).says(&["\"node-a\" has no token in "]);
    site.verb(&["resume", "--client", "node-a"])
        .end()
        .with_code(0);
    site.store.assert_no_overlap();
}

fn a_token_moves_away_from_a_node_to_any_other(site: &Site) {
    let at_least = |client: &str| run(site, GROUP, client).with(&["--at-least=1h"]);
    succeeded(at_least("node-a"));
    let moved = site
        .verb(&["move", "-g", GROUP, "--any"])
        .end()
        .with_code(0);
    moved.says(&["belongs to no client now", "any other than node-a"]);
    // The time of --at-least goes on.
    let refused = at_least("node-b").job(&["true"]).end().with_code(75);
    refused.says(&["ran too recently"]);
    site.verb(&["release", "-g", GROUP]).end().with_code(0);
    // Both or neither of --to and --any is a mistake, and so is no group.
    for words in [
        &["-g", GROUP][..],
        &["-g", GROUP, "--to", "b", "--any"],
        &["--any"],
    ] {
        site.verb(&["move"]).with(words).end().with_code(64);
    }
    let unknown = site
        .verb(&["move", "--from", "nod-a", "--any", "--yes"])
        .end();
    unknown
        .with_code(78)
        .says(&["has never seen the client \"nod-a\"", "nothing was changed"]);
}

fn all_tokens_of_a_node_go_to_another(site: &Site) {
    succeeded(run(site, "known", "node-b"));
    for group in [GROUP, "other"] {
        succeeded(run(site, group, "node-a"));
    }
    let moved = [
        "move", "--from", "node-a", "--to", "node-b", "--yes", "--json",
    ];
    let moved = site.verb(&moved).end().with_code(0).json();
    assert_eq!(moved.as_array().unwrap().len(), 2);
    for group in [GROUP, "other"] {
        succeeded(run(site, group, "node-b"));
    }
}

fn a_revoke_of_a_paused_clients_run_waits_for_its_end(site: &Site) {
    let held = held(site);
    let job = site.store.until_begun("node-a");
    site.verb(&["pause", "--client", "node-a"])
        .end()
        .with_code(0);
    let revoke = ["revoke", "-g", GROUP, "--wait"];
    site.verb(&revoke).end().with_code(0);
    until_dead(job);
    held.end().with_code(76);
}

fn after_a_failed_run_another_client_comes_first(site: &Site) {
    let moving = |client: &str| {
        let line = site.in_group(GROUP, client);
        line.with(&["--keep=0", "--move-on-failure", "--head-start=1h"])
    };
    succeeded(moving("node-a"));
    moving("node-a").job(&["false"]).end().with_code(1);
    let shown = status(site, &["-g", GROUP]);
    assert_eq!(shown[0]["gives_way"], "node-a");
    let history = site
        .verb(&["history", "--json", "-g", GROUP])
        .end()
        .with_code(0);
    assert_eq!(history.json()[0]["moved_on"], true);
    let shown = site
        .verb(&["history", "-g", GROUP])
        .end()
        .with_code(0)
        .stdout;
    assert!(
        shown.contains("node-a leaves the token to any other client"),
        "{shown}"
    );
    let explain = ["explain", "-g", GROUP, "--client-id", "node-a"];
    let explained = site.verb(&explain).end().with_code(0).stdout;
    assert!(
        explained.contains("It gives way, after a failed run"),
        "{explained}"
    );
    // The node whose run failed waits, and another comes at once.
    let failing = moving("node-a").job(&["true"]).start();
    failing.until_says("head start");
    succeeded(moving("node-b"));
    failing.signal(Signal::SIGTERM);
    failing.end();
    assert_eq!(status(site, &["-g", GROUP])[0]["gives_way"], Value::Null);
    // A job that succeeds keeps its client, and so does one without the option.
    site.in_group("plain", "node-a")
        .job(&["false"])
        .end()
        .with_code(1);
    assert_eq!(status(site, &["-g", "plain"])[0]["gives_way"], Value::Null);
}
