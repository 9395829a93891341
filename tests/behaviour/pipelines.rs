//! tokenrun between other programs.

use crate::support::{Ended, Store, until};

/// Runs a shell script in which `"$@"` is tokenrun with a job.
fn shell(store: &Store, script: &str, job: &[&str]) -> Ended {
    let line = store.free_run("node-a").job(job);
    line.under(&["sh", "-c", script, "sh"]).end()
}

/// Waits until the script has written tokenrun's exit code to a file.
fn until_status(store: &Store) -> String {
    until("tokenrun's exit code is written", || {
        let text = std::fs::read_to_string(store.file("status")).unwrap_or_default();
        text.strip_suffix('\n').map(str::to_owned).ok_or(text)
    })
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
    assert_eq!(until_status(&store), "141");
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
    assert_eq!(until_status(&store), "0");
}

/// Everything that prints: into nothing, and onto a full disk.
#[test]
fn a_failed_print_is_no_success() {
    let store = Store::new();
    let run = store.free_run("node-a").with(&["--once", "key"]);
    run.job(&["true"]).end().with_code(0);
    let commands: [&[&str]; 19] = [
        &["status"],
        &["status", "--json"],
        &["status", "--watch=1s"],
        &["history"],
        &["once", "list"],
        &["metrics"],
        &["page", "--output", "-"],
        &["explain", "-g", "job"],
        &["check", "-g", "job", "--json"],
        &["check", "-g", "job", "--succeeded-within", "1h", "--json"],
        &["pause", "-g", "job", "--json"],
        &["fence", "verify", "-g", "job", "--fence", "1", "--json"],
        &["config"],
        &["doctor"],
        &["doctor", "--json"],
        &["init"],
        &["init", "--print-sql"],
        &["groups", "--"],
        &["hold", "--help"],
    ];
    let others: [&[&str]; 4] = [
        &["--version"],
        &["-V", "-q"],
        &["--help"],
        &["completions", "bash"],
    ];
    let lines = commands.map(|words| store.verb(words));
    let lines = lines
        .into_iter()
        .chain(others.map(|words| store.bare(words)));
    for line in lines {
        for redirection in [">&-", "> /dev/full"] {
            let script = format!("exec \"$@\" {redirection}");
            let line = line.clone().under(&["sh", "-c", &script, "sh"]);
            let ended = line.clone().end();
            assert_eq!(ended.code, Some(71), "{:?}: {ended:?}", line.words());
            let shown = ended.stderr.lines().last().unwrap_or_default();
            assert!(shown.contains("stdout can't be written"), "{ended:?}");
        }
    }
    // What prints nothing does not care.
    let resume = store.verb(&["resume", "-g", "job"]);
    let resume = resume.under(&["sh", "-c", "exec \"$@\" >&-", "sh"]);
    resume.end().with_code(0);
}

#[test]
fn unread_messages_delay_nothing() {
    let store = Store::new();
    // The pipe that messages go to has a reader that never reads.
    let script = r#"{ "$@"; echo $? > status; } 2>&1 > /dev/null | { read -r x < go; }"#;
    let line = store.free_run("node-a").with(&["-v", "--heartbeat=100ms"]);
    // The job fills the pipe, and a while later ends.
    let line = line.script("timeout 1 cat /dev/zero >&2; exit 8");
    let run = line.under(&["sh", "-c", script, "sh"]).start();
    let status = until_status(&store);
    store.go(0);
    run.end();
    assert_eq!(status, "8");
    assert_eq!(store.status()["state"], "free");
}
