//! Hooks: what is run at which end, with which variables, and what never changes because of it.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::support::{
    Ended, Line, Run, Store, TOKENRUN, alive, children, signal, until, until_dead,
};

/// A hook that writes down its variables and its stdin.
fn telling(name: &str) -> String {
    format!(
        "{{ echo {name} \"$TOKENRUN_OUTCOME,$TOKENRUN_EXIT_CODE,$TOKENRUN_REASON\" \
         \"$TOKENRUN_CLIENT_ID,$TOKENRUN_GRANT,$TOKENRUN_FENCE\" \"[$(cat)]\"; }} >> report"
    )
}

/// A line with a hook for each end.
fn with_hooks(line: Line) -> Line {
    let hook = |option: &str| format!("--on-{option}={}", telling(option));
    let hooks = ["success", "failure", "refused"].map(hook);
    line.with(&hooks.each_ref().map(String::as_str))
}

fn report(store: &Store) -> Vec<String> {
    let text = fs::read_to_string(store.file("report")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// What the only hook wrote, without the fence.
#[track_caller]
fn only(store: &Store) -> String {
    match &report(store)[..] {
        [one] => {
            let (begin, _) = one.rsplit_once(',').unwrap();
            begin.to_owned()
        }
        all => panic!("one hook is expected: {all:?}"),
    }
}

/// Has a line with hooks end, and checks what the hook writes.
#[track_caller]
fn tells(store: &Store, line: Line, code: i32, expected: &str) -> Ended {
    let _ = fs::remove_file(store.file("report"));
    let ended = with_hooks(line).end().with_code(code);
    assert_eq!(only(store), expected, "{ended:?}");
    assert_eq!(ended.stdout, "");
    ended
}

#[test]
fn each_end_of_a_job_runs_its_hook_and_keeps_its_exit_status() {
    let store = Store::new();
    let line = || store.free_run("a");
    let script = |script: &str| line().script(script);
    tells(&store, script("exit 0"), 0, "success succeeded,0, a,bind");
    let fence = report(&store)[0].rsplit_once(',').unwrap().1.to_owned();
    let granted = store.history()[0]["fence"].to_string();
    assert_eq!(fence, format!("{granted} []"));
    tells(
        &store,
        script("exit 3"),
        3,
        "failure failed,3,exit_status a,bind",
    );
    tells(
        &store,
        script("kill -9 $$"),
        137,
        "failure killed,137,signal a,bind",
    );
    let late = script("sleep 300").with(&["--timeout=100ms", "--kill-grace=1s"]);
    tells(&store, late, 124, "failure timed_out,124,timeout a,bind");
    let missing = line().job(&["/nowhere/job"]);
    tells(&store, missing, 127, "failure not_started,127,not_found a,");
}

#[test]
fn the_caught_output_is_a_file_that_each_command_of_a_hook_can_read() {
    let store = Store::new();
    let hook = "--on-success=for n in 1 2; do cat; cat \"$TOKENRUN_OUTPUT_FILE\"; done >> report";
    let line = || store.free_run("a").script("echo done").with(&[hook]);
    line().with(&["--capture"]).end().with_code(0);
    // Stdin is at its end after the first command.
    assert_eq!(report(&store), ["done"; 3]);
    line().end().with_code(0);
    assert_eq!(report(&store), ["done"; 3], "nothing was caught");
}

#[test]
fn a_lost_token_is_a_failure() {
    let store = Store::new();
    let run = with_hooks(store.free_run("a").with(&["--heartbeat=1s"])).start();
    store.until_begun("a");
    store.verb(&["revoke", "-g", "job"]).end().with_code(0);
    run.end().with_code(76);
    assert_eq!(only(&store), "failure lost,76,revoked a,bind");
}

#[test]
fn a_store_that_can_not_be_used_is_a_failure() {
    let store = Store::new();
    fs::create_dir(store.file("state")).unwrap();
    fs::write(store.database(), "no database").unwrap();
    let line = with_hooks(store.free_run("a")).script("echo ran >> log");
    let ended = line.end();
    let code = ended.code.unwrap();
    assert!([69, 77, 78].contains(&code), "{ended:?}");
    let report = only(&store);
    let begin = format!("failure store_failed,{code},");
    assert!(report.starts_with(&begin), "{report}");
    assert!(store.log().is_empty());
}

#[test]
fn a_refusal_has_its_own_hook_whatever_its_exit_status() {
    let store = Store::new();
    store.run("a").script("true").end().with_code(0);
    let other = || store.run("b").script("true");
    tells(&store, other(), 75, "refused refused,75,bound b,");
    let silent = other().with(&["-q", "-E", "0"]);
    let ended = tells(&store, silent, 0, "refused refused,0,bound b,");
    assert_eq!(ended.messages(), [""; 0]);
}

#[test]
fn neither_a_key_that_is_done_nor_a_usage_error_runs_a_hook() {
    let store = Store::new();
    let keyed = || store.free_run("a").with(&["--once=monday"]).script("true");
    keyed().end().with_code(0);
    with_hooks(keyed()).end().with_code(0);
    with_hooks(keyed())
        .with(&["--keep=soon"])
        .end()
        .with_code(64);
    assert_eq!(report(&store), [""; 0]);
}

#[test]
fn hooks_come_from_the_variables_and_the_file_too_and_an_empty_one_is_none() {
    let store = Store::new();
    let line = || store.free_run("a").script("true");
    let file = store.file("config.toml");
    let text = "[defaults]\non-success = \"echo file >> report\"\nhook-timeout = \"9s\"\n";
    fs::write(&file, text).unwrap();
    let filed = || line().env("TOKENRUN_CONFIG", &file);
    filed().end().with_code(0);
    let variable = || filed().env("TOKENRUN_ON_SUCCESS", "echo variable >> report");
    variable().end().with_code(0);
    variable().with(&["--on-success="]).end().with_code(0);
    filed().env("TOKENRUN_ON_SUCCESS", "").end().with_code(0);
    assert_eq!(report(&store), ["file", "variable"]);
}

#[test]
fn the_hook_comes_after_the_release_and_its_tokenrun_is_a_run_of_its_own() {
    let store = Store::new();
    let database = store.database();
    // The same group and client: it would be nested, or held, if the token were not released.
    let hook = format!(
        "{TOKENRUN} -s {} -g job --client-id b --head-start 0 -- \
         sh -c 'echo $TOKENRUN_GRANT $TOKENRUN_SESSION' >> report; echo $? $TOKENRUN_SESSION >> report",
        database.display()
    );
    let line = store.free_run("a").script("true");
    let line = line.with(&[&format!("--on-success={hook}")]);
    line.env("TOKENRUN_HOOK_TIMEOUT", "1m").end().with_code(0);
    let report = report(&store);
    let [inner, outer] = &report[..] else {
        panic!("{report:?}");
    };
    let (grant, session) = inner.split_once(' ').unwrap();
    assert_eq!(grant, "bind");
    let (code, outer) = outer.split_once(' ').unwrap();
    assert_eq!(code, "0");
    assert_ne!(session, outer);
}

#[test]
fn a_tokenrun_in_a_hook_has_no_hooks_of_its_own_by_variable_or_file() {
    let store = Store::new();
    let database = store.database();
    let again = format!(
        "echo hook >> report; {TOKENRUN} -s {} -g job -- false",
        database.display()
    );
    let file = store.file("config.toml");
    fs::write(&file, format!("[defaults]\non-failure = {again:?}\n")).unwrap();
    let line = store.free_run("a").script("exit 3");
    line.env("TOKENRUN_CONFIG", &file).end().with_code(3);
    assert_eq!(report(&store), ["hook"]);
}

#[test]
fn a_nested_run_leaves_the_report_to_the_run_around_it() {
    let store = Store::new();
    let database = store.database();
    let inner = format!(
        "{TOKENRUN} -s {} -g job -- true; exit 3",
        database.display()
    );
    let file = store.file("config.toml");
    let hooks = "[defaults]\non-success = \"echo success >> report\"\non-failure = \"echo failure >> report\"\n";
    fs::write(&file, hooks).unwrap();
    let line = store.free_run("a").script(&inner);
    line.env("TOKENRUN_CONFIG", &file).end().with_code(3);
    assert_eq!(report(&store), ["failure"]);
}

#[test]
fn its_output_goes_to_stderr_and_it_reads_nothing() {
    let store = Store::new();
    let line = store.free_run("a").script("echo job");
    let line = line.with(&["--on-success=cat; echo hook; echo error >&2; ls -l /proc/$$/fd"]);
    let ended = line.end().with_code(0);
    assert_eq!(ended.stdout, "job\n");
    assert!(ended.stderr.contains("hook\nerror\n"), "{ended:?}");
    // Nothing of tokenrun's, and no lock.
    assert!(!ended.stderr.contains("tokens.db"), "{ended:?}");
    assert!(!ended.stderr.contains("socket"), "{ended:?}");
}

/// The lock of a program around tokenrun, for example, would last as long as what a hook leaves.
#[test]
fn a_hook_has_no_descriptors_of_the_program_around_it() {
    let store = Store::new();
    let listing = "for fd in 3 4 5 6 7 8 9 11 23; do test ! -e /proc/$$/fd/$fd || echo $fd; done";
    let line = store
        .free_run("a")
        .script("test -e /proc/$$/fd/9 && echo kept > job");
    let line = line.with(&[&format!("--on-success=(echo hook; {listing}) > hook")]);
    let around = "exec 9> lock 8< /dev/null; exec \"$@\"";
    line.under(&["bash", "-c", around, "bash"])
        .end()
        .with_code(0);
    let found = |name: &str| fs::read_to_string(store.file(name)).unwrap();
    assert_eq!(found("job"), "kept\n", "the job has them");
    assert_eq!(found("hook"), "hook\n");
}

#[test]
fn a_hook_that_fails_is_said_and_changes_nothing() {
    let store = Store::new();
    let line = || store.free_run("a").script("true");
    let ended = line().with(&["--on-success=exit 22"]).end().with_code(0);
    ended.says(&["tokenrun: the command of --on-success exited with 22"]);
    let killed = line().with(&["--on-success=kill -9 $$", "-q"]).end();
    killed
        .with_code(0)
        .says(&["the command of --on-success was killed by SIGKILL"]);
    let silent = line().with(&["--on-success=exit 22", "-qq"]).end();
    assert_eq!(silent.with_code(0).messages(), [""; 0]);
    let json = line().with(&["--on-success=exit 22", "--log-format=json"]);
    let json = json.end().with_code(0);
    let message: serde_json::Value = serde_json::from_str(json.message()).unwrap();
    assert_eq!(message["event"], "hook_failed");
    assert_eq!(message["reason"], "exit_status");
}

#[test]
fn a_hook_that_takes_too_long_is_killed_with_all_that_it_has_started() {
    let store = Store::new();
    let script = "setsid sh -c 'echo $$ >> report; exec sleep 300' & echo $$ >> report; sleep 300";
    let line = store.free_run("a").script("true");
    let line = line.with(&[&format!("--on-success={script}"), "--hook-timeout=2s"]);
    let begun = Instant::now();
    let ended = line.end().with_code(0);
    assert!(begun.elapsed() >= Duration::from_secs(2));
    ended.says(&["did not end within 2s (--hook-timeout), and was killed"]);
    let pids = report(&store);
    assert_eq!(pids.len(), 2);
    for pid in pids {
        assert!(!alive(pid.parse().unwrap()));
    }
}

#[test]
fn what_a_hook_leaves_in_the_background_has_the_same_limit() {
    let store = Store::new();
    let script = "(sleep 0.3; echo background >> report) & echo shell >> report";
    let line = store.free_run("a").script("true");
    line.with(&[&format!("--on-success={script}")])
        .end()
        .with_code(0);
    assert_eq!(report(&store), ["shell", "background"]);
}

/// Waits until a hook has written down its pid.
fn until_told(store: &Store) -> i32 {
    store.until_line("report").trim().parse().unwrap()
}

#[test]
fn a_stop_signal_ends_a_hook_at_once_and_not_the_exit_status() {
    for refused in [false, true] {
        let store = Store::new();
        if refused {
            store.run("b").script("true").end().with_code(0);
        }
        let hook = "echo $$ >> report; sleep 300";
        let line = store.free_run("a").script("exit 3");
        let line = line.under(&["env", "--default-signal"]);
        let line = line.with(&["--hook-timeout=5m"]);
        let hooks = ["failure", "refused"].map(|it| format!("--on-{it}={hook}"));
        let run = line.with(&hooks.each_ref().map(String::as_str)).start();
        let hook = until_told(&store);
        run.signal(Signal::SIGTERM);
        let ended = run.end().with_code(if refused { 75 } else { 3 });
        assert!(!alive(hook));
        assert!(
            ended.stderr.contains("was killed after a stop signal"),
            "{ended:?}"
        );
    }
}

#[test]
fn a_stop_signal_to_its_keeper_ends_a_hook_too() {
    let store = Store::new();
    let line = store.free_run("a").script("true");
    let line = line.under(&["env", "--default-signal"]);
    let hook = "--on-success=echo $PPID >> report; sleep 300";
    let run = line.with(&[hook, "--hook-timeout=5m"]).start();
    let keeper = until_told(&store);
    let shell = children(keeper);
    signal(keeper, Signal::SIGTERM);
    let ended = run.end().with_code(0);
    ended.says(&["was killed after a stop signal"]);
    assert!(shell.len() == 1 && !alive(shell[0]));
}

#[test]
fn a_keeper_that_does_not_answer_is_killed_some_time_after_the_limit() {
    let store = Store::new();
    let line = store.free_run("a").script("true");
    let hook = "--on-success=echo $PPID >> report; read -r word < go";
    let run = line.with(&[hook, "--hook-timeout=100ms"]).start();
    let keeper = until_told(&store);
    signal(keeper, Signal::SIGSTOP);
    let ended = run.end().with_code(0);
    ended.says(&["its keeper was killed, or does not answer"]);
    until_dead(keeper);
}

#[test]
fn a_hook_has_a_session_of_its_keepers_and_the_limit_on_files_of_its_caller() {
    let store = Store::new();
    let line = store.free_run("a").script("true");
    let line = line.under(&["prlimit", "--fsize=1024000:unlimited"]);
    let hook = "echo $PPID $(cut -d' ' -f6 /proc/$$/stat) $(ulimit -f) >> report";
    line.with(&[&format!("--on-success={hook}")])
        .end()
        .with_code(0);
    let said = report(&store).join(" ");
    let [keeper, session, blocks] = said.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{said}");
    };
    assert_eq!(keeper, session);
    // Of 512 bytes each.
    assert_eq!(blocks, "2000");
}

#[test]
fn a_run_that_is_stopped_tells_so_and_dies_of_its_signal() {
    let store = Store::new();
    let first = store.free_run("a").start();
    store.until_begun("a");
    let waiting = with_hooks(store.free_run("b")).with(&["--wait"]);
    let waiting = waiting.under(&["env", "--default-signal"]).start();
    waiting.until_says("in the queue");
    waiting.signal(Signal::SIGTERM);
    let ended = waiting.end();
    assert_eq!(ended.signal, Some(15), "{ended:?}");
    assert_eq!(only(&store), "failure stopped,143,signal b,");
    store.go(0);
    first.end().with_code(0);
}

#[test]
fn a_hook_lives_on_to_its_limit_when_tokenrun_is_killed() {
    let store = Store::new();
    let hook = "echo $$ >> report; sleep 1; echo done >> report; sleep 300";
    let line = store.free_run("a").script("true");
    let line = line.with(&[&format!("--on-success={hook}"), "--hook-timeout=3s"]);
    let run = line.start();
    let hook = until_told(&store);
    run.signal(Signal::SIGKILL);
    run.end();
    until("the hook goes on", || match report(&store).get(1) {
        Some(_) => Ok(()),
        None => Err(format!("{:?}", report(&store))),
    });
    until_dead(hook);
}

/// A run that is killed with its guard, and its job.
fn vanished(store: &Store, line: Line) -> String {
    let run: Run = line.start();
    let job = store.until_begun("a");
    let guard = run.guard();
    signal(run.pid(), Signal::SIGSTOP);
    signal(guard, Signal::SIGKILL);
    until_dead(guard);
    run.signal(Signal::SIGKILL);
    run.end();
    until_dead(job);
    store.status()["fence"].to_string()
}

#[test]
fn a_takeover_reports_the_run_that_vanished_beside_its_own_job() {
    let store = Store::new();
    let fence = vanished(&store, store.free_run("a").with(&["--once=monday"]));
    let hook = "echo \"$TOKENRUN_OUTCOME,$TOKENRUN_EXIT_CODE,$TOKENRUN_REASON \
                $TOKENRUN_CLIENT_ID $TOKENRUN_FENCE $TOKENRUN_ONCE_KEY\" > report";
    let line = store.free_run("b").with(&[&format!("--on-failure={hook}")]);
    let run = line.start();
    store.until_begun("b");
    // The job waits for the test: the hook does not wait for the job.
    let report = store.until_line("report");
    assert_eq!(report, format!("unknown,,dead a {fence} monday\n"));
    store.go(0);
    run.end().with_code(0);
}

#[test]
fn the_end_waits_for_the_hook_of_the_run_that_vanished() {
    let store = Store::new();
    vanished(&store, store.free_run("a"));
    let hook = "sleep 1; echo $TOKENRUN_OUTCOME >> report";
    let line = store.free_run("b").script("exit 4");
    let line = line.with(&[&format!("--on-failure={hook}")]);
    line.end().with_code(4);
    let mut report = report(&store);
    report.sort();
    assert_eq!(report, ["failed", "unknown"]);
}

#[test]
fn a_guard_that_is_killed_does_not_take_the_hook_beside_the_job_with_it() {
    let store = Store::new();
    vanished(&store, store.free_run("a"));
    let hook = "[ $TOKENRUN_OUTCOME = unknown ] || exit 0; echo $$ > report; \
                until [ -e go-on ]; do sleep 0.05; done; echo done >> report";
    let line = store.free_run("b").with(&["--hook-timeout=5m"]);
    let run = line.with(&[&format!("--on-failure={hook}")]).start();
    store.until_begun("b");
    until_told(&store);
    let guard = until("there is a guard", || {
        let name = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let all = children(run.pid());
        let guard = all.iter().find(|pid| name(pid).trim() == "lease-guard");
        guard.copied().ok_or(format!("{all:?}"))
    });
    signal(guard, Signal::SIGKILL);
    store.until_job_gone();
    fs::write(store.file("go-on"), "").unwrap();
    run.end().with_code(76);
    assert_eq!(report(&store).len(), 2);
}
