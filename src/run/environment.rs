//! The variables by which the job knows its run, and a hook the run that has ended.

use super::event::Granted;
use crate::job::hooks::OUTPUT_FILE;
use crate::token::{Claim, GroupName, RunRecord};

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

/// Variables that tokenrun sets for a hook besides those of the job; the last one is set by the hook's
/// keeper.
pub const HOOK_VARIABLES: [&str; 4] = [
    "TOKENRUN_OUTCOME",
    "TOKENRUN_EXIT_CODE",
    "TOKENRUN_REASON",
    OUTPUT_FILE,
];

/// Options that have no value in a hook, whatever the configuration files say: a tokenrun that a
/// hook calls would have the same hooks, and they would call it again.
pub const NO_HOOKS: [&str; 3] = [
    "TOKENRUN_ON_SUCCESS",
    "TOKENRUN_ON_FAILURE",
    "TOKENRUN_ON_REFUSED",
];

/// What is known of a run, as texts for its variables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    group: Option<String>,
    client: Option<String>,
    session: Option<String>,
    fence: Option<String>,
    grant: Option<String>,
    previous_client: Option<String>,
    once_key: Option<String>,
    /// True if the run is under an outer run's lease.
    nested: bool,
}

impl Known {
    /// A run of which the group alone is known.
    pub fn of_group(group: &GroupName) -> Self {
        Self {
            group: Some(group.to_string()),
            ..Self::default()
        }
    }

    /// A run that claims its token.
    pub fn of_claim(claim: &Claim) -> Self {
        Self {
            client: Some(claim.client.to_string()),
            session: Some(claim.session.to_string()),
            once_key: claim.about.once_key.clone(),
            ..Self::of_group(&claim.group)
        }
    }

    /// A run in history.
    pub fn of_record(run: &RunRecord) -> Self {
        Self {
            group: Some(run.group.to_string()),
            client: Some(run.client.to_string()),
            session: Some(run.session.to_string()),
            fence: Some(run.fence.to_string()),
            grant: Some(run.grant.to_string()),
            previous_client: run.previous_client.as_ref().map(ToString::to_string),
            once_key: run.once_key.clone(),
            nested: false,
        }
    }

    /// The variables of the run with its token.
    pub fn granted(self, granted: &Granted) -> Self {
        Self {
            session: Some(granted.session.to_string()),
            fence: Some(granted.fence.to_string()),
            grant: granted.kind.map(|kind| kind.to_string()),
            previous_client: granted.previous_client.as_ref().map(ToString::to_string),
            nested: granted.kind.is_none(),
            ..self
        }
    }

    /// Names and values for the environment. A variable that does not apply is emptied if
    /// tokenrun's own environment has it, so that no value of an outer run shows through. Under the
    /// outer run's lease the outer values stay, because they are still true.
    pub fn variables(self) -> Vec<(String, String)> {
        let nested = self.nested;
        let outer = |name| (!nested && std::env::var_os(name).is_some()).then(String::new);
        let values = [
            self.group,
            self.client,
            self.session,
            self.fence,
            self.grant,
            self.previous_client,
            self.once_key,
        ];
        JOB_VARIABLES
            .iter()
            .zip(values)
            .filter_map(|(name, value)| Some(((*name).to_owned(), value.or_else(|| outer(name))?)))
            .collect()
    }

    /// The variables of a hook, with the values of the first [`HOOK_VARIABLES`] in their order.
    pub fn variables_of_hook(self, values: [String; 3]) -> Vec<(String, String)> {
        let own = HOOK_VARIABLES.into_iter().zip(values);
        let none = NO_HOOKS.into_iter().map(|name| (name, String::new()));
        let more = own.chain(none).map(|(name, text)| (name.to_owned(), text));
        self.variables().into_iter().chain(more).collect()
    }
}

/// Names and values for the job's environment.
pub fn of(claim: &Claim, granted: &Granted) -> Vec<(String, String)> {
    Known::of_claim(claim).granted(granted).variables()
}
