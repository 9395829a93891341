//! Examining a store: which one, and by which of its parts.

use crate::cli::{DoctorRequest, Effective};
use crate::commands::{self, Failure};
use crate::exit::{self, Exit};
use crate::report::log::Log;
use crate::store::Trouble;
use crate::store::checkup::{Check, Tell, directory};
use crate::store::url::{StoreUrl, state_directory};
use crate::store::{postgres, sqlite};
use crate::sys::process;

/// Examines the store, and prints what was found.
pub(crate) fn doctor(request: &DoctorRequest, log: &mut Log) -> Result<Exit, Failure> {
    crate::warn_of_unknown_variables(log);
    // What is read from here on may be a password.
    let _ = process::forbid_core_dumps();
    commands::doctor::doctor(request.json, |tell| examine(request, tell))
}

fn examine(request: &DoctorRequest, tell: &mut Tell<'_>) {
    for setting in &request.settings {
        tell(Check::fine("setting", said(setting)));
    }
    let url = match crate::store_url(&request.store) {
        Ok(url) => url,
        Err(failure) => {
            tell(unusable(&failure));
            return;
        }
    };
    let (timing, group) = (&request.timing, request.group.as_ref());
    match url {
        StoreUrl::Sqlite(path) => {
            let origin = if request.store.is_given() {
                ""
            } else {
                ", by default"
            };
            tell(Check::fine(
                "store",
                format!("a SQLite file, for this host alone{origin}"),
            ));
            sqlite::examine::examine(&path, timing, group, tell);
        }
        StoreUrl::Postgres(text) => match postgres::settings(&text.0, "tokenrun doctor") {
            Err(error) => tell(Check::fail(
                "store",
                Trouble::Misconfigured,
                error.to_string(),
                "correct it in the connection string, the variable or the file",
            )),
            Ok(settings) => {
                tell(Check::fine("store", settings.name()));
                postgres::examine::examine(&settings, timing, group, tell);
                let state = state_directory(&crate::place()).ok();
                let locks = state.map(|state| state.join("locks"));
                tell(directory::locks(locks.as_deref()));
            }
        },
    }
}

/// What a setting is, and who says so.
fn said(setting: &Effective) -> String {
    let value = setting.value.as_deref().unwrap_or("nothing");
    format!("{} is {value}, by {}", setting.setting, setting.origin)
}

/// There is no store to examine.
fn unusable(failure: &Failure) -> Check {
    let text = &failure.message.text;
    let trouble = match failure.code {
        exit::DENIED => Trouble::Denied,
        _ => Trouble::Misconfigured,
    };
    let remedy = "name the store with --store, --store-file or a configuration file";
    Check::fail("store", trouble, text, remedy)
}
