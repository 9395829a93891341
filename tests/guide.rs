//! Every command of README.md and the guide (`docs/`) is run, and prints what the page shows. What needs
//! PostgreSQL is run in `tests/postgres/guide.rs`, MariaDB in `tests/mysql/guide.rs`, the recipes in `tests/packaging/`.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "support/guide.rs"]
#[allow(dead_code)]
mod blocks;
#[path = "support/document.rs"]
mod document;
#[allow(dead_code, unused_imports)]
mod support;
#[path = "support/console.rs"]
mod typing;

#[path = "guide/book.rs"]
mod book;
#[path = "guide/commands.rs"]
mod commands;
#[path = "guide/console.rs"]
mod console;
#[path = "guide/links.rs"]
mod links;
#[path = "guide/promises.rs"]
mod promises;
#[path = "guide/sentences.rs"]
mod sentences;
#[path = "guide/sizes.rs"]
mod sizes;

use blocks::{By, all_blocks, listed};

#[test]
fn a_test_runs_each_block() {
    let blocks = all_blocks();
    assert!(blocks.len() > 20);
    for begin in listed() {
        let (_, begin) = begin.split_once('\n').unwrap();
        let found = blocks.iter().any(|block| block.is(begin));
        assert!(found, "no page has a block that begins with {begin:?}");
    }
}

/// It can't run itself; that it is a script, and is there, is what can be said.
#[test]
fn the_command_that_passes_all_tests_is_a_script() {
    for block in blocks::blocks(By::Tester) {
        let script = block.text().trim();
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
        let mut bash = std::process::Command::new("bash");
        let status = bash.arg("-n").arg(&path).status().unwrap();
        assert!(status.success());
        let mode = std::os::unix::fs::MetadataExt::mode(&path.metadata().unwrap());
        assert_ne!(mode & 0o100, 0, "{script} can't be executed");
    }
}
