//! `explain`: the clause that decides for a client now, and when that changes.

use serde_json::Value;

use crate::site::{GROUP, Site};
use crate::support::until;

stories!(
    explain_names_the_clause_and_when_it_changes,
    a_kept_token_is_renewed_by_its_client_and_refused_to_others,
    a_paused_group_changes_by_the_clock_or_by_an_act,
    a_dead_run_is_open_on_its_own_host,
    a_head_start_is_of_the_client_that_the_token_is_handed_off_to,
    explaining_writes_nothing,
);

fn explain(site: &Site, client: &str) -> Value {
    let line = site.verb(&["explain", "--json", "-g", GROUP, "--client-id", client]);
    line.end().with_code(0).json()[0].take()
}

fn explain_names_the_clause_and_when_it_changes(site: &Site) {
    let run = site.run("node-a").start();
    site.store.until_begun("node-a");
    let shown = explain(site, "node-b");
    assert_eq!(shown["clause"], 4);
    assert_eq!(shown["verdict"], "refused");
    assert_eq!(shown["refused"], "held");
    assert!(
        shown["because"].as_str().unwrap().contains("node-a"),
        "{shown}"
    );
    let left = shown["changes_in_ms"].as_u64().unwrap();
    assert!(left > 200_000 && left <= 300_000, "{shown}");
    // On this host it can be seen that the run is alive.
    assert_eq!(shown["then_clause"], 5);
    let mut names: Vec<_> = shown.as_object().unwrap().keys().collect();
    names.sort();
    assert_eq!(
        names,
        [
            "because",
            "changes_at",
            "changes_in_ms",
            "clause",
            "client",
            "command",
            "grant",
            "group",
            "now",
            "refused",
            "rule",
            "then_clause",
            "verdict"
        ]
    );
    let text = site
        .verb(&["explain", "-g", GROUP, "--client-id", "node-b"])
        .end();
    let text = text.with_code(0).stdout;
    for words in [
        "node-b is refused \"job\" now (held)",
        "Clause 4",
        "then node-b is refused still, as something of the old run is alive on this host",
        "To end that job: tokenrun revoke -g job\n",
    ] {
        assert!(text.contains(words), "{text}");
    }
    site.store.go(0);
    run.end().with_code(0);
    assert_eq!(explain(site, "node-b")["clause"], 15);
}

fn a_kept_token_is_renewed_by_its_client_and_refused_to_others(site: &Site) {
    site.short("node-a").with(&["--keep=1h"]).end().with_code(0);
    let own = explain(site, "node-a");
    assert_eq!(
        (&own["clause"], &own["grant"]),
        (&11.into(), &"renew".into())
    );
    assert_eq!(own["changes_in_ms"], Value::Null);
    assert_eq!(own["command"], Value::Null);
    let other = explain(site, "node-b");
    assert_eq!(
        (&other["clause"], &other["refused"]),
        (&13.into(), &"bound".into())
    );
    assert_eq!(other["then_clause"], 16);
    let handoff = site.verb(&["move", "--when-idle", "-g", GROUP, "--to", "node-b"]);
    handoff.end().with_code(0);
    assert_eq!(explain(site, "node-b")["clause"], 8);
    assert_eq!(explain(site, "node-a")["clause"], 9);
    assert_eq!(explain(site, "node-a")["verdict"], "wait");
}

fn a_paused_group_changes_by_the_clock_or_by_an_act(site: &Site) {
    site.short("node-a").end().with_code(0);
    site.verb(&["pause", "-g", GROUP]).end().with_code(0);
    let shown = explain(site, "node-a");
    assert_eq!(
        (&shown["clause"], &shown["changes_in_ms"]),
        (&6.into(), &Value::Null)
    );
    assert_eq!(shown["command"], "tokenrun resume -g job");
    // A longer pause would stay.
    site.verb(&["resume", "-g", GROUP]).end().with_code(0);
    let pause = site.verb(&["pause", "-g", GROUP, "--for", "1h"]);
    pause.end().with_code(0);
    let shown = explain(site, "node-a");
    assert!(
        shown["changes_in_ms"].as_u64().unwrap() > 3_500_000,
        "{shown}"
    );
    assert_eq!(shown["then_clause"], 15);
}

fn a_dead_run_is_open_on_its_own_host(site: &Site) {
    let run = site.run("node-a").start();
    site.store.until_begun("node-a");
    let guard = run.guard();
    run.signal(nix::sys::signal::Signal::SIGKILL);
    crate::support::until_dead(guard);
    site.store.until_job_gone();
    run.end();
    let shown = explain(site, "node-b");
    assert_eq!(
        (&shown["clause"], &shown["verdict"]),
        (&16.into(), &"wait".into())
    );
    assert_eq!(explain(site, "node-a")["grant"], "renew");
}

fn a_head_start_is_of_the_client_that_the_token_is_handed_off_to(site: &Site) {
    let keeping = site
        .short("node-a")
        .with(&["--keep=1ms", "--head-start=1h"]);
    keeping.end().with_code(0);
    let because = || {
        let shown = until("its keep is over", || match explain(site, "node-c") {
            shown if shown["verdict"] == "wait" => Ok(shown),
            other => Err(other.to_string()),
        });
        shown["because"].as_str().unwrap().to_owned()
    };
    assert!(because().starts_with("The head start of node-a is"));
    let handoff = ["move", "--when-idle", "-g", GROUP, "--to", "node-b"];
    site.verb(&handoff).end().with_code(0);
    let text = because();
    assert!(text.starts_with("The head start of node-b is"), "{text}");
}

fn explaining_writes_nothing(site: &Site) {
    let unknown = site.verb(&["explain", "-g", GROUP, "--client-id", "a"]);
    // On PostgreSQL the first look at a store makes its tables.
    unknown.end().with_code(78);
    site.short("node-a").end().with_code(0);
    let status = || {
        let line = site.verb(&["status", "--json", "-g", GROUP]);
        line.end().with_code(0).json()[0].take()
    };
    let before = status();
    explain(site, "node-b");
    assert_eq!(status(), before);
    let history = site.verb(&["history", "--json"]).end().with_code(0).json();
    assert_eq!(history.as_array().unwrap().len(), 1);
    let unknown = site.verb(&["explain", "-g", "nigthly"]).end().with_code(78);
    unknown.says(&["no group \"nigthly\""]);
}
