//! `check`: may this node run now? And has a run succeeded?

use crate::site::{GROUP, Site};
use crate::support::{TOKENRUN, until};

stories!(
    only_what_runs_under_the_holders_guard_may_run,
    a_lease_that_ends_too_soon_is_no_leave,
    a_revoked_session_may_not_run_on,
    monitoring_learns_whether_a_run_has_succeeded,
    an_unknown_group_is_a_no,
    many_groups_are_checked_at_once_and_the_worst_answer_counts,
    ;
    about tables:
    a_token_that_can_not_be_read_keeps_no_other_from_being_checked,
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
    within("26h")
        .with_code(0)
        .says(&["\"job\"", "succeeded on node-b"]);
    let quiet = site.verb(&["check", "-q", "-g", GROUP, "--succeeded-within", "26h"]);
    let ended = quiet.end().with_code(0);
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
    let none = site.verb(&words).end().with_code(1);
    none.says(&["no group \"nigthly\""]);
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

fn many_groups_are_checked_at_once_and_the_worst_answer_counts(site: &Site) {
    for group in ["etl-1", "etl-2"] {
        site.short_in(group).end().with_code(0);
    }
    let failing = site.in_group("web", "b").script("exit 3");
    failing.end().with_code(3);
    let check = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        site.verb(&["check", "--succeeded-within=1h"])
            .with(&words)
            .end()
    };
    let both = check("-g etl-1 -g etl-2").with_code(0);
    both.tells(&["\"etl-1\"", "succeeded on"]);
    assert_eq!(both.messages().len(), 2, "{both:?}");
    assert_eq!(check("-g etl-*").with_code(0).messages().len(), 2);
    let all = check("--all --json").with_code(1);
    let shown: Vec<_> = all.json().as_array().unwrap().clone();
    let answers = shown
        .iter()
        .map(|it| (it["group"].clone(), it["succeeded"].clone()));
    let answers: Vec<_> = answers.collect();
    let expected = [("etl-1", true), ("etl-2", true), ("web", false)];
    assert_eq!(answers, expected.map(|(name, it)| (name.into(), it.into())));
    // What is named in vain is trouble, and hides no other.
    let vain = check("-g etl-1 -g nigthly -g x* --json").with_code(1);
    vain.tells(&["\"etl-1\"", "no group \"nigthly\"", "matches \"x*\""]);
    assert_eq!(vain.json().as_array().unwrap().len(), 3);
    // The other question takes many groups, too.
    let may = site.verb(&["check", "--all", "-g", "web"]).end();
    may.with_code(64);
    let may = site.verb(&["check", "-g", "etl-?", "-g", "web", "--json"]);
    let may = may.end().with_code(75);
    assert_eq!(may.messages().len(), 3, "{may:?}");
    assert_eq!(may.json()[2]["why_not"], "not_held");
}

fn a_token_that_can_not_be_read_keeps_no_other_from_being_checked(site: &Site) {
    for group in ["a", "z"] {
        site.short_in(group).end().with_code(0);
    }
    site.set_in_document("tokens", "keep_ms", "-1", "token_group = 'a'");
    let words = ["check", "--all", "--succeeded-within=1h", "--json"];
    let ended = site.verb(&words).end().with_code(78);
    ended.tells(&["keep_ms", "\"z\""]);
    assert_eq!(ended.json()[0]["group"], "z");
    assert_eq!(ended.json()[0]["succeeded"], true);
}
