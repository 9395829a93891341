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
    ] {
        let text = fs::read_to_string(folder.join(page)).unwrap();
        assert!(text.contains(".TH") && text.contains(word), "{page}");
    }
}

#[test]
fn manual_pages_that_can_not_be_written_are_reported() {
    let store = Store::new();
    fs::write(store.file("file"), "").unwrap();
    let folder = store.file("file/man1");
    let ended = store.bare(&["man", folder.to_str().unwrap()]).end();
    ended.with_code(77).says(&["file/man1", "can't be written"]);
}
