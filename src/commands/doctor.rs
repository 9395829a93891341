//! `tokenrun doctor`: examines a store, and reports what is right, what is wrong and what to do
//! about it.

use anyhow::Result;

use super::{print, print_json};
use crate::exit::Exit;
use crate::report::doctor::{Finding, line};
use crate::run::ending::of_trouble;
use crate::store::checkup::{Check, Tell, Verdict};

/// Prints the checks of an examination: lines as they come, or an array of objects. The exit code
/// is that of the first failure.
///
/// # Errors
/// If stdout can't be written.
pub fn doctor(as_json: bool, examine: impl FnOnce(&mut Tell<'_>)) -> Result<Exit> {
    let mut checks: Vec<Check> = Vec::new();
    let mut printed = Ok(Exit::OK);
    examine(&mut |check| {
        if !as_json && printed.is_ok() {
            printed = print(&line(&check));
        }
        checks.push(check);
    });
    printed?;
    if as_json {
        let findings: Vec<Finding> = checks.iter().map(Finding::from).collect();
        print_json(&findings)?;
    }
    let failure = checks.iter().find_map(|check| match check.verdict {
        Verdict::Fail(trouble) => Some(of_trouble(trouble)),
        Verdict::Fine | Verdict::Unknown | Verdict::Warn => None,
    });
    Ok(failure.map_or(Exit::OK, Exit::Code))
}
