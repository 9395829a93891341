//! What tokenrun can be asked to do, a file each.

pub mod act;
pub mod check;
pub mod config;
pub mod doctor;
pub mod explain;
pub mod fence;
pub mod groups;
pub mod history;
pub mod hold;
pub mod init;
pub mod judge;
pub mod manual;
pub mod metrics;
pub mod once;
pub mod run;
pub mod stand_in;
pub mod status;

use std::io::{self, Write};

use nix::errno::Errno;

use crate::exit::{self, Exit};
use crate::report::message::{Level, Message};
use crate::run::ending::of_trouble;
use crate::store::StoreError;
use crate::sys::fds::has_stdout;

/// Why a command could not be carried out: the exit code, and what to tell.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// What to tell people.
    pub message: Message,
}

impl Failure {
    /// Bad configuration, or something else that one sentence explains.
    #[must_use]
    pub const fn new(code: u8, event: &'static str, text: String) -> Self {
        let message = Message {
            level: Level::Warning,
            event,
            text,
        };
        Self { code, message }
    }

    /// A store that could not be used.
    #[must_use]
    pub fn of_store(error: &StoreError) -> Self {
        Self::new(of_trouble(error.trouble), "store_failed", error.to_string())
    }

    /// Something that the operating system refused.
    #[must_use]
    pub fn of_system(what: &str, error: &io::Error) -> Self {
        Self::new(exit::SYSTEM, "system", format!("{what}: {error}"))
    }
}

/// Prints text to stdout. A reader that has gone away (`| head`) is no failure; a stdout
/// that was closed from the start is one.
///
/// # Errors
/// If it can't be written for another reason.
pub fn print(text: &str) -> Result<Exit, Failure> {
    put(text).map(|_| Exit::OK)
}

/// As [`print()`], and says whether there is a reader still.
///
/// # Errors
/// As [`print()`].
pub fn put(text: &str) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    let written = match text.is_empty() || has_stdout() {
        true => out.write_all(text.as_bytes()).and_then(|()| out.flush()),
        // What stands in its place would swallow it.
        false => Err(Errno::EBADF.into()),
    };
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::of_system("stdout can't be written", &error)),
    }
}

/// Writes a page to stderr: who sees none of it has its exit status.
pub fn tell(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Prints objects as a JSON array, an object a line.
///
/// # Errors
/// As [`print()`].
pub fn print_json<T: serde::Serialize>(objects: &[T]) -> Result<Exit, Failure> {
    print(&json_text(objects)?)
}

/// Objects as a JSON array, an object a line.
///
/// # Errors
/// None that our own types give.
pub fn json_text<T: serde::Serialize>(objects: &[T]) -> Result<String, Failure> {
    let lines: Result<Vec<String>, _> = objects.iter().map(serde_json::to_string).collect();
    match lines {
        Ok(lines) if lines.is_empty() => Ok("[]\n".to_owned()),
        Ok(lines) => Ok(format!("[\n{}\n]\n", lines.join(",\n"))),
        Err(error) => Err(Failure::new(exit::BUG, "bug", format!("JSON: {error}"))),
    }
}
