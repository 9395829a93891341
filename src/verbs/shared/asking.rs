//! Questions to a person on a terminal.

use std::io::{self, BufRead as _, IsTerminal as _};

use anyhow::{Context as _, Result};

use super::failure::Failure;
use super::printing::tell;
use crate::exit;
use crate::report::acts::not_agreed;
use crate::report::log::Log;
use crate::report::printable::printable;

/// Whether a person can be asked: the question goes to stderr, the answer comes from stdin.
pub(crate) fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Refuses a far-reaching command where no person can be asked. `what` is the part of the command line
/// that makes it so, `line` the command that needs no question.
///
/// # Errors
/// If `--yes` is missing.
pub(crate) fn check(yes: bool, what: &str, line: &str) -> Result<()> {
    if yes || is_possible() {
        return Ok(());
    }
    let text = format!(
        "{what}, and there is no terminal to ask on: add --yes, as in tokenrun {line} --yes"
    );
    Err(Failure::new(exit::USAGE, "usage", text).into())
}

/// Asks, and waits for a line. Anything but `y` and `yes` means no, and so does the end of the
/// input; a message says then that nothing was changed.
///
/// # Errors
/// If the answer can't be read.
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
}
