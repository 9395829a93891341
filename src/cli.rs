//! The command line: the only file that knows clap. What it returns is validated.

mod manual;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::duration;
use crate::exit;
use crate::run::machine::Wait;
use crate::token::{ClientId, GroupName, Timing, Wishes};

const ABOUT: &str = "Runs a job on one node at a time, keeps it on that node while it is well, \
and moves it by itself when the node dies, with nothing but a database";

const RUN_USAGE: &str = "tokenrun [OPTIONS] --group NAME -- CMD [ARG]...\n       tokenrun COMMAND";

const AFTER_HELP: &str = "\
EXIT STATUS: the job's own; 64 usage; 69 store not reached; 75 not now (another holds the token); \
76 token lost; 77 permission; 78 configuration; 124 timed out; 126, 127 as in the shell; 128+N signal N";

#[derive(Debug, Parser)]
#[command(
    name = "tokenrun",
    version,
    about = ABOUT,
    override_usage = RUN_USAGE,
    after_help = AFTER_HELP,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    run: RunFlags,
}

#[derive(Debug, Parser)]
#[command(name = "tokenrun", version)]
struct PlainRun {
    #[command(flatten)]
    run: RunFlags,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show who holds which token
    Status(StatusFlags),
    /// Show who ran when, and how it ended
    History(HistoryFlags),
    /// Make the store, or print how an administrator makes it
    Init(InitFlags),
    /// Print the completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    Man {
        /// The directory that they are written to
        directory: PathBuf,
    },
}

#[derive(Debug, Args)]
struct StoreFlags {
    /// Where the tokens are: postgres://user@host/database or another connection string of
    /// libpq's, sqlite:///absolute/path or the plain path of a file
    ///
    /// The default is a SQLite file in the state directory: /var/lib/tokenrun for root,
    /// $XDG_STATE_HOME/tokenrun or ~/.local/state/tokenrun for others. As process 1 of a
    /// container and in Kubernetes there is no default.
    #[arg(
        short,
        long,
        value_name = "URL",
        env = "TOKENRUN_STORE",
        hide_env_values = true
    )]
    store: Option<String>,
    /// A file that holds what would be written after --store: a mounted secret
    ///
    /// It is read anew by every run, so that what is in it may change in between.
    #[arg(
        long,
        value_name = "FILE",
        env = "TOKENRUN_STORE_FILE",
        conflicts_with = "store"
    )]
    store_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct LogFlags {
    /// Say nothing
    #[arg(
        short,
        long,
        env = "TOKENRUN_QUIET",
        conflicts_with = "verbose",
        help_heading = "Output"
    )]
    quiet: bool,
    /// Tell every step
    #[arg(short, long, env = "TOKENRUN_VERBOSE", help_heading = "Output")]
    verbose: bool,
    /// How messages are written to stderr
    #[arg(
        long,
        value_name = "FORMAT",
        env = "TOKENRUN_LOG_FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    log_format: LogFormat,
}

/// How messages are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A line of text each.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

/// What happens to processes that the job leaves behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LeftoversFlag {
    /// They are ended too.
    #[default]
    Kill,
    /// They are left alone.
    Leave,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)]
struct RunFlags {
    /// The name of what must run on one node at a time
    ///
    /// 1 to 200 characters, no control characters. This option alone has no variable: it would
    /// leak into jobs that run other groups.
    #[arg(short, long, value_name = "NAME", help_heading = "The token")]
    group: Option<String>,
    #[command(flatten)]
    store: StoreFlags,
    /// Who this node is [default: $CLIENT_ID, else the host name]
    #[arg(
        long,
        value_name = "ID",
        env = "TOKENRUN_CLIENT_ID",
        help_heading = "The token"
    )]
    client_id: Option<String>,
    /// The client that shall have the token first; recorded when the group is first seen
    #[arg(
        long,
        value_name = "ID",
        env = "TOKENRUN_EXPECTED",
        help_heading = "The token"
    )]
    expected: Option<String>,
    /// As the expected client, take the token back when it is idle
    #[arg(long, env = "TOKENRUN_FAILBACK", help_heading = "The token")]
    failback: bool,
    /// Time between two signs of life [default: 10s]
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_HEARTBEAT", value_parser = duration_value, help_heading = "Time")]
    heartbeat: Option<Duration>,
    /// How long a holder may be silent before another takes over [default: 5m]
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_TAKEOVER_AFTER", value_parser = duration_value, help_heading = "Time")]
    takeover_after: Option<Duration>,
    /// How long after a run other nodes are refused, so that a late clock does not run the job
    /// again; 0 releases at exit [default: 5m]
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_KEEP", value_parser = duration_value, help_heading = "Time")]
    keep: Option<Duration>,
    /// How long a node other than the last waits before it takes an open token [default: 10s]
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_HEAD_START", value_parser = duration_value, help_heading = "Time")]
    head_start: Option<Duration>,
    /// The least time from this run's start to the next one's, on whichever node [default: 0]
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_AT_LEAST", value_parser = duration_value, help_heading = "Time")]
    at_least: Option<Duration>,
    /// Time between the job's TERM and its KILL [default: 10s]
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_KILL_GRACE", value_parser = duration_value, help_heading = "Time")]
    kill_grace: Option<Duration>,
    /// How long one call of the store may take [default: 10s, at most a tenth of takeover-after]
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_STORE_TIMEOUT", value_parser = duration_value, help_heading = "Time")]
    store_timeout: Option<Duration>,
    /// The job's longest run; then it is ended, exit status 124 [default: none]
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_TIMEOUT", value_parser = duration_value, help_heading = "The job")]
    timeout: Option<Duration>,
    /// Wait in line while another has the token, or it may not be taken yet; at most for so long,
    /// then exit status 75 [default: no; without a DURATION however long it takes]
    ///
    /// Those who wait come in the order of their arrival, and before those who do not wait.
    #[arg(
        long,
        value_name = "DURATION",
        env = "TOKENRUN_WAIT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = FOREVER,
        value_parser = wait_value,
        help_heading = "The token"
    )]
    wait: Option<Wait>,
    /// What happens to processes that the job leaves behind
    #[arg(
        long,
        value_name = "WHAT",
        env = "TOKENRUN_LEFTOVERS",
        default_value = "kill",
        help_heading = "The job"
    )]
    leftovers: LeftoversFlag,
    /// Do not let the job inherit the lock that shows others on this host that it lives
    ///
    /// For a job that must not have a descriptor more than it was given. While it lives on
    /// without tokenrun nothing on this host shows it, so that nothing proves it dead either:
    /// others wait for --takeover-after, as on other hosts.
    #[arg(long, env = "TOKENRUN_CLOSE_LOCK", help_heading = "The job")]
    close_lock: bool,
    /// Exit status when another holds the token [default: 75]
    #[arg(
        short = 'E',
        long,
        value_name = "N",
        env = "TOKENRUN_CONFLICT_EXIT_CODE",
        help_heading = "The job"
    )]
    conflict_exit_code: Option<u8>,
    /// Write what happened to this file as JSON, at the end
    #[arg(
        long,
        value_name = "FILE",
        env = "TOKENRUN_REPORT",
        help_heading = "Output"
    )]
    report: Option<PathBuf>,
    /// Shown in status and history
    #[arg(
        long,
        value_name = "TEXT",
        env = "TOKENRUN_LABEL",
        help_heading = "Output"
    )]
    label: Option<String>,
    #[command(flatten)]
    log: LogFlags,
    /// The job: a program and its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Debug, Args)]
struct StatusFlags {
    /// Only this group
    #[arg(short, long, value_name = "NAME")]
    group: Option<String>,
    #[command(flatten)]
    store: StoreFlags,
    /// An array of JSON objects instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct HistoryFlags {
    /// Only this group
    #[arg(short, long, value_name = "NAME")]
    group: Option<String>,
    #[command(flatten)]
    store: StoreFlags,
    /// At most so many runs, the newest
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// An array of JSON objects instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct InitFlags {
    #[command(flatten)]
    store: StoreFlags,
    /// Print the SQL that makes it, with a role that may do what tokenrun does and no more
    #[arg(long)]
    print_sql: bool,
}

/// A store to be made.
#[derive(Debug)]
pub struct InitRequest {
    /// What was written after `--store`.
    pub store: StoreRequest,
    /// Only print how.
    pub print_sql: bool,
}

/// What was written after `--store`, or stands in the file after `--store-file`.
#[derive(Debug, Clone, Default)]
pub struct StoreRequest {
    /// After `--store`.
    pub store: Option<String>,
    /// After `--store-file`.
    pub file: Option<PathBuf>,
}

impl From<StoreFlags> for StoreRequest {
    fn from(flags: StoreFlags) -> Self {
        Self {
            store: flags.store,
            file: flags.store_file,
        }
    }
}

/// What tokenrun is asked to do.
#[derive(Debug)]
pub enum Request {
    /// Make a store.
    Init(InitRequest),
    /// Run a job.
    Run(Box<RunRequest>),
    /// Show tokens.
    Status(ListRequest),
    /// Show runs.
    History(ListRequest),
    /// Print this text to stdout.
    Print(String),
    /// Write manual pages to this directory.
    Man(PathBuf),
}

/// A run, validated.
#[derive(Debug)]
pub struct RunRequest {
    /// The group.
    pub group: GroupName,
    /// The store.
    pub store: StoreRequest,
    /// The client id, if one was given.
    pub client_id: Option<ClientId>,
    /// The expected client.
    pub expected: Option<ClientId>,
    /// Whether the expected client takes the token back.
    pub failback: bool,
    /// The durations.
    pub timing: Timing,
    /// The job's longest run.
    pub timeout: Option<Duration>,
    /// How long it waits in line.
    pub wait: Wait,
    /// What happens to processes that the job leaves behind.
    pub leftovers: LeftoversFlag,
    /// Whether the job does not inherit its lock.
    pub close_lock: bool,
    /// The exit code for a refusal.
    pub conflict_exit_code: u8,
    /// Where the report goes.
    pub report: Option<PathBuf>,
    /// What the user calls the run.
    pub label: Option<String>,
    /// How much is said, and how.
    pub log: LogRequest,
    /// The job: at least the program's name.
    pub command: Vec<OsString>,
}

/// How much is said, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogRequest {
    /// Nothing.
    pub quiet: bool,
    /// Every step.
    pub verbose: bool,
    /// In which format.
    pub format: LogFormat,
}

/// A listing of tokens or runs.
#[derive(Debug)]
pub struct ListRequest {
    /// Of this group only.
    pub group: Option<GroupName>,
    /// The store.
    pub store: StoreRequest,
    /// JSON instead of a table.
    pub json: bool,
    /// At most so many.
    pub limit: Option<u32>,
}

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
    fn usage(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            asked_for: false,
            code: exit::USAGE,
        }
    }
}

fn duration_value(text: &str) -> Result<Duration, duration::DurationError> {
    duration::parse(text)
}

/// What `--wait` without a duration stands for.
const FOREVER: &str = "forever";

fn wait_value(text: &str) -> Result<Wait, duration::DurationError> {
    if text == FOREVER {
        return Ok(Wait::Forever);
    }
    duration::parse(text).map(Wait::For)
}

/// Reads a command line.
///
/// # Errors
/// One line that says what is wrong and what to write, or the help that was asked for.
pub fn parse(arguments: &[OsString]) -> Result<Request, Unusable> {
    if let Some(run) = plain_run(arguments) {
        return run_request(run.run).map(|run| Request::Run(Box::new(run)));
    }
    let cli = Cli::try_parse_from(arguments).map_err(|error| explained(&error, arguments))?;
    match cli.verb {
        None => run_request(cli.run).map(|run| Request::Run(Box::new(run))),
        Some(Verb::Status(flags)) => Ok(Request::Status(ListRequest {
            group: group_filter(flags.group.as_deref())?,
            store: flags.store.into(),
            json: flags.json,
            limit: None,
        })),
        Some(Verb::History(flags)) => Ok(Request::History(ListRequest {
            group: group_filter(flags.group.as_deref())?,
            store: flags.store.into(),
            json: flags.json,
            limit: Some(flags.limit),
        })),
        Some(Verb::Init(flags)) => Ok(Request::Init(InitRequest {
            store: flags.store.into(),
            print_sql: flags.print_sql,
        })),
        Some(Verb::Completions { shell }) => Ok(Request::Print(completions(shell))),
        Some(Verb::Man { directory }) => Ok(Request::Man(directory)),
    }
}

/// A run, read without what other commands understand: to set that up takes longer
/// than to read the line. `None` if it is no plain run, or not right.
fn plain_run(arguments: &[OsString]) -> Option<PlainRun> {
    let starts_with_option = arguments
        .get(1)
        .is_some_and(|word| word.as_encoded_bytes().starts_with(b"-"));
    (starts_with_option && arguments.iter().any(|word| word == "--"))
        .then(|| PlainRun::try_parse_from(arguments).ok())
        .flatten()
}

fn group_filter(text: Option<&str>) -> Result<Option<GroupName>, Unusable> {
    text.map(group_name).transpose()
}

fn group_name(text: &str) -> Result<GroupName, Unusable> {
    GroupName::new(text).map_err(|error| Unusable::usage(format!("--group {error}")))
}

fn client(option: &str, text: Option<&str>) -> Result<Option<ClientId>, Unusable> {
    text.map(ClientId::new)
        .transpose()
        .map_err(|error| Unusable::usage(format!("{option} {error}")))
}

fn run_request(flags: RunFlags) -> Result<RunRequest, Unusable> {
    let Some(group) = &flags.group else {
        return Err(Unusable::usage(
            "no group: name what must run on one node at a time, as in tokenrun --group nightly -- /opt/etl/run.sh (tokenrun --help tells more)",
        ));
    };
    let group = group_name(group)?;
    if flags
        .command
        .first()
        .is_none_or(|program| program.is_empty())
    {
        return Err(Unusable::usage(format!(
            "no command: put it after --, as in tokenrun --group {} -- /opt/etl/run.sh",
            shell_word(group.as_str())
        )));
    }
    if let Some(bad) = flags
        .label
        .as_deref()
        .and_then(|l| l.chars().find(|c| c.is_control()))
    {
        return Err(Unusable::usage(format!(
            "--label has a control character ({bad:?}); use printable characters"
        )));
    }
    let timing = Timing::new(&Wishes {
        heartbeat: flags.heartbeat,
        takeover_after: flags.takeover_after,
        keep: flags.keep,
        head_start: flags.head_start,
        at_least: flags.at_least,
        kill_grace: flags.kill_grace,
        store_timeout: flags.store_timeout,
    })
    .map_err(|error| Unusable::usage(error.to_string()))?;
    if flags.timeout.is_some_and(|timeout| timeout.is_zero()) {
        return Err(Unusable::usage(
            "--timeout must be longer than 0; leave it out for no limit",
        ));
    }
    Ok(RunRequest {
        group,
        store: flags.store.into(),
        client_id: client("--client-id", flags.client_id.as_deref())?,
        expected: client("--expected", flags.expected.as_deref())?,
        failback: flags.failback,
        timing,
        timeout: flags.timeout,
        wait: flags.wait.unwrap_or_default(),
        leftovers: flags.leftovers,
        close_lock: flags.close_lock,
        conflict_exit_code: flags.conflict_exit_code.unwrap_or(exit::NOT_NOW),
        report: flags.report,
        label: flags.label,
        log: LogRequest {
            quiet: flags.log.quiet,
            verbose: flags.log.verbose,
            format: flags.log.log_format,
        },
        command: flags.command,
    })
}

/// A word as it can be typed into a shell.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// One line for what clap found wrong: what, where, and what to write instead.
fn explained(error: &clap::Error, arguments: &[OsString]) -> Unusable {
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

/// The variables that are read as options.
#[must_use]
pub fn variables() -> Vec<String> {
    let command = Cli::command();
    let arguments = command.get_arguments().chain(
        command
            .get_subcommands()
            .flat_map(clap::Command::get_arguments),
    );
    arguments
        .filter_map(|argument| argument.get_env())
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

/// The completion script for a shell.
#[must_use]
pub fn completions(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tokenrun", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The completion scripts that come with tokenrun: file names and contents.
#[must_use]
pub fn completion_files() -> Vec<(&'static str, String)> {
    use clap_complete::Shell::{Bash, Fish, Zsh};
    vec![
        ("tokenrun.bash", completions(Bash)),
        ("_tokenrun", completions(Zsh)),
        ("tokenrun.fish", completions(Fish)),
    ]
}

/// The manual pages: file names and contents.
///
/// # Errors
/// None that a memory buffer gives.
pub fn manual() -> std::io::Result<Vec<(String, String)>> {
    manual::pages(&Cli::command())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Result<Request, Unusable> {
        let words: Vec<OsString> = line.iter().map(OsString::from).collect();
        parse(&words)
    }

    fn refused(line: &[&str]) -> String {
        let error = parsed(line).unwrap_err();
        assert_eq!(error.code, exit::USAGE);
        assert!(!error.text.trim_end().contains('\n'), "{}", error.text);
        error.text
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_run_is_understood() {
        let Ok(Request::Run(run)) = parsed(&[
            "tokenrun",
            "-g",
            "nightly",
            "--takeover-after",
            "2h 30m",
            "--keep=0",
            "-E",
            "3",
            "--",
            "job",
            "--heartbeat",
            "x",
        ]) else {
            panic!("not understood");
        };
        assert_eq!(run.group.as_str(), "nightly");
        assert_eq!(run.timing.takeover_after, Duration::from_secs(9_000));
        assert_eq!(run.timing.keep, Duration::ZERO);
        assert_eq!(run.conflict_exit_code, 3);
        assert_eq!(run.command, ["job", "--heartbeat", "x"]);
    }

    #[test]
    fn bad_input_gets_one_line_that_says_what_to_write() {
        for (line, words) in [
            (vec!["tokenrun"], vec!["no group", "--group"]),
            (vec!["tokenrun", "--", "job"], vec!["no group"]),
            (vec!["tokenrun", "-g", "x"], vec!["no command", "--"]),
            (vec!["tokenrun", "-g", "x", "--"], vec!["no command"]),
            (vec!["tokenrun", "-g", "x", "--", ""], vec!["no command"]),
            (
                vec!["tokenrun", "-g", "x", "echo", "hi"],
                vec!["\"echo\"", "goes after --"],
            ),
            (
                vec!["tokenrun", "-g", "x", "--hartbeat", "3s", "--", "job"],
                vec!["--hartbeat", "--heartbeat"],
            ),
            (
                vec!["tokenrun", "-g", "x", "--keep", "5M", "--", "job"],
                vec!["--keep", "months", "5m"],
            ),
            (
                vec!["tokenrun", "-g", "x", "--keep", "soon", "--", "job"],
                vec!["--keep", "2h 30m"],
            ),
            (
                vec![
                    "tokenrun",
                    "-g",
                    "x",
                    "--takeover-after",
                    "20s",
                    "--",
                    "job",
                ],
                vec!["--takeover-after 29s or more"],
            ),
            (
                vec!["tokenrun", "-g", "a\nb", "--", "job"],
                vec!["--group", "control character"],
            ),
            (
                vec!["tokenrun", "-g", "", "--", "job"],
                vec!["--group", "empty"],
            ),
            (
                vec!["tokenrun", "-g", "x", "--client-id", "", "--", "job"],
                vec!["--client-id", "empty"],
            ),
            (vec!["tokenrun", "statsu"], vec!["status"]),
        ] {
            let text = refused(&line);
            for word in words {
                assert!(text.contains(word), "{line:?}: {text}");
            }
        }
        let long = "x".repeat(201);
        assert!(refused(&["tokenrun", "-g", &long, "--", "job"]).contains("201"));
    }
}
