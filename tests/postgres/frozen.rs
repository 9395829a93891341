//! A directory of locks on a file system that hangs: a run goes on without locks, and heeds
//! signals and deadlines.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::server::Server;
use crate::site::{GROUP, Site};
use crate::support::{
    Line, Run, children, is_root, signal, until, until_dead, until_stopped, within,
};

#[track_caller]
fn done(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let advice = "it needs root, e2fsprogs, util-linux and a kernel with loop devices";
    assert!(output.status.success(), "{command:?}: {said}; {advice}");
}

/// A file system of a test's own, for an ordinary user.
struct Disk {
    folder: TempDir,
}

impl Disk {
    fn new() -> Self {
        assert!(is_root(), "run it as root: it mounts a file system");
        let disk = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let image = disk.folder.path().join("image");
        fs::File::create(&image).unwrap().set_len(8 << 20).unwrap();
        fs::create_dir(disk.path()).unwrap();
        open_to_all(disk.folder.path());
        done(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image));
        let mut mount = Command::new("mount");
        done(mount.args(["-o", "loop"]).arg(&image).arg(disk.path()));
        open_to_all(&disk.path());
        disk
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("mounted")
    }

    /// Nothing can be written to it until this is dropped, or the test ends, however.
    #[must_use]
    fn freeze(&self) -> Frozen {
        // Whatever ends the test must not end it.
        let script = "trap '' TERM INT HUP; fsfreeze -f \"$0\" && echo frozen && read -r line; fsfreeze -u \"$0\"";
        let mut keeper = Command::new("sh")
            .args(["-c", script])
            .arg(self.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut shown = String::new();
        let mut out = std::io::BufReader::new(keeper.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut shown).unwrap();
        let frozen = Frozen { keeper };
        assert_eq!(
            shown, "frozen\n",
            "fsfreeze (util-linux) does not work here"
        );
        frozen
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A process that still uses it keeps it until it ends.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

/// It is thawed when the keeper's standard input ends.
struct Frozen {
    keeper: Child,
}

impl Drop for Frozen {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

fn open_to_all(path: &Path) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(path, mode).unwrap();
}

/// Runs whose locks are on the disk, of a job that says that it has begun; one copy of the
/// program for all.
fn lines(site: &Site, disk: &Path) -> impl Fn(&str) -> Line + use<> {
    let words = ["-g", GROUP, "-v", "--keep=0", "--head-start=100ms"];
    let line = site.verb(&words).with(&["--store-timeout=2s"]);
    let line = line.script("echo begun; exec sleep 600");
    let line = line.env("XDG_STATE_HOME", disk).unprivileged();
    move |client| line.clone().with(&["--client-id", client])
}

fn until_begun(run: &Run) {
    until("the job has begun", || match run.stdout().as_str() {
        "begun\n" => Ok(()),
        _ => Err(run.stderr()),
    });
}

/// Asks for the end, and waits for it.
#[track_caller]
fn ends_by_term(run: &mut Run) {
    run.signal(Signal::SIGTERM);
    let said = run.stderr();
    until("it has ended", || {
        run.has_ended().then_some(()).ok_or(said.clone())
    });
}

#[track_caller]
fn says_why(run: &Run, disk: &Path) {
    let said = run.until_says("no lock could be taken");
    let disk = disk.to_str().unwrap();
    assert!(said.contains(disk) && said.contains("no answer"), "{said}");
}

#[test]
fn needs_root_a_frozen_directory_of_locks_delays_neither_the_job_nor_a_signal() {
    let database = Server::shared().database();
    let (site, disk) = (Site::new(database.url()), Disk::new());
    fs::create_dir(disk.path().join("tokenrun")).unwrap();
    open_to_all(&disk.path().join("tokenrun"));
    let line = lines(&site, &disk.path())("node-a");
    let thaw = disk.freeze();
    let mut run = line.start();
    // What is declared last is dropped first: nothing frozen can be killed.
    let thaw = thaw;
    until_begun(&run);
    says_why(&run, &disk.path());
    ends_by_term(&mut run);
    drop(thaw);
    assert_eq!(run.end().code, Some(143));
    let history = site.verb(&["history", "--json"]).end().json();
    assert_eq!(history[0]["outcome"], "killed");
}

#[test]
fn needs_root_a_directory_of_locks_that_is_frozen_meanwhile_does_not_hold_up_the_end() {
    let database = Server::shared().database();
    let (site, disk) = (Site::new(database.url()), Disk::new());
    let mut run = lines(&site, &disk.path())("node-a").start();
    until_begun(&run);
    let locks = fs::read_dir(disk.path().join("tokenrun/locks")).unwrap();
    assert!(locks.count() > 0, "it has a lock");
    let _thaw = disk.freeze();
    ends_by_term(&mut run);
}

#[test]
fn needs_root_a_run_that_waits_heeds_a_signal_though_its_directory_of_locks_is_frozen() {
    let database = Server::shared().database();
    let (site, disk) = (Site::new(database.url()), Disk::new());
    let lines = lines(&site, &disk.path());
    let holder = lines("node-a").start();
    until_begun(&holder);
    let waiter = lines("node-b").with(&["--wait"]);
    let thaw = disk.freeze();
    let mut waiter = waiter.start();
    let _thaw = thaw;
    waiter.until_says("waiting in the queue");
    ends_by_term(&mut waiter);
}

#[test]
fn needs_root_a_run_that_is_dead_is_taken_over_though_its_lock_can_not_be_removed() {
    let database = Server::shared().database();
    let (site, disk) = (Site::new(database.url()), Disk::new());
    let lines = lines(&site, &disk.path());
    let first = lines("node-a").start();
    until_begun(&first);
    // It has locks of its own by then.
    let mut second = lines("node-b").with(&["--wait"]).start();
    second.until_says("waiting in the queue");
    let (guard, thaw) = (first.guard(), disk.freeze());
    // Both at once: the one must not end the run because of the other.
    signal(first.pid(), Signal::SIGSTOP);
    until_stopped(first.pid());
    signal(guard, Signal::SIGKILL);
    signal(first.pid(), Signal::SIGKILL);
    drop(first);
    until_dead(guard);
    let _thaw = thaw;
    until_begun(&second);
    let said = second.until_says("took \"job\"");
    assert!(said.contains("whose holder is dead"), "{said}");
    // The process that waits for the directory is not taken for a part of the job.
    let comm = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
    let children = children(second.pid());
    let guard = children.iter().find(|pid| comm(pid) == "lease-guard\n");
    signal(*guard.unwrap(), Signal::SIGKILL);
    until("it has ended", || {
        second.has_ended().then_some(()).ok_or(second.stderr())
    });
    assert!(children.len() > 1, "a process waited for it: {children:?}");
    second.until_says("the guard of \"job\" is gone");
}

/// No process answers for this file system: each look at it waits.
#[test]
fn needs_root_a_directory_of_locks_that_never_answers_delays_neither_the_job_nor_a_signal() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    let mounted = site.file("mounted");
    fs::create_dir(&mounted).unwrap();
    let script = "trap '' TERM INT HUP; exec 3<> /dev/fuse && mount -i -t fuse -o \
                  fd=3,rootmode=40000,user_id=0,group_id=0,allow_other test \"$0\" && \
                  echo mounted && read -r line; umount -l \"$0\"";
    let mut keeper = Command::new("sh")
        .args(["-c", script])
        .arg(&mounted)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = String::new();
    let mut out = std::io::BufReader::new(keeper.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut shown).unwrap();
    assert_eq!(shown, "mounted\n", "it needs root and /dev/fuse");
    let line = lines(&site, &mounted)("node-a");
    // What its descriptor's end makes of it: every call fails.
    let abort = Frozen { keeper };
    let mut run = line.start();
    let _abort = abort;
    until_begun(&run);
    says_why(&run, &mounted);
    ends_by_term(&mut run);
}

/// The first look waits for no directory; each thing that concerns one is waited for once.
#[test]
fn needs_root_a_directory_that_hangs_costs_a_run_a_second_at_most() {
    let database = Server::shared().database();
    let (site, disk) = (Site::new(database.url()), Disk::new());
    fs::create_dir(disk.path().join("tokenrun")).unwrap();
    open_to_all(&disk.path().join("tokenrun"));
    let line = lines(&site, &disk.path())("node-a").job(&["true"]);
    line.clone().end().with_code(0);
    let _thaw = disk.freeze();
    within(Duration::from_secs(3), || {
        let started = std::time::Instant::now();
        let mut run = line.clone().start();
        until("it has ended", || {
            run.has_ended().then_some(()).ok_or(run.stderr())
        });
        started.elapsed()
    });
}

/// No directory is no place for locks, least of all the one that a run is started in.
#[test]
fn where_there_is_no_state_directory_nothing_is_left_in_the_working_directory() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    open_to_all(site.store.path());
    let line = site.short("node-a").with(&["-v"]).env("HOME", "");
    let line = line.unprivileged();
    let names = || {
        let entries = fs::read_dir(site.store.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| !name.starts_with("std")).collect();
        names.sort();
        names
    };
    let before = names();
    line.end().with_code(0);
    assert_eq!(names(), before);
}
