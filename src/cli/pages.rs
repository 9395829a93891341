//! Generated from the command line's description: the variables that are options, the completions,
//! the manual.

use clap::CommandFactory as _;

use super::help::with_topics;
use super::tree::Cli;

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
    super::completions::script(shell, &mut with_topics(Cli::command()))
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

/// The pages of the reference in the guide: file names and contents.
#[must_use]
pub fn reference_pages() -> Vec<(String, String)> {
    super::reference::guide(&Cli::command())
}

/// The manual pages: file names and contents.
///
/// # Errors
/// None for a memory buffer.
pub fn manual() -> std::io::Result<Vec<(String, String)>> {
    super::manual::pages(&mut Cli::command())
}
