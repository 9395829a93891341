//! tokenrun as process 1, and where much is missing that a host has.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;

use crate::support::{
    Line, Run, Store, TOKENRUN, alive, children, is_root, new_pid_namespace, signal, until,
    until_dead,
};

/// The supervisor, as this namespace counts: the child of unshare(1).
fn supervisor(run: &Run) -> i32 {
    run.guard()
}

fn only_child(parent: i32) -> i32 {
    until(&format!("{parent} has one child"), || {
        match children(parent)[..] {
            [one] => Ok(one),
            ref all => Err(format!("{all:?}")),
        }
    })
}

/// Runs a shell script in a process's namespaces.
fn inside(pid: i32, folder: &Path, script: &str) {
    let mut enter = Command::new("nsenter");
    enter.args(["--pid", "--mount"]);
    if !is_root() {
        enter.args(["--user", "--preserve-credentials"]);
    }
    let done = enter
        .args(["--target", &pid.to_string(), "sh", "-c", script])
        .current_dir(folder)
        .status();
    assert!(done.unwrap().success());
}

/// The pid, as this namespace counts, of the process that was started inside by a
/// script with this number in it.
fn sleeping(number: &str) -> i32 {
    until(&format!("a process sleeps for {number} s"), || {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let mut pids = entries.filter_map(|it| it.file_name().to_str()?.parse::<i32>().ok());
        let is_it = |pid: &i32| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words == format!("sleep\0{number}\0").as_bytes()
        };
        pids.find(is_it).ok_or(String::new())
    })
}

#[test]
fn its_exit_status_is_the_jobs() {
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)] {
        let store = Store::new();
        let ended = store.free_run("node-a").script(script).with_pid_1().end();
        assert_eq!(ended.with_code(code).other_messages(), [""; 0]);
    }
}

#[test]
fn it_passes_a_term_on_and_ends_the_job_in_its_grace() {
    let store = Store::new();
    let script = "trap 'echo asked >> log; exit 9' TERM; echo begin job $$ >> log; \
                  while :; do sleep 0.01; done";
    let run = store.free_run("node-a").script(script).with_pid_1().start();
    store.until_begun("job");
    signal(supervisor(&run), Signal::SIGTERM);
    run.end().with_code(9);
    assert_eq!(store.log()[1..], ["asked"]);

    let store = Store::new();
    let script = "trap '' TERM; echo begin job $$ >> log; while :; do sleep 0.01; done";
    let line = store.free_run("node-a").with(&["--kill-grace=300ms"]);
    let run = line.script(script).with_pid_1().start();
    store.until_begun("job");
    signal(supervisor(&run), Signal::SIGTERM);
    run.end().with_code(137);
    assert_eq!(store.status()["state"], "free");
}

#[test]
fn a_job_that_dies_of_the_interrupt_gives_130() {
    // Process 1 can't die of a signal of its own.
    let store = Store::new();
    let line = store.free_run("node-a").with_pid_1();
    let run = line.under(&["env", "--default-signal"]).start();
    store.until_begun("node-a");
    signal(only_child(run.pid()), Signal::SIGINT);
    run.end().with_code(130);
}

#[test]
fn all_zombies_are_reaped_and_strangers_are_left_alone() {
    let store = Store::new();
    let run = store.free_run("node-a").with_pid_1().start();
    store.until_begun("node-a");
    let init = supervisor(&run);
    inside(init, store.path(), "(sleep 300.8 & sleep 300.7 &)");
    let short = sleeping("300.8");
    let stranger = sleeping("300.7");
    signal(short, Signal::SIGKILL);
    until("the orphan is reaped", || {
        let stat = fs::read_to_string(format!("/proc/{short}/stat"));
        stat.map_or(Ok(()), Err)
    });
    assert!(alive(stranger));
    store.go(0);
    run.end().with_code(0);
    until_dead(stranger);
}

#[test]
fn without_its_guard_it_tells_the_jobs_orphans_from_strangers() {
    let store = Store::new();
    let script = "(setsid env -i sleep 300.6 &); echo begin job $$ >> log; exec sleep 300";
    let line = store.free_run("node-a").hasty().with(&["-v"]);
    let run = line.script(script).with_pid_1().start();
    store.until_begun("job");
    let init = supervisor(&run);
    let orphan = sleeping("300.6");
    inside(init, store.path(), "(sleep 300.5 &)");
    let stranger = sleeping("300.5");
    // It is noted with one of the next heartbeats, for it looks every second.
    let beats = || run.stderr().matches("the heartbeat").count();
    let before = beats();
    until("some heartbeats are written", || match beats() {
        now if now >= before + 3 => Ok(()),
        now => Err(now.to_string()),
    });
    // Locked, so that tokenrun outlives its job: its end would end every process.
    let locked = store.sql();
    locked.execute_batch("BEGIN IMMEDIATE").unwrap();
    let guard = until("the guard is found", || {
        let guard = children(init).into_iter().find(|pid| *pid != stranger);
        guard.ok_or(format!("{:?}", children(init)))
    });
    signal(guard, Signal::SIGKILL);
    until_dead(orphan);
    assert!(alive(stranger));
    locked.execute_batch("ROLLBACK").unwrap();
    run.end().with_code(76);
    assert_eq!(store.history()[0]["outcome"], "lost");
}

#[test]
fn the_proc_of_another_namespace_is_not_used_and_a_warning_says_so() {
    let store = Store::new();
    let line = store.free_run("node-a").with(&["--kill-grace=300ms"]);
    let line = line.script("trap '' TERM; echo begin job $$ >> log; while :; do sleep 0.01; done");
    let run = line.under(&new_pid_namespace(&[])).start();
    store.until_begun("job");
    signal(supervisor(&run), Signal::SIGTERM);
    let ended = run.end().with_code(137);
    let [warning] = ended.other_messages()[..] else {
        panic!("{ended:?}");
    };
    for words in [
        "/proc",
        "another pid namespace",
        "only the first process of sh",
    ] {
        assert!(warning.contains(words), "{warning}");
    }
    assert_eq!(store.status()["state"], "free");
}

/// A folder with nothing but tokenrun in it, as the root.
fn in_empty_root(store: &Store) -> Line {
    let root = store.file("root");
    fs::create_dir_all(root.join("data")).unwrap();
    let done = Command::new("cp")
        .arg(TOKENRUN)
        .arg(root.join("tokenrun"))
        .status();
    assert!(done.unwrap().success());
    let mut words = vec!["unshare", "--root", root.to_str().unwrap()];
    if !is_root() {
        words.extend(["--user", "--map-root-user"]);
    }
    let words = words.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let line = store.bare(&[
        "-s",
        "/data/t.db",
        "-g",
        "job",
        "--client-id=node-a",
        "--keep=0",
    ]);
    let line = line.program("/tokenrun");
    line.under(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn nothing_but_its_own_binary_is_needed() {
    let store = Store::new();
    let line = in_empty_root(&store).job(&["/tokenrun", "--version"]);
    let ended = line.end().with_code(0);
    assert!(ended.stdout.starts_with("tokenrun "), "{ended:?}");
    ended.says(&["/proc is missing"]);
    let ended = in_empty_root(&store)
        .job(&["/tokenrun", "--nonsense"])
        .end();
    ended.with_code(64);
    let ended = in_empty_root(&store).job(&["/bin/sh"]).end().with_code(127);
    assert!(ended.stderr.contains("command not found"), "{ended:?}");
}

#[test]
fn a_user_without_a_name_and_a_home_runs_jobs() {
    let store = Store::new();
    let state = store.file("state");
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, Permissions::from_mode(0o777)).unwrap();
    let line = store.free_run("node-a").script("id -u; exit 3");
    let line = if is_root() {
        line.with_user("12345")
    } else {
        line
    };
    let ended = line.under(&["env", "--unset=HOME"]).end().with_code(3);
    ended.says_failed();
    if is_root() {
        assert_eq!(ended.stdout, "12345\n");
    }
    // Without a home there is no place for a default store.
    let line = store.bare(&["-g", "job"]).job(&["true"]);
    let line = if is_root() {
        line.with_user("12345")
    } else {
        line
    };
    let ended = line.under(&["env", "--unset=HOME"]).end().with_code(78);
    ended.says(&["HOME", "--store"]);
}

#[test]
fn a_root_file_system_that_can_only_be_read_is_enough() {
    let store = Store::new();
    let script = format!(
        "mount --bind {0} {0} && mount -o remount,bind,ro / && cd {0} && exec \"$@\"",
        store.path().display()
    );
    let mut words = new_pid_namespace(&["--mount", "--mount-proc"]);
    words.extend(["sh", "-c", &script, "sh"]);
    let job = "touch /tokenrun-was-here 2> /dev/null && exit 1; exit 4";
    let line = store.free_run("node-a").script(job).under(&words);
    line.end().with_code(4).says_failed();
    assert_eq!(store.status()["state"], "free");
}
