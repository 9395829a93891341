//! A hook: a shell command that reports a run's end. It is no part of the job, and nothing of the
//! run's rules depends on it.
//!
//! A *keeper* (`hook-keeper`) is executed for each hook: this program again, in a session of its own
//! and with one thread. It is a child subreaper, so that it finds every process of the hook, and
//! ends them all at the limit. It goes on when its starter is gone: the limit holds all the same.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::sys::file;
use crate::sys::signals::Inherited;
use crate::sys::wait::Status;
use crate::sys::wait::ends_within;

mod keeper;

pub use keeper::keep;

/// The order to a keeper, as JSON in its command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The command, for `/bin/sh -c`.
    pub command: String,
    /// How long it may take, in milliseconds.
    pub limit_ms: u64,
}

/// How a hook ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum HookEnd {
    /// The shell ended with this status, and no process of it is left.
    Ended(Status),
    /// It was killed at its limit.
    TimedOut,
    /// It was killed because its starter, or its keeper, received a stop signal.
    Stopped,
    /// Some of it could not be killed, and is left alone.
    Unkillable,
    /// It could not be started.
    NotStarted(String),
    /// The keeper ended without a word, or does not answer.
    Lost,
}

/// This same program, even if its file was replaced.
const ITSELF: &str = "/proc/self/exe";

/// What listings of processes show of its command line first.
const ARG0: &str = "hook-keeper";

/// How long a keeper that has reported may take to leave.
const LEAVING: Duration = Duration::from_millis(100);

/// The variable that names the file with what a hook reads from its stdin, for a second command of the same
/// hook: the keeper's own stdin, which each opening reads from its begin.
pub const OUTPUT_FILE: &str = "TOKENRUN_OUTPUT_FILE";

/// What a hook reads from its stdin; empty for /dev/null.
pub type Input = Vec<u8>;

/// A hook that was started.
#[derive(Debug)]
pub struct HookProcess {
    keeper: Child,
    link: UnixStream,
    heard: Vec<u8>,
}

impl HookProcess {
    /// Starts a keeper with its hook. `word` is the first word of a keeper's command line.
    /// `variables` are set in the hook's environment besides those of this process. May block for
    /// as long as the file system of this program does.
    ///
    /// # Errors
    /// The system cannot create a process or descriptors, or there is no /proc.
    pub fn start(
        word: &str,
        order: &Order,
        variables: &[(String, String)],
        input: &Input,
        inherited: &Inherited,
    ) -> io::Result<Self> {
        let (link, keepers_end) = UnixStream::pair()?;
        link.set_nonblocking(true)?;
        let order = serde_json::to_string(order)?;
        let mut keeper = Command::new(ITSELF);
        inherited.file_size().hand_down(&mut keeper);
        let keeper = keeper
            .arg0(ARG0)
            .args([OsString::from(word), order.into()])
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(stdin(input)?)
            .stdout(Stdio::from(OwnedFd::from(keepers_end)))
            .spawn()?;
        Ok(Self {
            keeper,
            link,
            heard: Vec::new(),
        })
    }

    /// The keeper's pid.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.keeper.id()).unwrap_or(i32::MAX)
    }

    /// How the hook ended; `None` while it runs. Does not block.
    pub fn look(&mut self) -> Option<HookEnd> {
        let mut part = [0; 1024];
        loop {
            match self.link.read(&mut part) {
                Ok(0) => break,
                Ok(read) => self.heard.extend(part.iter().take(read)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(_) => break,
            }
        }
        // An outer run must not find it among the processes that its job left behind. It may be
        // reaped already: other parts of this process reap every child.
        ends_within(self.pid(), LEAVING);
        Some(serde_json::from_slice(&self.heard).unwrap_or(HookEnd::Lost))
    }

    /// Has the keeper end the hook now.
    pub fn stop(&mut self) {
        // A keeper that is gone has ended it.
        let _ = self.link.write(&[0]);
    }

    /// Kills a keeper that should have ended. Its socket is open, so that it lives and its pid is
    /// its own.
    pub fn abandon(&mut self) {
        let _ = self.keeper.kill();
        ends_within(self.pid(), LEAVING);
    }
}

impl AsFd for HookProcess {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}

fn stdin(input: &Input) -> io::Result<Stdio> {
    if input.is_empty() {
        return Ok(Stdio::null());
    }
    let mut file: File = file::in_memory(c"hook-input")?;
    file.write_all(input)?;
    file.rewind()?;
    Ok(Stdio::from(file))
}
