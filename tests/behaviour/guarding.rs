//! The guard does its duty, whatever becomes of the supervisor, of itself, or of
//! the job.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::time::{Duration, Instant};

use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use rustix::process::{Resource, getrlimit};

use crate::fair_share::FairShare;
use crate::programs::unruly;
use crate::starving::{MOST_PROCESSES, USER};
use crate::support::{
    Line, Run, Store, TOKENRUN, alive, boot_ms, children, is_root, signal, until, until_dead,
    within,
};

/// A job of [`unruly`]'s that holds the lock as long as anything of it lives.
fn unruly_job(store: &Store, words: &str) -> Line {
    let script = format!(
        "exec 9>>lock; flock -n 9 || echo overlap >> log; echo \"begin node-a unruly $$\" >> log; \
         exec prlimit {MOST_PROCESSES} {} {words} > shown",
        unruly().display()
    );
    store.free_run("node-a").hasty().script(&script)
}

fn running_unruly(store: &Store, words: &str) -> Run {
    let run = unruly_job(store, words).start();
    store.until_begun("node-a");
    until("it ignores TERM", || {
        let shown = fs::read_to_string(store.file("shown")).unwrap_or_default();
        (shown == "r").then_some(()).ok_or(shown)
    });
    run
}

/// A user's limit that the program fits into, and one that it does not: the first as most systems set it, or as large as
/// the file of a program that was built for tests.
fn limits_of_locked_memory() -> [u64; 2] {
    let file = fs::metadata(TOKENRUN).unwrap().len();
    [file.max(8 << 20), 64 << 10]
}

/// True for the first line of what /proc says of the mapping of the program's code. The kernel's own (vdso) may come before.
fn is_code(line: &str) -> bool {
    line.contains(" r-xp ") && line.ends_with("/tokenrun")
}

/// The size of what is mapped up to the end of the code, in bytes: it is locked in this order.
fn mapped_with_code(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let lines = || text.lines().filter_map(|line| line.split_once(' '));
    let ends = |(range, _): (&str, &str)| {
        let (start, end) = range.split_once('-').unwrap();
        [start, end].map(|it| u64::from_str_radix(it, 16).unwrap())
    };
    let [start, _] = lines().next().map(ends).unwrap();
    let code = text.lines().find(|line| is_code(line));
    let [_, end] = code
        .and_then(|line| line.split_once(' '))
        .map(ends)
        .unwrap();
    end - start
}

/// True if the kernel takes none of the pages of the code of this process.
fn keeps_its_code(pid: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let mut code = text.lines().skip_while(|line| !is_code(line));
    let flags = code.find_map(|line| line.strip_prefix("VmFlags:"));
    flags.unwrap().split_whitespace().any(|flag| flag == "lo")
}

/// A field of what /proc says of the status of a process.
fn status(pid: i32, field: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(field));
    value.unwrap().trim_start_matches(':').trim().to_owned()
}

/// True with CAP_IPC_LOCK.
fn may_lock_all(pid: i32) -> bool {
    let all = u64::from_str_radix(&status(pid, "CapEff"), 16).unwrap();
    all >> 14 & 1 == 1
}

/// A run whose job lasts, with this limit of locked memory, which it has to raise to the hard one; also as an ordinary
/// user where the test is root.
fn lasting_runs(limit: u64) -> Vec<(Store, Run)> {
    let start = |as_other: bool| {
        let store = Store::new();
        fs::set_permissions(store.path(), Permissions::from_mode(0o1777)).unwrap();
        let script = "echo \"begin node-a $$\" >> log; sleep 600";
        let prlimit = format!("--memlock=0:{limit}");
        let line = store.free_run("node-a").script(script);
        let line = line.under(&["prlimit", &prlimit]);
        let line = if as_other { line.with_user(USER) } else { line };
        let run = line.start();
        store.until_begun("node-a");
        (store, run)
    };
    let users: &[bool] = if is_root() { &[false, true] } else { &[false] };
    users.iter().copied().map(start).collect()
}

#[test]
fn the_guard_of_a_job_that_lasts_keeps_its_code_in_memory_where_it_may() {
    let hard = getrlimit(Resource::Memlock).maximum.unwrap_or(u64::MAX);
    for limit in limits_of_locked_memory().map(|it| it.min(hard)) {
        for (_store, run) in lasting_runs(limit) {
            let guard = run.guard();
            let may = may_lock_all(guard) || limit >= mapped_with_code(guard);
            until("it has locked what it may", || {
                let some = status(guard, "VmLck") != "0 kB";
                let done = if may { keeps_its_code(guard) } else { some };
                done.then_some(()).ok_or(limit.to_string())
            });
            assert_eq!(keeps_its_code(guard), may, "{limit}");
            run.signal(Signal::SIGTERM);
            run.end().with_code(143);
        }
    }
}

const UNRULY: [&str; 6] = [
    "tree 50", "chain 3", "hydra 3", "storm 50", "waker 3", "tracer",
];

/// All in one test, so that few jobs fork without end at a time.
#[test]
fn whatever_a_job_does_it_ends_with_its_supervisor() {
    // The grace, and a margin's length at most.
    let most = Duration::from_millis(300 + 1_000);
    for words in UNRULY {
        println!("{words}");
        within(most, || {
            let store = Store::new();
            let run = running_unruly(&store, words);
            let guard = run.guard();
            // Root's guard has precedence.
            let share = (!is_root()).then(|| FairShare::measure(&[], 1));
            run.signal(Signal::SIGKILL);
            let killed = Instant::now();
            store.until_job_gone();
            let took = killed.elapsed();
            // What another guard waited for a processor, beyond an idle machine's margin.
            let waited = share.map_or(0, |it| it.allows(1_000) - 1_000);
            until_dead(guard);
            took.saturating_sub(Duration::from_millis(waited.unsigned_abs()))
        });
    }
}

#[test]
fn whatever_a_job_does_it_ends_with_its_lease() {
    for words in UNRULY {
        println!("{words}");
        within(Duration::from_secs(5), || {
            let store = Store::new();
            let run = running_unruly(&store, words);
            run.signal(Signal::SIGSTOP);
            let stopped = Instant::now();
            store.until_job_gone();
            let took = stopped.elapsed();
            run.signal(Signal::SIGCONT);
            run.end().with_code(76);
            assert_eq!(store.history()[0]["outcome"], "lost");
            assert_eq!(store.status()["state"], "free");
            took
        });
    }
}

/// A debugger holds it: no CONT makes it go on.
#[test]
fn a_guard_that_hangs_is_replaced() {
    let store = Store::new();
    let run = store.free_run("node-a").hasty().start();
    let job = store.until_begun("node-a");
    let guard = Pid::from_raw(run.guard());
    ptrace::attach(guard).unwrap();
    waitpid(guard, None).unwrap();
    run.until_says("guard");
    until_dead(guard.as_raw());
    // The tracer of a process learns of its end before its parent.
    waitpid(guard, None).unwrap();
    run.end().with_code(76);
    assert!(!alive(job) && !store.is_job_alive());
    assert_eq!(store.history()[0]["outcome"], "lost");
    assert_eq!(store.status()["state"], "free");
}

/// The shell becomes tokenrun. Its child from before leaves a process while the job runs.
#[test]
fn what_a_child_of_the_caller_leaves_is_no_process_of_the_job() {
    let store = Store::new();
    let before =
        "(until [ -e leave ]; do sleep 0.01; done; sleep 300 & echo $! > left) & exec \"$@\"";
    let line = store.free_run("node-a").hasty();
    let run = line.under(&["sh", "-c", before, "sh"]).start();
    let job = store.until_begun("node-a");
    fs::write(store.file("leave"), "").unwrap();
    let left = store.until_line("left").trim().parse().unwrap();
    // tokenrun looks for such processes each second.
    let begun = boot_ms();
    until("two more seconds of heartbeats", || {
        let last: i64 = store.cell("stamped_tick");
        (last > begun + 2_500).then_some(()).ok_or(run.stderr())
    });
    let is_guard = |pid: &i32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|it| it == "lease-guard\n")
    };
    let guard = children(run.pid()).into_iter().find(is_guard).unwrap();
    signal(guard, Signal::SIGKILL);
    run.end().with_code(76);
    assert!(!alive(job));
    assert!(alive(left));
    signal(left, Signal::SIGKILL);
}

/// Takes its time when it is asked to end.
const ORDERLY: &str = r#"
for name in TERM HUP INT; do trap "echo $name >> log; stop=1" $name; done
echo "begin orderly $$" >> log
until [ "$stop" ]; do sleep 0.01; done
until read -r status < go; do :; done
exit "$status"
"#;

fn orderly(store: &Store) -> Run {
    let line = store.free_run("node-a").script(ORDERLY).in_own_group();
    let run = line.under(&["env", "--default-signal"]).start();
    store.until_begun("orderly");
    run
}

#[track_caller]
fn assert_ends_in_order(store: &Store, run: Run, guard: i32, name: &str) {
    store.until_logged(name);
    assert!(alive(guard));
    store.go(5);
    run.end().with_code(5);
    let heard = store.log().iter().filter(|line| *line == name).count();
    assert_eq!(heard, 1);
    assert_eq!(store.history()[0]["exit_code"], 5);
    assert_eq!(store.status()["state"], "free");
}

#[test]
fn a_signal_to_the_group_leaves_the_guard_and_the_jobs_grace() {
    for which in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
        let store = Store::new();
        let run = orderly(&store);
        let guard = run.guard();
        kill(Pid::from_raw(-run.pid()), which).unwrap();
        let name = which.as_str().strip_prefix("SIG").unwrap();
        assert_ends_in_order(&store, run, guard, name);
    }
}

/// As a service manager ends a control group: one process after the other.
#[test]
fn a_signal_to_each_process_leaves_the_guard_and_the_jobs_grace() {
    for backwards in [false, true] {
        let store = Store::new();
        let run = orderly(&store);
        let guard = run.guard();
        let mut all = vec![run.pid(), guard, store.until_begun("orderly")];
        if backwards {
            all.reverse();
        }
        for pid in all {
            signal(pid, Signal::SIGTERM);
        }
        assert_ends_in_order(&store, run, guard, "TERM");
    }
}

/// killall(1) goes by the name that /proc shows.
#[test]
fn killing_by_name_leaves_the_guard_to_end_the_job() {
    let store = Store::new();
    let run = store.free_run("node-a").start();
    let job = store.until_begun("node-a");
    let guard = run.guard();
    let name = |pid: i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
    assert_eq!(name(run.pid()), "tokenrun\n");
    assert_eq!(name(guard), "lease-guard\n");
    run.signal(Signal::SIGKILL);
    until_dead(job);
    until_dead(guard);
    assert!(!store.is_job_alive());
}

/// A set-user-ID program of root's in the store's folder.
fn root_program(store: &Store) -> String {
    assert!(
        is_root(),
        "this test needs root: it makes a set-user-ID program (tests/run-all leaves it out for others)"
    );
    let copy = store.file("unruly");
    fs::copy(unruly(), &copy).unwrap();
    chown(&copy, Some(0), Some(0)).unwrap();
    fs::set_permissions(&copy, Permissions::from_mode(0o4755)).unwrap();
    fs::set_permissions(store.path(), Permissions::from_mode(0o1777)).unwrap();
    copy.to_str().unwrap().to_owned()
}

#[test]
fn needs_root_an_unkillable_process_is_reported_and_the_token_is_held() {
    let store = Store::new();
    let program = root_program(&store);
    let run = store.free_run("node-a").hasty().unprivileged();
    let run = run.job(&[&program, "root", "pid"]).start();
    let pid = store.until_line("pid").trim().parse().unwrap();
    run.signal(Signal::SIGTERM);
    let report = run.until_says("can't be killed");
    for words in [
        "\"job\" is held as long as they live",
        &format!("unruly (pid {pid}): only its user or root can end it"),
    ] {
        assert!(report.contains(words), "{report}");
    }
    // Longer than the lease at the time of the report.
    let told_at = boot_ms();
    until(
        "the lease has been renewed for longer than it lasts",
        || {
            let last: i64 = store.cell("stamped_tick");
            (last > told_at + 5_000).then_some(()).ok_or(run.stderr())
        },
    );
    assert!(alive(pid));
    let refused = store.free_run("node-b").end().with_code(75);
    refused.says(&["\"job\" is held by node-a"]);
    signal(pid, Signal::SIGKILL);
    let ended = run.end().with_code(137);
    assert_eq!(ended.stderr.matches("can't be killed").count(), 1);
    assert_eq!(store.status()["state"], "free");
    assert_eq!(store.history()[0]["signal"], 9);
}

#[test]
fn needs_root_a_hook_that_may_not_be_killed_is_left_alone_after_some_time() {
    let store = Store::new();
    let hook = format!("--on-success=exec {} root pid", root_program(&store));
    let line = store.free_run("node-a").unprivileged().script("true");
    let begun = Instant::now();
    let run = line.with(&[&hook, "--hook-timeout=1s"]).start();
    let pid = store.until_line("pid").trim().parse().unwrap();
    let ended = run.end().with_code(0);
    // The limit, and two seconds of trying.
    assert!(begun.elapsed() >= Duration::from_secs(3));
    ended.says(&["did not end in time, and some of it can't be killed: it is left alone"]);
    assert!(alive(pid));
    signal(pid, Signal::SIGKILL);
}

/// Makes the system refuse the supervisor, which is unprivileged, another thread.
fn limit_processes(store: &Store, run: &Run, limit: u32) {
    let (pid, limit) = (run.pid().to_string(), format!("--nproc={limit}:"));
    // Only its own user may.
    let line = store.bare(&[]).job(&["prlimit", "--pid", &pid, &limit]);
    let user = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    let line = if is_root() { line.under(&user) } else { line };
    line.plain().end().with_code(0);
}

#[test]
fn a_job_that_uses_up_all_processes_does_no_harm() {
    let store = Store::new();
    fs::set_permissions(store.path(), Permissions::from_mode(0o1777)).unwrap();
    let line = store.free_run("node-a").with(&["--heartbeat=300ms"]);
    let run = line.script(
        "echo \"begin node-a x $$\" >> log; until read -r status < go; do :; done; exit $status",
    );
    let run = run.unprivileged().start();
    store.until_begun("node-a");
    limit_processes(&store, &run, 1);
    run.until_says("cannot create a thread");
    limit_processes(&store, &run, 1_000);
    run.until_says("can be used again; sh went on");
    store.go(4);
    run.end().with_code(4);
    assert_eq!(store.history()[0]["outcome"], "failed");
}
