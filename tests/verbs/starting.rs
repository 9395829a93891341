//! A node that can't start the job: it keeps the token from no other, and history says why.

use std::fs::{Permissions, set_permissions, write};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::site::{GROUP, Site};
use crate::support::Line;

stories!(
    a_node_without_the_program_asks_for_no_token,
    a_group_whose_job_never_started_is_listed_as_trouble,
    a_start_that_fails_after_the_grant_gives_the_token_back,
);

/// A run whose grant would keep the token from others in two ways.
fn greedy(site: &Site, client: &str) -> Line {
    let line = site.run(client);
    line.with(&["--keep=1h", "--at-least=1h", "--report=report.json"])
}

fn history(site: &Site, more: &[&str]) -> Vec<Value> {
    let line = site.verb(&["history", "--json", "-g", GROUP]).with(more);
    let found = line.end().with_code(0).json();
    found.as_array().unwrap().clone()
}

fn status(site: &Site) -> Value {
    let line = site.verb(&["status", "--json", "-g", GROUP]);
    line.end().with_code(0).json()[0].take()
}

fn a_node_without_the_program_asks_for_no_token(site: &Site) {
    let kept = site.run("node-a").with(&["--keep=2s"]).job(&["true"]);
    kept.end().with_code(0);
    let plain = site.file("plain");
    write(&plain, "").unwrap();
    let plain = plain.to_str().unwrap();
    let before = status(site);
    for (program, code, says) in [
        (
            "/opt/missing",
            127,
            "/opt/missing: command not found (no such file)",
        ),
        (
            "missing-everywhere",
            127,
            "missing-everywhere: command not found",
        ),
        (plain, 126, "can't be executed: Permission denied"),
        ("/", 126, "can't be executed: Permission denied"),
    ] {
        let ended = greedy(site, "node-b")
            .with(&["--wait"])
            .job(&[program])
            .end();
        ended.with_code(code).says(&[says]);
    }
    let report = std::fs::read_to_string(site.file("report.json")).unwrap();
    assert!(report.contains("\"outcome\": \"not_started\""), "{report}");
    assert!(report.contains("\"tokenrun_exit_code\": 126"), "{report}");
    let mut after = status(site);
    after["observed_until"] = before["observed_until"].clone();
    // The last try ran no job: that is trouble, and the reason is shown.
    let why = after["not_started"].take();
    assert!(
        why.as_str().unwrap().starts_with("node-b could not start "),
        "{why}"
    );
    let troubled = site.verb(&["status", "--state", "failed", "--exit-code"]);
    let troubled = troubled.end().with_code(1).stdout;
    assert!(troubled.contains("node-b could not start "), "{troubled}");
    let page = site
        .verb(&["page", "--output", "-"])
        .end()
        .with_code(0)
        .stdout;
    assert!(page.contains("node-b could not start "), "{page}");
    assert_eq!(after, before);
    let table = site
        .verb(&["history", "-g", GROUP])
        .end()
        .with_code(0)
        .stdout;
    assert!(
        table.contains("node-b could not start /opt/missing: no such file"),
        "{table}"
    );
    let found = history(site, &[]);
    let failed: Vec<_> = found
        .iter()
        .filter(|it| it["refused"] == "not_started")
        .collect();
    assert_eq!(failed.len(), 4, "{found:?}");
    assert_eq!(history(site, &["--outcome=succeeded"]).len(), 1);
    assert_eq!(history(site, &["--outcome=not_started"]).len(), 4);
    let metrics = site.verb(&["metrics"]).end().with_code(0).stdout;
    assert!(metrics.contains("reason=\"not_started\"} 4"), "{metrics}");
    // A healthy node is not held up by it.
    let healthy = site.run("node-c").with(&["--wait"]).job(&["true"]);
    healthy.end().with_code(0);
}

/// Such a group has no row: its token was never granted. A store must exist for its history.
fn a_group_whose_job_never_started_is_listed_as_trouble(site: &Site) {
    site.short_in("other").end().with_code(0);
    let first = site.in_group("first", "node-b").job(&["/opt/missing"]);
    first.end().with_code(127);
    let why = "could not start /opt/missing: no such file";
    let says = |words: &[&str], code| {
        let text = site.verb(words).end().with_code(code).stdout;
        assert!(text.contains(why), "{words:?}: {text}");
        text
    };
    says(&["history", "-g", "first"], 0);
    says(&["explain", "-g", "first", "--since=1h"], 0);
    let explained = site.verb(&["explain", "-g", "first", "--client-id=node-a"]);
    explained.end().with_code(0);
    let check = site.verb(&["check", "-g", "first"]);
    check.end().with_code(75).says(&["is not running"]);
    says(&["status", "--state", "failed", "--exit-code"], 1);
    says(&["status", "-g", "first"], 0);
    says(&["page", "--output", "-", "-g", "first"], 0);
    let listed = says(&["status", "--json", "-g", "first"], 0);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["state"], "free");
    assert_eq!(listed[0]["fence"], 0);
    let metrics = site.verb(&["metrics", "-g", "first"]).end().with_code(0);
    let counted = "tokenrun_refusals_total{group=\"first\",reason=\"not_started\"} 1";
    assert!(metrics.stdout.contains(counted), "{}", metrics.stdout);
    let check = site.verb(&["check", "--all", "--succeeded-within=1h"]);
    let checked = check.end().with_code(1);
    let trouble = "no run of \"first\" in ";
    assert!(checked.stderr.contains(trouble), "{}", checked.stderr);
}

/// The look at the file finds nothing wrong. The kernel does.
fn a_start_that_fails_after_the_grant_gives_the_token_back(site: &Site) {
    let script = site.file("script");
    write(&script, "#!/nowhere/interpreter\n").unwrap();
    set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    let script = script.to_str().unwrap();
    site.run("node-a")
        .with(&["--keep=1h"])
        .job(&["true"])
        .end()
        .with_code(0);
    site.verb(&["move", "--when-idle", "-g", GROUP, "--to", "node-b"])
        .end()
        .with_code(0);
    let ended = greedy(site, "node-b").job(&[script]).end().with_code(127);
    ended.says(&["command not found (no such file, or its interpreter is missing)"]);
    let after = status(site);
    assert_eq!(
        (&after["state"], &after["client"]),
        (&"idle".into(), &"node-a".into())
    );
    assert_eq!(after["handoff_to"], "node-b");
    assert_eq!(after["not_before"], Value::Null);
    let kept = after["keep_ms"].as_u64().unwrap();
    assert!((3_000_000..=3_600_000).contains(&kept), "{after}");
    let why = format!("could not start {script}: no such file, or its interpreter is missing");
    let table = site
        .verb(&["history", "-g", GROUP])
        .end()
        .with_code(0)
        .stdout;
    assert!(table.contains(&format!("node-b {why}")), "{table}");
    let found = history(site, &["--outcome=not_started"]);
    assert_eq!((found.len(), &found[0]["reason"]), (1, &why.into()));
    // A group whose first run can't start is free, not bound.
    let first = site
        .in_group("new", "node-b")
        .with(&["--keep=1h", "--at-least=1h"]);
    first.job(&[script]).end().with_code(127);
    let next = site.in_group("new", "node-c").job(&["true"]);
    next.end().with_code(0);
}
