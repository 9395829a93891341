//! `history` and `status`: what is asked for, and nothing else.

use serde_json::Value;

use crate::site::{GROUP, Site};
use crate::support::until;

stories!(
    history_is_filtered_by_client_outcome_and_time,
    a_row_that_can_not_be_read_hides_no_other,
    a_run_that_vanished_is_found_as_unknown_and_not_as_running,
);

fn history(site: &Site, words: &[&str]) -> Vec<Value> {
    let line = site.verb(&["history", "--json"]).with(words);
    let json = line.end().with_code(0).json();
    json.as_array().unwrap().clone()
}

fn history_is_filtered_by_client_outcome_and_time(site: &Site) {
    for (client, code) in [("node-a", 0), ("node-b", 3), ("node-a", 4)] {
        let line = site.run(client).script(&format!("exit {code}"));
        line.end().with_code(code);
    }
    let clients = |words: &[&str]| {
        let found = history(site, words);
        let names = found.iter().map(|run| run["client"].as_str().unwrap());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(clients(&[]), "node-a node-b node-a");
    assert_eq!(clients(&["--client", "node-a"]), "node-a node-a");
    assert_eq!(clients(&["--outcome", "failed"]), "node-a node-b");
    assert_eq!(clients(&["--outcome", "failed", "--limit", "1"]), "node-a");
    assert_eq!(
        clients(&["--outcome", "failed", "--client", "node-b"]),
        "node-b"
    );
    assert_eq!(clients(&["--outcome", "timed_out"]), "");
    assert_eq!(
        clients(&["--since", "1h", "-g", GROUP]),
        "node-a node-b node-a"
    );
    assert_eq!(clients(&["--since", "0"]), "");
    let wrong = site
        .verb(&["history", "--outcome", "fine"])
        .end()
        .with_code(64);
    wrong.says(&["--outcome", "fine", "timed_out"]);
    // Another client's run shows whose token it was.
    let kept = site.run("node-a").with(&["--keep=1ms"]).job(&["true"]);
    kept.end().with_code(0);
    until("node-b has it", || {
        let ended = site.short("node-b").end();
        (ended.code == Some(0)).then_some(()).ok_or(ended.stderr)
    });
    let last = &history(site, &["--limit", "1"])[0];
    assert_eq!(last["grant"], "takeover");
    assert_eq!(last["previous_client"], "node-a");
}

fn a_run_that_vanished_is_found_as_unknown_and_not_as_running(site: &Site) {
    let run = site.run("node-a").start();
    site.store.until_begun("node-a");
    assert_eq!(history(site, &["--outcome", "running"]).len(), 1);
    assert_eq!(history(site, &["--outcome", "unknown"]).len(), 0);
    let release = site.verb(&["release", "--force", "-g", GROUP]);
    release.end().with_code(0);
    assert_eq!(history(site, &["--outcome", "running"]).len(), 0);
    assert_eq!(history(site, &["--outcome", "unknown"]).len(), 1);
    drop(run);
}

fn a_row_that_can_not_be_read_hides_no_other(site: &Site) {
    for group in ["good", "spoilt"] {
        let line = site.short("node-a").without(&["-g", GROUP]);
        line.with(&["-g", group]).end().with_code(0);
    }
    site.sql("UPDATE tokens SET keep_ms = -1 WHERE token_group = 'spoilt'");
    let ended = site.verb(&["status", "--json"]).end().with_code(78);
    ended.says(&["keep_ms", "negative"]);
    let groups = ended.json();
    assert_eq!(groups[0]["group"], "good");
    assert_eq!(groups[0]["state"], "free");
    assert_eq!(groups[1]["group"], "spoilt");
    assert_eq!(groups[1]["state"], "unreadable");
    assert!(groups[1]["error"].as_str().unwrap().contains("keep_ms"));
    let table = site.verb(&["status"]).end().with_code(78).stdout;
    assert!(
        table.contains("good ") && table.contains("unreadable"),
        "{table}"
    );
    let good = site.verb(&["status", "-g", "good"]).end().with_code(0);
    assert_eq!(good.stderr, "");
    site.verb(&["status", "-g", "spoilt"]).end().with_code(78);
    site.verb(&["pause", "-g", "spoilt"]).end().with_code(78);
}
