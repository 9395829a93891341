//! The variables by which the job knows its run.

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

/// The variable with the kind of change for the command of `hold --on-change`: gain or loss.
pub const CHANGE: &str = "TOKENRUN_CHANGE";

/// Names and values for the job's environment. A variable that does not apply is emptied if
/// tokenrun's own environment has it, so that no value of an outer run shows through. Under the
/// outer run's lease the outer values stay, because they are still true.
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
