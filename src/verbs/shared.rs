//! What several verbs share: what an action is, the options, the store, this node, text for people.

pub(crate) mod environment;
pub(crate) mod failure;
pub(crate) mod groups;
pub(crate) mod node;
pub(crate) mod noting;
pub(crate) mod options;
pub(crate) mod span;
pub(crate) mod stores;
pub(crate) mod terminal;

use std::ffi::OsString;

use anyhow::Result;
use serde::de::DeserializeOwned;

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

    /// The amount and the style of messages.
    fn style(&self) -> Style {
        Style::default()
    }

    fn run(&self, context: &mut Context<'_>) -> Result<Exit>;
}

/// The order to a process that this program starts itself; `None` for any other line. The first word says
/// which process it is.
pub(crate) fn own_order<T: DeserializeOwned>(arguments: &[OsString], word: &str) -> Option<T> {
    match arguments {
        [_, first, order] if first == word => serde_json::from_str(order.to_str()?).ok(),
        _ => None,
    }
}
