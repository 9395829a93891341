//! The settings of a run, with those defaults that depend on this host.

use anyhow::Result;

use super::node::{client_id, node_environment};
use crate::cli::{ConfigRequest, Effective, Origin};
use crate::commands;
use crate::exit::Exit;
use crate::store::url::StoreUrl;
use crate::sys::process;

/// The variable that names the client where no option does.
const CLIENT_ID: &str = "CLIENT_ID";

/// Shows the settings.
pub(crate) fn config(request: ConfigRequest) -> Result<Exit> {
    let settings = filled_in(request.settings);
    let shown: Vec<_> = settings.iter().map(shown).collect();
    commands::config::config(&shown, request.json)
}

/// Settings, with this host's values for those that are not set.
pub(crate) fn filled_in(mut settings: Vec<Effective>) -> Vec<Effective> {
    let has_file = settings
        .iter()
        .any(|it| it.setting == "store-file" && it.origin != Origin::Default);
    for setting in &mut settings {
        match setting.setting {
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

fn shown(setting: &Effective) -> crate::report::settings::Shown {
    crate::report::settings::Shown {
        setting: setting.setting,
        value: setting.value.clone(),
        origin: setting.origin.to_string(),
    }
}
