//! Acts of operators on a token: the nodes and history show each act.

use serde_json::Value;

use crate::site::{GROUP, Site};
use crate::support::{Line, until_dead};

stories!(
    a_paused_group_starts_nothing_and_a_running_job_goes_on,
    a_pause_for_a_while_ends_by_itself,
    a_handoff_takes_effect_when_the_token_is_idle,
    a_revoked_holder_ends_its_job_and_another_runs_without_overlap,
    an_idle_token_is_freed_and_a_running_one_only_by_force,
    the_expected_client_is_changed_and_cleared,
    history_names_the_operators_of_acts,
    nothing_is_changed_where_there_is_nothing_to_do,
    an_unknown_group_is_said_and_not_made,
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

fn acts(site: &Site) -> Vec<Value> {
    let ended = verb(site, &["history", "--json"]).end().with_code(0);
    let all = ended.json().as_array().unwrap().clone();
    let is_act = |entry: &Value| entry.get("act").is_some();
    all.into_iter().filter(is_act).collect()
}

fn a_paused_group_starts_nothing_and_a_running_job_goes_on(site: &Site) {
    let held = run(site, "node-a").start();
    site.store.until_begun("node-a");
    let pause = ["pause", "--reason", "database migration"];
    verb(site, &pause).end().with_code(0).says(&[
        "is paused until tokenrun resume",
        "the job of node-a goes on",
    ]);
    assert!(site.store.is_job_alive());
    site.store.go(0);
    held.end().with_code(0);
    for client in ["node-a", "node-b"] {
        let refused = run(site, client).job(&["true"]).end().with_code(75);
        refused.says(&["is paused by", "database migration", "until it is resumed"]);
    }
    assert_eq!(status(site)["paused_reason"], "database migration");
    verb(site, &["resume"])
        .end()
        .with_code(0)
        .says(&["is resumed"]);
    run(site, "node-a").job(&["true"]).end().with_code(0);
}

fn a_pause_for_a_while_ends_by_itself(site: &Site) {
    site.short("node-a").end().with_code(0);
    let words = ["pause", "--for", "2s"];
    verb(site, &words)
        .end()
        .with_code(0)
        .says(&["is paused until 20"]);
    site.short("node-a").end().with_code(75);
    crate::support::until("the pause is over", || {
        let ended = site.short("node-b").end();
        match ended.code {
            Some(75) => Err(ended.stderr),
            _ => Ok(ended.with_code(0)),
        }
    });
}

fn a_handoff_takes_effect_when_the_token_is_idle(site: &Site) {
    let held = run(site, "node-a").start();
    site.store.until_begun("node-a");
    verb(site, &["move", "--when-idle", "--to", "node-b"])
        .end()
        .with_code(0)
        .tells(&["goes to node-b when the job of node-a has ended"]);
    run(site, "node-b").job(&["true"]).end().with_code(75);
    site.store.go(0);
    held.end().with_code(0);
    // node-a's keep of an hour does not hold node-b off.
    let taken = run(site, "node-b").script("echo $TOKENRUN_GRANT $TOKENRUN_PREVIOUS_CLIENT");
    assert_eq!(taken.end().with_code(0).stdout, "handoff node-a\n");
    run(site, "node-a").job(&["true"]).end().with_code(75);
    assert_eq!(status(site)["client"], "node-b");
    assert_eq!(status(site)["handoff_to"], Value::Null);
}

fn a_revoked_holder_ends_its_job_and_another_runs_without_overlap(site: &Site) {
    let held = run(site, "node-a").start();
    let job = site.store.until_begun("node-a");
    verb(site, &["revoke", "--reason", "wrong parameters"])
        .end()
        .with_code(0)
        .says(&["node-a is asked to end its job", "next heartbeat"]);
    let ended = held.end().with_code(76);
    assert!(ended.stderr.contains("an operator revoked"), "{ended:?}");
    until_dead(job);
    assert!(!site.store.is_job_alive());
    assert_eq!(status(site)["state"], "free");
    let next = run(site, "node-b").start();
    site.store.until_begun("node-b");
    site.store.go(0);
    next.end().with_code(0);
    site.store.assert_no_overlap();
    let ended = verb(site, &["history", "--json", "--client", "node-a"]).end();
    let revoked = &ended.with_code(0).json()[0];
    assert_eq!(
        (&revoked["outcome"], &revoked["revoked"]),
        (&"lost".into(), &true.into())
    );
    assert_eq!(status(site)["losses"], 0);
}

fn an_idle_token_is_freed_and_a_running_one_only_by_force(site: &Site) {
    let held = run(site, "node-a").start();
    let job = site.store.until_begun("node-a");
    let refused = verb(site, &["release"]).end().with_code(75);
    refused.says(&["is running on node-a and was not freed", "--force"]);
    assert_eq!(status(site)["state"], "running");
    let forced = verb(site, &["release", "--force", "--json"])
        .end()
        .with_code(0);
    forced.says(&["it may still run until", "beside the next one"]);
    let forced = &forced.json()[0];
    assert_eq!(forced["act"], "release_by_force");
    assert!(forced["old_job_until"].as_str().unwrap().ends_with('Z'));
    let ended = held.end().with_code(76);
    assert!(
        ended.stderr.contains("no longer has the token"),
        "{ended:?}"
    );
    until_dead(job);
    // An idle one is freed at once, and another need not wait for its keep.
    run(site, "node-a").job(&["true"]).end().with_code(0);
    run(site, "node-b").job(&["true"]).end().with_code(75);
    verb(site, &["release"])
        .end()
        .with_code(0)
        .says(&["is free", "belonged to node-a"]);
    run(site, "node-b").job(&["true"]).end().with_code(0);
}

fn the_expected_client_is_changed_and_cleared(site: &Site) {
    site.short("node-a").end().with_code(0);
    verb(site, &["expect", "node-b"]).end().with_code(0);
    assert_eq!(status(site)["expected_client"], "node-b");
    // It belongs to no client: the expected client comes first, the other waits its head start.
    let waited = site.short("node-a").with(&["--head-start=1s"]).end();
    let waited = waited.with_code(0);
    assert!(
        waited.stderr.contains("leaving node-b a head start"),
        "{waited:?}"
    );
    verb(site, &["expect", "--clear"]).end().with_code(0);
    assert_eq!(status(site)["expected_client"], Value::Null);
    assert_eq!(acts(site).len(), 2);
}

fn history_names_the_operators_of_acts(site: &Site) {
    run(site, "node-a").job(&["true"]).end().with_code(0);
    for words in [
        &["pause", "--for", "1h", "--reason", "it's \"now\""][..],
        &["resume"],
        &["move", "--when-idle", "--to", "node-b"],
        &["release"],
    ] {
        verb(site, words).end().with_code(0);
    }
    let acts = acts(site);
    let words: Vec<_> = acts
        .iter()
        .map(|act| act["act"].as_str().unwrap())
        .collect();
    assert_eq!(words, ["release", "handoff", "resume", "pause"]);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for act in &acts {
        let mut names: Vec<_> = act.as_object().unwrap().keys().collect();
        names.sort();
        assert_eq!(
            names,
            [
                "act",
                "at",
                "by",
                "client",
                "fence",
                "group",
                "host",
                "incarnation",
                "once_key",
                "reason",
                "until"
            ]
        );
        assert_eq!(act["host"], host.trim());
        assert!(!act["by"].as_str().unwrap().is_empty());
        assert!(act["at"].as_str().unwrap().ends_with('Z'));
    }
    assert_eq!(acts[0]["client"], "node-a");
    assert_eq!(acts[1]["client"], "node-b");
    assert_eq!(acts[3]["reason"], "it's \"now\"");
    assert!(acts[3]["until"].as_str().unwrap().ends_with('Z'));
    let table = verb(site, &["history"]).end().with_code(0).stdout;
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines.len(), 6, "{table}");
    assert!(
        lines[4].contains("pause") && lines[4].contains("it's \"now\""),
        "{table}"
    );
    assert!(lines[5].contains("succeeded"), "{table}");
    // What is asked of runs shows runs.
    let runs = verb(site, &["history", "--json", "--outcome", "succeeded"]).end();
    assert_eq!(runs.with_code(0).json().as_array().unwrap().len(), 1);
}

fn nothing_is_changed_where_there_is_nothing_to_do(site: &Site) {
    site.short("node-a").end().with_code(0);
    for (words, said) in [
        (&["resume"][..], "is not paused"),
        (&["revoke"], "is not running"),
        (&["release"], "is free already"),
        (&["release", "--force"], "is free already"),
        (&["expect", "--clear"], "no client is expected"),
    ] {
        let ended = verb(site, words).with(&["--json"]).end().with_code(0);
        ended.says(&[said, "nothing was changed"]);
        assert_eq!(ended.stdout, "[]\n");
    }
    assert_eq!(acts(site), Vec::<Value>::new());
}

fn an_unknown_group_is_said_and_not_made(site: &Site) {
    site.short("node-a").end().with_code(0);
    for words in [
        &["pause"][..],
        &["resume"],
        &["revoke"],
        &["release", "--force"],
        &["expect", "--clear"],
        &["move", "--when-idle", "--to", "node-b"],
        &["history"],
        &["status"],
    ] {
        let ended = site.verb(words).with(&["-g", "nigthly"]).end();
        let ended = ended.with_code(78);
        ended.says(&["has no group \"nigthly\"", "tokenrun status"]);
        assert_eq!(ended.stdout, "");
    }
    let listed = site.verb(&["status", "--json"]).end().with_code(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
}
