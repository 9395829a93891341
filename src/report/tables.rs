//! The table of `once list`, and what tables have in common.

use super::layout::{Cell, Column, Line, table};
use super::screen::Screen;
use crate::token::OnceMark;

pub(super) const NONE: &str = "-";

const MARKS: [Column; 5] = [
    Column::whole("DONE"),
    Column::names("GROUP", [20, 16, 8]),
    Column::names("KEY", [30, 20, 8]),
    Column::names("CLIENT", [16, 12, 6]),
    Column::whole("FENCE"),
];

/// A table of keys that are done, one a line.
#[must_use]
pub fn marks(marks: &[OnceMark], screen: &Screen) -> String {
    let line = |mark: &OnceMark| {
        let cells = [
            screen.times.full(mark.done_at),
            mark.group.to_string(),
            mark.key.clone(),
            mark.client.to_string(),
            mark.fence.to_string(),
        ];
        Line::Cells(cells.map(Cell::from).into())
    };
    table(&MARKS, marks.iter().map(line).collect(), screen)
}

pub(super) fn or_none(value: Option<impl ToString>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| value.to_string())
}

/// Columns as wide as their widest cell, two blanks between them.
pub(super) fn aligned(heads: &[&'static str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let columns: Vec<Column> = heads.iter().copied().map(Column::whole).collect();
    let line = |row: Vec<String>| Line::Cells(row.into_iter().map(Cell::from).collect());
    table(&columns, rows.map(line).collect(), &Screen::plain())
}
