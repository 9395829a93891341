//! Making a store.

use clap::Args;

use super::shared::{StoreFlags, StoreRequest};

#[derive(Debug, Args)]
pub(super) struct InitFlags {
    #[command(flatten)]
    store: StoreFlags,
    /// Print the SQL that makes the store, and a role with no more rights than tokenrun needs
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

impl From<InitFlags> for InitRequest {
    fn from(flags: InitFlags) -> Self {
        Self {
            store: flags.store.into(),
            print_sql: flags.print_sql,
        }
    }
}
