//! Each link of a document leads to a file of the repository and to a heading in it. What leads to another
//! site is not visited: its address is only looked at.

use std::collections::BTreeMap;

use crate::document::{Document, documents, resolve, root};

/// What is wrong with a link.
fn fault(from: &Document, to: &str, all: &BTreeMap<String, Document>) -> Option<String> {
    if to.contains("://") || to.starts_with("mailto:") {
        return (!is_plausible(to)).then(|| "is no https address of a host".to_owned());
    }
    let (path, anchor) = to.split_once('#').unwrap_or((to, ""));
    let name = if path.is_empty() {
        from.name.clone()
    } else {
        match resolve(&from.name, path) {
            Some(name) => name,
            None => return Some("leads out of the repository".to_owned()),
        }
    };
    if !root().join(&name).exists() || name.starts_with("target") {
        return Some(format!("there is no {name}"));
    }
    if anchor.is_empty() {
        return to.ends_with('#').then(|| "has an empty anchor".to_owned());
    }
    let Some(document) = all.get(&name) else {
        return Some(format!("{name} is no page with headings"));
    };
    let found = document.headings.iter().any(|it| it.anchor == anchor);
    (!found).then(|| format!("{name} has no heading #{anchor}"))
}

/// Whether it is an https address of a host that can exist.
fn is_plausible(address: &str) -> bool {
    let Some(rest) = address.strip_prefix("https://") else {
        return false;
    };
    let host = rest.split(['/', '#', '?']).next().unwrap_or_default();
    let labels: Vec<&str> = host.split('.').collect();
    let is_label = |label: &&str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        !label.is_empty() && label.chars().all(is_plain)
    };
    let is_top = |label: &&str| label.len() >= 2 && label.chars().all(|c| c.is_ascii_alphabetic());
    labels.len() >= 2
        && labels.iter().all(is_label)
        && labels.last().is_some_and(is_top)
        && !labels.contains(&"example")
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let all = documents();
    let mut faults = Vec::new();
    let mut looked_at = 0;
    for document in all.values() {
        for link in &document.links {
            looked_at += 1;
            if link.to.contains("://") {
                println!("not visited: {} ({})", link.to, document.name);
            }
            if let Some(fault) = fault(document, &link.to, &all) {
                faults.push(format!("{}: {}: {fault}", document.name, link.to));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(looked_at > 100, "only {looked_at} links were found");
}

#[test]
fn a_wrong_link_would_be_found() {
    let text = "# Cron\n## Two hosts\n[a][b]\n\n[b]: cron.md#two-hosts\n";
    let document = Document::parse("docs/cron.md", text);
    assert_eq!(document.links[0].to, "cron.md#two-hosts");
    let all = BTreeMap::from([(document.name.clone(), document)]);
    let from = &all["docs/cron.md"];
    for right in [
        "cron.md",
        "#two-hosts",
        "../README.md",
        "../examples/cron/",
        "../examples/cron/nightly",
        "../docs/cron.md#cron",
        "https://www.postgresql.org/docs/",
    ] {
        assert_eq!(fault(from, right, &all), None, "{right}");
    }
    for wrong in [
        "missing.md",
        "#three-hosts",
        "cron.md#",
        "../examples/cron/nightly#L3",
        "../../elsewhere/README.md",
        "/docs/cron.md",
        "../target/book/index.html",
        "http://www.postgresql.org/",
        "https://localhost/",
        "https://192.0.2.1/",
        "https://db.example.org/jobs",
        "mailto:someone",
        "file:///etc/passwd",
    ] {
        assert!(fault(from, wrong, &all).is_some(), "{wrong}");
    }
}

/// An address in a sentence is a link on the forge, one in code is not.
#[test]
fn an_address_in_a_sentence_is_a_link() {
    let text = "See http://a.b/c. Not `http://d.e/f`.\n\n```\nhttp://g.h/i\n```\n";
    let document = Document::parse("a.md", text);
    let links: Vec<&str> = document.links.iter().map(|link| &*link.to).collect();
    assert_eq!(links, ["http://a.b/c"]);
}

#[test]
fn headings_have_the_anchors_of_the_forge() {
    let text = "# What `-h` shows\n## It's 5 s, at most\n## Why\n## Why\ntext\n";
    let document = Document::parse("a.md", text);
    let anchors: Vec<&str> = document.headings.iter().map(|it| &*it.anchor).collect();
    assert_eq!(
        anchors,
        ["what--h-shows", "its-5-s-at-most", "why", "why-1"]
    );
}
