//! `tokenrun config`: the settings of a run, and where each comes from.

use std::time::Duration;

use anyhow::Result;
use clap::Args;

use super::run::hooks::HOOK_TIMEOUT;
use super::run::{ONCE_RETAIN, Run};
use super::shared::node::{client_id, node_environment};
use super::shared::options::{HISTORY_RETAIN, OUTPUT_COUNT, OUTPUT_RETAIN};
use super::shared::terminal::{print, print_json};
use super::shared::{Action, Context};
use crate::cli::Unusable;
use crate::exit::{self, Exit};
use crate::report::settings::{Effective, Origin, settings as table};
use crate::store::url::StoreUrl;
use crate::sys::process;
use crate::token::Timing;

/// The variable that names the client where no option does.
const CLIENT_ID: &str = "CLIENT_ID";

/// Show the settings that a run would use, and where each comes from
///
/// It takes the options of a run: put the word config before them to see what they would do.
#[derive(Debug, Args)]
pub(super) struct Config {
    #[command(flatten)]
    run: Run,
    /// An array of JSON objects instead of a table
    #[arg(long, help_heading = "Reports and messages")]
    json: bool,
}

impl Action for Config {
    /// Refuses what a run would refuse.
    fn check(&self) -> Result<(), Unusable> {
        self.run.timing().map(drop)
    }

    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        let timing = self.run.timing()?;
        let mut settings = context.origins.all(context.settable);
        for setting in &mut settings {
            if setting.origin == Origin::Default {
                let value = default_value(&setting.setting, &timing);
                setting.value = value.or(setting.value.take());
            }
        }
        let all = filled_in(settings);
        match self.json {
            true => print_json(&all),
            false => print(&table(&all)),
        }
    }
}

/// What a run does by default, if clap does not know it; `None` for nothing, or if it depends on the host.
fn default_value(setting: &str, timing: &Timing) -> Option<String> {
    let duration = match setting {
        "heartbeat" => timing.heartbeat,
        "takeover-after" => timing.takeover_after,
        "keep" => timing.keep,
        "head-start" => timing.head_start,
        "at-least" => timing.at_least,
        "kill-grace" => timing.kill_grace,
        "store-timeout" => timing.store_timeout,
        "hook-timeout" => HOOK_TIMEOUT,
        "once-retain" => return Some(days(ONCE_RETAIN)),
        "output-retain" => return Some(days(OUTPUT_RETAIN)),
        "output-count" => return Some(OUTPUT_COUNT.to_string()),
        "history-retain" => return Some(days(HISTORY_RETAIN)),
        "conflict-exit-code" => return Some(exit::NOT_NOW.to_string()),
        "done-exit-code" => return Some("0".to_owned()),
        _ => return None,
    };
    Some(crate::duration::exact(duration))
}

/// As the help has it: 400 days are a year, a month and some hours otherwise.
fn days(duration: Duration) -> String {
    format!("{}d", duration.as_secs() / (24 * 3_600))
}

/// Settings, with this host's values for those that are not set.
fn filled_in(mut settings: Vec<Effective>) -> Vec<Effective> {
    let has_file = settings
        .iter()
        .any(|it| it.setting == "store-file" && it.origin != Origin::Default);
    for setting in &mut settings {
        match setting.setting.as_str() {
            "store" if setting.origin == Origin::Default && !has_file => {
                setting.value = default_store();
            }
            "client-id" if setting.origin == Origin::Default => {
                let host = process::host_name().ok();
                let client = client_id(None, host.as_deref()).ok();
                setting.value = client.map(|client| client.to_string());
                if std::env::var(CLIENT_ID).is_ok_and(|text| !text.is_empty()) {
                    setting.origin = Origin::Environment(CLIENT_ID.to_owned());
                }
            }
            _ => {}
        }
    }
    settings
}

fn default_store() -> Option<String> {
    let url = StoreUrl::default_for(&node_environment()).ok()?;
    Some(url.shown())
}
