//! The verbs, a file each: a verb's options, its checks and its action. Here they are put together to a
//! command line.

mod acts;
mod check;
mod config;
mod doctor;
mod explain;
mod fence;
mod history;
mod hold;
mod init;
mod judge;
pub mod manual;
mod metrics;
mod names;
mod once;
mod output;
mod page;
mod run;
mod serve;
pub(crate) mod shared;
mod status;

use std::ffi::OsString;

use clap::{Args as _, CommandFactory as _, Parser, Subcommand};

use self::hold::Hold;
use self::hold::stand_in::{STAND_IN, StandIn};
use self::names::{NamesLine, PrintNames};
use self::run::Run;
use self::run::hooks::{HOOK_KEEPER, Keep};
use self::shared::{Action, own_order};
use crate::cli::{self, Misread, Origins, Parsed, Unusable};

const ABOUT: &str = "Runs a job on one node at a time, keeps it on that node while it is well, \
and moves it by itself when the node dies, with nothing but a database";

const RUN_USAGE: &str = "tokenrun [OPTIONS] --group NAME -- CMD [ARG]...\n       tokenrun COMMAND";

const AFTER_HELP: &str = "\
Exit codes: the job's own; 64 usage; 69 store not reached; 75 not now; 76 token lost;
77 permission; 78 configuration; 124 timed out; all of them: tokenrun help exit-codes";

fn after_help() -> String {
    format!("{AFTER_HELP}\n\n{}", manual::topics_line())
}

#[derive(Debug, Parser)]
#[command(
    name = "tokenrun",
    version,
    about = ABOUT,
    override_usage = RUN_USAGE,
    after_help = after_help(),
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    run: Run,
}

/// A run alone: to set up the verbs takes longer than to read the line of a run.
#[derive(Debug, Parser)]
#[command(name = "tokenrun", version)]
struct PlainRun {
    #[command(flatten)]
    run: Run,
}

/// In the order of the help: what happens, acts on a token, what jobs ask, the store, the rest.
#[derive(Debug, Subcommand)]
enum Verb {
    Status(status::Status),
    History(history::History),
    Output(output::Output),
    Explain(explain::Explain),
    Check(check::Check),
    Hold(Box<Hold>),
    Pause(acts::Pause),
    Resume(acts::Resume),
    Move(acts::Move),
    Expect(acts::Expect),
    Revoke(acts::Revoke),
    Release(acts::Release),
    /// List or forget the keys of --once that are done
    #[command(subcommand)]
    Once(once::OnceVerb),
    /// Check a fencing token, guard a resource with it, or raise it
    #[command(subcommand)]
    Fence(fence::FenceVerb),
    Init(init::Init),
    Doctor(Box<doctor::Doctor>),
    Settle(judge::Settle),
    Distrust(judge::Distrust),
    Metrics(metrics::Metrics),
    Page(page::Page),
    Serve(serve::Serve),
    Config(Box<config::Config>),
    Help(manual::Help),
    Completions(manual::Completions),
    Man(manual::Man),
}

impl Cli {
    fn action(self) -> Box<dyn Action> {
        let Some(verb) = self.verb else {
            return Box::new(self.run);
        };
        match verb {
            Verb::Status(it) => Box::new(it),
            Verb::History(it) => Box::new(it),
            Verb::Output(it) => Box::new(it),
            Verb::Explain(it) => Box::new(it),
            Verb::Check(it) => Box::new(it),
            Verb::Hold(it) => it,
            Verb::Pause(it) => Box::new(it),
            Verb::Resume(it) => Box::new(it),
            Verb::Move(it) => Box::new(it),
            Verb::Expect(it) => Box::new(it),
            Verb::Revoke(it) => Box::new(it),
            Verb::Release(it) => Box::new(it),
            Verb::Once(once::OnceVerb::List(it)) => Box::new(it),
            Verb::Once(once::OnceVerb::Forget(it)) => Box::new(it),
            Verb::Fence(fence::FenceVerb::Verify(it)) => Box::new(it),
            Verb::Fence(fence::FenceVerb::Advance(it)) => Box::new(it),
            Verb::Fence(fence::FenceVerb::Raise(it)) => Box::new(it),
            Verb::Init(it) => Box::new(it),
            Verb::Doctor(it) => it,
            Verb::Settle(it) => Box::new(it),
            Verb::Distrust(it) => Box::new(it),
            Verb::Metrics(it) => Box::new(it),
            Verb::Page(it) => Box::new(it),
            Verb::Serve(it) => Box::new(it),
            Verb::Config(it) => it,
            Verb::Help(it) => Box::new(it),
            Verb::Completions(it) => Box::new(it),
            Verb::Man(it) => Box::new(it),
        }
    }
}

/// A command line that was understood.
pub(crate) struct Line {
    pub(crate) action: Box<dyn Action>,
    /// Where its settings come from.
    pub(crate) origins: Origins,
}

impl Line {
    /// A line whose options go together.
    fn checked(action: Box<dyn Action>, origins: Origins) -> Result<Self, Unusable> {
        match action.check() {
            Ok(()) => Ok(Self { action, origins }),
            Err(unusable) => Err(origins.blame(unusable)),
        }
    }

    /// A line of a process that this program starts itself.
    fn internal(action: Box<dyn Action>) -> Self {
        let origins = Origins::default();
        Self { action, origins }
    }
}

/// The command line's description.
pub fn command() -> clap::Command {
    Cli::command()
}

/// The description as completions know it: `help` takes topics and the names of commands.
pub fn command_for_completions() -> clap::Command {
    manual::with_topics(Cli::command())
}

/// The options that a configuration file may set: those of a run and of an agent.
pub(crate) fn settable() -> clap::Command {
    let mut command = PlainRun::command();
    let hold = Hold::augment_args(clap::Command::new("hold"));
    for option in hold.get_arguments() {
        if command
            .get_arguments()
            .all(|own| own.get_id() != option.get_id())
        {
            command = command.arg(option);
        }
    }
    command
}

/// Reads a command line. An error is one line about it and its correction, or the requested help.
pub(crate) fn parse(arguments: &[OsString]) -> Result<Line, Unusable> {
    if arguments.len() <= 1 {
        return Err(cli::nothing_asked());
    }
    if is_plain_run(arguments) {
        match cli::read::<PlainRun>(arguments, settable) {
            Ok(Parsed { options, origins }) => {
                return Line::checked(Box::new(options.run), origins);
            }
            Err(Misread::File(unusable)) => return Err(unusable),
            // The parser with all verbs explains the error.
            Err(Misread::Line(_)) => {}
        }
    }
    let rewritten = cli::rewritten(arguments, command);
    let arguments = rewritten.as_deref().unwrap_or(arguments);
    if let Some(order) = own_order::<StandIn>(arguments, STAND_IN) {
        return Ok(Line::internal(Box::new(order)));
    }
    if let Some(order) = own_order(arguments, HOOK_KEEPER) {
        return Ok(Line::internal(Box::new(Keep(order))));
    }
    if let Some((names, arguments)) = names::rewritten(arguments) {
        let Parsed {
            options: line,
            origins,
        } = read::<NamesLine>(&arguments)?;
        return Line::checked(Box::new(PrintNames { names, line }), origins);
    }
    let Parsed { options, origins } = read::<Cli>(arguments)?;
    Line::checked(options.action(), origins)
}

fn read<P: clap::CommandFactory + clap::FromArgMatches>(
    arguments: &[OsString],
) -> Result<Parsed<P>, Unusable> {
    cli::read(arguments, settable).map_err(|misread| match misread {
        Misread::Line(error) => cli::explained(&error, arguments, command()),
        Misread::File(unusable) => unusable,
    })
}

/// The line is a run's: it begins with an option, and has a job after `--`.
fn is_plain_run(arguments: &[OsString]) -> bool {
    let starts_with_option = arguments
        .get(1)
        .is_some_and(|word| word.as_encoded_bytes().starts_with(b"-"));
    starts_with_option && arguments.iter().any(|word| word == "--")
}

#[cfg(test)]
mod tests;
