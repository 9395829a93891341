//! tokenrun between other programs.

use crate::support::Store;

/// Runs a shell script in which `"$@"` is tokenrun with a job.
fn shell(store: &Store, script: &str, job: &[&str]) -> crate::support::Ended {
    let line = store.free_run("node-a").job(job);
    line.under(&["sh", "-c", script, "sh"]).end()
}

#[test]
fn data_passes_through_a_job_in_a_pipeline() {
    let store = Store::new();
    let script = r#"printf '3\n1\n2\n' | "$@" | tr '\n' ' '"#;
    let ended = shell(&store, script, &["sort"]).with_code(0);
    assert_eq!(ended.stdout, "1 2 3 ");
    assert_eq!(ended.stderr, "");
}

#[test]
fn a_job_whose_reader_has_gone_dies_of_it_as_without_tokenrun() {
    let store = Store::new();
    let script = r#"{ "$@"; echo $? > status; } | head -n 1"#;
    let ended = shell(&store, script, &["yes"]).with_code(0);
    assert_eq!(ended.stdout, "y\n");
    let status = crate::support::until("the pipeline's status is written", || {
        let text = std::fs::read_to_string(store.file("status")).unwrap_or_default();
        text.strip_suffix('\n').map(str::to_owned).ok_or(text)
    });
    assert_eq!(status, "141");
    assert_eq!(store.history()[0]["signal"], 13);
}

#[test]
fn a_listing_whose_reader_has_gone_is_no_failure() {
    let store = Store::new();
    store.free_run("node-a").job(&["true"]).end().with_code(0);
    let line = store.verb(&["history"]);
    let script = r#"{ sleep 0.2; "$@"; echo $? > status; } | true"#;
    let line = line.under(&["sh", "-c", script, "sh"]);
    line.end().with_code(0);
    let status = crate::support::until("the status is written", || {
        let text = std::fs::read_to_string(store.file("status")).unwrap_or_default();
        text.strip_suffix('\n').map(str::to_owned).ok_or(text)
    });
    assert_eq!(status, "0");
}

#[test]
fn messages_that_nobody_reads_hold_up_nothing() {
    let store = Store::new();
    // The reader of stderr never reads, and the pipe is full.
    let script = r#"
        { head -c 65536 /dev/zero >&2; "$@"; echo $? > status; } 2>&1 >/dev/null | read -r x < go
    "#;
    let line = store.free_run("node-a").with(&["-v", "--heartbeat=100ms"]);
    let job = "sleep 1; exit 8";
    let run = line.script(job).under(&["sh", "-c", script, "sh"]).start();
    let status = crate::support::until("tokenrun ends", || {
        let text = std::fs::read_to_string(store.file("status")).unwrap_or_default();
        text.strip_suffix('\n').map(str::to_owned).ok_or(text)
    });
    store.go(0);
    run.end();
    assert_eq!(status, "8");
}
