//! The manual describes every field of the JSON, and no other.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::site::{GROUP, Site};
use crate::support::Store;

/// The fields in a section of the manual's page about JSON.
fn documented(section: &str) -> BTreeSet<String> {
    let text = page();
    let mut sections = text.split("\n.S").skip(1);
    let is_it = |it: &&str| it.split('\n').next().unwrap().contains(section);
    let section = sections.find(is_it).expect(section);
    let lines: Vec<&str> = section.lines().collect();
    let terms = lines.windows(2).filter(|pair| pair[0] == ".TP");
    terms.map(|pair| pair[1].to_owned()).collect()
}

/// The manual's page about JSON, without the marks of its formatter.
fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/tokenrun-json.7");
    let text = fs::read_to_string(path).unwrap();
    text.replace("\\fB", "")
        .replace("\\fR", "")
        .replace('\\', "")
}

fn names(objects: &[Value]) -> BTreeSet<String> {
    let objects = objects.iter().map(|it| it.as_object().unwrap());
    objects.flat_map(|it| it.keys().cloned()).collect()
}

fn site() -> Site {
    let store = Store::new();
    let url = store.database().to_str().unwrap().to_owned();
    Site { store, url }
}

#[track_caller]
fn shown(site: &Site, words: &[&str]) -> Vec<Value> {
    let ended = site.verb(words).with(&["--json"]).end();
    ended.json().as_array().unwrap().clone()
}

#[track_caller]
fn same(seen: BTreeSet<String>, pages: &[&str], but: &[&str]) {
    let mut described: BTreeSet<String> = pages.iter().flat_map(|page| documented(page)).collect();
    described.retain(|name| !but.contains(&name.as_str()));
    assert_eq!(seen, described, "{pages:?}");
}

#[test]
fn of_what_is_listed() {
    let site = site();
    let run = site.short("node-a").with(&["--once", "key", "--keep=0"]);
    let run = run.with(&["--capture"]);
    run.end().with_code(0);
    let token = shown(&site, &["status"]);
    same(names(&token), &["tokenrun status --json"], &["error"]);
    let runs = shown(&site, &["history"]);
    same(names(&runs), &["tokenrun history --json"], &[]);
    same(
        names(&shown(&site, &["once", "list"])),
        &["tokenrun once list --json"],
        &[],
    );
    let output = shown(&site, &["output", "-g", GROUP]);
    same(names(&output), &["tokenrun output --json"], &[]);
    site.verb(&["pause", "-g", GROUP]).end().with_code(0);
    site.short("node-b").end().with_code(75);
    site.verb(&["resume", "-g", GROUP]).end().with_code(0);
    let mut explained = shown(&site, &["explain", "-g", GROUP, "--client-id", "node-b"]);
    let story = shown(&site, &["explain", "-g", GROUP, "--since=1h"]);
    explained.extend(story[0]["refusals"].as_array().unwrap().clone());
    explained.extend(story);
    same(names(&explained), &["tokenrun explain --json"], &[]);
    let mut checked = shown(&site, &["check", "-g", GROUP]);
    checked.extend(shown(
        &site,
        &["check", "-g", GROUP, "--succeeded-within=1h"],
    ));
    same(names(&checked), &["tokenrun check --json"], &[]);
    same(
        names(&shown(&site, &["doctor"])),
        &["tokenrun doctor --json"],
        &[],
    );
    same(
        names(&shown(&site, &["config", "-g", GROUP])),
        &["tokenrun config --json"],
        &[],
    );
}

#[test]
fn of_a_token_that_can_not_be_read() {
    let site = site();
    site.short("node-a").end().with_code(0);
    let connection = rusqlite::Connection::open(site.store.database()).unwrap();
    connection
        .execute("UPDATE tokens SET state = 'odd'", [])
        .unwrap();
    let seen = names(&shown(&site, &["status"]));
    assert!(
        seen.contains("error") && seen.is_subset(&documented("tokenrun status --json")),
        "{seen:?}"
    );
}

#[test]
fn of_what_operators_do() {
    let site = site();
    site.short("node-a").with(&["--keep=1h"]).end().with_code(0);
    let acts: [(&[&str], &str); 6] = [
        (&["release", "-g", GROUP], "release"),
        (&["pause", "-g", GROUP], "pause"),
        (&["resume", "-g", GROUP], "resume"),
        (&["expect", "-g", GROUP, "node-a"], "expect"),
        (
            &["move", "--when-idle", "-g", GROUP, "--to", "node-b"],
            "move",
        ),
        (&["fence", "raise", "-g", GROUP], "fence raise"),
    ];
    let page = page();
    let section = page.split("Acts of operators").nth(1).unwrap();
    let commands = section.split(".TP").next().unwrap().replace('\n', " ");
    for (words, command) in acts {
        assert!(commands.contains(command), "{command}: {commands}");
        same(names(&shown(&site, words)), &["Acts of operators"], &[]);
    }
    let of_act = |it: &Value| it["act"].is_string();
    let mut listed = shown(&site, &["history"]);
    listed.retain(of_act);
    same(names(&listed), &["Acts of operators"], &["old_job_until"]);
}

#[test]
fn of_fences() {
    let site = site();
    site.short("node-a").end().with_code(0);
    let verified = shown(&site, &["fence", "verify", "-g", GROUP, "--fence=1"]);
    same(names(&verified), &["tokenrun fence verify --json"], &[]);
    assert_eq!(verified[0]["is_current"], false);
    let marked = shown(&site, &["fence", "advance", "bucket", "7"]);
    same(names(&marked), &["tokenrun fence advance --json"], &[]);
    assert_eq!(marked[0]["is_stale"], false);
    let stale = shown(&site, &["fence", "advance", "bucket", "5"]);
    assert_eq!(
        (&stale[0]["highest"], &stale[0]["is_stale"]),
        (&7.into(), &true.into())
    );
}

#[test]
fn of_a_report() {
    let site = site();
    let file = site.store.path().join("report.json");
    let report = ["--report", file.to_str().unwrap()];
    site.short("node-a").with(&report).end().with_code(0);
    let text = fs::read_to_string(&file).unwrap();
    let seen = names(&[serde_json::from_str(&text).unwrap()]);
    same(seen, &["--report FILE"], &[]);
}

#[test]
fn of_messages() {
    let site = site();
    let json = ["--log-format=json", "-v", "--keep=1h"];
    let mut seen = BTreeSet::new();
    for (client, code) in [("node-a", 0), ("node-b", 75)] {
        let ended = site.short(client).with(&json).end().with_code(code);
        let messages = ended.messages().into_iter();
        let messages = messages.map(|line| serde_json::from_str(line).unwrap());
        seen.extend(names(&messages.collect::<Vec<Value>>()));
    }
    same(seen, &["--log-format json"], &[]);
}
