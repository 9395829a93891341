//! A limit on the size of files (`ulimit -f`) is the job's, and not the store's.

use std::fs;
use std::os::unix::fs::chown;

use crate::support::{Line, Store, is_root, until};

/// A store that an ordinary user may write.
fn ordinary() -> Store {
    let store = Store::new();
    let state = store.file("state");
    fs::create_dir(&state).unwrap();
    if is_root() {
        chown(&state, Some(65534), Some(65534)).unwrap();
    }
    store
}

/// With what this says to a shell before it executes tokenrun.
fn limited(line: Line, limits: &str) -> Line {
    let script = format!("{limits}; exec \"$@\"");
    line.under(&["bash", "-c", &script, "bash"])
}

#[test]
fn a_limit_for_the_job_does_not_affect_the_store() {
    let store = ordinary();
    let line = store.free_run("node-a").unprivileged().job(&["true"]);
    limited(line.clone(), "ulimit -Sf 0").end().with_code(0);
    let status = limited(store.verb(&["status", "--json"]), "ulimit -Sf 0");
    assert!(status.end().with_code(0).stdout.contains("succeeded"));
}

#[test]
fn many_heartbeats_fit_into_a_small_limit_of_an_ordinary_user() {
    for kind in ["-Sf", "-f"] {
        let store = ordinary();
        let line = store.free_run("node-a").unprivileged().hasty();
        let line = line.with(&["--heartbeat=100ms"]).script("sleep 6");
        let ended = limited(line, &format!("ulimit {kind} 100")).end();
        ended.with_code(0);
    }
}

#[test]
fn a_limit_that_is_too_small_for_the_store_is_named() {
    let store = ordinary();
    let line = store.free_run("node-a").unprivileged().job(&["true"]);
    for limit in ["4", "16"] {
        let ended = limited(line.clone(), &format!("ulimit -f {limit}")).end();
        ended.with_code(78).says(&["file size limit", "ulimit -f"]);
    }
    line.clone().end().with_code(0);
    let ended = limited(line, "ulimit -f 8").end();
    ended.with_code(78).says(&["file size limit", "ulimit -f"]);
}

/// What the kernel lets a shell do, tokenrun does too.
#[test]
fn a_hard_limit_is_lifted_where_that_is_permitted() {
    let store = Store::new();
    let line = store
        .free_run("node-a")
        .job(&["bash", "-c", "ulimit -Hf; ulimit -Sf"]);
    let may = limited(line.clone().plain(), "ulimit -f 16 && ulimit -f unlimited");
    let may = may.end().stdout == "unlimited\nunlimited\n";
    let ended = limited(line, "ulimit -f 16").end();
    assert_eq!(ended.code, Some(if may { 0 } else { 78 }), "{ended:?}");
    assert!(!may || ended.stdout == "16\n16\n", "{ended:?}");
}

#[test]
fn the_job_has_its_limit_and_dies_of_it_as_without_tokenrun() {
    let store = Store::new();
    let script = "ulimit -Sf; ulimit -Hf; grep -E 'SigIgn|SigBlk' /proc/self/status; \
                  head -c 200000 /dev/zero > big; echo $?; wc -c < big";
    for limits in [
        "ulimit -f 64",
        "ulimit -Sf 64",
        "ulimit -Sf 64; ulimit -Hf 90",
        "trap '' XFSZ; ulimit -f 64",
        "ulimit -f unlimited",
    ] {
        let line = limited(store.free_run("node-a").script(script), limits);
        let plain = line.clone().plain().end().with_code(0).stdout;
        assert_eq!(line.end().with_code(0).stdout, plain, "{limits}");
    }
}

#[test]
fn the_commands_of_hold_have_its_inherited_limit() {
    let store = Store::new();
    let command = "{ ulimit -Sf; ulimit -Hf; grep SigIgn /proc/self/status; } > printed.new; mv printed.new printed";
    let words = ["hold", "-g", "job", "--on-change", command];
    let file = store.file("runtime.json");
    let line = store.verb(&words).with(&["--runtime-file"]);
    let line = line.with(&[file.to_str().unwrap()]);
    let _agent = limited(line, "ulimit -Sf 64").start();
    let printed = until("the command has printed", || {
        fs::read_to_string(store.file("printed")).map_err(|error| error.to_string())
    });
    let (limit, ignored) = printed.split_once("\nSigIgn:").unwrap();
    // In blocks of 512 bytes.
    assert_eq!(limit, "128\nunlimited");
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    let xfsz = nix::libc::SIGXFSZ - 1;
    assert_eq!(ignored >> xfsz & 1, 0, "{printed}");
}
