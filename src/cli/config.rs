//! Showing the settings of a run.

use std::time::Duration;

use clap::Args;

use super::hooks::HOOK_TIMEOUT;
use super::run::{ONCE_RETAIN, RunFlags};
use super::settings::{Effective, Origin, Origins};
use super::shared::{HISTORY_RETAIN, StoreRequest, group_filter};
use super::unusable::Unusable;
use crate::exit;
use crate::token::Timing;

#[derive(Debug, Args)]
pub(super) struct ConfigFlags {
    #[command(flatten)]
    run: RunFlags,
    /// An array of JSON objects instead of a table
    #[arg(long, help_heading = "Reports and messages")]
    json: bool,
}

/// The settings of a run.
#[derive(Debug)]
pub struct ConfigRequest {
    /// Each, and where it comes from. What depends on this host is left open.
    pub settings: Vec<Effective>,
    pub store: StoreRequest,
    /// JSON instead of a table.
    pub json: bool,
}

impl ConfigFlags {
    /// Refuses what a run would refuse.
    pub(super) fn request(self, origins: &Origins) -> Result<ConfigRequest, Unusable> {
        group_filter(self.run.group())?;
        let timing = self.run.timing()?;
        let mut settings = origins.all();
        for setting in &mut settings {
            if setting.origin == Origin::Default {
                setting.value = default_value(setting.setting, &timing);
            }
        }
        Ok(ConfigRequest {
            settings,
            store: self.run.store(),
            json: self.json,
        })
    }
}

/// What a run does by default; `None` for nothing, or if it depends on the host.
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
        "history-retain" => return Some(days(HISTORY_RETAIN)),
        "leftovers" => return Some("kill".to_owned()),
        "log-format" => return Some("text".to_owned()),
        "conflict-exit-code" => return Some(exit::NOT_NOW.to_string()),
        "done-exit-code" => return Some("0".to_owned()),
        "failback" | "wait" | "close-lock" | "capture" | "verbose" => {
            return Some("false".to_owned());
        }
        "quiet" => return Some("0".to_owned()),
        _ => return None,
    };
    Some(crate::duration::exact(duration))
}

/// As the help has it: 400 days are a year, a month and some hours otherwise.
fn days(duration: Duration) -> String {
    format!("{}d", duration.as_secs() / (24 * 3_600))
}
