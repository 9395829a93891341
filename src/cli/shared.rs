//! What several commands understand: the store, the log, names and durations.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};

use super::unusable::Unusable;
use crate::duration;
use crate::token::{ClientId, Fence, GroupName, GroupPattern, Groups};

/// A month.
pub(super) const HISTORY_RETAIN: Duration = Duration::from_secs(30 * 24 * 3_600);

#[derive(Debug, Args)]
pub(super) struct StoreFlags {
    /// Where the tokens are: postgres://user@host/database or another connection string of
    /// libpq's, mysql://user@host/database, sqlite:///absolute/path or the plain path of a file
    ///
    /// The default is a SQLite file in the state directory: /var/lib/tokenrun for root,
    /// $XDG_STATE_HOME/tokenrun or ~/.local/state/tokenrun for others. It is each user's
    /// own: for several users of a host, name a file in a directory that they share (mode 2770). As
    /// process 1 of a container and in Kubernetes there is no default.
    #[arg(
        short,
        long,
        value_name = "URL",
        env = "TOKENRUN_STORE",
        hide_env_values = true,
        help_heading = "The store"
    )]
    store: Option<String>,
    /// A file that holds what would be written after --store: a mounted secret
    ///
    /// [default: none]. It is read anew by every run, so that what is in it may change in between.
    /// If every user of the host may read a password in it, a warning says so.
    #[arg(
        long,
        value_name = "FILE",
        env = "TOKENRUN_STORE_FILE",
        conflicts_with = "store",
        help_heading = "The store"
    )]
    store_file: Option<PathBuf>,
    /// A configuration file, instead of the system's and the user's; '' for none
    ///
    /// By default /etc/tokenrun/config.toml and $XDG_CONFIG_HOME/tokenrun/config.toml (or
    /// ~/.config/tokenrun/config.toml) are read, if they are there. One that is named must be.
    #[arg(
        long,
        value_name = "FILE",
        env = "TOKENRUN_CONFIG",
        help_heading = "The store"
    )]
    config: Option<OsString>,
}

// What is kept of a run.
#[derive(Debug, Args)]
pub(super) struct RecordFlags {
    /// How long history is kept, at least [default: 30d]
    ///
    /// Older runs are removed by later ones, a few at a time. The newest stays.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_HISTORY_RETAIN", value_parser = duration_value, help_heading = "Time")]
    history_retain: Option<Duration>,
    /// Shown in status and history
    ///
    /// [default: none]. Arguments are not shown, because they can hold secrets.
    #[arg(
        long,
        value_name = "TEXT",
        env = "TOKENRUN_LABEL",
        help_heading = "Output"
    )]
    label: Option<String>,
}

impl RecordFlags {
    /// How long history is kept.
    pub(super) fn retain(&self) -> Duration {
        self.history_retain.unwrap_or(HISTORY_RETAIN)
    }

    /// The user's name for the run.
    pub(super) fn label(self) -> Result<Option<String>, Unusable> {
        plain_text("--label", self.label)
    }
}

#[derive(Debug, Args)]
pub(super) struct LogFlags {
    /// Say only what is wrong; twice: say nothing
    ///
    /// Once it silences what is ordinary: refusals, grants, keys that are done. Warnings, errors
    /// and a job that is ended stay. For cron, which mails what is written. Twice it silences
    /// everything: the exit status tells, and --report. The variable is 0, 1 or 2.
    #[arg(
        short,
        long,
        env = "TOKENRUN_QUIET",
        action = ArgAction::Count,
        value_parser = quiet_value,
        conflicts_with = "verbose",
        help_heading = "Output"
    )]
    quiet: u8,
    /// Tell every step
    ///
    /// Each look at the store, what the rule said and why: for one who wonders why it does not
    /// run.
    #[arg(short, long, env = "TOKENRUN_VERBOSE", help_heading = "Output")]
    verbose: bool,
    /// How messages are written to stderr
    ///
    /// JSON is an object a line with `time`, `level`, `event` and `message`, and with `group`,
    /// `client`, `session`, `fence`, `host`, `reason` (the cause in a word) and `holder` where they
    /// are known. All but `message` stay as they are from release to release.
    #[arg(
        long,
        value_name = "FORMAT",
        env = "TOKENRUN_LOG_FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A line of text each.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

/// What is said of the store.
#[derive(Debug, Clone, Default)]
pub struct StoreRequest {
    /// After `--store`.
    pub store: Option<String>,
    /// After `--store-file`.
    pub file: Option<PathBuf>,
}

impl StoreRequest {
    /// Whether anything was said of the store.
    #[must_use]
    pub const fn is_given(&self) -> bool {
        self.store.is_some() || self.file.is_some()
    }
}

impl From<StoreFlags> for StoreRequest {
    fn from(flags: StoreFlags) -> Self {
        Self {
            store: flags.store,
            file: flags.store_file,
        }
    }
}

/// How much is said, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogRequest {
    /// How often it was asked to be quiet: 1 silences what is ordinary, 2 everything.
    pub quiet: u8,
    pub verbose: bool,
    /// In which format.
    pub format: LogFormat,
}

pub(super) fn duration_value(text: &str) -> Result<Duration, duration::DurationError> {
    duration::parse(text)
}

/// How quiet: the parser of the variable, of the file's key, and of how often the flag was given.
pub(super) fn quiet_value(text: &str) -> Result<u8, String> {
    match text {
        "0" | "false" => Ok(0),
        "1" | "true" => Ok(1),
        "2" => Ok(2),
        _ => Err(
            "0 says all, 1 (-q) only what is wrong, 2 (-qq) nothing: the flag can be given twice"
                .to_owned(),
        ),
    }
}

pub(super) fn fence_value(text: &str) -> Result<Fence, String> {
    match text.parse::<i64>() {
        Ok(fence @ 1..=Fence::MAX) => Ok(Fence(fence)),
        _ => Err(format!(
            "a fence is a whole number from 1 to {}",
            Fence::MAX
        )),
    }
}

pub(super) fn group_filter(text: Option<&str>) -> Result<Option<GroupName>, Unusable> {
    text.map(group_name).transpose()
}

/// The groups that are asked for: every one, if none is named.
pub(super) fn groups(texts: &[String]) -> Result<Groups, Unusable> {
    if texts.is_empty() {
        return Ok(Groups::All);
    }
    let patterns = texts.iter().map(|text| GroupPattern::given(text));
    let patterns: Result<Vec<_>, _> = patterns.collect();
    patterns
        .map(Groups::Matching)
        .map_err(|error| Unusable::about(&["--group"], format!("--group {error}")))
}

pub(super) fn group_name(text: &str) -> Result<GroupName, Unusable> {
    GroupName::given(text)
        .map_err(|error| Unusable::about(&["--group"], format!("--group {error}")))
}

pub(super) fn client(option: &str, text: Option<&str>) -> Result<Option<ClientId>, Unusable> {
    text.map(ClientId::given)
        .transpose()
        .map_err(|error| Unusable::about(&[option], format!("{option} {error}")))
}

impl From<LogFlags> for LogRequest {
    fn from(flags: LogFlags) -> Self {
        Self {
            quiet: flags.quiet,
            verbose: flags.verbose,
            format: flags.log_format,
        }
    }
}

/// A text that is shown in one line.
pub(super) fn plain_text(option: &str, text: Option<String>) -> Result<Option<String>, Unusable> {
    match text
        .as_deref()
        .and_then(|t| t.chars().find(|c| c.is_control()))
    {
        Some(bad) => Err(Unusable::about(
            &[option],
            format!("{option} has a control character ({bad:?}); use printable characters"),
        )),
        None => Ok(text),
    }
}
