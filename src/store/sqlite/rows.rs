//! Conversion of a token's columns.

use rusqlite::types::Value;

use super::cells::{self, Cells};
use crate::store::sql::cell::BadColumn;
use crate::store::sql::token::Columns;
use crate::token::{ClockEpoch, Row, StoreTime};

/// The columns, in the order of the statements.
pub(super) const COLUMNS: &[&str] = &[
    "token_group",
    "version",
    "fence",
    "state",
    "client_bound",
    "expected_client",
    "stamped_at",
    "stamped_tick",
    "clock_epoch",
    "document",
];

/// The values of a row, in the order of [`COLUMNS`].
pub(super) fn to_values(row: &Row) -> [Value; 10] {
    let columns = Columns::of(row);
    let [wall, tick] = cells::stamp(columns.stamped.stamp);
    [
        cells::text(columns.group),
        Value::Integer(columns.version),
        Value::Integer(columns.fence),
        cells::text(columns.state),
        cells::text_or_null(columns.client_bound),
        cells::text_or_null(columns.expected_client),
        wall,
        tick,
        cells::text(columns.stamped.epoch.0),
        cells::text(columns.document),
    ]
}

/// The row in the columns.
pub(super) fn from_cells(mut cells: Cells<'_>) -> Result<Row, BadColumn> {
    let c = &mut cells;
    let columns = Columns {
        group: c.needed_text()?,
        version: c.needed_number()?,
        fence: c.needed_number()?,
        state: c.needed_text()?,
        client_bound: c.text()?,
        expected_client: c.text()?,
        stamped: StoreTime {
            stamp: c.stamp()?,
            epoch: ClockEpoch(c.needed_text()?.to_owned()),
        },
        document: c.needed_text()?.to_owned(),
    };
    columns.row()
}
