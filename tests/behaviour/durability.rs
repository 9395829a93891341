//! What survives a power cut: whatever is reported as recorded was synced before the report.

use std::path::Path;

use crate::support::{Call, Line, Store, calls};

fn is_log(path: &Path) -> bool {
    path.to_string_lossy().ends_with("-wal")
}

/// What stands in the page of the tokens alone. A pruning writes it after the end of a run, and need
/// not survive.
const OF_TOKENS: &str = "takeover_after_ms";

/// Checks that what was last written to the log with these words in it was synced later on.
#[track_caller]
fn assert_synced(calls: &[Call], words: &str) {
    let holds =
        |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|it| it == text.as_bytes());
    let has = |bytes: &[u8]| holds(bytes, words) && !holds(bytes, OF_TOKENS);
    let written = calls.iter().rposition(|call| match call {
        Call::Write(path, bytes) => is_log(path) && has(bytes),
        Call::Sync(_) | Call::Rename => false,
    });
    let written = written.unwrap_or_else(|| panic!("{words:?} is not written"));
    let mut later = calls[written..].iter();
    let synced = later.any(|call| matches!(call, Call::Sync(path) if is_log(path)));
    assert!(synced, "the log is not synced after {words:?} was written");
}

/// A store in which a run has ended.
fn used() -> Store {
    let store = Store::new();
    store.free_run("node-a").job(&["true"]).end().with_code(0);
    store
}

fn calls_of(store: &Store, line: Line) -> Vec<Call> {
    let (calls, ended) = calls(store, line, || {});
    ended.with_code(0);
    calls
}

#[test]
fn the_end_of_a_run_is_on_the_disk_before_the_exit() {
    let store = used();
    // Both are in the record, and what was written at the grant is written anew at the end.
    for word in ["--label=the-label", "--once=the-key"] {
        let line = store.free_run("node-a").with(&[word]).job(&["true"]);
        let (_, words) = word.split_once('=').unwrap();
        assert_synced(&calls_of(&store, line), words);
    }
}

#[test]
fn the_record_of_a_run_that_lost_its_token_is_on_the_disk() {
    let store = used();
    let line = store.free_run("node-a").with(&["--heartbeat=100ms"]);
    let force = || {
        store.until_begun("node-a");
        let words = ["release", "--force", "-g", "job"];
        store.verb(&words).end().with_code(0);
    };
    let (calls, ended) = calls(&store, line, force);
    ended.with_code(76);
    assert_synced(&calls, "lost");
}

#[test]
fn an_act_is_on_the_disk_before_it_is_reported() {
    let store = used();
    let reason = "the-reason-for-it";
    let line = store.verb(&["pause", "-g", "job", "--reason", reason]);
    assert_synced(&calls_of(&store, line), reason);
    let line = store.verb(&["fence", "advance", "the-resource", "7"]);
    assert_synced(&calls_of(&store, line), "the-resource");
}

#[test]
fn a_store_is_on_the_disk_before_it_has_its_name_and_so_are_the_names_of_its_files() {
    let store = Store::new();
    let report = store.file("report.json");
    let line = store.free_run("node-a").job(&["true"]);
    let line = line.with(&["--report", report.to_str().unwrap()]);
    let calls = calls_of(&store, line);
    let after = |from: usize, what: &str, wanted: &dyn Fn(&Call) -> bool| {
        let found = calls[from..].iter().position(wanted);
        from + found.unwrap_or_else(|| panic!("{what} is missing: {calls:?}"))
    };
    let synced = |end: &'static str| move |call: &Call| matches!(call, Call::Sync(path) if path.to_string_lossy().ends_with(end));
    let renamed = |call: &Call| *call == Call::Rename;
    let directory = synced("/state");
    let database = after(0, "the database", &synced("/.tokens.db.new"));
    let named = after(database, "its name", &renamed);
    let kept = after(named, "the directory with its name", &directory);
    let written = |call: &Call| matches!(call, Call::Write(path, _) if is_log(path));
    let log = after(0, "the log", &written);
    assert!(kept < log, "it is used before it is durable");
    after(log, "the directory with the log\'s name", &directory);
    let is_report = |call: &Call| matches!(call, Call::Sync(path) if path.to_string_lossy().contains("/.report.json."));
    let written = after(0, "the report", &is_report);
    after(written, "its name", &renamed);
}
