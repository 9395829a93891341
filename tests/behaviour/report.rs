//! `--report`: what happened, for scripts.

use serde_json::Value;

use crate::support::{Line, Store};

fn with_report(store: &Store, line: Line) -> (Line, std::path::PathBuf) {
    let file = store.file("report.json");
    (line.with(&["--report", file.to_str().unwrap()]), file)
}

fn read(file: &std::path::Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn a_success_is_reported() {
    let store = Store::new();
    let (line, file) = with_report(&store, store.free_run("node-a").job(&["true"]));
    line.end().with_code(0);
    let report = read(&file);
    let run = &store.history()[0];
    for (field, value) in [
        ("outcome", Value::from("succeeded")),
        ("exit_code", 0.into()),
        ("tokenrun_exit_code", 0.into()),
        ("signal", Value::Null),
        ("group", "job".into()),
        ("client", "node-a".into()),
        ("grant", "bind".into()),
        ("fence", run["fence"].clone()),
        ("session", run["session"].clone()),
        ("recorded", true.into()),
        ("refused", Value::Null),
    ] {
        assert_eq!(report[field], value, "{field}: {report}");
    }
    assert!(report["started_at"].as_str() <= report["ended_at"].as_str());
    assert!(report["ended_at"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn a_jobs_own_75_is_distinguished_from_a_refusal() {
    let store = Store::new();
    let job = store.run("node-a").with(&["--keep=1h"]).script("exit 75");
    let (line, file) = with_report(&store, job);
    line.end().with_code(75);
    assert_eq!(read(&file)["outcome"], "failed");
    assert_eq!(read(&file)["exit_code"], 75);

    let (line, file) = with_report(&store, store.free_run("node-b").job(&["true"]));
    line.end().with_code(75);
    let report = read(&file);
    assert_eq!(report["outcome"], "refused");
    assert_eq!(report["refused"], "bound");
    assert_eq!(report["refused_by"], "node-a");
    assert_eq!(report["exit_code"], Value::Null);
    assert_eq!(report["tokenrun_exit_code"], 75);
    assert_eq!(report["fence"], Value::Null);
}

#[test]
fn a_lost_token_is_reported() {
    let store = Store::new();
    let line = store.free_run("node-a").with(&["--heartbeat=300ms"]);
    let (line, file) = with_report(&store, line);
    let run = line.start();
    store.until_begun("node-a");
    store.edit(
        "client_bound = 'node-b', version = 9, \
         document = json_set(document, '$.run.session', 'other', '$.session_version', 9)",
    );
    run.end().with_code(76);
    let report = read(&file);
    assert_eq!(report["outcome"], "lost");
    assert_eq!(report["tokenrun_exit_code"], 76);
    assert_eq!(report["grant"], "bind");
}

#[test]
fn a_report_takes_the_place_of_the_last_and_leaves_nothing_else() {
    let store = Store::new();
    let folder = store.file("reports");
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("report.json");
    for (script, outcome) in [("exit 0", "succeeded"), ("exit 1", "failed")] {
        let line = store.free_run("node-a").script(script);
        line.with(&["--report", file.to_str().unwrap()]).end();
        assert_eq!(read(&file)["outcome"], outcome);
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

/// A job that has run would count as one that failed.
#[test]
fn a_report_that_can_not_be_written_is_refused_before_the_store_is_asked() {
    let store = Store::new();
    let folder = store.file("folder");
    std::fs::create_dir(&folder).unwrap();
    for path in [store.file("no/such/folder/report.json"), folder] {
        let line = store.free_run("node-a").job(&["touch", "ran"]);
        let line = line.with(&["--report", path.to_str().unwrap()]);
        let ended = line.end().with_code(77);
        ended.says(&["the report", "can't be written", "the job was not started"]);
    }
    assert!(!store.file("ran").exists());
    assert!(!store.database().exists(), "the store was not asked");
}

#[test]
fn a_report_that_can_not_be_written_after_the_job_changes_no_exit_code() {
    for code in [0, 5] {
        let store = Store::new();
        let folder = store.file("reports");
        std::fs::create_dir(&folder).unwrap();
        let script = format!("rmdir reports; exit {code}");
        let file = folder.join("report.json");
        let line = store.free_run("node-a").script(&script);
        let line = line.with(&["--report", file.to_str().unwrap()]);
        let ended = line.end().with_code(code);
        let words = format!(
            "can't be written: No such file or directory (os error 2); the run has ended, and its exit code {code} stands"
        );
        assert_eq!(ended.stderr.matches(&words).count(), 1, "{ended:?}");
        assert_eq!(store.history()[0]["exit_code"], code);
    }
}

/// A report in place of the database would forget every grant.
#[test]
fn no_output_replaces_a_file_of_the_store() {
    let store = Store::new();
    let database = store.database();
    let link = store.file("link.json");
    std::os::unix::fs::symlink(&database, &link).unwrap();
    let paths = [
        database.to_str().unwrap().to_owned(),
        format!("{}-wal", database.display()),
        format!(
            "{}/../state/tokens.db-shm",
            store.path().join("state").display()
        ),
        link.to_str().unwrap().to_owned(),
        format!("{}-locks/report.json", database.display()),
    ];
    let run = || store.free_run("node-a").job(&["touch", "ran"]);
    let refused = |line: Line, path: &str| {
        let ended = line.end().with_code(64);
        ended.says(&[path, "names a file of the store"]);
    };
    std::fs::create_dir_all(store.file("state")).unwrap();
    for path in &paths {
        refused(run().with(&["--report", path]), path);
        assert!(!database.exists(), "the store was not asked");
    }
    assert!(!store.file("ran").exists());
    run().end().with_code(0);
    let beside = format!("{}.json", database.display());
    run().with(&["--report", &beside]).end().with_code(0);
    for path in &paths {
        refused(run().with(&["--report", path]), path);
        refused(store.verb(&["metrics", "--textfile", path]), path);
        refused(store.verb(&["page", "--output", path]), path);
    }
    assert_eq!(store.history().len(), 2);
}

#[test]
fn a_special_file_is_written_to_and_not_replaced() {
    use std::os::unix::fs::FileTypeExt;
    let store = Store::new();
    let pipe = store.file("report.json");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let reader = {
        let pipe = pipe.clone();
        std::thread::spawn(move || read(&pipe))
    };
    let (line, _) = with_report(&store, store.free_run("node-a").job(&["true"]));
    line.end().with_code(0);
    assert_eq!(reader.join().unwrap()["outcome"], "succeeded");
    assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn a_symbolic_link_stays_one() {
    let store = Store::new();
    let target = store.file("elsewhere.json");
    std::fs::write(&target, "old").unwrap();
    std::os::unix::fs::symlink(&target, store.file("report.json")).unwrap();
    let (line, file) = with_report(&store, store.free_run("node-a").job(&["true"]));
    line.end().with_code(0);
    assert!(std::fs::symlink_metadata(&file).unwrap().is_symlink());
    assert_eq!(read(&target)["outcome"], "succeeded");
}

#[test]
fn a_report_to_standard_output_replaces_no_file() {
    let store = Store::new();
    let log = store.file("log");
    std::fs::write(&log, "before\n").unwrap();
    let script = format!("exec \"$@\" >> {}", log.display());
    let run = store
        .free_run("node-a")
        .with(&["--report", "/dev/stdout"])
        .job(&["echo", "ran"]);
    run.under(&["sh", "-c", &script, "sh"]).end().with_code(0);
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.starts_with("before\nran\n{"), "{text}");
}
