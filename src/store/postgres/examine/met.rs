//! What is known about a server that answered.

use tokio_postgres::Row;

use super::server::{flag, text};
use crate::store::checkup::clock::Offset;
use crate::store::net::host::Host;

/// What is known about a server that answered.
pub(super) struct Met {
    pub(super) host: String,
    /// When its first process started: two names with the same start are one server.
    pub(super) started: String,
    /// Neither a standby nor read-only by default.
    pub(super) is_writable: bool,
    pub(super) has_standbys: bool,
    pub(super) clock: Option<Offset>,
}

impl Met {
    /// From the answer to `doctor_server`.
    pub(super) fn of(host: &Host, row: &Row) -> Self {
        Self {
            host: host.to_string(),
            started: text(row, "started"),
            is_writable: !flag(row, "standby") && !flag(row, "read_only"),
            has_standbys: false,
            clock: None,
        }
    }
}
