//! What a command line that can't be used is answered with: one line.

use std::ffi::OsString;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::Cli;
use crate::exit;

/// A command line that asks for nothing that can be done, or for help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    /// What to print.
    pub text: String,
    /// It was asked for: to stdout, with exit code 0.
    pub asked_for: bool,
    /// The exit code.
    pub code: u8,
}

impl Unusable {
    pub(super) fn usage(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            asked_for: false,
            code: exit::USAGE,
        }
    }
}

/// A word as it can be typed into a shell.
pub(super) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// One line for what clap found wrong: what, where, and what to write instead.
pub(super) fn explained(error: &clap::Error, arguments: &[OsString]) -> Unusable {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Unusable {
            text: error.render().to_string(),
            asked_for: true,
            code: 0,
        },
        _ => Unusable::usage(one_line(error, arguments)),
    }
}

fn one_line(error: &clap::Error, arguments: &[OsString]) -> String {
    if let Some(word) = command_without_dashes(error, arguments) {
        let command = Cli::command();
        let verbs: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        return format!(
            "unexpected {word:?}: a job goes after --, as in tokenrun --group NAME -- {word} …; other commands are {}",
            verbs.join(", ")
        );
    }
    let text = error.render().to_string();
    let mut parts: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim) {
        let useful = !line.is_empty()
            && !line.starts_with("Usage:")
            && !line.starts_with("For more information");
        if !useful {
            // What follows an empty line is usage and hints of many lines, but for tips.
            continue;
        }
        let line = line
            .trim_start_matches("error: ")
            .trim_start_matches("tip: ");
        // How to pass an unknown option as a value is never what was meant.
        if !line.starts_with("to pass ") && !line.starts_with("tokenrun ") {
            parts.push(line.to_owned());
        }
    }
    parts.join("; ")
}

/// The first word of a command that was written without `--` before it.
fn command_without_dashes(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    if arguments.iter().any(|word| word == "--") {
        return None;
    }
    let kind = match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => ContextKind::InvalidArg,
        ErrorKind::ArgumentConflict => ContextKind::InvalidSubcommand,
        _ => return None,
    };
    let word = error
        .get(kind)
        .or_else(|| error.get(ContextKind::InvalidSubcommand));
    match word {
        Some(ContextValue::String(word)) if !word.starts_with('-') => Some(word.clone()),
        _ => None,
    }
}
