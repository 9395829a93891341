//! Examining a store: which one, and what it is compared with.

use anyhow::Result;

use super::environment::warn_of_unknown_variables;
use super::node::node_environment;
use super::stores::store_url;
use crate::cli::{DoctorRequest, Effective};
use crate::commands;
use crate::commands::failure::reported;
use crate::exit::{self, Exit};
use crate::report::log::Log;
use crate::store::Trouble;
use crate::store::checkup::{Check, Tell};
use crate::store::open::Examination;
use crate::store::url::state_directory;
use crate::sys::process;

/// Examines the store, and prints the checks.
pub(crate) fn doctor(request: &DoctorRequest, log: &mut Log) -> Result<Exit> {
    warn_of_unknown_variables(log);
    // From here on the process may hold a password.
    let _ = process::forbid_core_dumps();
    commands::doctor::doctor(request.json, |tell| examine(request, tell))
}

fn examine(request: &DoctorRequest, tell: &mut Tell<'_>) {
    for setting in &request.settings {
        tell(Check::fine("setting", said(setting)));
    }
    let url = match store_url(&request.store) {
        Ok(url) => url,
        Err(error) => {
            tell(unusable(&error));
            return;
        }
    };
    let state = state_directory(&node_environment()).ok();
    let examination = Examination {
        timing: &request.timing,
        group: request.group.as_ref(),
        is_default: !request.store.is_given(),
        state: state.as_deref(),
    };
    url.examine(&examination, tell);
}

/// A setting with its origin.
fn said(setting: &Effective) -> String {
    let value = setting.value.as_deref().unwrap_or("nothing");
    format!("{} is {value}, by {}", setting.setting, setting.origin)
}

/// There is no store to examine.
fn unusable(error: &anyhow::Error) -> Check {
    let reported = reported(error);
    let text = &reported.message.text;
    let trouble = match reported.code {
        exit::DENIED => Trouble::Denied,
        _ => Trouble::Misconfigured,
    };
    let remedy = "name the store with --store, --store-file or a configuration file";
    Check::fail("store", trouble, text, remedy)
}
