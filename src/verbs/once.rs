//! `tokenrun once list`: the keys of `--once` that are done.

use anyhow::Result;
use clap::{Args, Subcommand};

use super::acts::Forget;
use super::shared::groups::known_row;
use super::shared::options::{ScreenOptions, StoreOptions};
use super::shared::stores::known_store;
use super::shared::terminal::{print, print_json, screen};
use super::shared::{Action, Context};
use crate::cli::values;
use crate::exit::Exit;
use crate::report::records;
use crate::token::GroupName;

#[derive(Debug, Subcommand)]
pub(super) enum OnceVerb {
    List(OnceList),
    Forget(Forget),
}

/// List the keys that are done
#[derive(Debug, Args)]
pub(super) struct OnceList {
    /// Only this group
    #[arg(short, long, value_name = "NAME", value_parser = values::group)]
    group: Option<GroupName>,
    #[command(flatten)]
    store: StoreOptions,
    #[command(flatten)]
    screen: ScreenOptions,
    /// An array of JSON objects instead of a table
    #[arg(long)]
    json: bool,
}

impl Action for OnceList {
    /// The newest first.
    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        let mut store = known_store(&self.store, context.log)?;
        let group = self.group.as_ref();
        if let Some(group) = group {
            known_row(store.as_mut(), group)?;
        }
        let marks = store.once_marks(group)?;
        if self.json {
            let objects: Vec<_> = marks.iter().map(records::MarkObject).collect();
            return print_json(&objects);
        }
        print(&records::marks(&marks, &screen(self.screen)))
    }
}
