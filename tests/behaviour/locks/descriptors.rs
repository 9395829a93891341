//! Who holds which lock, through which descriptors.

use std::fs;

use nix::sys::signal::Signal;

use crate::support::Store;

/// The bytes that a process has locked in this file, a descriptor each.
fn locked(pid: i32, file: &str) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
        let entry = entry.unwrap();
        let target = fs::read_link(entry.path()).unwrap_or_default();
        if target.file_name().is_some_and(|name| name == file) {
            let fd = entry.file_name().into_string().unwrap();
            let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap();
            let lock = info.lines().find(|line| line.contains("OFDLCK"));
            let words: Vec<&str> = lock.unwrap_or("-").split_whitespace().collect();
            let range = words.last_chunk::<2>().map(|range| range.join("-"));
            found.push((fd.parse().unwrap(), range.unwrap_or_default()));
        }
    }
    found
}

#[test]
fn each_process_has_one_and_the_jobs_is_out_of_the_way() {
    let store = Store::new();
    let run = store.free_run("node-a").start();
    let job = store.until_begun("node-a");
    let file: String = store.field("run.lock_file");
    let [(_, range)] = &locked(run.pid(), &file)[..] else {
        panic!("{:?}", locked(run.pid(), &file));
    };
    assert_eq!(range, "0-0", "the supervisor has the run lock");
    let [(_, range)] = &locked(run.guard(), &file)[..] else {
        panic!("{:?}", locked(run.guard(), &file));
    };
    assert_eq!(range, "1-1", "the guard has the job lock");
    assert_eq!(locked(job, &file), [(256, "1-1".to_owned())]);
    store.go(0);
    run.end().with_code(0);
}

#[test]
fn with_close_lock_the_job_has_none() {
    let store = Store::new();
    let run = store.free_run("node-a").with(&["--close-lock"]).start();
    let job = store.until_begun("node-a");
    let file: String = store.field("run.lock_file");
    assert_eq!(locked(run.guard(), &file).len(), 1);
    assert_eq!(locked(job, &file), []);
    store.go(0);
    run.end().with_code(0);
    assert_eq!(store.lock_files(), [""; 0]);
}

#[test]
fn where_no_high_number_is_allowed_the_job_has_the_next_best() {
    let store = Store::new();
    let limit = "ulimit -n 64; exec \"$@\"";
    let line = store.free_run("node-a").under(&["sh", "-c", limit, "sh"]);
    let run = line.start();
    let job = store.until_begun("node-a");
    let file: String = store.field("run.lock_file");
    assert_eq!(locked(job, &file), [(32, "1-1".to_owned())]);
    run.signal(Signal::SIGTERM);
    run.end();
}

#[test]
fn the_files_are_for_their_user_alone_and_gone_after_the_run() {
    use std::os::unix::fs::PermissionsExt as _;
    let store = Store::new();
    let umask = "umask 777; exec \"$@\"";
    let line = store.free_run("node-a");
    // The job needs an ordinary one.
    let script = "umask 022; echo \"begin node-a - $$\" >> log; until read -r l < go; do :; done";
    let line = line.script(script).under(&["sh", "-c", umask, "sh"]);
    let run = line.start();
    store.until_begun("node-a");
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let directory = store.locks();
    assert_eq!(mode(directory.clone()), 0o700);
    let file: String = store.field("run.lock_file");
    assert_eq!(store.lock_files(), std::slice::from_ref(&file));
    assert_eq!(mode(directory.join(file)), 0o600);
    store.go(0);
    run.end().with_code(0);
    assert_eq!(store.lock_files(), [""; 0]);
    assert_eq!(store.field::<Option<String>>("run.lock_file"), None);
}
