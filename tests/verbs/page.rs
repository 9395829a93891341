//! `page`: a page of HTML for operators. How it looks is the matter of `tests/packaging/page.rs`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::site::{GROUP, Site};

stories!(
    a_page_shows_what_happened,
    it_replaces_a_file_as_a_whole,
    groups_are_chosen_by_name_and_pattern,
    what_makes_no_sense_is_refused_with_what_to_write,
    ;
    about tables:
    a_row_that_can_not_be_read_hides_no_other,
);

/// The page on stdout.
fn page(site: &Site, words: &[&str]) -> String {
    let line = site.verb(&["page", "--output=-", "--utc"]).with(words);
    line.end().with_code(0).stdout
}

fn a_page_shows_what_happened(site: &Site) {
    let keep = |client| site.run(client).with(&["--keep=1h"]);
    keep("node-a").job(&["true"]).end().with_code(0);
    let handoff = ["move", "--when-idle", "-g", GROUP, "--to", "node-b"];
    site.verb(&handoff).end().with_code(0);
    keep("node-b").script("exit 3").end().with_code(3);
    let pause = ["pause", "-g", GROUP, "--reason", "kernel <upgrade>"];
    site.verb(&pause).end().with_code(0);
    site.run("node-a").job(&["true"]).end().with_code(75);
    let text = page(site, &[]);
    for words in [
        "<title>(1) tokenrun</title>",
        "Last day: 2 runs: 1 succeeded, 1 failed, killed or timed out; 1 failover; 1 refusal; 2 acts",
        "its last run failed (exit code 3) ",
        "until it is resumed: kernel &lt;upgrade&gt;",
        "node-a → node-b (handoff)",
        "1 refusal of node-a (paused)",
        "failed (3)",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let run = site.run("node-b").with(&["--keep=0"]);
    site.verb(&["resume", "-g", GROUP]).end().with_code(0);
    let run = run.start();
    site.store.until_begun("node-b");
    let text = page(site, &[]);
    assert!(
        text.contains("<span class=\"state running\">running</span>"),
        "{text}"
    );
    assert!(text.contains("1 running"), "{text}");
    site.store.go(0);
    run.end().with_code(0);
}

fn it_replaces_a_file_as_a_whole(site: &Site) {
    site.short("node-a").end().with_code(0);
    let file = site.file("page.html");
    fs::write(&file, "old").unwrap();
    let line = || site.verb(&["page", "-o", file.to_str().unwrap()]);
    let ended = line()
        .under(&["sh", "-c", "umask 027; exec \"$@\"", "sh"])
        .end();
    let ended = ended.with_code(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>\n"),
        "{text}"
    );
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    let nowhere = site.file("nowhere/page.html");
    let ended = site.verb(&["page", "-o", nowhere.to_str().unwrap()]).end();
    ended
        .with_code(77)
        .says(&["the page", "nowhere", "can't be written"]);
    let folder = site.store.path().to_str().unwrap();
    let ended = site.verb(&["page", "-o", folder]).end().with_code(77);
    ended.says(&["the page", "directory"]);
    let entries = fs::read_dir(site.store.path()).unwrap();
    let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
    let drafts: Vec<String> = names.filter(|name| name.contains("page.html.")).collect();
    assert_eq!(drafts, [""; 0]);
}

fn groups_are_chosen_by_name_and_pattern(site: &Site) {
    for group in ["etl-a", "etl-b", "other"] {
        site.short_in(group).end().with_code(0);
    }
    let shown = |words: &[&str]| {
        let text = page(site, words);
        let is_shown = |group: &&str| text.contains(&format!("<bdi>{group}</bdi>"));
        let groups = ["etl-a", "etl-b", "other"].into_iter().filter(is_shown);
        groups.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown(&[]), "etl-a etl-b other");
    assert_eq!(shown(&["-g", "etl-*"]), "etl-a etl-b");
    assert_eq!(shown(&["-g", "etl-?", "-g", "other"]), "etl-a etl-b other");
    assert_eq!(shown(&["-g", "other"]), "other");
    assert_eq!(shown(&["-g", "x*"]), "");
    let unknown = site.verb(&["page", "-o", "-", "-g", "nigthly"]).end();
    unknown.with_code(78).says(&["nigthly"]);
}

fn a_row_that_can_not_be_read_hides_no_other(site: &Site) {
    for group in ["good", "bad<i>"] {
        site.short_in(group).end().with_code(0);
    }
    site.set_in_document("tokens", "keep_ms", "\"x\"", "token_group = 'bad<i>'");
    let ended = site.verb(&["page", "-o", "-"]).end().with_code(78);
    for words in [
        "<bdi>good</bdi>",
        "<bdi>bad&lt;i&gt;</bdi>",
        "can’t be read",
        "unreadable",
    ] {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
    assert!(ended.stderr.contains("keep_ms"), "{}", ended.stderr);
}

fn what_makes_no_sense_is_refused_with_what_to_write(site: &Site) {
    site.short("node-a").end().with_code(0);
    let cases: [(&[&str], &str); 5] = [
        (&["page"], "--output"),
        (&["page", "--output="], "tokenrun page --output FILE"),
        (&["page", "-o", "-", "--refresh=x"], "5m"),
        (&["page", "-o", "-", "--refresh=10ms"], "--refresh 60s"),
        (&["page", "-o", "-", "--group=a\nb"], "--group 'etl-*'"),
    ];
    for (words, hint) in cases {
        let ended = site.verb(words).end().with_code(64);
        assert!(ended.stderr.contains(hint), "{words:?}: {}", ended.stderr);
    }
}
