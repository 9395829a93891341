//! `tokenrun config`: the settings of a run, and where each comes from.

use super::{Failure, print, print_json};
use crate::exit::Exit;
use crate::report::settings::{Shown, settings};

/// Shows settings as a table, or as JSON.
///
/// # Errors
/// If they can't be printed.
pub fn config(all: &[Shown], json: bool) -> Result<Exit, Failure> {
    match json {
        true => print_json(all),
        false => print(&settings(all)),
    }
}
