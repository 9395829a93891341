//! What a command line that can't be used is answered with: one line.

use crate::exit;

/// A command line that asks for nothing that can be done, or for help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Unusable {
    /// What to print.
    pub text: String,
    /// It was asked for: to stdout, with exit code 0.
    pub asked_for: bool,
    /// It is a page and no message: printed as it is.
    pub is_page: bool,
    /// The exit code.
    pub code: u8,
    /// The options that it is about, as `--name`.
    pub options: Vec<String>,
}

impl Unusable {
    /// A usage error that is about no option.
    pub(super) fn usage(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            asked_for: false,
            is_page: false,
            code: exit::USAGE,
            options: Vec::new(),
        }
    }

    /// A usage error about these options.
    pub(super) fn about(options: &[&str], text: impl Into<String>) -> Self {
        Self {
            options: options.iter().map(ToString::to_string).collect(),
            ..Self::usage(text)
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

/// Which variable has set an option, to be read after what is wrong with it.
pub(super) fn set_by(option: &str, variable: &str) -> String {
    format!(" ({option} is set by the variable {variable})")
}
