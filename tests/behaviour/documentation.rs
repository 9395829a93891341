//! `completions` and `man`: the files of a package.

use std::fs;

use crate::support::Store;

#[test]
fn completions_are_printed_for_each_shell() {
    let store = Store::new();
    for shell in ["bash", "zsh", "fish"] {
        let ended = store.bare(&["completions", shell]).end().with_code(0);
        for word in ["takeover-after", "status", "history"] {
            assert!(ended.stdout.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn manual_pages_are_written_to_a_directory() {
    let store = Store::new();
    let folder = store.file("man/man1");
    let ended = store.bare(&["man", folder.to_str().unwrap()]).end();
    assert_eq!(ended.with_code(0).stderr, "");
    for (page, word) in [
        ("tokenrun.1", "takeover"),
        ("tokenrun-status.1", "json"),
        ("tokenrun-history.1", "limit"),
        ("../man7/tokenrun-exit-codes.7", "137"),
    ] {
        let text = fs::read_to_string(folder.join(page)).unwrap();
        assert!(text.contains(".TH") && text.contains(word), "{page}");
    }
    let folder = store.file("other");
    let ended = store.bare(&["man", folder.to_str().unwrap()]).end();
    ended.with_code(0);
    assert!(folder.join("tokenrun-json.7").exists());
}

#[test]
fn a_topic_is_printed_and_an_unknown_one_is_a_usage_error() {
    let store = Store::new();
    for (topic, word) in [
        ("exit-codes", "143 for TERM"),
        ("environment", "TOKENRUN_FENCE"),
        ("json", "takeover_in_ms"),
        ("configuration", "[groups.nightly]"),
        ("options", "--takeover-after DURATION [default: 5m]"),
        ("metrics", "tokenrun_held"),
    ] {
        let ended = store.bare(&["help", topic]).end().with_code(0);
        assert!(ended.stdout.contains(word), "{topic}: {}", ended.stdout);
        let help = store.bare(&["help"]).end().with_code(0).stdout;
        assert!(help.lines().last().unwrap().contains(topic), "{help}");
        let ended = store.bare(&["help", "exit-cods"]).end().with_code(64);
        ended.says(&["\"exit-cods\"", "tokenrun help exit-codes?", topic]);
    }
    let verb = store.bare(&["help", "once", "list"]).end().with_code(0);
    assert!(verb.stdout.contains("tokenrun once list"), "{verb:?}");
}

#[test]
fn manual_pages_that_can_not_be_written_are_reported() {
    let store = Store::new();
    fs::write(store.file("file"), "").unwrap();
    let folder = store.file("file/man1");
    let ended = store.bare(&["man", folder.to_str().unwrap()]).end();
    ended.with_code(77).says(&["file/man1", "can't be written"]);
}
