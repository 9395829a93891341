//! What a command line that can't be used is answered with: one line.

use std::ffi::OsString;

use crate::exit;

/// A command line that asks for nothing that can be done, or for help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Unusable {
    /// What to print.
    pub(crate) text: String,
    /// It was asked for: to stdout, with exit code 0.
    pub(crate) asked_for: bool,
    /// It is a page and no message: printed as it is.
    pub(crate) is_page: bool,
    /// The exit code.
    pub(crate) code: u8,
    /// The options that it is about, as `--name`.
    pub(crate) options: Vec<String>,
}

impl Unusable {
    /// A usage error that is about no option.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            asked_for: false,
            is_page: false,
            code: exit::USAGE,
            options: Vec::new(),
        }
    }

    /// A usage error about these options.
    pub(crate) fn about(options: &[&str], text: impl Into<String>) -> Self {
        Self {
            options: options.iter().map(ToString::to_string).collect(),
            ..Self::usage(text)
        }
    }

    /// The error without its page: the first line of that is the message.
    pub(crate) fn in_a_line(mut self) -> Self {
        if std::mem::take(&mut self.is_page) {
            let line = self.text.lines().next().unwrap_or_default();
            self.text = line.trim_start_matches("tokenrun: ").to_owned();
        }
        self
    }
}

/// The line, which may be unreadable, asks for messages in JSON, itself or by its variable.
pub(crate) fn asks_for_json(arguments: &[OsString]) -> bool {
    let own: Vec<&OsString> = arguments.iter().take_while(|word| *word != "--").collect();
    let given = own.iter().any(|word| *word == "--log-format=json")
        || own
            .windows(2)
            .any(|pair| pair[0] == "--log-format" && pair[1] == "json");
    let is_given = own.iter().any(|word| {
        let word = word.as_encoded_bytes();
        word.starts_with(b"--log-format")
    });
    given || (!is_given && std::env::var_os("TOKENRUN_LOG_FORMAT").is_some_and(|it| it == "json"))
}

/// Which variable has set an option, to be read after what is wrong with it.
pub(super) fn set_by(option: &str, variable: &str) -> String {
    format!(" ({option} is set by the variable {variable})")
}
