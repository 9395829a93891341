//! The manual describes every field of the JSON, and no other.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::site::{GROUP, Site};
use crate::support::Store;

/// The names in the section JSON of a page.
fn documented(page: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("man");
    let text = fs::read_to_string(folder.join(format!("{page}.1"))).unwrap();
    let section = text.split(".SH JSON\n").nth(1).expect(page);
    let section = section.split("\n.SH ").next().unwrap();
    let names = section.lines().filter_map(|line| line.strip_prefix(".B "));
    names.map(str::to_owned).collect()
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
    same(names(&token), &["tokenrun-status"], &["error"]);
    let runs = shown(&site, &["history"]);
    same(names(&runs), &["tokenrun-history"], &[]);
    same(
        names(&shown(&site, &["once", "list"])),
        &["tokenrun-once-list"],
        &[],
    );
    let output = shown(&site, &["output", "-g", GROUP]);
    same(names(&output), &["tokenrun-output"], &[]);
    site.verb(&["pause", "-g", GROUP]).end().with_code(0);
    site.short("node-b").end().with_code(75);
    site.verb(&["resume", "-g", GROUP]).end().with_code(0);
    let mut explained = shown(&site, &["explain", "-g", GROUP, "--client-id", "node-b"]);
    let story = shown(&site, &["explain", "-g", GROUP, "--since=1h"]);
    explained.extend(story[0]["refusals"].as_array().unwrap().clone());
    explained.extend(story);
    same(names(&explained), &["tokenrun-explain"], &[]);
    let mut checked = shown(&site, &["check", "-g", GROUP]);
    checked.extend(shown(
        &site,
        &["check", "-g", GROUP, "--succeeded-within=1h"],
    ));
    same(names(&checked), &["tokenrun-check"], &[]);
    same(names(&shown(&site, &["doctor"])), &["tokenrun-doctor"], &[]);
    same(
        names(&shown(&site, &["config", "-g", GROUP])),
        &["tokenrun-config"],
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
        seen.contains("error") && seen.is_subset(&documented("tokenrun-status")),
        "{seen:?}"
    );
}

#[test]
fn of_what_operators_do() {
    let site = site();
    site.short("node-a").with(&["--keep=1h"]).end().with_code(0);
    let acts: [(&[&str], &str); 6] = [
        (&["release", "-g", GROUP], "tokenrun-release"),
        (&["pause", "-g", GROUP], "tokenrun-pause"),
        (&["resume", "-g", GROUP], "tokenrun-resume"),
        (&["expect", "-g", GROUP, "node-a"], "tokenrun-expect"),
        (
            &["handoff", "-g", GROUP, "--to", "node-b"],
            "tokenrun-handoff",
        ),
        (&["fence", "raise", "-g", GROUP], "tokenrun-fence-raise"),
    ];
    for (words, page) in acts {
        same(names(&shown(&site, words)), &[page], &[]);
    }
    let of_act = |it: &Value| it["act"].is_string();
    let mut listed = shown(&site, &["history"]);
    listed.retain(of_act);
    same(names(&listed), &["tokenrun-pause"], &["old_job_until"]);
}

#[test]
fn of_fences() {
    let site = site();
    site.short("node-a").end().with_code(0);
    let verified = shown(&site, &["fence", "verify", "-g", GROUP, "--fence=1"]);
    same(names(&verified), &["tokenrun-fence-verify"], &[]);
    assert_eq!(verified[0]["is_current"], false);
    let marked = shown(&site, &["fence", "advance", "bucket", "7"]);
    same(names(&marked), &["tokenrun-fence-advance"], &[]);
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
    same(seen, &["tokenrun"], &[]);
}
