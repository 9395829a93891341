//! Text for stdout and stderr.

use std::io::{self, Write};

use anyhow::{Context as _, Result};

use crate::exit::Exit;
use crate::report::printable::json;
use crate::sys::errno::Errno;
use crate::sys::fds::has_stdout;

/// Prints text to stdout. A reader that has gone away (`| head`) is no failure; a stdout that was closed from the start is one.
///
/// # Errors
/// If it can't be written for another reason.
pub(crate) fn print(text: &str) -> Result<Exit> {
    put(text).map(|_| Exit::OK)
}

/// As [`print()`]. Returns whether there is still a reader.
///
/// # Errors
/// As [`print()`].
pub(crate) fn put(text: &str) -> Result<bool> {
    put_bytes(text.as_bytes())
}

/// As [`put()`], for any bytes.
///
/// # Errors
/// As [`print()`].
pub(crate) fn put_bytes(bytes: &[u8]) -> Result<bool> {
    let mut out = io::stdout().lock();
    let written = match bytes.is_empty() || has_stdout() {
        true => out.write_all(bytes).and_then(|()| out.flush()),
        // The replacement of a closed stdout would swallow the text.
        false => Err(Errno::EBADF.into()),
    };
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).context("stdout can't be written"),
    }
}

/// Writes a page to stderr; a failure shows only in the exit status.
pub(crate) fn tell(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Prints objects as a JSON array, an object a line.
///
/// # Errors
/// As [`print()`].
pub(crate) fn print_json<T: serde::Serialize>(objects: &[T]) -> Result<Exit> {
    print(&json_text(objects)?)
}

/// Objects as a JSON array, an object a line.
///
/// # Errors
/// None for tokenrun's own types.
pub(crate) fn json_text<T: serde::Serialize>(objects: &[T]) -> Result<String> {
    let lines: Result<Vec<String>, _> = objects.iter().map(serde_json::to_string).collect();
    match lines {
        Ok(lines) if lines.is_empty() => Ok("[]\n".to_owned()),
        Ok(lines) => Ok(json(format!("[\n{}\n]\n", lines.join(",\n")))),
        Err(error) => Err(error).context("a bug: JSON"),
    }
}
