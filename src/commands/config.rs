//! `tokenrun config`: the settings of a run, and where each comes from.

use anyhow::Result;

use super::{print, print_json};
use crate::exit::Exit;
use crate::report::settings::{Shown, settings};

/// Shows settings as a table, or as JSON.
///
/// # Errors
/// If they can't be printed.
pub fn config(all: &[Shown], json: bool) -> Result<Exit> {
    match json {
        true => print_json(all),
        false => print(&settings(all)),
    }
}
