//! What a job is given: as if tokenrun were not there, and a few variables.

use std::fs;

use crate::support::{Line, Store};

/// What the job prints under tokenrun, and what it prints alone.
#[track_caller]
fn assert_same(line: &Line) {
    let plain = line.clone().plain().end().with_code(0);
    let under = line.clone().end().with_code(0);
    assert_eq!(under.stdout, plain.stdout);
    assert!(!plain.stdout.is_empty());
}

#[test]
fn it_gets_variables_about_its_run() {
    let store = Store::new();
    let script = "env | grep ^TOKENRUN_ | sort";
    let ended = store.free_run("node-a").script(script).end().with_code(0);
    let history = &store.history()[0];
    let expected = format!(
        "TOKENRUN_CLIENT_ID=node-a\nTOKENRUN_FENCE={}\nTOKENRUN_GRANT=bind\n\
         TOKENRUN_GROUP=job\nTOKENRUN_SESSION={}\n",
        history["fence"],
        history["session"].as_str().unwrap()
    );
    assert_eq!(ended.stdout, expected);
}

#[test]
fn variables_of_an_outer_run_of_another_group_are_cleared() {
    let store = Store::new();
    let line = store.free_run("node-a").script("env | grep ^TOKENRUN_");
    let line = line
        .env("TOKENRUN_GROUP", "outer")
        .env("TOKENRUN_PREVIOUS_CLIENT", "someone")
        .env("TOKENRUN_FENCE", "1")
        .env("TOKENRUN_ONCE_KEY", "outer's");
    let ended = line.end().with_code(0);
    for wrong in ["outer", "someone", "TOKENRUN_FENCE=1\n"] {
        assert!(!ended.stdout.contains(wrong), "{ended:?}");
    }
    assert_eq!(ended.stderr, "");
}

#[test]
fn it_has_tokenruns_streams_and_arguments() {
    let store = Store::new();
    let input = store.file("input");
    fs::write(&input, "some\0 input\n").unwrap();
    let script = r#"cat; printf '[%s]' "$@"; echo oops >&2"#;
    let words = ["sh", "-c", script, "sh", "", "a b", "--keep", "-- x"];
    let line = store.free_run("node-a").job(&words).stdin(&input);
    let ended = line.end().with_code(0);
    assert_eq!(ended.stdout, "some\0 input\n[][a b][--keep][-- x]");
    assert_eq!(ended.stderr, "oops\n");
}

#[test]
fn it_has_tokenruns_directory_umask_and_limits() {
    let store = Store::new();
    let surroundings = "umask 027; ulimit -n 400; cd /usr; exec \"$@\"";
    let line = store.free_run("node-a");
    let line = line.script("pwd; umask; ulimit -n; ulimit -s; ulimit -c; nice");
    assert_same(&line.under(&["sh", "-c", surroundings, "sh"]));
}

#[test]
fn it_has_the_signal_mask_and_the_ignored_signals_that_tokenrun_was_given() {
    let store = Store::new();
    let job = ["grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"];
    let line = store.free_run("node-a").job(&job);
    assert_same(&line);
    let ignoring = "--ignore-signal=INT,HUP,USR1,PIPE,CHLD,TSTP,ALRM";
    let blocking = "--block-signal=TERM,USR2,CHLD,WINCH,TTIN,RTMIN";
    assert_same(&line.clone().under(&["env", ignoring, blocking]));
    assert_same(&line.under(&["env", "--ignore-signal=PIPE"]));
}

#[test]
fn it_has_tokenruns_descriptors_and_the_lock_and_no_others() {
    let store = Store::new();
    // The lock has a number of its own, which no other file has here.
    let list = ["sh", "-c", "ls /proc/self/fd | grep -vx 256"];
    let line = store.free_run("node-a").job(&list);
    assert_same(&line);
    let open = "exec 7</etc/passwd 8>>extra; exec \"$@\"";
    assert_same(&line.under(&["sh", "-c", open, "sh"]));
    let line = store.free_run("node-a").with(&["--close-lock"]);
    assert_same(&line.job(&["ls", "/proc/self/fd"]));
    let read = store.free_run("node-a").script("cat <&7; echo extra >&8");
    let open = "echo seven > seven; exec 7<seven 8>>extra; exec \"$@\"";
    let ended = read.under(&["sh", "-c", open, "sh"]).end().with_code(0);
    assert_eq!(ended.stdout, "seven\n");
    assert_eq!(fs::read_to_string(store.file("extra")).unwrap(), "extra\n");
}

#[test]
fn closed_standard_streams_do_no_harm() {
    let store = Store::new();
    let close = "exec <&- >&- 2>&-; exec \"$@\"";
    let line = store.free_run("node-a").script("exit 6");
    let line = line.under(&["sh", "-c", close, "sh"]);
    line.end().with_code(6);
    assert_eq!(store.history()[0]["outcome"], "failed");
}

#[test]
fn it_stays_in_tokenruns_process_group_and_session() {
    let store = Store::new();
    let script = r#"set -- $(cat /proc/$$/stat); echo "$5 $6""#;
    let line = store.free_run("node-a").script(script).in_own_group();
    let run = line.start();
    let pid = run.pid();
    let ended = run.end().with_code(0);
    assert!(ended.stdout.starts_with(&format!("{pid} ")), "{ended:?}");
}

#[test]
fn arguments_are_never_stored() {
    let store = Store::new();
    let line = store.free_run("node-a").job(&["echo", "hunter2"]);
    line.end().with_code(0);
    assert_eq!(store.history()[0]["program"], "echo");
    for entry in fs::read_dir(store.file("state")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let bytes = fs::read(path).unwrap();
        assert!(!bytes.windows(7).any(|seven| seven == b"hunter2"));
    }
}
