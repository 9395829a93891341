//! `--watch`: a listing that is shown anew, without flicker on a terminal.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::super::shared::failure::reported;
use super::super::shared::options::ScreenOptions;
use super::super::shared::printing::put;
use super::super::shared::screen::screen;
use crate::exit::Exit;
use crate::report::printable::printable;
use crate::report::screen::Screen;
use crate::sys::terminal::size_of_stdout;

/// Moves to the upper left corner.
const HOME: &str = "\u{1b}[H";
/// Clears the whole screen.
const CLEAR: &str = "\u{1b}[2J";
/// Clears the rest of the line.
const REST_OF_LINE: &str = "\u{1b}[K";
/// Clears what is below.
const BELOW: &str = "\u{1b}[J";

/// Shows what `look` finds, every so often, until the reader has gone.
///
/// # Errors
/// If the first look fails. Once something has been shown, an error takes its place.
pub(crate) fn watch(
    every: Duration,
    options: ScreenOptions,
    mut look: impl FnMut(&Screen) -> Result<String>,
) -> Result<Exit> {
    let mut first = true;
    loop {
        let terminal = size_of_stdout();
        let lines = terminal.and_then(|size| size.lines);
        let screen = Screen {
            // The line of the cursor stays free.
            height: lines.map(|lines| lines.saturating_sub(1).max(1)),
            ..screen(options)
        };
        let text = match look(&screen) {
            Ok(text) => text,
            Err(error) if !first => format!("{}\n", printable(&reported(&error).message.text)),
            Err(error) => return Err(error),
        };
        let shown = match terminal {
            Some(_) => redrawn(&text, first),
            None if first => text,
            None => format!("\n{text}"),
        };
        if !put(&shown)? {
            return Ok(Exit::OK);
        }
        first = false;
        thread::sleep(every);
    }
}

/// The text over the one before: each line replaces the old one, so that nothing is ever blank.
fn redrawn(text: &str, first: bool) -> String {
    let mut drawn = HOME.to_owned();
    if first {
        drawn.push_str(CLEAR);
    }
    for line in text.lines() {
        drawn.push_str(line);
        drawn.push_str(REST_OF_LINE);
        drawn.push('\n');
    }
    drawn.push_str(BELOW);
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_replaces_the_old_one() {
        let expected = "\u{1b}[Ha\u{1b}[K\nb\u{1b}[K\n\u{1b}[J";
        assert_eq!(redrawn("a\nb\n", false), expected);
        assert!(redrawn("a\n", true).starts_with("\u{1b}[H\u{1b}[2Ja"));
    }
}
