//! What the kernel gives to a guard that has no right to precedence.

use std::fs;
use std::process::{Child, Command};

/// A process that never rests, in a session of its own: it gets what the kernel gives to the guard of an ordinary user.
pub(crate) struct FairShare {
    child: Child,
    sessions: i64,
}

impl FairShare {
    /// Starts the process by this command. On an idle machine so many sessions divide its processor.
    pub(crate) fn measure(under: &[&str], sessions: i64) -> Self {
        let spin = ["sh", "-c", "while :; do :; done"];
        let mut command = Command::new("setsid");
        let child = command.args(under).args(spin).spawn().unwrap();
        Self { child, sessions }
    }

    /// How long a guard may take on this machine, as busy as it was since the start, for what takes `idle` ms at most on an
    /// idle machine.
    pub(crate) fn allows(&self, idle: i64) -> i64 {
        let text = fs::read_to_string(format!("/proc/{}/schedstat", self.child.id())).unwrap();
        // The kernel counts in ns.
        let mut numbers = text
            .split_whitespace()
            .map(|it| it.parse::<i64>().unwrap() / 1_000);
        let (ran, waited) = (numbers.next().unwrap(), numbers.next().unwrap());
        idle.max(idle * (ran + waited) / (self.sessions * ran).max(1))
    }
}

impl Drop for FairShare {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
