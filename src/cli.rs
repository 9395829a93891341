//! The command line, whatever its verbs are: parsing, the defaults from configuration files, the
//! parsers of values, errors and the topics of the help.

mod explained;
mod foreign;
pub mod generated;
mod given_time;
pub mod keys;
mod rewriting;
mod settings;
mod unusable;
pub(crate) mod values;

use std::ffi::OsString;

pub(crate) use self::explained::{explained, nearest, nothing_asked};
pub(crate) use self::given_time::GivenTime;
#[cfg(test)]
pub(crate) use self::keys::Options;
pub(crate) use self::rewriting::rewritten;
pub(crate) use self::settings::{Misread, Origins, Parsed, read, said_by_variable};
pub(crate) use self::unusable::{Unusable, asks_for_json};

/// The text of `--version`, if that is the whole request: then nothing else has to be built, and
/// the start is that of any small program.
pub(crate) fn version_alone(arguments: &[OsString]) -> Option<&'static str> {
    match arguments {
        [_, only] if only == "--version" || only == "-V" => {
            Some(concat!("tokenrun ", env!("CARGO_PKG_VERSION"), "\n"))
        }
        _ => None,
    }
}

/// The variables that are read as options of a command or of its verbs.
pub fn variables(command: &clap::Command) -> Vec<String> {
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
