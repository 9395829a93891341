//! Text for stdout and stderr, questions to a person, and the screen that the reader has.

use std::env;
use std::io::{self, BufRead as _, IsTerminal as _, Write};

use anyhow::{Context as _, Result};
use jiff::tz::TimeZone;

use super::failure::Failure;
use super::options::{Colours, ScreenOptions};
use crate::exit;
use crate::exit::Exit;
use crate::report::acts::not_agreed;
use crate::report::log::Log;
use crate::report::printable::{json, printable};
use crate::report::screen::Screen;
use crate::report::screen::Times;
use crate::sys::errno::Errno;
use crate::sys::fds::has_stdout;
use crate::sys::terminal::{Size, size_of_stdout};

/// Prints text to stdout. A reader that has gone away (`| head`) is no failure; a stdout that was closed from the start is one.
pub(crate) fn print(text: &str) -> Result<Exit> {
    put(text).map(|_| Exit::OK)
}

/// Prints text to stdout. Returns false if the reader has gone away.
pub(crate) fn put(text: &str) -> Result<bool> {
    put_bytes(text.as_bytes())
}

/// Prints bytes to stdout. Returns false if the reader has gone away.
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
pub(crate) fn print_json<T: serde::Serialize>(objects: &[T]) -> Result<Exit> {
    print(&json_text(objects)?)
}

/// Objects as a JSON array, an object a line.
pub(crate) fn json_text<T: serde::Serialize>(objects: &[T]) -> Result<String> {
    let lines: Result<Vec<String>, _> = objects.iter().map(serde_json::to_string).collect();
    match lines {
        Ok(lines) if lines.is_empty() => Ok("[]\n".to_owned()),
        Ok(lines) => Ok(json(format!("[\n{}\n]\n", lines.join(",\n")))),
        Err(error) => Err(error).context("a bug: JSON"),
    }
}

/// A person can be asked: the question goes to stderr, the answer comes from stdin.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Refuses a far-reaching command where no person can be asked. `what` is the part of the command line
/// that makes it so, `line` the command that needs no question.
pub(crate) fn check_can_ask(yes: bool, what: &str, line: &str) -> Result<()> {
    if yes || can_ask() {
        return Ok(());
    }
    let text = format!(
        "{what}, and there is no terminal to ask on: add --yes, as in tokenrun {line} --yes"
    );
    Err(Failure::new(exit::USAGE, "usage", text).into())
}

/// Asks, and waits for a line. Anything but `y` and `yes` means no, and so does the end of the
/// input; a message says then that nothing was changed.
pub(crate) fn agrees(question: &str, log: &mut Log) -> Result<bool> {
    tell(&format!("tokenrun: {} [y/N] ", printable(question)));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    // An answer that is no text is no yes.
    match read {
        Err(error) if error.kind() != io::ErrorKind::InvalidData => {
            return Err(error).context("the answer can't be read");
        }
        Ok(0) => tell("\n"),
        _ => {}
    }
    let agreed = is_yes(&answer);
    if !agreed {
        log.write(&not_agreed(), false);
    }
    Ok(agreed)
}

fn is_yes(answer: &str) -> bool {
    let answer = answer.trim();
    ["y", "yes"]
        .iter()
        .any(|yes| answer.eq_ignore_ascii_case(yes))
}

/// The screen at stdout, now: a terminal can change its size.
pub(crate) fn screen(options: ScreenOptions) -> Screen {
    let terminal = size_of_stdout();
    let times = match terminal.is_some() && !options.utc {
        true => Times::Local(zone(options.utc)),
        false => Times::Utc,
    };
    Screen {
        width: width(variable("COLUMNS").as_deref(), terminal),
        height: None,
        colours: has_colours(options.color, terminal.is_some(), variable),
        times,
    }
}

/// The zone of the times that the reader gives. One that can't be found is UTC.
pub(crate) fn zone(utc: bool) -> TimeZone {
    match utc {
        true => TimeZone::UTC,
        false => TimeZone::system(),
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// The widest screen, in columns: a chart has a cell for each.
const WIDEST: usize = 1_000;

fn width(columns: Option<&str>, terminal: Option<Size>) -> Option<usize> {
    let columns = columns.and_then(|text| text.trim().parse::<usize>().ok());
    let columns = columns.filter(|columns| *columns > 0);
    let columns = columns.map(|columns| columns.min(WIDEST));
    columns.or_else(|| terminal.and_then(|size| size.columns))
}

fn has_colours(
    wish: Colours,
    is_terminal: bool,
    variable: impl Fn(&str) -> Option<String>,
) -> bool {
    let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = variable("TERM").as_deref() == Some("dumb");
    match wish {
        Colours::Always => true,
        Colours::Never => false,
        Colours::Auto => is_terminal && !refused && !is_dumb,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        for yes in ["y\n", "Y\n", "yes\r\n", " Yes "] {
            assert!(is_yes(yes), "{yes:?}");
        }
        for no in ["", "\n", "n\n", "no\n", "yess\n", "y n\n", "j\n"] {
            assert!(!is_yes(no), "{no:?}");
        }
    }

    #[test]
    fn the_variable_goes_before_the_terminal() {
        let terminal = Some(Size {
            columns: Some(100),
            lines: Some(20),
        });
        assert_eq!(width(None, terminal), Some(100));
        assert_eq!(width(None, None), None);
        assert_eq!(width(Some("60"), terminal), Some(60));
        assert_eq!(width(Some("60"), None), Some(60));
        assert_eq!(width(Some("99999999999"), None), Some(WIDEST));
        for odd in ["", "0", "-1", "many"] {
            assert_eq!(width(Some(odd), terminal), Some(100), "{odd}");
        }
    }

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        let none = |_: &str| None;
        let no_color = |name: &str| (name == "NO_COLOR").then(|| "1".to_owned());
        let dumb = |name: &str| (name == "TERM").then(|| "dumb".to_owned());
        assert!(has_colours(Colours::Auto, true, none));
        assert!(!has_colours(Colours::Auto, false, none));
        assert!(!has_colours(Colours::Auto, true, no_color));
        assert!(!has_colours(Colours::Auto, true, dumb));
        assert!(has_colours(Colours::Always, false, no_color));
        assert!(!has_colours(Colours::Never, true, none));
        let empty = |name: &str| (name == "NO_COLOR").then(String::new);
        assert!(has_colours(Colours::Auto, true, empty));
    }
}
