//! What the description of the command line says by itself, for the environment and for generators.

use clap::CommandFactory as _;

use super::help::with_topics;
use super::tree::Cli;

/// The command line's description.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// The description as completions know it: `help` takes topics and the names of commands.
#[must_use]
pub fn command_for_completions() -> clap::Command {
    with_topics(Cli::command())
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
