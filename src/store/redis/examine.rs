//! The checks that `doctor` makes of a server.

use super::settings::Settings;
use crate::store::checkup::Tell;
use crate::token::{GroupName, Timing};

/// Examines the server, without changing anything in it.
pub fn examine(
    settings: &Settings,
    timing: &Timing,
    group: Option<&GroupName>,
    tell: &mut Tell<'_>,
) {
    let _ = (settings, timing, group, tell);
}
