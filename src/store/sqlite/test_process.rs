//! Other processes for tests: this same program, started again for the one test that started it.
//! There it finds that it has a part.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

const PART: &str = "TOKENRUN_TEST_PART";
const FILE: &str = "TOKENRUN_TEST_FILE";

/// The file on which this process plays its part. `None`: it is not a test process.
pub(super) fn part() -> Option<PathBuf> {
    std::env::var_os(PART)?;
    Some(std::env::var_os(FILE)?.into())
}

/// Blocks until the test lets it go on.
pub(super) fn wait_to_be_let_go() {
    let _ = std::io::stdin().read_line(&mut String::new());
}

/// A process with a part. It ends with its handle, even when stopped.
pub(super) struct TestProcess {
    child: Child,
    says: BufReader<ChildStdout>,
}

impl TestProcess {
    /// A command that plays its part in a test of this name, started by `program`, to which the
    /// test process's own command line is added.
    pub(super) fn command_through(program: &[&OsStr], test: &str, file: &Path) -> Command {
        let test_process = std::env::current_exe().unwrap();
        let words: Vec<&OsStr> = program
            .iter()
            .copied()
            .chain([test_process.as_os_str()])
            .collect();
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(PART, "test_process")
            .env(FILE, file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command
    }

    /// A command that plays its part in a test of this name.
    pub(super) fn command(test: &str, file: &Path) -> Command {
        Self::command_through(&[], test, file)
    }

    pub(super) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let says = BufReader::new(child.stdout.take().unwrap());
        Self { child, says }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line with `word` in it, and returns the rest of the line.
    pub(super) fn heard(&mut self, word: &str) -> String {
        let mut line = String::new();
        while self.says.read_line(&mut line).unwrap() > 0 {
            if let Some((_, rest)) = line.split_once(word) {
                return rest.trim().to_owned();
            }
            line.clear();
        }
        panic!("the test_process ended without saying {word:?}");
    }

    /// Lets it go on.
    pub(super) fn let_go(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Lets it go on to its end.
    pub(super) fn finish(mut self) {
        self.let_go();
        self.child.wait().unwrap();
    }
}

impl Drop for TestProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
