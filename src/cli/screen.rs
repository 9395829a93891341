//! How a listing is shown to a person.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(super) struct ScreenFlags {
    /// When to show colours; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, alias = "colour", value_name = "WHEN", default_value = "auto")]
    color: Colours,
    /// Times in UTC (RFC 3339) instead of the zone of this terminal
    #[arg(long)]
    utc: bool,
}

/// When there are colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Colours {
    /// On a terminal, unless the environment says otherwise.
    #[default]
    Auto,
    Always,
    Never,
}

/// How a listing is to be shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScreenRequest {
    pub colours: Colours,
    /// Whether times are shown, and read, in UTC.
    pub utc: bool,
}

impl From<ScreenFlags> for ScreenRequest {
    fn from(flags: ScreenFlags) -> Self {
        Self {
            colours: flags.color,
            utc: flags.utc,
        }
    }
}
