//! `tokenrun doctor`: examines a store, and reports what is right, what is wrong and what to do
//! about it.

use anyhow::Result;
use clap::Args;

use super::shared::environment::warn_of_unknown_variables;
use super::shared::failure::reported;
use super::shared::node::state;
use super::shared::options::{StoreOptions, TimingOptions};
use super::shared::stores::store_url;
use super::shared::terminal::{print, print_json};
use super::shared::{Action, Context};
use crate::cli::{Unusable, values};
use crate::exit::{self, Exit};
use crate::report::doctor::{Finding, line};
use crate::report::settings::{Effective, Origin};
use crate::run::ending::of_trouble;
use crate::store::Trouble;
use crate::store::checkup::{Check, Tell, Verdict};
use crate::store::open::Examination;
use crate::sys::process;
use crate::token::{GroupName, Timing};

/// Check the store step by step, and say what to do about each problem
///
/// It changes nothing. The exit code is 0 if no check fails, otherwise that of the first
/// failure: 69 not reached, 77 no permission, 78 configuration.
#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// Also compare the durations with those of this group
    #[arg(short, long, value_name = "NAME", value_parser = values::group)]
    group: Option<GroupName>,
    #[command(flatten)]
    store: StoreOptions,
    #[command(flatten, next_help_heading = "Lease and timing")]
    times: TimingOptions,
    /// An array of JSON objects instead of lines
    #[arg(long, help_heading = None)]
    json: bool,
}

impl Action for Doctor {
    /// Refuses what a run would refuse.
    fn check(&self) -> Result<(), Unusable> {
        self.times.timing(None).map(drop)
    }

    /// Prints lines as the checks come, or an array of objects. The exit code is that of the first
    /// failure.
    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        warn_of_unknown_variables(context);
        // From here on the process may hold a password.
        let _ = process::forbid_core_dumps();
        let timing = self.times.timing(None)?;
        let mut settings = context.origins.all(context.settable);
        settings.retain(|setting| setting.origin != Origin::Default);
        let mut checks: Vec<Check> = Vec::new();
        let mut printed = Ok(Exit::OK);
        self.examine(&settings, &timing, &mut |check| {
            if !self.json && printed.is_ok() {
                printed = print(&line(&check));
            }
            checks.push(check);
        });
        printed?;
        if self.json {
            let findings: Vec<Finding> = checks.iter().map(Finding).collect();
            print_json(&findings)?;
        }
        let failure = checks.iter().find_map(|check| match check.verdict {
            Verdict::Fail(trouble) => Some(of_trouble(trouble)),
            Verdict::Fine | Verdict::Unknown | Verdict::Warn => None,
        });
        Ok(failure.map_or(Exit::OK, Exit::Code))
    }
}

impl Doctor {
    fn examine(&self, settings: &[Effective], timing: &Timing, tell: &mut Tell<'_>) {
        for setting in settings {
            tell(Check::fine("setting", said(setting)));
        }
        let url = match store_url(&self.store) {
            Ok(url) => url,
            Err(error) => {
                tell(unusable(&error));
                return;
            }
        };
        let state = state();
        let examination = Examination {
            timing,
            group: self.group.as_ref(),
            is_default: !self.store.is_given(),
            state: state.as_deref(),
        };
        url.examine(&examination, tell);
    }
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
