//! Programs of two versions use one store side by side.

use crate::site::{GROUP, Site};
use crate::support::until;

stories!(
    ;
    about tables:
    fields_of_the_future_survive_every_swap,
    a_token_for_newer_programs_is_neither_granted_nor_acted_on,
    a_holder_goes_on_with_a_token_for_newer_programs,
);

fn document(site: &Site) -> String {
    site.cell("document")
}

/// A newer program writes these fields: a swap, which the holder adopts.
fn write(site: &Site, fields: &[(&str, &str)]) {
    let mut document = "document".to_owned();
    for (field, json) in fields {
        document = site.with_field(&document, field, json);
    }
    site.sql(&format!(
        "UPDATE tokens SET document = {document}, version = 4711"
    ));
}

fn until_a_heartbeat(site: &Site) {
    until("a heartbeat is written", || {
        match site.cell("version").as_str() {
            "4711" => Err("none".to_owned()),
            _ => Ok(()),
        }
    });
}

fn fields_of_the_future_survive_every_swap(site: &Site) {
    let line = site.run("node-a").with(&["--heartbeat=200ms", "--keep=1h"]);
    let run = line.start();
    site.store.until_begun("node-a");
    site.verb(&["pause", "-g", GROUP]).end().with_code(0);
    let fields = [
        ("colour", "\"red\""),
        ("run.mood", "\"calm\""),
        ("pause.tune", "\"slow\""),
    ];
    write(site, &fields);
    until_a_heartbeat(site);
    for word in ["red", "calm", "slow"] {
        assert!(document(site).contains(word), "{}", document(site));
    }
    site.store.go(0);
    run.end().with_code(0);
    // The run is over, and what was said of it.
    let left = document(site);
    assert!(left.contains("red") && left.contains("slow"), "{left}");
    assert!(!left.contains("calm"), "{left}");
    site.verb(&["resume", "-g", GROUP]).end().with_code(0);
    site.verb(&["move", "--when-idle", "-g", GROUP, "--to", "node-b"])
        .end()
        .with_code(0);
    site.short("node-b").end().with_code(0);
    let left = document(site);
    assert!(left.contains("red") && !left.contains("slow"), "{left}");
}

fn a_token_for_newer_programs_is_neither_granted_nor_acted_on(site: &Site) {
    site.short("node-a").end().with_code(0);
    write(site, &[("reader", "99")]);
    let before = document(site);
    let newer = ["version 99", "install a newer tokenrun"];
    site.short("node-a").end().with_code(78).says(&newer);
    for words in [
        &["pause", "-g", GROUP][..],
        &["release", "-g", GROUP],
        &["explain", "-g", GROUP],
    ] {
        site.verb(words).end().with_code(78).says(&newer);
    }
    site.verb(&["status", "-g", GROUP]).end().with_code(0);
    assert_eq!(document(site), before);
}

fn a_holder_goes_on_with_a_token_for_newer_programs(site: &Site) {
    let run = site.run("node-a").with(&["--heartbeat=200ms"]).start();
    site.store.until_begun("node-a");
    let fields = [
        ("reader", "99"),
        ("label", "[1, 2]"),
        ("run.grant", "\"levitation\""),
    ];
    write(site, &fields);
    until_a_heartbeat(site);
    for word in ["99", "levitation"] {
        assert!(document(site).contains(word), "{}", document(site));
    }
    site.store.go(3);
    run.end().with_code(3);
    let left = document(site);
    assert!(
        left.contains("99") && !left.contains("levitation"),
        "{left}"
    );
    assert_eq!(site.cell("state"), "free");
    let history = site.verb(&["history", "--json"]).end().with_code(0).json();
    assert_eq!(history[0]["outcome"], "failed");
}
