//! Options that several verbs have: the store, the log, the node, the durations.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};

use crate::cli::values::Word;
use crate::cli::{Unusable, values};
use crate::report::log::Style;
use crate::report::message::Level;
use crate::token::{ClientId, GroupPattern, Groups, OutputLimits, Timing, Wishes};

/// A week.
pub(crate) const OUTPUT_RETAIN: Duration = Duration::from_secs(7 * 24 * 3_600);

/// With 64 KiB each, 9 MB in a store.
pub(crate) const OUTPUT_COUNT: u8 = 100;

/// A month.
pub(crate) const HISTORY_RETAIN: Duration = Duration::from_secs(30 * 24 * 3_600);

/// The format of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Wide,
    Json,
}

/// The words of `-o`.
static FORMATS: [Word<Format>; 2] = [
    ("wide", Format::Wide, "As --wide"),
    ("json", Format::Json, "As --json"),
];

// How a listing is printed.
#[derive(Debug, Clone, Args)]
pub(crate) struct FormatOptions {
    /// A table with every column, however wide
    #[arg(long, conflicts_with = "json")]
    wide: bool,
    /// An array of JSON objects instead of a table
    #[arg(long)]
    json: bool,
    /// The same by a word, as other tools have it
    #[arg(short = 'o', value_name = "FORMAT", value_parser = values::one_of(&FORMATS), conflicts_with_all = ["wide", "json"])]
    format: Option<Format>,
}

impl FormatOptions {
    /// JSON.
    pub(crate) const fn json() -> Self {
        Self {
            wide: false,
            json: true,
            format: None,
        }
    }

    pub(crate) fn is_wide(&self) -> bool {
        self.wide || self.format == Some(Format::Wide)
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json || self.format == Some(Format::Json)
    }
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StoreOptions {
    /// Where the tokens are: postgres://user@host/database or another connection string of libpq,
    /// mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path, or the path of a file
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
    pub(crate) store: Option<String>,
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
    pub(crate) store_file: Option<PathBuf>,
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

impl StoreOptions {
    /// The line, a variable or a file names the store.
    pub(crate) const fn is_given(&self) -> bool {
        self.store.is_some() || self.store_file.is_some()
    }
}

// What is kept of a run.
#[derive(Debug, Args)]
pub(crate) struct KeptOptions {
    /// How long the history is kept, at least [default: 30d]
    ///
    /// Later runs remove older records, a few at a time. The newest record stays.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_HISTORY_RETAIN", value_parser = values::duration)]
    history_retain: Option<Duration>,
    /// How long captured outputs are kept, at least, but not longer than the history [default: 7d]
    ///
    /// Later runs remove older outputs, a few at a time.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_OUTPUT_RETAIN", value_parser = values::duration)]
    output_retain: Option<Duration>,
    /// How many captured outputs of a group are kept, at most [default: 100]
    ///
    /// Later runs remove the oldest. With a job that runs each minute, this limit is the first to be
    /// reached.
    #[arg(long, value_name = "N", env = "TOKENRUN_OUTPUT_COUNT", value_parser = values::code)]
    output_count: Option<u8>,
    /// A text that status and history show beside the run [default: none]
    ///
    /// The arguments of the job are never shown, because they can hold secrets.
    #[arg(long, value_name = "TEXT", env = "TOKENRUN_LABEL", value_parser = values::line)]
    pub(crate) label: Option<String>,
}

impl KeptOptions {
    /// How long history is kept.
    pub(crate) fn retain(&self) -> Duration {
        self.history_retain.unwrap_or(HISTORY_RETAIN)
    }

    /// How long outputs are kept, and how many.
    pub(crate) fn outputs(&self) -> OutputLimits {
        let retain = self.output_retain.unwrap_or(OUTPUT_RETAIN);
        OutputLimits {
            retain: retain.min(self.retain()),
            count: self.output_count.unwrap_or(OUTPUT_COUNT).into(),
        }
    }
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LogOptions {
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
        value_parser = values::quiet,
        conflicts_with = "verbose",
        help_heading = "Reports and messages"
    )]
    pub(crate) quiet: u8,
    /// Print every step
    ///
    /// Each look at the store, and what the rule decided and why. It shows why a job does not run.
    #[arg(
        short,
        long,
        env = "TOKENRUN_VERBOSE",
        help_heading = "Reports and messages"
    )]
    pub(crate) verbose: bool,
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
    pub(crate) log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines of text
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

impl LogOptions {
    /// As little as `-q` asks for, each time that it is given.
    pub(crate) fn of_quiet(quiet: u8) -> Self {
        Self {
            quiet,
            ..Self::default()
        }
    }

    pub(crate) fn style(&self) -> Style {
        let least = match self {
            Self { quiet: 2.., .. } => None,
            Self { quiet: 1, .. } => Some(Level::Warning),
            Self { verbose: true, .. } => Some(Level::Detail),
            _ => Some(Level::Info),
        };
        Style {
            least,
            json: self.log_format == LogFormat::Json,
        }
    }
}

// The store that records an act, and the form of its report.
#[derive(Debug, Args)]
pub(crate) struct RecordOptions {
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    /// The reason, which is recorded and shown in history
    #[arg(long, value_name = "TEXT", value_parser = values::line)]
    pub(crate) reason: Option<String>,
    /// Print what was done as an array of JSON objects
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) log: LogOptions,
}

// The groups that a listing is about.
#[derive(Debug, Clone, Args)]
pub(crate) struct GroupsOptions {
    /// Only this group, or the groups that match a pattern such as 'etl-*'; can be repeated
    #[arg(short, long, value_name = "NAME", value_parser = values::pattern)]
    group: Vec<GroupPattern>,
}

impl GroupsOptions {
    pub(crate) fn patterns(&self) -> Vec<GroupPattern> {
        self.group.clone()
    }

    pub(crate) fn groups(&self) -> Groups {
        self.group.clone().into()
    }
}

// The durations of a run.
#[derive(Debug, Args)]
pub(crate) struct TimingOptions {
    /// Time between two heartbeats [default: 10s]
    ///
    /// A heartbeat is a small write to the store. With a shorter time, a holder notices sooner that
    /// its token is gone, or that an operator wants it.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_HEARTBEAT", value_parser = values::duration)]
    heartbeat: Option<Duration>,
    /// How long a holder may be silent before another node takes over [default: 5m]
    ///
    /// A holder that can't reach the store ends its job before this time is over. A shorter time
    /// replaces a dead node sooner. A longer time lets jobs survive a longer outage of the store.
    /// The value of the holder counts, not that of the node that takes over.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_TAKEOVER_AFTER", value_parser = values::duration)]
    takeover_after: Option<Duration>,
    /// How long after a run other nodes are refused; 0 releases the token when the job ends
    /// [default: 5m]
    ///
    /// A node with a late clock does not run the job again in this time, so it must be longer than
    /// the clocks of the nodes differ. For tokenrun hold the default is 0.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_KEEP", value_parser = values::duration, display_order = 4, help_heading = "Everyday options")]
    keep: Option<Duration>,
    /// How long a node other than the last one waits before it takes an open token [default: 10s]
    ///
    /// It keeps the job on its node: cron starts on all nodes in the same second, and the node of
    /// the last run takes the token first.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_HEAD_START", value_parser = values::duration)]
    head_start: Option<Duration>,
    /// The least time from the start of this run to the start of the next, on any node [default: 0]
    ///
    /// For a job that must not run twice in a night, however late a clock is. The time counts from
    /// the grant, for this node too, and however the run ends: a job that crashed is not repeated
    /// within it. Leave it out if a crashed job should be repeated sooner.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_AT_LEAST", value_parser = values::duration)]
    at_least: Option<Duration>,
    /// Time between TERM and KILL when the job is ended [default: 10s]
    ///
    /// The job can clean up in this time. A lease that can't be renewed is given up earlier by this
    /// time, so that the job is gone before another node may start.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_KILL_GRACE", value_parser = values::duration)]
    kill_grace: Option<Duration>,
    /// How long one call of the store may take [default: 10s, at most a tenth of takeover-after]
    ///
    /// After this time tokenrun gives the call up and closes the connection: a store that hangs
    /// counts as a store that is gone.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_STORE_TIMEOUT", value_parser = values::duration)]
    store_timeout: Option<Duration>,
}

impl TimingOptions {
    /// The durations, with this `--keep` if none was given.
    pub(crate) fn timing(&self, keep: Option<Duration>) -> Result<Timing, Unusable> {
        Timing::new(&Wishes {
            heartbeat: self.heartbeat,
            takeover_after: self.takeover_after,
            keep: self.keep.or(keep),
            head_start: self.head_start,
            at_least: self.at_least,
            kill_grace: self.kill_grace,
            store_timeout: self.store_timeout,
        })
        .map_err(|error| Unusable::about(&error.options(), error.to_string()))
    }
}

// This node, and the one that the token is meant for.
#[derive(Debug, Args)]
pub(crate) struct NodeOptions {
    /// The name of this node [default: $CLIENT_ID, else the host name]
    ///
    /// The token stays with this name from run to run, so the name must outlive the process: use
    /// the name of a cluster, not the name of a pod.
    #[arg(long, value_name = "ID", env = "TOKENRUN_CLIENT_ID", value_parser = values::client)]
    pub(crate) client_id: Option<ClientId>,
    /// The client that gets the token first; recorded when the group is first used [default: none:
    /// the first client that comes gets the token]
    ///
    /// A failover does not change it; tokenrun expect does. Other clients wait --takeover-after for
    /// its first run.
    #[arg(long, value_name = "ID", env = "TOKENRUN_EXPECTED", value_parser = values::client)]
    pub(crate) expected: Option<ClientId>,
    /// If this node is the expected client, take the token back when it is idle
    ///
    /// Without it the token stays where a failover has brought it, because each move is a risk. A
    /// job that runs on another node is never interrupted.
    #[arg(long, env = "TOKENRUN_FAILBACK")]
    pub(crate) failback: bool,
}

#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ScreenOptions {
    /// When to show colours; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, alias = "colour", value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Colours,
    /// Times in UTC (RFC 3339) instead of the zone of this terminal
    #[arg(long)]
    pub(crate) utc: bool,
}

/// When there are colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colours {
    /// On a terminal, unless the environment says otherwise.
    #[default]
    Auto,
    Always,
    Never,
}
