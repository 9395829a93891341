//! What a text is written for: how wide and high it is, whether it shows colours, and whose times.

use super::times::Times;

/// The properties of a terminal, or of what takes its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screen {
    /// How many columns a line has; `None`: any number.
    pub width: Option<usize>,
    /// How many lines there is room for; `None`: any number.
    pub height: Option<usize>,
    pub colours: bool,
    pub times: Times,
}

impl Screen {
    /// A file or a pipe.
    #[must_use]
    pub const fn plain() -> Self {
        Self {
            width: None,
            height: None,
            colours: false,
            times: Times::Utc,
        }
    }
}

/// The colour of a word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tint {
    #[default]
    Plain,
    /// Red: trouble.
    Bad,
    /// Green: it runs.
    Good,
    /// Yellow: it is stopped or silent.
    Stopped,
}

impl Tint {
    /// The text in this colour, if there are colours.
    #[must_use]
    pub fn paint(self, text: &str, colours: bool) -> String {
        let code = match self {
            Self::Bad => "31",
            Self::Good => "32",
            Self::Stopped => "33",
            Self::Plain => return text.to_owned(),
        };
        match colours {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }
}
