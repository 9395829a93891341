//! What happened, in order: the faults and the calls. All of it goes to a file, the
//! last of it is shown if something is wrong.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use super::stamps::now;

/// How much is shown.
const SHOWN: usize = 80;

/// The log of a suite.
#[derive(Debug)]
pub(crate) struct Log {
    began: u64,
    file: File,
    last: VecDeque<String>,
}

impl Log {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            began: now(),
            file: File::create(path).unwrap(),
            last: VecDeque::new(),
        }
    }

    /// Writes a line, with the time: CLOCK_MONOTONIC in nanoseconds, and milliseconds
    /// since the begin.
    pub(crate) fn say(&mut self, what: &str) {
        let now = now();
        let line = format!("{now} {:>9} ms  {what}", (now - self.began) / 1_000_000);
        writeln!(self.file, "{line}").unwrap();
        self.last.push_back(line);
        if self.last.len() > SHOWN {
            self.last.pop_front();
        }
    }

    pub(crate) fn last(&self) -> impl Iterator<Item = &String> {
        self.last.iter()
    }
}
