//! What each page shows is what comes out, in a folder of its own.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use nix::unistd::geteuid;

use crate::blocks::{Page, matches, pages};
use crate::support::TOKENRUN;
use crate::typing::{BASH, type_in};

/// The page's blocks in a shell of its own, with a store there.
fn type_in_a_folder(page: &Page) -> usize {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(TOKENRUN, folder.path().join("tokenrun")).unwrap();
    let mut bash = bash_in(folder.path());
    if page.name == "README.md" {
        // A newcomer has the default store, which root has elsewhere.
        bash.env_remove("TOKENRUN_STORE");
        bash.env("XDG_STATE_HOME", folder.path().join("state"));
        if geteuid().is_root() {
            chown(folder.path(), Some(65_534), Some(65_534)).unwrap();
            bash.uid(65_534).gid(65_534);
        }
    }
    type_in(page, bash)
}

/// A shell that finds its programs in this folder first.
fn bash_in(path: &Path) -> Command {
    let mut bash = Command::new("bash");
    bash.args(["-c", BASH])
        .current_dir(path)
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", path.display()))
        .env("XDG_STATE_HOME", path)
        .env("TOKENRUN_STORE", path.join("first.db"));
    bash
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

/// On a busy machine a waiter may not be in the queue yet when the next command asks.
#[test]
fn a_command_that_only_reads_is_typed_until_it_prints_what_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("tokenrun");
    let script =
        "#!/bin/sh\necho >> asked\n[ $(wc -l < asked) -lt 3 ] && echo early || echo in time\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let page = Page {
        name: "a page".into(),
        text: "```console\n$ tokenrun status\nin time\n$ cat asked | wc -l\n3\n```\n".into(),
    };
    assert_eq!(type_in(&page, bash_in(folder.path())), 1);
}

#[test]
fn shown_lines_match_as_they_should() {
    assert!(matches("a … c", "a   b c"));
    assert!(matches("a …", "a b c"));
    assert!(!matches("a", "a b"));
    assert!(!matches("a … d", "a b c"));
}
