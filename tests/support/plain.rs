//! How late plain processes are on this machine, which may be busy.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use super::programs::build;

/// Plain processes that run beside something, one at a time.
pub(crate) struct Plain(Child);

impl Plain {
    /// Starts the first.
    pub(crate) fn start() -> Self {
        static BUILT: OnceLock<PathBuf> = OnceLock::new();
        let mut command = Command::new(BUILT.get_or_init(|| build("plain")));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// Waits for the one that runs now, and starts no other: how late the latest was.
    pub(crate) fn lateness(mut self) -> Duration {
        drop(self.0.stdin.take());
        let mut text = String::new();
        let mut output = self.0.stdout.take().unwrap();
        output.read_to_string(&mut text).unwrap();
        Duration::from_nanos(text.trim().parse().unwrap())
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}
