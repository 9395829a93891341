//! What each page shows is what comes out, in a folder of its own.

use std::process::Command;

use crate::blocks::{Page, matches, pages};
use crate::support::TOKENRUN;
use crate::typing::{BASH, type_in};

/// The page's blocks in a shell of its own, with a store there.
fn type_in_a_folder(page: &Page) -> usize {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(TOKENRUN, folder.path().join("tokenrun")).unwrap();
    let path = folder.path();
    let mut bash = Command::new("bash");
    bash.args(["-c", BASH])
        .current_dir(path)
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", path.display()))
        .env("XDG_STATE_HOME", path)
        .env("TOKENRUN_STORE", path.join("first.db"));
    type_in(page, bash)
}

#[test]
fn every_console_block_prints_what_its_page_shows() {
    let pages = pages();
    let typed: usize = std::thread::scope(|scope| {
        let shells: Vec<_> = pages
            .iter()
            .map(|page| scope.spawn(|| type_in_a_folder(page)))
            .collect();
        shells.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert!(typed > 6);
}

#[test]
fn shown_lines_match_as_they_should() {
    assert!(matches("a … c", "a   b c"));
    assert!(matches("a …", "a b c"));
    assert!(!matches("a", "a b"));
    assert!(!matches("a … d", "a b c"));
}
