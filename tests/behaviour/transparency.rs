//! A job under tokenrun is the same as without: what it is given, what it gives back,
//! and what passes through it.

use std::fs;

use nix::sys::signal::Signal;

use crate::support::{Line, Store, alive, signal, until, until_dead};

/// What the job prints under tokenrun, and what it prints alone.
#[track_caller]
fn assert_same(line: &Line) {
    let plain = line.clone().plain().end().with_code(0);
    let under = line.clone().end().with_code(0);
    assert_eq!(under.stdout, plain.stdout);
    assert!(!plain.stdout.is_empty());
}

/// A shell script in which `"$@"` is tokenrun with this job.
fn around(store: &Store, script: &str, job: &str) -> Line {
    let line = store.free_run("node-a").script(job);
    line.under(&["bash", "-c", script, "bash"])
}

#[test]
fn every_exit_code_is_the_jobs() {
    let store = Store::new();
    for code in 0..=255 {
        let line = store.free_run("node-a").script(&format!("exit {code}"));
        line.end().with_code(code);
    }
    let codes = store.verb(&["history", "--json", "-n", "256"]).end().json();
    let codes = codes
        .as_array()
        .unwrap()
        .iter()
        .map(|run| &run["exit_code"]);
    let mut codes: Vec<_> = codes.map(|code| code.as_i64().unwrap()).collect();
    codes.sort_unstable();
    assert_eq!(codes, (0..=255).collect::<Vec<_>>());
}

#[test]
fn every_signal_that_kills_gives_128_and_its_number() {
    let store = Store::new();
    // Without those that stop or do nothing, and those that the C library keeps.
    let does_not_kill = [17, 18, 19, 20, 21, 22, 23, 28, 32, 33];
    for number in (1..=64).filter(|number| !does_not_kill.contains(number)) {
        let script = format!("ulimit -c 0; kill -{number} $$");
        let line = store.free_run("node-a").job(&["dash", "-c", &script]);
        let ended = line.under(&["env", "--default-signal"]).end();
        ended.with_code(128 + number);
        assert_eq!(store.history()[0]["signal"], number);
    }
}

#[test]
fn a_gigabyte_passes_and_tokenrun_touches_none_of_it() {
    let store = Store::new();
    // The job's parent is the guard, and the guard's is tokenrun.
    let job = "cat; set -- $(cat /proc/$PPID/stat); cat /proc/$PPID/io /proc/$4/io > io";
    let numbers = "seq 100000000 219305000 | head -c 1G";
    let script = format!("cmp <({numbers}) <({numbers} | \"$@\") && echo same");
    let ended = around(&store, &script, job).end().with_code(0);
    assert_eq!(ended.stdout, "same\n");
    let io = fs::read_to_string(store.file("io")).unwrap();
    let counts = io.lines().filter_map(|line| {
        let (name, count) = line.split_once(": ")?;
        matches!(name, "rchar" | "wchar").then(|| count.parse::<u64>().unwrap())
    });
    let counts: Vec<_> = counts.collect();
    assert_eq!(counts.len(), 4, "{io}");
    assert!(counts.iter().all(|count| *count < 1 << 20), "{io}");
}

/// Closes a descriptor, says so, and ends on order.
fn closing(descriptor: u8) -> String {
    format!(
        "exec {descriptor}>&-; echo begin job $$ >> log; \
         until read -r status < go; do :; done; exit $status"
    )
}

#[test]
fn a_reader_of_the_job_sees_the_end_when_the_job_closes_its_output() {
    for descriptor in [1, 7] {
        let store = Store::new();
        let script = format!(
            "mkfifo pipe; {{ cat < pipe; echo end >> log; }} & exec \"$@\" {descriptor}> pipe"
        );
        let run = around(&store, &script, &closing(descriptor)).start();
        let job = store.until_begun("job");
        store.until_logged("end");
        assert!(alive(job));
        store.go(8);
        run.end().with_code(8);
    }
}

#[test]
fn a_writer_to_the_job_gets_an_error_when_the_job_closes_its_input() {
    let store = Store::new();
    let script = "mkfifo pipe; { yes > pipe; echo writer $? >> log; } & exec \"$@\" < pipe";
    let run = around(&store, script, &closing(0)).start();
    let job = store.until_begun("job");
    assert_eq!(store.until_logged("writer "), "writer 141");
    assert!(alive(job));
    store.go(8);
    run.end().with_code(8);
}

#[test]
fn the_environment_keeps_its_order() {
    let store = Store::new();
    let line = store.free_run("node-a").job(&["cat", "/proc/self/environ"]);
    let surroundings = ["env", "ZZ=1", "AA=2", "EMPTY=", "MM=a=b", "LF=a\nb", "_=x"];
    let line = line.under(&surroundings);
    let plain = line.clone().plain().end().with_code(0).stdout;
    let under = line.end().with_code(0).stdout;
    let entries = under.split_inclusive('\0');
    let others = entries.filter(|entry| !entry.starts_with("TOKENRUN_"));
    assert_eq!(others.collect::<String>(), plain);
    assert!(plain.contains("ZZ=1\0AA=2\0"), "{plain}");
}

#[test]
fn arguments_are_any_bytes() {
    let store = Store::new();
    let line = store.free_run("node-a");
    let line = line.job(&[
        "sh",
        "-c",
        "printf '[%s]' \"$@\" | od -An -v -tx1",
        "sh",
        "--",
        "-g",
    ]);
    let bytes = "exec \"$@\" \"$(printf '\\377\\376\\001\\033x')\" '' \"$(printf 'a\\nb')\"";
    assert_same(&line.under(&["sh", "-c", bytes, "sh"]));
}

#[test]
fn limits_niceness_and_mask_are_tokenruns() {
    let store = Store::new();
    let script = "cat /proc/self/limits /proc/self/oom_score_adj; nice; umask; pwd";
    let surroundings =
        "ulimit -n 300 -s 4096 -c 0 -t 4000 -f 200000; umask 0137; cd /; exec nice -n 7 \"$@\"";
    let line = store.free_run("node-a").script(script);
    assert_same(&line.under(&["bash", "-c", surroundings, "bash"]));
}

#[test]
fn it_dies_of_a_pipe_without_a_reader_as_alone() {
    let store = Store::new();
    let script = "\"$@\" | true; echo ${PIPESTATUS[0]}";
    for (setting, code) in [
        ("--default-signal=PIPE", "141\n"),
        ("--ignore-signal=PIPE", "1\n"),
    ] {
        let job = "until ! echo x; do :; done 2> /dev/null; exit 1";
        let words = ["env", setting, "bash", "-c", script, "bash"];
        let line = store.free_run("node-a").script(job).under(&words);
        assert_eq!(line.end().with_code(0).stdout, code);
    }
}

#[test]
fn a_message_stream_that_is_full_or_closed_changes_nothing() {
    let store = Store::new();
    for redirection in [
        "2> /dev/full",
        "2>&-",
        "> /dev/full 2> /dev/full",
        "<&- >&- 2>&-",
    ] {
        let script = format!("exec \"$@\" {redirection}");
        let line = around(&store, &script, "exit 6").with(&["-v"]);
        line.end().with_code(6);
    }
    let line = store.free_run("node-a").job(&["no-such-command"]);
    line.under(&["sh", "-c", "exec \"$@\" 2> /dev/full", "sh"])
        .end()
        .with_code(127);
}

#[test]
fn leftovers_that_are_left_alone_keep_nothing_of_tokenruns() {
    let store = Store::new();
    let job = "(setsid sh -c 'echo begin left $$ >> log; exec sleep 300' &); \
               until grep -q 'begin left' log 2> /dev/null; do sleep 0.01; done; exit 3";
    let line = store.free_run("node-a").script(job);
    line.with(&["--leftovers=leave"]).end().with_code(3);
    let left = store.until_begun("left");
    assert!(alive(left));
    // No process blocks the next run.
    store.free_run("node-b").job(&["true"]).end().with_code(0);
    until("it has its own program", || {
        let name = fs::read_to_string(format!("/proc/{left}/comm")).unwrap();
        if name == "sleep\n" { Ok(()) } else { Err(name) }
    });
    signal(left, Signal::SIGKILL);
    until_dead(left);
}

#[test]
fn a_time_out_is_reported_everywhere() {
    let store = Store::new();
    let line = store.free_run("node-a").job(&["sleep", "300"]);
    let line = line.with(&["--timeout=300ms", "--report", "report.json"]);
    line.end()
        .with_code(124)
        .says(&["longer than 0.3s (--timeout)"]);
    let report = fs::read_to_string(store.file("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["outcome"], "timed_out");
    assert_eq!(report["tokenrun_exit_code"], 124);
    assert_eq!(report["signal"], 15);
    assert_eq!(store.history()[0]["outcome"], "timed_out");
}
