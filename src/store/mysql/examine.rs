//! Examining a store of MySQL or MariaDB for `doctor`.

use super::settings::Settings;
use crate::store::checkup::{Check, Tell};
use crate::token::{GroupName, Timing};

/// Examines every server that the settings name.
pub fn examine(
    settings: &Settings,
    _timing: &Timing,
    _group: Option<&GroupName>,
    tell: &mut Tell<'_>,
) {
    for warning in &settings.warnings {
        tell(Check::warn("settings", warning, "see to that file"));
    }
}
