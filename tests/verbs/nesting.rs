//! A run inside of a run of its own group, and what only looks like it.

use crate::site::{GROUP, Site};
use crate::support::TOKENRUN;

stories!(
    a_run_inside_of_a_run_of_its_group_has_its_lease,
    a_session_that_leaked_is_no_way_in,
    a_process_that_left_the_job_is_not_inside_any_more,
    once_is_refused_inside_of_a_run,
);

/// A nested run, as words for a shell.
fn nested(site: &Site, rest: &str) -> String {
    format!("{TOKENRUN} -s '{}' -g {GROUP} {rest}", site.url)
}

fn a_run_inside_of_a_run_of_its_group_has_its_lease(site: &Site) {
    let report = site.file("inner.json");
    let rest = format!(
        "--report {} -- sh -c 'echo inner $TOKENRUN_SESSION; exit 7'",
        report.display()
    );
    let inner = nested(site, &rest);
    let script = format!("echo outer $TOKENRUN_SESSION; {inner}; echo $?");
    let ended = site.run("node-a").script(&script).end().with_code(0);
    let words: Vec<&str> = ended.stdout.split_whitespace().collect();
    assert_eq!((words[0], words[2], words[4]), ("outer", "inner", "7"));
    assert_eq!(words[1], words[3]);
    let history = site.verb(&["history", "--json"]).end().with_code(0).json();
    assert_eq!(history.as_array().unwrap().len(), 1);
    let report = std::fs::read_to_string(report).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["outcome"], "failed");
    assert_eq!(report["recorded"], serde_json::Value::Null);
}

fn a_session_that_leaked_is_no_way_in(site: &Site) {
    let first = site.run("node-a").start();
    site.store.until_begun("node-a");
    let status = site.verb(&["status", "--json"]).end().with_code(0).json();
    let session = status[0]["session"].as_str().unwrap().to_owned();
    for (client, holder) in [
        ("node-a", "node-a, in an earlier run"),
        ("node-b", "node-a"),
    ] {
        let line = site.run(client).job(&["touch", "ran"]);
        let ended = line.env("TOKENRUN_SESSION", &session).end().with_code(75);
        ended.says(&[&format!("\"job\" is held by {holder}")]);
    }
    assert!(!site.file("ran").exists());
    site.store.go(0);
    first.end().with_code(0);
}

/// A daemon that was let be has the environment, and no guard above it.
fn a_process_that_left_the_job_is_not_inside_any_more(site: &Site) {
    let inner = nested(site, "-- touch ran");
    let daemon = format!("until read -r word < go; do :; done; {inner}; echo \\$? > code");
    let script = format!("setsid sh -c \"{daemon}\" < /dev/null > /dev/null 2>&1 & exit 0");
    let left = site.run("node-a").with(&["--leftovers", "leave"]);
    left.script(&script).end().with_code(0);
    let held = site
        .run("node-b")
        .script("until read -r w < held; do :; done");
    nix::unistd::mkfifo(
        &site.file("held"),
        nix::sys::stat::Mode::from_bits_truncate(0o600),
    )
    .unwrap();
    let held = held.start();
    crate::support::until("node-b has it", || {
        let status = site.verb(&["status", "--json"]).end().json();
        let client = status[0]["client"].to_string();
        (client == "\"node-b\"").then_some(()).ok_or(client)
    });
    site.store.go(0);
    let code = site.store.until_line("code");
    assert_eq!(code, "75\n");
    assert!(!site.file("ran").exists());
    std::fs::write(site.file("held"), "go\n").unwrap();
    held.end().with_code(0);
}

fn once_is_refused_inside_of_a_run(site: &Site) {
    let inner = nested(site, "--once k -- touch ran");
    let ended = site.run("node-a").script(&inner).end().with_code(78);
    assert!(
        ended.stderr.contains("--once needs a run of its own"),
        "{ended:?}"
    );
    assert!(!site.file("ran").exists());
}
