//! What several commands understand: the store, the log, names and durations.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};

use super::unusable::Unusable;
use crate::config::Kind;
use crate::duration;
use crate::token::{ClientId, Fence, GroupName, GroupPattern, Groups};

/// A month.
pub(super) const HISTORY_RETAIN: Duration = Duration::from_secs(30 * 24 * 3_600);

#[derive(Debug, Args)]
pub(super) struct StoreFlags {
    /// Where the tokens are: postgres://user@host/database or another connection string of libpq,
    /// mysql://user@host/database, redis://user@host, sqlite:///absolute/path, or the path of a file
    /// [default: a SQLite file of this user]
    ///
    /// The default file is tokenrun.db in the state directory: /var/lib/tokenrun for root,
    /// $XDG_STATE_HOME/tokenrun or ~/.local/state/tokenrun for other users. Several users of a host
    /// can share a file in a directory of mode 3770. As process 1 of a container and in Kubernetes
    /// there is no default.
    #[arg(
        short,
        long,
        value_name = "URL",
        env = "TOKENRUN_STORE",
        hide_env_values = true,
        display_order = 2
    )]
    store: Option<String>,
    #[command(flatten)]
    files: FileFlags,
}

// The files that options are read from.
#[derive(Debug, Args)]
struct FileFlags {
    /// A file that holds the value of --store, for example a mounted secret [default: none]
    ///
    /// Every run reads it again. It belongs to this user or root, others cannot write it, and a path in
    /// it is absolute. If it holds a password, and every user of the host can read it, a warning says
    /// so.
    #[arg(
        long,
        value_name = "FILE",
        env = "TOKENRUN_STORE_FILE",
        conflicts_with = "store",
        help_heading = "Configuration"
    )]
    store_file: Option<PathBuf>,
    /// A configuration file to read instead of those of the system and of the user; '' reads none
    /// [default: both]
    ///
    /// The default files are /etc/tokenrun/config.toml and $XDG_CONFIG_HOME/tokenrun/config.toml (or
    /// ~/.config/tokenrun/config.toml), if they are there. A file that is named must be there. See
    /// tokenrun help configuration.
    #[arg(
        long,
        value_name = "FILE",
        env = "TOKENRUN_CONFIG",
        help_heading = "Configuration"
    )]
    config: Option<OsString>,
}

// What is kept of a run.
#[derive(Debug, Args)]
pub(super) struct RecordFlags {
    /// How long the history is kept, at least [default: 30d]
    ///
    /// Later runs remove older records, a few at a time. The newest record stays.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_HISTORY_RETAIN", value_parser = duration_value, help_heading = "Reports and messages")]
    history_retain: Option<Duration>,
    /// A text that status and history show beside the run [default: none]
    ///
    /// The arguments of the job are never shown, because they can hold secrets.
    #[arg(
        long,
        value_name = "TEXT",
        env = "TOKENRUN_LABEL",
        help_heading = "Reports and messages"
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
    /// Print only what is wrong; twice: print nothing
    ///
    /// Once, it silences ordinary messages: refusals, grants, keys that are done. Warnings, errors
    /// and the message about a job that did not succeed stay. This suits cron, which mails what is
    /// printed. Twice, it silences everything; the exit code and --report still tell what happened.
    /// The variable is 0, 1 or 2.
    #[arg(
        short,
        long,
        env = "TOKENRUN_QUIET",
        action = ArgAction::Count,
        value_parser = quiet_value,
        conflicts_with = "verbose",
        help_heading = "Reports and messages"
    )]
    quiet: u8,
    /// Print every step
    ///
    /// Each look at the store, and what the rule decided and why. It shows why a job does not run.
    #[arg(
        short,
        long,
        env = "TOKENRUN_VERBOSE",
        help_heading = "Reports and messages"
    )]
    verbose: bool,
    /// The format of messages on stderr
    ///
    /// The fields of json are listed by tokenrun help json.
    #[arg(
        long,
        value_name = "FORMAT",
        env = "TOKENRUN_LOG_FORMAT",
        default_value = "text",
        help_heading = "Reports and messages"
    )]
    log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines of text
    #[default]
    Text,
    /// One JSON object per line
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
            file: flags.files.store_file,
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

/// An exit code that the user chooses.
pub(super) fn code_value(text: &str) -> Result<u8, String> {
    text.parse()
        .map_err(|_| format!("is not {}", Kind::Status.expected()))
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

/// One group's name. Verbs that take several groups read `*` and `?` as a pattern, so a name has none.
pub(super) fn group_name(text: &str) -> Result<GroupName, Unusable> {
    let wrong = |what: &str| Unusable::about(&["--group"], format!("--group {what}"));
    if text.contains(['*', '?']) {
        return Err(wrong(
            "has a * or a ?, which stand for other characters where several groups can be given; a group's name has none",
        ));
    }
    GroupName::given(text).map_err(|error| wrong(&error.to_string()))
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

/// The longest text that is stored with a run or an act, in characters.
const TEXT_MAX: usize = 1_000;

/// A text that is shown in one line.
pub(super) fn plain_text(option: &str, text: Option<String>) -> Result<Option<String>, Unusable> {
    let length = text.as_deref().map_or(0, |text| text.chars().count());
    if length > TEXT_MAX {
        return Err(Unusable::about(
            &[option],
            format!("{option} has {length} characters; at most {TEXT_MAX} are stored"),
        ));
    }
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
