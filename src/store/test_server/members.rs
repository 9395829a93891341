//! Servers of the tests' own, in a temporary directory. They end when the process that started them does, however that
//! ends: another process waits for that.

use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, geteuid};

#[path = "folder.rs"]
#[allow(clippy::duplicate_mod)]
mod folder;

/// How long servers may take to answer.
const START: Duration = Duration::from_secs(30);

/// Servers that run, or are stopped.
pub(crate) struct Members {
    folder: PathBuf,
    children: Vec<Mutex<Option<Child>>>,
    /// When its other end sees the end of this pipe, the servers are killed.
    _lifeline: ChildStdin,
    keeper: Child,
}

/// The user that the servers run as, where this is root.
fn servant() -> Option<User> {
    let user = || User::from_name("nobody").ok().flatten();
    geteuid().is_root().then(user).flatten()
}

/// A server's program, which never runs as root.
pub(crate) fn as_servant(program: impl AsRef<std::ffi::OsStr>) -> Command {
    match servant() {
        None => Command::new(program),
        Some(user) => {
            let mut command = Command::new("setpriv");
            command
                .arg(format!("--reuid={}", user.uid))
                .arg(format!("--regid={}", user.gid));
            command.arg("--clear-groups").arg(program);
            command
        }
    }
}

/// Gives the servers what root has made.
pub(crate) fn give(path: &Path) {
    if let Some(user) = servant() {
        let owner = format!("{}:{}", user.uid, user.gid);
        let mut owned = Command::new("chown");
        owned.arg("-R").arg(owner).arg(path);
        assert!(owned.status().unwrap().success());
    }
}

impl Members {
    /// A place for so many servers of this kind.
    pub(crate) fn new(kind: &str, count: usize) -> Self {
        let folder = folder::create(kind, servant().as_ref());
        // Before the servers, so that none outlives this process.
        let script = format!(
            "read line; for pid in '{folder}'/pid-*; do kill -KILL $(cat $pid); done; rm -rf '{folder}'",
            folder = folder.display()
        );
        let mut keeper = Command::new("/bin/sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            _lifeline: keeper.stdin.take().unwrap(),
            keeper,
            folder,
            children: (0..count).map(|_| Mutex::new(None)).collect(),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn count(&self) -> usize {
        self.children.len()
    }

    /// The data of a server.
    pub(crate) fn data(&self, index: usize) -> PathBuf {
        self.folder.join(format!("data-{index}"))
    }

    /// Starts a server.
    pub(crate) fn start_by(&self, index: usize, command: &mut Command) {
        let log = std::fs::File::create(self.folder.join(format!("log-{index}"))).unwrap();
        let child = command
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let pid = self.folder.join(format!("pid-{index}"));
        std::fs::write(pid, child.id().to_string()).unwrap();
        *self.children[index].lock().unwrap() = Some(child);
    }

    /// Waits for something that happens soon.
    pub(crate) fn wait_until(&self, what: &str, mut happened: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !happened() {
            let log = || std::fs::read_to_string(self.folder.join("log-0")).unwrap_or_default();
            assert!(begun.elapsed() < START, "no {what}: {}", log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Removes the data of all servers, which are stopped.
    pub(crate) fn forget(&self) {
        (0..self.count()).for_each(|index| self.forget_one(index));
    }

    /// Removes the data of a server, which is stopped.
    pub(crate) fn forget_one(&self, index: usize) {
        let _ = std::fs::remove_dir_all(self.data(index));
    }

    /// The process of a server that runs.
    pub(crate) fn pid(&self, index: usize) -> u32 {
        let child = self.children[index].lock().unwrap();
        child.as_ref().unwrap().id()
    }

    fn signal(&self, index: usize, signal: Signal) {
        let id = i32::try_from(self.pid(index)).unwrap();
        kill(Pid::from_raw(id), signal).unwrap();
    }

    /// Kills a server, as a power cut does.
    pub(crate) fn kill(&self, index: usize) {
        if let Some(mut child) = self.children[index].lock().unwrap().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops a server in the middle of whatever it does.
    pub(crate) fn freeze(&self, index: usize) {
        self.signal(index, Signal::SIGSTOP);
        let tasks = format!("/proc/{}/task", self.pid(index));
        self.wait_until("a frozen server", || {
            std::fs::read_dir(&tasks).unwrap().all(|task| {
                let stat = task.and_then(|it| std::fs::read_to_string(it.path().join("stat")));
                stat.is_ok_and(|text| text.contains(") T "))
            })
        });
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self, index: usize) {
        self.signal(index, Signal::SIGCONT);
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
        for index in 0..self.count() {
            self.kill(index);
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
