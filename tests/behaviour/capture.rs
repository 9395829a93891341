//! `--capture`: what the job prints is caught, printed only if the run fails, and stored.

use std::fs;
use std::os::unix::fs::chown;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{
    Ended, Line, Store, TOKENRUN, Terminal, alive, ctrl, is_root, script, signal, until,
    until_dead, until_stopped, within,
};

/// A run whose output is caught, as far as that is not said anew.
fn run(store: &Store, script: &str) -> Line {
    let line = store.free_run("node-a").with(&["--capture=64k"]);
    line.script(script)
}

/// stderr, without what the file system of the test's folder adds to it.
fn stderr(ended: &Ended) -> String {
    let lines = ended.stderr.split_inclusive('\n');
    lines.filter(|line| !line.contains("overlayfs")).collect()
}

/// What was printed, and then the line that says that the run failed, with this.
#[track_caller]
fn failed(ended: &Ended, how: &str) -> String {
    let text = stderr(ended);
    let lines = text.strip_suffix('\n').unwrap();
    let (printed, last) = lines.rsplit_once('\n').unwrap();
    let begin = format!("tokenrun: \"job\" failed: sh {how} after ");
    assert!(last.starts_with(&begin), "{text}");
    format!("{printed}\n")
}

/// What is kept of the newest run with output.
#[track_caller]
fn kept(store: &Store) -> Value {
    let ended = store.verb(&["output", "-g", "job", "--json"]).end();
    ended.with_code(0).json()[0].take()
}

#[test]
fn a_success_prints_nothing_and_is_stored() {
    let store = Store::new();
    let ended = run(&store, "echo out; echo err >&2").end().with_code(0);
    assert_eq!((&*ended.stdout, &*stderr(&ended)), ("", ""));
    let output = kept(&store);
    assert_eq!(output["output"], "out\nerr\n");
    assert_eq!(output["fence"], store.history()[0]["fence"]);
    assert_eq!(output["session"], store.history()[0]["session"]);
}

#[test]
fn a_failure_prints_all_in_its_order_and_then_how_it_ended() {
    let store = Store::new();
    let script = "for i in $(seq 500); do echo out $i; echo err $i >&2; done; printf end; exit 3";
    let ended = run(&store, script).end().with_code(3);
    let lines = (1..=500).map(|number| format!("out {number}\nerr {number}\n"));
    let printed: String = lines.chain(["end".to_owned()]).collect();
    assert_eq!(ended.stdout, "");
    assert_eq!(failed(&ended, "exited with 3"), format!("{printed}\n"));
    assert_eq!(kept(&store)["output"], printed);
}

#[test]
fn quiet_is_about_messages_and_not_about_output() {
    let store = Store::new();
    let script = "seq 1000; exit 3";
    for (words, cut, ends) in [(&["-q"][..], true, true), (&["-qq"], false, false)] {
        let line = run(&store, script).with(&["--capture=1k"]).with(words);
        let printed = stderr(&line.end().with_code(3));
        assert!(printed.contains("\n999\n1000\n"), "{printed}");
        let says = |words: &str| printed.contains(words);
        assert_eq!(says("the job printed 3893 bytes; its last 1024"), cut);
        assert_eq!(says("failed: sh exited with 3"), ends);
    }
}

#[test]
fn a_job_that_prints_much_is_as_quick_as_into_a_pipe_and_memory_is_bounded() {
    const PRINT: &str = "head -c 100000000 /dev/zero";
    let store = Store::new();
    let high_water = |printing: &str| {
        let script = format!("{printing}; echo begin job $$ >> log; read -r status < go; exit 0");
        let line = run(&store, &script).with(&["--capture=1M"]).start();
        let job = store.until_begun("job");
        let status = fs::read_to_string(format!("/proc/{}/status", line.pid())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        store.go(0);
        line.end().with_code(0);
        until_dead(job);
        fs::remove_file(store.file("log")).unwrap();
        let kilobytes = peak.unwrap().trim().trim_end_matches(" kB");
        kilobytes.parse::<u64>().unwrap()
    };
    let (nothing, much) = (high_water(":"), high_water(PRINT));
    assert!(much < nothing + 4_096, "{nothing} kB, then {much} kB");
    assert_eq!(kept(&store)["printed"], 100_000_000);

    let pipe = format!("{PRINT} | cat > /dev/null");
    within(Duration::from_secs(1), || {
        let begun = Instant::now();
        run(&store, &pipe).plain().end().with_code(0);
        let through_a_pipe = begun.elapsed();
        let begun = Instant::now();
        run(&store, PRINT).end().with_code(0);
        begun.elapsed().saturating_sub(2 * through_a_pipe)
    });
}

#[test]
fn what_a_job_printed_before_it_was_ended_is_not_lost() {
    let store = Store::new();
    let script = "echo before; echo began >> log; exec sleep 300";
    let line = run(&store, script).with(&["--timeout=200ms"]);
    let ended = line.end().with_code(124);
    let printed = stderr(&ended);
    let end = "before\ntokenrun: \"job\" timed out: sh ran longer than 0.2s (--timeout) on node-a, and \
               was ended\n";
    assert!(printed.ends_with(end), "{printed}");
    assert_eq!(kept(&store)["output"], "before\n");

    let killed = run(&store, "seq 20000; kill -9 $$").end().with_code(137);
    let printed = failed(&killed, "was killed by SIGKILL");
    assert!(printed.ends_with("\n20000\n"), "{killed:?}");
    assert_eq!(kept(&store)["printed"], 108_894);
}

#[test]
fn a_lost_token_shows_the_output_and_then_why() {
    let store = Store::new();
    let script = "echo before; echo began >> log; exec sleep 300";
    let line = run(&store, script).with(&["--heartbeat=100ms"]).start();
    store.until_logged("began");
    store.verb(&["revoke", "-g", "job"]).end().with_code(0);
    let ended = line.end().with_code(76);
    let last: Vec<&str> = ended.stderr.lines().rev().take(2).collect();
    assert!(
        last[0].contains("an operator revoked the token"),
        "{ended:?}"
    );
    assert_eq!(last[1], "before");
    assert_eq!(kept(&store)["output"], "before\n");
}

#[test]
fn a_stop_signal_ends_the_job_as_always() {
    let store = Store::new();
    let script = "trap 'echo cleaned up; exit 9' TERM; echo began | tee -a log; \
                  while :; do sleep 0.01; done";
    let line = run(&store, script).start();
    store.until_logged("began");
    line.signal(Signal::SIGTERM);
    let ended = line.end().with_code(9);
    assert_eq!(failed(&ended, "exited with 9"), "began\ncleaned up\n");
}

#[test]
fn a_killed_tokenrun_leaves_no_job_however_much_it_prints() {
    let store = Store::new();
    let script = "echo begin job $$ >> log; exec yes";
    let line = run(&store, script).start();
    let job = store.until_begun("job");
    line.signal(Signal::SIGKILL);
    until_dead(job);
    line.end();
    let none = store.verb(&["output", "-g", "job"]).end().with_code(1);
    none.says(&["no output of any run of \"job\" is stored", "--capture"]);
}

#[test]
fn the_deadline_does_not_wait_for_a_stopped_tokenrun() {
    let store = Store::new();
    let script = "echo begin job $$ >> log; exec yes";
    let line = run(&store, script).hasty().start();
    let job = store.until_begun("job");
    line.signal(Signal::SIGSTOP);
    // The pipe is full, and nothing reads it.
    until_dead(job);
    line.signal(Signal::SIGCONT);
    let ended = line.end().with_code(76);
    assert!(ended.stderr.contains("y\ny\ny\n"), "{:?}", ended.code);
}

#[test]
fn a_daemon_that_holds_the_pipe_open_does_not_delay_the_end() {
    let store = Store::new();
    let script = "echo before; (trap '' PIPE; until test -e over; do sleep 0.01; done; \
                  echo late || echo refused > late) & exit 0";
    let line = run(&store, script).with(&["--leftovers=leave"]);
    line.end().with_code(0);
    assert_eq!(kept(&store)["output"], "before\n");
    fs::write(store.file("over"), "").unwrap();
    assert_eq!(store.until_line("late"), "refused\n");
}

#[test]
fn a_daemon_that_goes_on_printing_does_not_delay_the_end_either() {
    let store = Store::new();
    let script = "echo before; yes & exit 5";
    let line = run(&store, script).with(&["--leftovers=leave"]);
    line.end().with_code(5);
    assert!(kept(&store)["printed"].as_u64() >= Some(7));
}

#[test]
fn a_job_that_was_stopped_goes_on_printing() {
    let store = Store::new();
    let script = "echo one; echo begin job $$ >> log; until read -r status < go; do :; done; \
                  echo two; exit 3";
    let line = run(&store, script).start();
    let job = store.until_begun("job");
    signal(job, Signal::SIGSTOP);
    until_stopped(job);
    signal(job, Signal::SIGCONT);
    store.go(0);
    let ended = line.end().with_code(3);
    assert_eq!(failed(&ended, "exited with 3"), "one\ntwo\n");
}

#[test]
fn closed_standard_streams_do_no_harm() {
    let store = Store::new();
    let close = "exec <&- >&- 2>&-; exec \"$@\"";
    let line = run(&store, "echo out; echo err >&2; exit 6");
    line.under(&["sh", "-c", close, "sh"]).end().with_code(6);
    assert_eq!(kept(&store)["output"], "out\nerr\n");
}

#[test]
fn any_bytes_are_kept() {
    let store = Store::new();
    let script = r"printf 'a\377\0\033[31mb'; exit 3";
    let into = |line: Line, file: &str| {
        let into = format!("\"$@\" > {file}.out 2> {file}");
        line.under(&["sh", "-c", &into, "sh"]).end();
        fs::read(store.file(file)).unwrap()
    };
    let bytes = b"a\xff\0\x1b[31mb";
    let printed = into(run(&store, script), "printed");
    let expected = [bytes, &b"\ntokenrun: \"job\" failed: sh exited with 3"[..]].concat();
    assert!(
        printed.windows(expected.len()).any(|it| it == expected),
        "{printed:?}"
    );
    let verb = store.verb(&["output", "-g", "job"]);
    assert_eq!(into(verb, "output"), b"");
    assert_eq!(fs::read(store.file("output.out")).unwrap(), bytes);
    assert_eq!(kept(&store)["output"], Value::Null);
    assert_eq!(kept(&store)["output_base64"], "Yf8AG1szMW1i");
}

#[test]
fn on_a_terminal_control_characters_are_shown_and_a_job_is_interrupted() {
    let store = Store::new();
    let mut terminal = Terminal::new(&store, &store.free_run("node-a").with(&["--capture"]));
    let job = r#"printf "\033[31mred\t\r\n"; test -t 0 && ! test -t 1 && exit 3"#;
    fs::write(store.file("job"), job).unwrap();
    let read = |shown: &str| {
        assert!(shown.contains(r"\u{1b}[31mred"), "{shown:?}");
        assert!(!shown.contains("\u{1b}[31m"), "{shown:?}");
    };
    let shown = terminal.run("t -- sh job");
    read(&shown);
    assert!(shown.contains("failed: sh exited with 3"), "{shown:?}");
    let database = store.database();
    let verb = format!("{TOKENRUN} output -g job -s {}", database.display());
    read(&terminal.run(&verb));

    terminal.line("t -- sh -c 'echo up; echo up >> log; exec sleep 300'");
    store.until_logged("up");
    terminal.key(ctrl('c'));
    let shown = terminal.prompt();
    assert!(shown.contains("up\r\n"), "{shown:?}");
    assert_eq!(terminal.status(), 130);
    assert_eq!(store.history()[0]["signal"], 2);
}

#[test]
fn only_stdout_and_stderr_of_the_job_are_changed() {
    let store = Store::new();
    let list = ["sh", "-c", "ls /proc/self/fd | grep -vx 256"];
    // Another test may open a terminal just now, which all processes inherit.
    let close = "for fd in $(ls /proc/$$/fd); do [ $fd -gt 2 ] && eval \"exec $fd>&-\"; done; \
                 exec \"$@\"";
    let clean = |line: Line| line.job(&list).under(&["bash", "-c", close, "bash"]).end();
    let plain = clean(store.free_run("node-a")).with_code(0);
    clean(store.free_run("node-a").with(&["--capture"])).with_code(0);
    assert_eq!(kept(&store)["output"], *plain.stdout);

    // The job alone can print to the pipe, and tokenrun alone reads it.
    let line = run(
        &store,
        "echo begin job $$ >> log; until read -r status < go; do :; done",
    );
    let line = line.start();
    let job = store.until_begun("job");
    let links = |pid: i32| {
        let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let paths = entries.map(|entry| fs::read_link(entry.unwrap().path()).unwrap_or_default());
        paths.collect::<Vec<_>>()
    };
    let pipe = fs::read_link(format!("/proc/{job}/fd/1")).unwrap();
    assert_eq!(fs::read_link(format!("/proc/{job}/fd/2")).unwrap(), pipe);
    let count = |pid| links(pid).iter().filter(|link| **link == pipe).count();
    until("the guard has closed it", || match count(line.guard()) {
        0 => Ok(()),
        more => Err(more.to_string()),
    });
    assert_eq!((count(line.pid()), count(job)), (1, 2));
    store.go(0);
    line.end().with_code(0);
}

#[test]
fn a_stderr_that_is_not_read_holds_no_token_and_can_be_stopped() {
    let store = Store::new();
    // More than a pipe holds; the shell reads nothing before the file is there.
    let line = run(&store, "head -c 300000 /dev/zero; exit 3").with(&["--capture=1M"]);
    let reader = "\"$@\" 2>&1 > /dev/null | \
                  { until test -e ended; do sleep 0.01; done; cat > /dev/null; }";
    let line = line.under(&["bash", "-c", reader, "bash"]);
    let line = line.under(&["sh", "-c", "echo $$ > own; exec \"$@\"", "sh"]);
    let run = line.start();
    store.until_line("own");
    // It is stored after the release, and before it is printed.
    until("the output is stored", || {
        let output = store.verb(&["output", "-g", "job", "--json"]).end();
        match output.code {
            Some(0) => Ok(()),
            _ => Err(format!("{output:?}")),
        }
    });
    assert_eq!(store.status()["state"], "free");
    let own: i32 = store.until_line("own").trim().parse().unwrap();
    assert!(alive(own));
    assert_eq!(kept(&store)["printed"], 300_000);
    signal(own, Signal::SIGTERM);
    until_dead(own);
    fs::write(store.file("ended"), "").unwrap();
    run.end();
}

#[test]
fn a_nested_run_shows_its_output_and_stores_none() {
    let store = Store::new();
    let database = store.database();
    let inner = format!(
        "{} -s {} -g job --capture -- sh -c 'echo inner; exit 7'",
        TOKENRUN,
        database.display()
    );
    let ended = store.free_run("node-a").script(&inner).end().with_code(7);
    let shown = stderr(&ended);
    assert!(
        shown.starts_with("inner\ntokenrun: \"job\" failed: sh exited with 7"),
        "{shown}"
    );
    store.verb(&["output", "-g", "job"]).end().with_code(1);
    // The outer one's is everything.
    run(&store, &format!("echo outer; {inner}"))
        .end()
        .with_code(7);
    let shown = kept(&store)["output"].as_str().unwrap().to_owned();
    let begin = "outer\ninner\ntokenrun: \"job\" failed: sh exited with 7";
    assert!(shown.starts_with(begin), "{shown}");
}

#[test]
fn a_job_that_was_not_started_has_no_output() {
    let store = Store::new();
    let line = store.free_run("node-a").with(&["--capture"]);
    let file = store.file("script");
    script(&file, "#!/nowhere/interpreter\n");
    let ended = line.job(&[file.to_str().unwrap()]).end().with_code(127);
    ended.says(&["command not found"]);
    store.verb(&["output", "-g", "job"]).end().with_code(1);
    let held = store.free_run("node-b").start();
    store.until_begun("node-b");
    let refused = run(&store, "echo x").end().with_code(75);
    refused.says(&["\"job\" is held by node-b"]);
    store.go(0);
    held.end().with_code(0);
}

#[test]
fn it_is_taken_from_the_environment_and_a_size_is_checked() {
    let store = Store::new();
    let line = || store.free_run("node-a").job(&["echo", "x"]);
    for (value, printed) in [("4k", ""), ("true", ""), ("0", "x\n"), ("false", "x\n")] {
        let ended = line().env("TOKENRUN_CAPTURE", value).end().with_code(0);
        assert_eq!(ended.stdout, printed, "{value}");
    }
    for value in ["12", "2M", "soon", ""] {
        let option = format!("--capture={value}");
        let ended = line().with(&[&option]).end().with_code(64);
        ended.says(&["--capture", "64k"]);
    }
    let ended = store.free_run("node-a").job(&["true"]);
    let ended = ended.without(&["--keep=0"]).with(&["--capture", "64k"]);
    ended.end().with_code(64).says(&["--capture=64k"]);
    let hold = store.verb(&["hold", "-g", "job", "--capture"]).end();
    hold.with_code(64).says(&["unknown option --capture"]);
}

#[test]
fn a_report_that_can_not_be_written_is_said_after_the_output() {
    for (code, printed) in [(0, ""), (3, "x\n")] {
        let store = Store::new();
        fs::create_dir(store.file("reports")).unwrap();
        let script = format!("echo x; rmdir reports; exit {code}");
        let line = run(&store, &script).with(&["--report", "reports/report.json"]);
        let ended = line.end().with_code(code);
        let rest = ended.stderr.strip_prefix(printed).expect(&ended.stderr);
        let words = "tokenrun: the report reports/report.json can't be written";
        assert!(rest.starts_with(words), "{ended:?}");
    }
}

#[test]
fn a_success_that_is_not_recorded_is_a_failure_that_shows_the_output() {
    // A run without a key has succeeded for its caller, and shows nothing.
    for (words, code, printed) in [(&["--once=k"][..], 74, "x\n"), (&["--timeout=1h"], 0, "")] {
        let store = Store::new();
        let script = "echo x; echo begin job $$ >> log; read -r status < go; exit 0";
        let line = run(&store, script).with(words).start();
        store.until_begun("job");
        fs::remove_dir_all(store.file("state")).unwrap();
        store.go(0);
        let ended = line.end().with_code(code);
        let rest = stderr(&ended);
        let rest = rest.strip_prefix(printed).expect(&ended.stderr);
        let [kept, recorded] = rest.lines().collect::<Vec<_>>()[..] else {
            panic!("{ended:?}");
        };
        assert!(kept.contains("the output of sh is not stored"), "{kept}");
        assert!(recorded.contains("did not confirm"), "{recorded}");
    }
}

/// A job whose output is not read would wait for ever.
#[test]
fn needs_root_without_a_thread_to_read_the_output_no_job_is_started() {
    assert!(
        is_root(),
        "this test needs root: it needs a user of its own"
    );
    let store = Store::new();
    let state = store.file("state");
    fs::create_dir(&state).unwrap();
    chown(&state, Some(54_321), Some(54_321)).unwrap();
    let script = "echo ran";
    // For tokenrun and its guard.
    let limit = "ulimit -u 2; exec \"$@\"";
    let line = run(&store, script).with_user("54321");
    let line = line.under(&["bash", "-c", limit, "bash"]);
    let ended = line.end().with_code(71);
    ended.says(&["the operating system refused"]);
    // The token was not even asked for.
    store.verb(&["status", "-g", "job"]).end().with_code(78);
    assert_eq!(store.history(), Vec::<Value>::new());
}

#[test]
fn a_hook_reads_what_was_caught() {
    let store = Store::new();
    let line = run(&store, "echo caught; exit 3").with(&["--on-failure", "cat > hook"]);
    line.end().with_code(3);
    assert_eq!(fs::read_to_string(store.file("hook")).unwrap(), "caught\n");
}
