//! What the job may know of its run, in its environment.

use super::event::Granted;
use crate::token::Claim;

/// The variable that names the session that a process runs inside of.
pub const SESSION: &str = "TOKENRUN_SESSION";

/// Variables that tokenrun sets for its job and never reads as options.
pub const JOB_VARIABLES: [&str; 7] = [
    "TOKENRUN_GROUP",
    "TOKENRUN_CLIENT_ID",
    SESSION,
    "TOKENRUN_FENCE",
    "TOKENRUN_GRANT",
    "TOKENRUN_PREVIOUS_CLIENT",
    "TOKENRUN_ONCE_KEY",
];

/// The variable that tells what `hold --on-change` runs what has happened: gain or loss.
pub const CHANGE: &str = "TOKENRUN_CHANGE";

/// Names and values for the job's environment. What does not apply is empty if
/// tokenrun's own environment has it, so that nothing of an outer run shows
/// through. Under the outer run's lease what it said goes on to be true.
#[must_use]
pub fn of(claim: &Claim, granted: &Granted) -> Vec<(String, String)> {
    let previous = granted.previous_client.as_ref();
    let once_key = claim.about.once_key.clone();
    let values = [
        Some(claim.group.to_string()),
        Some(claim.client.to_string()),
        Some(granted.session.to_string()),
        Some(granted.fence.to_string()),
        granted.kind.map(|kind| kind.to_string()),
        previous.map(ToString::to_string),
        once_key,
    ];
    let is_nested = granted.kind.is_none();
    let outer = |name| (!is_nested && std::env::var_os(name).is_some()).then(String::new);
    JOB_VARIABLES
        .iter()
        .zip(values)
        .filter_map(|(name, value)| Some(((*name).to_owned(), value.or_else(|| outer(name))?)))
        .collect()
}
