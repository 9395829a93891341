//! `status` and `history` on a terminal, and where there is none.

use crate::support::{Line, Store, TOKENRUN, Terminal};

/// A long name, of which the middle is the least.
const LONG: &str = "an-installation-with-a-very-long-name-in-production-etl";

/// A store with a group that ran well, one that failed, and one that is paused.
fn store() -> Store {
    let store = Store::new();
    let run = |group: &str, script: &str, code| {
        let database = store.database();
        let line = store.bare(&["-s", database.to_str().unwrap(), "-g", group]);
        let line = line.with(&["--client-id", "node-a", "--keep=1h"]);
        line.job(&["sh", "-c", script]).end().with_code(code);
    };
    run(LONG, "true", 0);
    run("report", "exit 3", 3);
    run("etl", "true", 0);
    let pause = ["pause", "-g", "etl", "--reason", "kernel upgrade"];
    store.verb(&pause).end().with_code(0);
    store
}

fn listing(store: &Store, words: &[&str]) -> Line {
    store.verb(words).env("TZ", "CET-1")
}

/// The command line of a verb, for a shell.
fn typed(store: &Store, words: &str) -> String {
    format!("{TOKENRUN} {words} -s {}", store.database().display())
}

/// What is seen: without escape sequences.
fn seen(text: &str) -> Vec<String> {
    let mut parts = text.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).unwrap();
        plain.push_str(&part[end + 1..]);
    }
    plain.lines().map(|it| it.trim_end().to_owned()).collect()
}

#[test]
fn a_terminal_is_filled_and_not_wrapped() {
    let store = store();
    let mut terminal = Terminal::new(&store, &store.free_run("node-a"));
    terminal.run("export TZ=CET-1");
    for columns in [80, 60] {
        terminal.resize(24, columns);
        let text = terminal.run(&typed(&store, "status"));
        assert!(text.contains("\u{1b}[31mfailed (3) "), "{text:?}");
        let lines = seen(&text);
        assert!(lines[0].starts_with("GROUP"), "{lines:?}");
        assert!(lines[1].starts_with("report"), "trouble first: {lines:?}");
        assert!(lines[2].contains(" paused "), "{lines:?}");
        assert!(lines[3].starts_with("an-"), "{lines:?}");
        assert!(lines[3].contains("…"), "{lines:?}");
        for line in &lines[..5] {
            assert!(line.chars().count() <= columns.into(), "{lines:?}");
        }
    }
    terminal.resize(24, 200);
    let lines = seen(&terminal.run(&typed(&store, "status")));
    assert!(lines[3].starts_with(LONG), "{lines:?}");
    assert!(lines[4].ends_with("times in CET)"), "{lines:?}");
    let lines = seen(&terminal.run(&format!("COLUMNS=40 {}", typed(&store, "status"))));
    assert!(lines.iter().all(|it| it.chars().count() <= 40), "{lines:?}");
    let text = terminal.run(&format!("NO_COLOR=1 {}", typed(&store, "status --utc")));
    assert!(
        !text.contains('\u{1b}') && !text.contains("CET"),
        "{text:?}"
    );
}

#[test]
fn a_watched_terminal_is_redrawn_at_its_present_size() {
    let store = store();
    let mut terminal = Terminal::new(&store, &store.free_run("node-a"));
    terminal.resize(4, 80);
    terminal.line(&typed(&store, "status --watch=100ms"));
    terminal.until("(2 more groups, ");
    terminal.resize(24, 80);
    // Each line is written over the old one, and what was below is gone.
    terminal.until("(store ");
    let redrawn = terminal.until("\u{1b}[J\u{1b}[H");
    let redrawn = redrawn + &terminal.until("\u{1b}[J");
    assert!(!redrawn.contains("\u{1b}[2J"), "{redrawn:?}");
    let lines = redrawn.matches("\u{1b}[K\r\n").count();
    assert!(lines >= 5, "{redrawn:?}");
    terminal.key(crate::support::ctrl('c'));
    terminal.prompt();
}

#[test]
fn history_is_local_on_a_terminal_and_utc_elsewhere() {
    let store = store();
    let mut terminal = Terminal::new(&store, &store.free_run("node-a"));
    terminal.run("export TZ=CET-1");
    let lines = seen(&terminal.run(&typed(&store, "history")));
    assert!(lines[0].starts_with("STARTED"), "{lines:?}");
    assert!(lines[1].contains(": pause (kernel upgrade)"), "{lines:?}");
    assert!(lines[5].contains("(times in CET)"), "{lines:?}");
    assert!(lines[..5].iter().all(|it| it.chars().count() <= 80));
    let local = &lines[2][..19];
    let utc = listing(&store, &["history"]).end().with_code(0).stdout;
    let utc = utc.lines().nth(2).unwrap();
    assert_eq!(utc.as_bytes()[23], b'Z', "{utc}");
    // The same minute and second, an hour apart.
    assert_eq!(local[13..], utc[13..19], "{local} {utc}");
    assert_ne!(local[..13], utc[..13].replace('T', " "), "{local} {utc}");
    // What is shown can be given.
    let since = format!("--since={local}");
    let output = listing(&store, &["history", "--json", &since])
        .end()
        .with_code(0);
    let output = output.json();
    let entries = output.as_array().unwrap();
    assert_eq!(entries[0]["act"], "pause", "{entries:?}");
    assert!(
        entries
            .iter()
            .any(|it| it["group"] == "etl" && it["act"].is_null())
    );
}

#[test]
fn a_wide_table_and_a_column_limit_need_no_terminal() {
    let store = store();
    let narrow = listing(&store, &["status"]).env("COLUMNS", "60");
    let narrow = narrow.end().with_code(0).stdout;
    assert!(
        narrow.lines().all(|it| it.chars().count() <= 60),
        "{narrow}"
    );
    let wide = listing(&store, &["status", "--wide", "--color=always"]);
    let wide = wide.end().with_code(0).stdout;
    assert!(
        wide.contains("TAKEOVER IN") && wide.contains(LONG),
        "{wide}"
    );
    assert!(wide.contains("\u{1b}[33mpaused by"), "{wide}");
    let plain = listing(&store, &["status"]).end().with_code(0).stdout;
    assert!(!plain.contains('\u{1b}') && plain.contains(LONG), "{plain}");
}
