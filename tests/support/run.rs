//! One call of tokenrun: its words and environment, and its result.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::Signal;

use super::{TOKENRUN, children, signal, until};

/// The variable by which a test knows its processes.
pub(super) const MARK: &str = "TEST_FOLDER";

/// A command line, before it is started.
#[derive(Clone)]
pub(crate) struct Line {
    folder: PathBuf,
    under: Vec<OsString>,
    program: OsString,
    words: Vec<OsString>,
    job: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    stdin: Option<PathBuf>,
    own_group: bool,
}

impl Line {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            under: Vec::new(),
            program: TOKENRUN.into(),
            words: Vec::new(),
            job: Vec::new(),
            environment: Vec::new(),
            stdin: None,
            own_group: false,
        }
    }

    /// More words before the job's. `--option=value` takes the place of an earlier one.
    pub(crate) fn with(mut self, words: &[&str]) -> Self {
        for word in words {
            if let Some((option, _)) = word.split_once('=') {
                let begin = format!("{option}=");
                self.words
                    .retain(|earlier| !earlier.to_string_lossy().starts_with(&begin));
            }
            self.words.push(word.into());
        }
        self
    }

    /// Durations with which a takeover takes some seconds: the job is asked to end
    /// 3.7 s after the last heartbeat, killed at 4 s, and others may come at 5 s.
    pub(crate) fn hasty(self) -> Self {
        self.with(&[
            "--heartbeat=1s",
            "--takeover-after=5s",
            "--kill-grace=300ms",
            "--store-timeout=1s",
        ])
    }

    /// Durations with which the job is asked to end 8.7 s after the last heartbeat: a busy machine can look at it before.
    #[allow(dead_code)] // not every program of tests has use for it
    pub(crate) fn less_hasty(self) -> Self {
        self.hasty().with(&["--takeover-after=10s"])
    }

    /// The job.
    pub(crate) fn job(mut self, words: &[&str]) -> Self {
        self.job = words.iter().map(OsString::from).collect();
        self
    }

    /// A shell as the job.
    pub(crate) fn script(self, script: &str) -> Self {
        self.job(&["sh", "-c", script])
    }

    /// A program that executes tokenrun, with its own words first.
    pub(crate) fn under(mut self, words: &[&str]) -> Self {
        self.under.extend(words.iter().map(OsString::from));
        self
    }

    /// As a user who is not root, even if the test is.
    pub(crate) fn unprivileged(self) -> Self {
        if super::is_root() {
            return self.with_user("65534");
        }
        self
    }

    /// As the user of this number; the test must be root.
    pub(crate) fn with_user(mut self, user: &str) -> Self {
        let (user, group) = (format!("--reuid={user}"), format!("--regid={user}"));
        // The build's folder may be closed to others. Another process copies: what this
        // one has open for writing, a test that forks just now has too, and then it
        // can't be executed.
        let copy = self.folder.join("tokenrun");
        let done = Command::new("cp").arg(TOKENRUN).arg(&copy).status();
        assert!(done.unwrap().success());
        self.program = copy.into();
        self.under(&["setpriv", &user, &group, "--clear-groups"])
    }

    /// As the user of this number, also in this group; the test must be root.
    #[allow(dead_code)] // not every program of tests has use for it
    pub(crate) fn with_user_in(mut self, user: u32, group: Option<u32>) -> Self {
        // As above; each user has a copy, which another's run does not keep from being written.
        let copy = self.folder.join(format!("tokenrun-{user}"));
        if !copy.exists() {
            let done = Command::new("cp").arg(TOKENRUN).arg(&copy).status();
            assert!(done.unwrap().success());
        }
        self.program = copy.into();
        let ids = [format!("--reuid={user}"), format!("--regid={user}")];
        let groups = group.map_or_else(
            || "--clear-groups".to_owned(),
            |group| format!("--groups={group}"),
        );
        self.under(&["setpriv", &ids[0], &ids[1], &groups])
    }

    /// Another program than the binary under test.
    pub(crate) fn program(mut self, program: &str) -> Self {
        self.program = program.into();
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment
            .push((name.into(), value.as_ref().to_owned()));
        self
    }

    pub(crate) fn stdin(mut self, file: &Path) -> Self {
        self.stdin = Some(file.to_owned());
        self
    }

    /// Without these words of before.
    pub(crate) fn without(mut self, words: &[&str]) -> Self {
        self.words.retain(|word| !words.iter().any(|it| word == it));
        self
    }

    /// As the first process of a pid namespace.
    #[allow(dead_code)] // not every program of tests has use for it
    pub(crate) fn with_pid_1(self) -> Self {
        self.under(&new_pid_namespace(&["--mount-proc"]))
    }

    /// As from another host on which the store is mounted too: the locks are not there.
    pub(crate) fn elsewhere(self, store: &super::Store) -> Self {
        let hide = "mount -t tmpfs none \"$0\" && exec \"$@\"";
        self.under(&["unshare", "-rm", "sh", "-c", hide])
            .under(&[store.locks().to_str().unwrap()])
    }

    /// In a process group of its own.
    pub(crate) fn in_own_group(mut self) -> Self {
        self.own_group = true;
        self
    }

    /// Without tokenrun: only the job, in the same surroundings.
    pub(crate) fn plain(mut self) -> Self {
        self.program = self.job.remove(0);
        self.words = std::mem::take(&mut self.job);
        self
    }

    /// The line as words, for a shell script to use.
    pub(crate) fn words(&self) -> Vec<OsString> {
        let mut all = self.under.clone();
        all.push(self.program.clone());
        all.extend(self.words.iter().cloned());
        if !self.job.is_empty() {
            all.push("--".into());
            all.extend(self.job.iter().cloned());
        }
        all
    }

    pub(crate) fn start(self) -> Run {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let stdout = self.folder.join(format!("stdout-{number}"));
        let stderr = self.folder.join(format!("stderr-{number}"));
        let words = self.words();
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.folder)
            .env(MARK, &self.folder)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdout(File::create(&stdout).unwrap())
            .stderr(File::create(&stderr).unwrap());
        match &self.stdin {
            Some(file) => command.stdin(File::open(file).unwrap()),
            None => command.stdin(Stdio::null()),
        };
        if self.own_group {
            command.process_group(0);
        }
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{words:?}: {error}"));
        Run {
            child,
            stdout,
            stderr,
            status: None,
        }
    }

    /// Starts it and waits for its end.
    pub(crate) fn end(self) -> Ended {
        self.start().end()
    }
}

/// A process that was started.
pub(crate) struct Run {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
    status: Option<ExitStatus>,
}

impl Run {
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub(crate) fn signal(&self, which: Signal) {
        signal(self.pid(), which);
    }

    /// The guard: the supervisor's only child.
    pub(crate) fn guard(&self) -> i32 {
        only_child(self.pid())
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap()
    }

    #[allow(dead_code)] // not every program of tests reads it while it grows
    pub(crate) fn stdout(&self) -> String {
        fs::read_to_string(&self.stdout).unwrap()
    }

    /// Waits until stderr has these words, and gives the line.
    pub(crate) fn until_says(&self, words: &str) -> String {
        until(&format!("stderr says {words:?}"), || {
            let text = self.stderr();
            let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
            let line = whole.lines().find(|line| line.contains(words));
            line.map(str::to_owned).ok_or(text.clone())
        })
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().unwrap();
        }
        self.status.is_some()
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        let status = until("tokenrun ends", || {
            if self.has_ended() {
                Ok(self.status.unwrap())
            } else {
                Err(self.stderr())
            }
        });
        Ended {
            code: status.code(),
            signal: status.signal(),
            dumped: status.core_dumped(),
            stdout: fs::read_to_string(&self.stdout).unwrap(),
            stderr: self.stderr(),
        }
    }
}

/// A pid namespace whose first process is what follows; with a user namespace, if this
/// is not root.
#[allow(dead_code)] // as above
pub(crate) fn new_pid_namespace<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["unshare", "--pid", "--fork", "--kill-child"];
    if !super::is_root() {
        words.extend(["--user", "--map-root-user"]);
    }
    words.extend(more);
    words
}

fn only_child(parent: i32) -> i32 {
    until(&format!("{parent} has one child"), || {
        match children(parent)[..] {
            [one] => Ok(one),
            ref all => Err(format!("{all:?}")),
        }
    })
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // A test that waits for something else does not show why it waits in vain.
            let status = self.child.try_wait();
            let said = fs::read_to_string(&self.stderr).unwrap_or_default();
            eprintln!("a run of this test, {status:?}, said: {said}");
        }
        if !self.has_ended() {
            // It may end at this very moment.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// How a process ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    /// Whether it left a core dump.
    #[allow(dead_code)] // Not every program of tests asks.
    pub(crate) dumped: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Checks the exit code, and gives itself back.
    #[track_caller]
    pub(crate) fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// The messages, without what the file system of the test's folder adds to them.
    pub(crate) fn messages(&self) -> Vec<&str> {
        let lines = self.stderr.lines();
        lines.filter(|line| !line.contains("overlayfs")).collect()
    }

    /// The only message.
    #[track_caller]
    pub(crate) fn message(&self) -> &str {
        match self.messages()[..] {
            [one] => one,
            _ => panic!("one message is expected: {self:?}"),
        }
    }

    /// Asserts that its messages, one or several, contain these words.
    #[allow(dead_code)] // not every program of tests has use for it
    #[track_caller]
    pub(crate) fn tells(&self, words: &[&str]) {
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is missing: {self:?}");
        }
    }

    /// Checks that the only message has all of these words.
    #[track_caller]
    pub(crate) fn says(&self, words: &[&str]) {
        let message = self.message();
        for word in words {
            assert!(message.contains(word), "{word:?} is missing: {message}");
        }
    }

    /// Checks that the only message is that the job failed.
    #[track_caller]
    #[allow(dead_code)] // Not every program of tests asks.
    pub(crate) fn says_failed(&self) {
        let message = self.message();
        assert!(is_failure(message), "{message}");
    }

    /// The messages besides the one that the job failed.
    #[allow(dead_code)] // Not every program of tests asks.
    pub(crate) fn other_messages(&self) -> Vec<&str> {
        let mut messages = self.messages();
        messages.retain(|message| !is_failure(message));
        messages
    }

    /// stdout as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

/// Whether a message says that a job ended otherwise than with 0.
fn is_failure(message: &str) -> bool {
    message.contains("\" failed: ")
}
