//! `tokenrun init`: makes the store, or prints how an administrator makes it.

use anyhow::Result;
use clap::Args;

use super::shared::failure::warn;
use super::shared::node::state;
use super::shared::options::StoreOptions;
use super::shared::stores::{LISTING_TIMEOUT, not_opened, store_url};
use super::shared::terminal::print;
use super::shared::{Action, Context};
use crate::exit::Exit;
use crate::report::printable::printable;
use crate::store::open::Opening;

/// Make the store, or print the SQL with which an administrator makes it
#[derive(Debug, Args)]
pub(super) struct Init {
    #[command(flatten)]
    store: StoreOptions,
    /// Print the SQL that makes the store, and a role with no more rights than tokenrun needs
    #[arg(long)]
    print_sql: bool,
}

impl Action for Init {
    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        let url = store_url(&self.store)?;
        let state = state();
        let opening = Opening {
            timeout: LISTING_TIMEOUT,
            limit: LISTING_TIMEOUT,
            application: "tokenrun",
            state: state.as_deref(),
        };
        let mut warn = |text: &str| warn(context.log, "store_settings", text.to_owned());
        if self.print_sql {
            let creation = url.creation(&opening, &mut warn);
            return print(&creation.map_err(not_opened)?);
        }
        let name = url.make(&opening, &mut warn).map_err(not_opened)?;
        print(&format!("the store {} is there\n", printable(&name)))
    }
}
