//! A store that may have forgotten a grant: what a run says and does, and what operators can.

use std::time::{Duration, Instant};

use crate::site::{GROUP, Site};
use crate::support::{Line, Terminal, until};

stories!(
    a_new_user_waits_for_nothing,
    a_distrusted_store_is_observed_by_one_shot_runs_too,
    a_settled_store_is_used_at_once,
    only_the_incarnation_that_was_shown_is_settled,
    a_judgement_needs_yes_where_no_person_can_be_asked,
    a_person_is_asked_before_a_judgement,
    the_first_grant_after_an_observation_has_a_fence_of_its_own,
    explain_says_that_the_store_is_observed_and_until_when,
    explain_reports_the_observation_for_an_unknown_group,
    status_and_metrics_say_that_the_store_is_observed,
    a_running_job_and_its_end_are_not_stopped,
);

/// The shortest takeover-after that these durations allow.
fn run(site: &Site, client: &str) -> Line {
    site.made().run(client).hasty().with(&["--heartbeat=300ms"])
}

/// The incarnation that a run says that it observes.
fn shown(text: &str) -> String {
    let (_, rest) = text.split_once("tokenrun settle ").expect(text);
    let end = rest.find(|c: char| c.is_whitespace()).unwrap_or(rest.len());
    rest[..end].to_owned()
}

fn a_new_user_waits_for_nothing(site: &Site) {
    let begun = Instant::now();
    let ended = site.short("a").end().with_code(0);
    assert_eq!(ended.messages(), [""; 0]);
    assert!(begun.elapsed() < Duration::from_secs(30));
}

fn a_distrusted_store_is_observed_by_one_shot_runs_too(site: &Site) {
    run(site, "a").job(&["true"]).end().with_code(0);
    let distrust = ["distrust", "--yes", "--reason", "a snapshot was put back"];
    let output = site.verb(&distrust).end().with_code(0);
    output.says(&["is distrusted", "nothing is granted"]);
    let begun = Instant::now();
    let ended = run(site, "a").job(&["true"]).end().with_code(0);
    ended.says(&[
        "may have forgotten a grant",
        "is distrusted by an operator",
        "(clause 0)",
    ]);
    assert!(
        begun.elapsed() > Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
    // What it has verified counts for those that follow.
    let ended = run(site, "b").job(&["true"]).end().with_code(0);
    assert_eq!(ended.messages(), [""; 0]);
    let history = site.verb(&["history", "--json"]).end().with_code(0).json();
    let mut acts = history.as_array().unwrap().iter();
    let act = acts.find(|entry| entry.get("act").is_some()).unwrap();
    assert_eq!(act["act"], "distrust");
    assert_eq!(act["reason"], "a snapshot was put back");
}

fn a_judgement_needs_yes_where_no_person_can_be_asked(site: &Site) {
    site.short("a").end().with_code(0);
    for line in [&["distrust"][..], &["settle", "another"]] {
        let words = format!("as in tokenrun {} --yes", line.join(" "));
        let refused = site.verb(line).end().with_code(64);
        refused.says(&["every group of the store", &words]);
    }
    let history = site.verb(&["history", "--json"]).end().with_code(0).json();
    assert_eq!(history.as_array().unwrap().len(), 1, "{history}");
}

fn a_person_is_asked_before_a_judgement(site: &Site) {
    site.short("a").end().with_code(0);
    let mut terminal = Terminal::new(&site.store, &site.verb(&[]));
    for (answer, says, code) in [
        ("no", "nothing was changed", 75),
        ("yes", "is distrusted", 0),
    ] {
        terminal.line("t distrust");
        terminal.until("no group is granted until every lease is over");
        terminal.until("[y/N] ");
        terminal.line(answer);
        terminal.until(says);
        terminal.prompt();
        assert_eq!(terminal.status(), code);
    }
    terminal.line("t settle another");
    terminal.until("is it certain that it has lost nothing? [y/N] ");
    terminal.line("no");
    terminal.prompt();
    assert_eq!(terminal.status(), 75);
}

fn a_settled_store_is_used_at_once(site: &Site) {
    site.short("a").end().with_code(0);
    site.verb(&["distrust", "--yes"]).end().with_code(0);
    // It would take five minutes.
    let waits = site.run("a").with(&["--heartbeat=200ms"]).job(&["true"]);
    let waits = waits.start();
    let incarnation = shown(&waits.until_says("tokenrun settle"));
    let settle = ["settle", "--yes", &incarnation, "--json"];
    let output = site.verb(&settle).end().with_code(0).json();
    assert_eq!(output[0]["act"], "settle");
    assert_eq!(output[0]["incarnation"], incarnation.as_str());
    waits.end().with_code(0);
    let again = site
        .verb(&["settle", "--yes", &incarnation])
        .end()
        .with_code(0);
    again.says(&["is trusted already", "nothing was changed"]);
}

fn only_the_incarnation_that_was_shown_is_settled(site: &Site) {
    site.short("a").end().with_code(0);
    let refused = site
        .verb(&["settle", "--yes", "another"])
        .end()
        .with_code(75);
    refused.says(&["and not another", "nothing was changed"]);
    let refused = site.verb(&["settle", "--yes", ""]).end().with_code(64);
    refused.says(&["the incarnation is empty"]);
}

/// The fence that a run has.
fn fence(site: &Site) -> i64 {
    let job = ["sh", "-c", "echo $TOKENRUN_FENCE"];
    let ended = site.run("a").job(&job).end().with_code(0);
    ended.stdout.trim().parse().unwrap()
}

/// The fence of a run whose fence was the last one and one: a clock in steps counts the grants of its first step
/// as the first one.
fn next_fence(site: &Site) -> i64 {
    until("fences rise by one", || {
        let (last, next) = (fence(site), fence(site));
        match next == last + 1 {
            true => Ok(next),
            false => Err(format!("{last}, then {next}")),
        }
    })
}

/// The clock is the same, so the next fence would be the last one and one: as it was for the grant
/// that was forgotten.
fn the_first_grant_after_an_observation_has_a_fence_of_its_own(site: &Site) {
    let first = next_fence(site);
    let output = site
        .verb(&["distrust", "--yes", "--json"])
        .end()
        .with_code(0)
        .json();
    let incarnation = output[0]["incarnation"].as_str().unwrap();
    site.verb(&["settle", "--yes", incarnation])
        .end()
        .with_code(0);
    let leapt = fence(site);
    assert!(leapt > first + 2, "{first}, then {leapt}");
    assert!(next_fence(site) > leapt);
}

fn explain_says_that_the_store_is_observed_and_until_when(site: &Site) {
    run(site, "a").job(&["true"]).end().with_code(0);
    site.verb(&["distrust", "--yes"]).end().with_code(0);
    let explain = ["explain", "--json", "-g", GROUP, "--client-id", "a"];
    let output = site.verb(&explain).end().with_code(0).json();
    assert_eq!(output[0]["clause"], 0);
    assert_eq!(output[0]["verdict"], "observe");
    let wait = output[0]["changes_in_ms"].as_u64().unwrap();
    assert!((1..=5_000).contains(&wait), "{wait}");
    assert_ne!(output[0]["then_clause"], 0);
}

/// The group itself may be what was forgotten.
fn explain_reports_the_observation_for_an_unknown_group(site: &Site) {
    run(site, "a").job(&["true"]).end().with_code(0);
    let explain = ["explain", "--json", "-g", "never", "--client-id", "a"];
    let unknown = site.verb(&explain).end().with_code(78);
    unknown.says(&["has no group \"never\""]);
    site.verb(&["distrust", "--yes"]).end().with_code(0);
    let output = site.verb(&explain).end().with_code(0).json();
    assert_eq!(output[0]["clause"], 0);
    assert_eq!(output[0]["verdict"], "observe");
}

fn status_and_metrics_say_that_the_store_is_observed(site: &Site) {
    run(site, "a").job(&["true"]).end().with_code(0);
    let json = ["status", "--json"];
    let before = site.verb(&json).end().with_code(0).json();
    assert!(before[0]["observed_until"].is_null(), "{before}");
    let gauge = format!("tokenrun_observation_remaining_seconds{{group=\"{GROUP}\"}}");
    let metrics = site.verb(&["metrics"]).end().with_code(0).stdout;
    assert!(metrics.contains(&format!("{gauge} 0.000\n")), "{metrics}");
    site.verb(&["distrust", "--yes"]).end().with_code(0);
    let table = site.verb(&["status"]).end().with_code(0).stdout;
    assert!(table.contains("free, observed"), "{table}");
    let details = site
        .verb(&["status", "-g", GROUP])
        .end()
        .with_code(0)
        .stdout;
    assert!(details.contains("nothing is granted until"), "{details}");
    assert!(
        details.contains("is distrusted by an operator"),
        "{details}"
    );
    let after = site.verb(&json).end().with_code(0).json();
    assert!(after[0]["observed_until"].is_string(), "{after}");
    let metrics = site.verb(&["metrics"]).end().with_code(0).stdout;
    assert!(metrics.contains(&gauge), "{metrics}");
    assert!(!metrics.contains(&format!("{gauge} 0.000\n")), "{metrics}");
}

fn a_running_job_and_its_end_are_not_stopped(site: &Site) {
    let held = run(site, "a").start();
    site.store.until_begun("a");
    site.verb(&["distrust", "--yes"]).end().with_code(0);
    site.verb(&["pause", "-g", GROUP]).end().with_code(0);
    site.store.go(3);
    held.end().with_code(3);
}
