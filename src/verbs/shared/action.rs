//! What every verb is for the program: its store, its style of messages, its checks, its action.

use std::ffi::OsString;

use anyhow::Result;

use super::options::StoreOptions;
use crate::cli::{Origins, Unusable};
use crate::exit::Exit;
use crate::report::log::{Log, Style};
use crate::sys::signals::Inherited;

/// What an action has besides its options.
pub(crate) struct Context<'a> {
    /// The command line, with the program's name.
    pub(crate) arguments: &'a [OsString],
    /// Where the settings of the line come from.
    pub(crate) origins: &'a Origins,
    /// Makes the description of the whole command line.
    pub(crate) command: fn() -> clap::Command,
    /// Makes the description of what a configuration file may set.
    pub(crate) settable: fn() -> clap::Command,
    pub(crate) inherited: Inherited,
    pub(crate) log: &'a mut Log,
}

/// A verb with its options, as the command line gives them.
pub(crate) trait Action {
    /// Refuses options that do not go together. Single values were checked by their parsers.
    fn check(&self) -> Result<(), Unusable> {
        Ok(())
    }

    /// The store options, if the verb uses a store.
    fn store(&self) -> Option<&StoreOptions> {
        None
    }

    /// The amount and the style of messages.
    fn style(&self) -> Style {
        Style::default()
    }

    fn run(&self, context: &mut Context<'_>) -> Result<Exit>;
}
