//! The commands that stand in the sentences and tables of README.md and the guide: each does what it says, in
//! a store where each group has run once.

use std::collections::BTreeSet;

use nix::sys::signal::Signal;

use crate::blocks::{Page, pages};
use crate::support::{Line, Store};

/// What is written for a name of the reader's own, and the name.
const NAMES: [(&str, &str); 5] = [
    ("GROUP", "nightly"),
    ("ID", "vm-2"),
    ("RESOURCE", "bucket"),
    ("KEY", "2026-11-21"),
    ("N", "9"),
];

/// Those that do not end with 0, and why.
const OTHERS: [(&str, i32); 6] = [
    // Its output was not caught.
    ("tokenrun output -g GROUP", 1),
    // There is no terminal to ask on.
    ("tokenrun settle INCARNATION", 64),
    ("tokenrun distrust", 64),
    // The subcommand's name; what a command is like is shown in a block.
    ("tokenrun hold", 64),
    // This node has no run.
    ("tokenrun check -g GROUP", 75),
    ("tokenrun check --group scheduler", 75),
];

/// The code in the sentences of all pages that begins with tokenrun's name.
fn commands() -> BTreeSet<String> {
    let pages = pages();
    let code = pages.iter().flat_map(Page::inline_code);
    code.filter(|code| code.starts_with("tokenrun ")).collect()
}

/// A command without what is in brackets, and with it.
fn both(command: &str) -> Vec<String> {
    match command.split_once(" [") {
        None => vec![command.to_owned()],
        Some((before, option)) => {
            let option = option.strip_suffix(']').unwrap();
            vec![before.to_owned(), format!("{before} {option}")]
        }
    }
}

/// A command with names in it, as in a job of the group.
fn line(store: &Store, command: &str, fence: &str) -> Line {
    let named = |word: &str| -> String {
        let name = NAMES.iter().find(|(written, _)| *written == word);
        match name {
            Some((_, "9")) => fence.to_owned(),
            Some((_, name)) => (*name).to_owned(),
            None if word == "/etc/tokenrun/store" => "store".to_owned(),
            None => word.to_owned(),
        }
    };
    let words: Vec<String> = command.split(' ').skip(1).map(named).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    store
        .bare(&words)
        .env("TOKENRUN_STORE", store.database())
        .env("TOKENRUN_GROUP", "nightly")
        .env("TOKENRUN_FENCE", fence)
}

#[test]
fn every_command_in_a_sentence_is_run() {
    let commands = commands();
    assert!(commands.len() > 25, "{commands:?}");
    for command in &commands {
        let other = OTHERS.iter().find(|(begin, _)| begin == command);
        let code = other.map_or(0, |(_, code)| *code);
        for variant in both(command) {
            let store = Store::new();
            let path = store.database().into_os_string().into_encoded_bytes();
            std::fs::write(store.file("store"), path).unwrap();
            let run = |group: &str| {
                let words = ["--client-id", "vm-1", "--once", "2026-11-21", "-g", group];
                let line = store.bare(&words).env("TOKENRUN_STORE", store.database());
                line.script("echo $TOKENRUN_FENCE").end().with_code(0)
            };
            run("scheduler");
            let fence = run("nightly").stdout;
            // The store has seen the other client.
            let other = ["--client-id", "vm-2", "-g", "nightly"];
            let refused = store.bare(&other).env("TOKENRUN_STORE", store.database());
            refused.job(&["true"]).end().with_code(75);
            let line = line(&store, &variant, fence.trim());
            if command == "tokenrun serve" {
                // It goes on until it is ended; its port may be another test's.
                let server = line.with(&["--listen", "127.0.0.1:0"]).start();
                server.until_says("on http://");
                server.signal(Signal::SIGTERM);
                server.end().with_code(0);
                continue;
            }
            let ended = line.end();
            assert_eq!(ended.code, Some(code), "{variant}: {ended:?}");
        }
    }
}
