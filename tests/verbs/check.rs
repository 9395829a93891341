//! `check`: may this node run now? And has a run succeeded?

use crate::site::{GROUP, Site};
use crate::support::{TOKENRUN, until};

stories!(
    only_what_runs_under_the_holders_guard_may_run,
    a_lease_that_ends_too_soon_is_no_leave,
    a_revoked_session_may_not_run_on,
    monitoring_learns_whether_a_run_has_succeeded,
    an_unknown_group_is_a_no,
);

/// The question, as words for a shell.
fn check(site: &Site, more: &str) -> String {
    format!("{TOKENRUN} check -s '{}' -g {GROUP} {more}", site.url)
}

fn only_what_runs_under_the_holders_guard_may_run(site: &Site) {
    let script = format!("{} && echo yes", check(site, "--json"));
    let ended = site.run("node-a").script(&script).end().with_code(0);
    assert!(ended.stdout.ends_with("yes\n"), "{ended:?}");
    let json = ended.stdout.trim_end().trim_end_matches("yes");
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(json[0]["may_run"], true);
    let left = json[0]["trusted_for_ms"].as_u64().unwrap();
    assert!(left > 200_000 && left <= 240_000, "{json}");
    // Between two runs no node may, and during a run no other.
    let ended = site.verb(&["check", "-g", GROUP]).end().with_code(75);
    ended.says(&["is not running"]);
    let run = site.run("node-a").start();
    site.store.until_begun("node-a");
    let status = site.verb(&["status", "--json"]).end().with_code(0).json();
    let session = status[0]["session"].as_str().unwrap().to_owned();
    let leaked = site.verb(&["check", "-g", GROUP, "--json"]);
    let leaked = leaked.env("TOKENRUN_SESSION", session).end().with_code(75);
    leaked.says(&["held by another session"]);
    assert_eq!(leaked.json()[0]["why_not"], "not_ours");
    site.store.go(0);
    run.end().with_code(0);
}

fn a_lease_that_ends_too_soon_is_no_leave(site: &Site) {
    let script = format!(
        "{}; echo $?; {}",
        check(site, "--for 1h"),
        check(site, "--for 3m")
    );
    let ended = site.run("node-a").script(&script).end().with_code(0);
    assert_eq!(ended.stdout, "75\n");
    assert!(ended.stderr.contains("not for 1h"), "{ended:?}");
}

fn a_revoked_session_may_not_run_on(site: &Site) {
    let revoke = format!("{TOKENRUN} revoke -q -s '{}' -g {GROUP}", site.url);
    let script = format!("{revoke}; {}; echo $?", check(site, "-q"));
    let ended = site.run("node-a").script(&script).end().with_code(0);
    assert_eq!(ended.stdout, "75\n");
}

fn monitoring_learns_whether_a_run_has_succeeded(site: &Site) {
    site.run("node-a").script("exit 3").end().with_code(3);
    let within = |duration: &str| {
        let words = ["check", "-g", GROUP, "--succeeded-within", duration];
        site.verb(&words).end()
    };
    within("26h")
        .with_code(1)
        .says(&["no run of \"job\"", "1day 2h", "history knows of none"]);
    site.run("node-b").job(&["true"]).end().with_code(0);
    let ended = within("26h").with_code(0);
    assert_eq!(ended.messages(), Vec::<&str>::new());
    let ended = until("the success is old", || {
        let ended = within("300ms");
        match ended.code {
            Some(0) => Err(ended.stderr),
            _ => Ok(ended),
        }
    });
    ended.with_code(1).says(&["the last did at 20"]);
    let json = site.verb(&[
        "check",
        "-g",
        GROUP,
        "--json",
        "-q",
        "--succeeded-within",
        "1h",
    ]);
    let json = json.end().with_code(0).json();
    assert_eq!(json[0]["succeeded"], true);
    assert_eq!(json[0]["client"], "node-b");
    // Others that are refused, all of them, are what this finds.
    site.verb(&["pause", "-g", GROUP]).end().with_code(0);
    site.short("node-a").end().with_code(75);
    within("300ms").with_code(1);
}

fn an_unknown_group_is_a_no(site: &Site) {
    site.short("node-a").end().with_code(0);
    let none = site.verb(&["check", "-g", "nigthly"]).end().with_code(75);
    none.says(&["no group \"nigthly\""]);
    let words = ["check", "-g", "nigthly", "--succeeded-within", "1h"];
    site.verb(&words).end().with_code(75);
    let words = [
        "check",
        "-g",
        GROUP,
        "--succeeded-within",
        "1h",
        "--for",
        "1m",
    ];
    site.verb(&words).end().with_code(64);
}
