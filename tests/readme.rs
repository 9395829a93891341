//! Every command in README.md is run, and prints what README.md says. What needs
//! PostgreSQL is run in `tests/postgres/readme.rs`, the recipes in `tests/packaging/`.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "support/readme.rs"]
mod blocks;
#[allow(dead_code, unused_imports)]
mod support;

#[path = "readme/commands.rs"]
mod commands;
#[path = "readme/console.rs"]
mod console;
#[path = "readme/sentences.rs"]
mod sentences;

use blocks::{By, all_blocks, listed};

#[test]
fn a_test_runs_each_block() {
    let blocks = all_blocks();
    assert!(blocks.len() > 20);
    for begin in listed() {
        let (_, begin) = begin.split_once('\n').unwrap();
        let count = blocks.iter().filter(|block| block.is(begin)).count();
        assert_eq!(count, 1, "blocks that begin with {begin:?}");
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
