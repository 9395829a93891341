//! Text from elsewhere, shown to a person: it controls no terminal, forges no line, and no two
//! names look alike.

use crate::site::{GROUP, Site};

stories!(
    ;
    about tables:
    foreign_text_is_harmless_where_a_person_reads_it,
    an_invisible_name_is_escaped_and_distinguished_from_another,
);

/// It sets a terminal's title, clears it, makes a line of its own, and writes backwards.
const EVIL: &str =
    "evil\u{1b}]0;title\u{7}\u{1b}[2J\r\nforged\u{9b}31m\u{202e}txt\u{200b}\u{2028}.";

/// What a person reads, without the ends of its lines.
#[track_caller]
fn assert_harmless(text: &str) {
    let hidden = |c: char| c.is_control() || "\u{202e}\u{200b}\u{2028}".contains(c);
    let bad = text.chars().find(|c| *c != '\n' && hidden(*c));
    assert_eq!(bad, None, "{text:?}");
}

const LISTINGS: [&[&str]; 5] = [
    &["status"],
    &["status", "-g", GROUP],
    &["history"],
    &["once", "list"],
    &["explain", "-g", GROUP, "--client-id", "node-b"],
];

fn listed(site: &Site, words: &[&str]) -> String {
    site.verb(words).end().with_code(0).stdout
}

fn foreign_text_is_harmless_where_a_person_reads_it(site: &Site) {
    let run = site.short("node-a").with(&["--keep=1h", "--once", "key"]);
    run.with(&["--label", "text"]).end().with_code(0);
    let pause = ["pause", "-g", GROUP, "--reason", "text"];
    site.verb(&pause).end().with_code(0);
    let before = LISTINGS.map(|words| listed(site, words).lines().count());
    site.sql(&format!("UPDATE done_keys SET once_key = '{EVIL}'"));
    let evil = serde_json::to_string(EVIL).unwrap();
    for (table, fields) in [
        ("tokens", &["host", "label", "pause.by", "pause.reason"][..]),
        ("runs", &["host", "label", "program"]),
        ("acts", &["by", "host", "reason"]),
    ] {
        for field in fields {
            site.set_in_document(table, field, &evil, "true");
        }
    }
    for (words, lines) in LISTINGS.into_iter().zip(before) {
        let shown = listed(site, words);
        assert_harmless(&shown);
        assert_eq!(shown.lines().count(), lines, "{words:?}: {shown}");
        let is_short = *words == ["status"];
        assert!(is_short || shown.contains("evil"), "{words:?}: {shown}");
    }
    assert_harmless(&site.verb(&["doctor"]).end().stdout);
    // The reason of the pause is in the refusal.
    let refused = site.short("node-a").end().with_code(75);
    refused.says(&["is paused by evil"]);
    assert_harmless(&refused.stderr);
}

fn an_invisible_name_is_escaped_and_distinguished_from_another(site: &Site) {
    let run = site.short("node-a").with(&["--keep=1h", "--once", "key"]);
    run.end().with_code(0);
    let (group, client) = ("jo\u{200b}b", "no\u{202e}de");
    for table in ["tokens", "runs", "done_keys"] {
        site.sql(&format!(
            "UPDATE {table} SET token_group = '{group}' WHERE token_group <> ''"
        ));
    }
    let set = format!("client_bound = '{client}', expected_client = '{client}'");
    site.sql(&format!("UPDATE tokens SET {set}"));
    site.sql(&format!("UPDATE runs SET client = '{client}'"));
    let json = format!("\"{client}\"");
    site.set_in_document("runs", "previous_client", &json, "true");
    for words in [&["status"][..], &["history"], &["once", "list"]] {
        let shown = listed(site, words);
        assert_harmless(&shown);
        assert!(shown.contains(r"jo\u{200b}b"), "{shown}");
    }
    assert!(listed(site, &["status"]).contains(r"no\u{202e}de"));
    let json = site.verb(&["status", "--json"]).end().with_code(0).json();
    assert_eq!(json[0]["group"], group);
    assert_eq!(json[0]["client"], client);
    // No option takes it, so no shell offers it.
    assert_eq!(listed(site, &["groups", "--"]), "");
    let refused = site.verb(&["status", "-g", group]).end().with_code(64);
    refused.says(&["--group", "invisible", "U+200B"]);
}
