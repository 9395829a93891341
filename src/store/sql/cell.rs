//! A value in a column, the error of a malformed one, and the reader of a row. The contents of a table are never
//! trusted: an administrator may have changed them.

use std::fmt::Display;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::token::document::BadDocument;
use crate::token::{ClockEpoch, Stamp, StoreTime, WallTime};

/// 9999-12-31T23:59:59.999Z, the last time that is written.
pub(in crate::store) const LAST_WALL_MS: i64 = 253_402_300_799_999;

/// A value in a column, or NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// A text. Documents are texts in JSON.
    Text(Option<String>),
    /// A whole number.
    Number(Option<i64>),
    /// A wall time.
    Time(Option<WallTime>),
    /// A time of the store's clock: a tick and a wall time.
    Stamp(Option<Stamp>),
    /// Yes or no; NULL is no.
    Flag(bool),
    /// A time with the store's full precision: in statements only.
    Instant(Option<SystemTime>),
    /// A malformed value: in answers only.
    Bad(Box<BadColumn>),
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// A whole number.
    Number,
    /// A wall time.
    Time,
    /// A time of the store's clock. A store whose clock counts ticks besides has the ticks in the next column.
    Stamp,
    /// Yes or no.
    Flag,
    /// The clock epoch of an answer's time: a text, which a store may put together from several columns.
    Epoch,
}

/// A column of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
}

/// A column of texts.
pub const fn text(name: &'static str) -> Column {
    Column::new(name, Kind::Text)
}

/// A column of whole numbers.
pub const fn number(name: &'static str) -> Column {
    Column::new(name, Kind::Number)
}

/// A column of yes and no.
pub const fn flag(name: &'static str) -> Column {
    Column::new(name, Kind::Flag)
}

impl Column {
    pub const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind }
    }
}

impl Cell {
    /// The text of a value.
    pub fn text(from: &(impl ToString + ?Sized)) -> Self {
        Self::Text(Some(from.to_string()))
    }

    /// The text of a value that may be missing.
    pub fn maybe(from: Option<&(impl ToString + ?Sized)>) -> Self {
        Self::Text(from.map(ToString::to_string))
    }

    /// A number.
    pub const fn number(from: i64) -> Self {
        Self::Number(Some(from))
    }

    /// A length of time, in milliseconds.
    pub fn millis(from: Duration) -> Self {
        Self::number(i64::try_from(from.as_millis()).unwrap_or(i64::MAX))
    }

    /// A limit of rows, or none.
    pub fn limit(from: Option<u32>) -> Self {
        Self::number(from.map_or(i64::MAX, i64::from))
    }
}

/// A malformed value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadColumn {
    pub column: String,
    /// What is wrong with it; reads after the column.
    pub what: String,
}

impl BadColumn {
    /// An error in a column.
    pub fn of(column: &str, what: impl ToString) -> Self {
        Self {
            column: column.to_owned(),
            what: what.to_string(),
        }
    }
}

impl From<BadDocument> for BadColumn {
    fn from(bad: BadDocument) -> Self {
        Self::of("document", format!("has a field that is wrong: {bad}"))
    }
}

/// The beginning of a text, for messages.
pub(in crate::store) fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    let mut start: String = text.chars().take(MOST).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    start
}

/// A wall time as it is written: a time outside 1970 to 9999 as the nearest one inside.
pub(in crate::store) fn instant(wall: WallTime) -> SystemTime {
    let inside = wall.0.clamp(0, LAST_WALL_MS).unsigned_abs();
    UNIX_EPOCH + Duration::from_millis(inside)
}

/// The wall time in a column with this many milliseconds since 1970, or what is wrong with it.
pub(in crate::store) fn wall(millis: i128) -> Result<WallTime, &'static str> {
    if millis < 0 {
        return Err("lies before 1970");
    }
    let wall = i64::try_from(millis).ok();
    let inside = wall.filter(|wall| *wall <= LAST_WALL_MS);
    inside.map(WallTime).ok_or("lies beyond the year 9999")
}

/// The stamp of a server, which has one clock: the wall clock also measures ages.
pub(in crate::store) const fn stamp(wall: WallTime) -> Stamp {
    Stamp {
        tick_ms: wall.0,
        wall,
    }
}

/// The rows of an answer.
pub type Rows = Vec<Vec<Cell>>;

/// Reads a row's cells from left to right.
#[derive(Debug, Clone, Copy)]
pub struct Cells<'a> {
    columns: &'a [Column],
    row: &'a [Cell],
    next: usize,
}

impl<'a> Cells<'a> {
    /// The cells of a row of these columns.
    pub const fn new(columns: &'a [Column], row: &'a [Cell]) -> Self {
        Self {
            columns,
            row,
            next: 0,
        }
    }

    /// The cells behind the next columns.
    pub const fn after(self, count: usize) -> Self {
        Self {
            next: self.next + count,
            ..self
        }
    }

    /// An error in the last column.
    pub fn bad(&self, what: impl Display) -> BadColumn {
        let last = self.columns.get(self.next.saturating_sub(1));
        BadColumn::of(last.map_or("?", |column| column.name), what)
    }

    fn cell(&mut self) -> Result<&'a Cell, BadColumn> {
        self.next += 1;
        match self.row.get(self.next - 1) {
            Some(Cell::Bad(bad)) => Err(bad.as_ref().clone()),
            Some(cell) => Ok(cell),
            None => Err(self.bad("is missing")),
        }
    }

    pub fn text(&mut self) -> Result<Option<&'a str>, BadColumn> {
        match self.cell()? {
            Cell::Text(text) => Ok(text.as_deref()),
            _ => Err(self.bad("is no text")),
        }
    }

    pub fn number(&mut self) -> Result<Option<i64>, BadColumn> {
        match self.cell()? {
            Cell::Number(number) => Ok(*number),
            _ => Err(self.bad("is no number")),
        }
    }

    pub fn wall(&mut self) -> Result<Option<WallTime>, BadColumn> {
        match self.cell()? {
            Cell::Time(wall) => Ok(*wall),
            _ => Err(self.bad("is no time")),
        }
    }

    pub fn stamp(&mut self) -> Result<Option<Stamp>, BadColumn> {
        match self.cell()? {
            Cell::Stamp(stamp) => Ok(*stamp),
            _ => Err(self.bad("is no time")),
        }
    }

    pub fn flag(&mut self) -> Result<bool, BadColumn> {
        match self.cell()? {
            Cell::Flag(flag) => Ok(*flag),
            _ => Err(self.bad("is no flag")),
        }
    }

    /// A value that must be there.
    pub fn needed<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Option<T>, BadColumn>,
    ) -> Result<T, BadColumn> {
        read(self)?.ok_or_else(|| self.bad("is NULL"))
    }

    /// A stamp with its clock epoch; also the time of the answer with its own.
    pub fn time(&mut self) -> Result<StoreTime, BadColumn> {
        Ok(StoreTime {
            stamp: self.needed(Self::stamp)?,
            epoch: ClockEpoch(self.needed(Self::text)?.to_owned()),
        })
    }
}

/// The group in the next column, for messages, as far as it is readable.
pub fn group_of(mut cells: Cells<'_>) -> String {
    cells.text().ok().flatten().unwrap_or("?").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_for_messages_ends_where_it_is_too_long() {
        let most = "ü".repeat(60);
        assert_eq!(shortened(&most), most);
        assert_eq!(shortened(&format!("{most}x")), format!("{most}…"));
    }

    #[test]
    fn a_time_is_written_as_the_nearest_that_can_be() {
        let at = |millis| UNIX_EPOCH + Duration::from_millis(millis);
        for (wall, written) in [
            (-1, at(0)),
            (1_790_000_000_987, at(1_790_000_000_987)),
            (i64::MAX, at(LAST_WALL_MS.unsigned_abs())),
        ] {
            assert_eq!(instant(WallTime(wall)), written);
        }
    }

    const COLUMNS: [Column; 8] = [
        text("skipped"),
        text("text"),
        number("number"),
        Column::new("wall", Kind::Time),
        flag("yes"),
        flag("no"),
        Column::new("stamp", Kind::Stamp),
        text("epoch"),
    ];

    #[test]
    fn a_row_is_read_from_left_to_right() {
        let wall = WallTime(7);
        let row = [
            Cell::text("s"),
            Cell::text("t"),
            Cell::number(5),
            Cell::Time(Some(wall)),
            Cell::Flag(true),
            Cell::Flag(false),
            Cell::Stamp(Some(stamp(wall))),
            Cell::text("e"),
        ];
        let mut cells = Cells::new(&COLUMNS, &row).after(1);
        assert_eq!(group_of(cells), "t");
        assert_eq!(cells.text(), Ok(Some("t")));
        assert_eq!(cells.number(), Ok(Some(5)));
        assert_eq!(cells.wall(), Ok(Some(wall)));
        assert_eq!((cells.flag(), cells.flag()), (Ok(true), Ok(false)));
        let time = StoreTime {
            stamp: stamp(wall),
            epoch: ClockEpoch("e".into()),
        };
        assert_eq!(cells.time(), Ok(time));
        assert_eq!(cells.text().unwrap_err().what, "is missing");
        assert_eq!(group_of(cells), "?");
    }

    #[test]
    fn a_cell_that_is_not_what_its_column_has_is_named() {
        let instant = [Cell::Instant(None)];
        for (columns, row, what) in [
            (&COLUMNS[1..], &instant[..], "text is no text"),
            (&COLUMNS[2..], &instant, "number is no number"),
            (&COLUMNS[3..], &instant, "wall is no time"),
            (&COLUMNS[4..], &instant, "yes is no flag"),
            (&COLUMNS[6..], &instant, "stamp is no time"),
            (&COLUMNS[1..], &[Cell::Text(None)], "text is NULL"),
            (&COLUMNS[2..], &[], "number is missing"),
        ] {
            let mut c = Cells::new(columns, row);
            let read = match columns[0].name {
                "text" => c.needed(Cells::text).map(drop),
                "number" => c.number().map(drop),
                "wall" => c.wall().map(drop),
                "yes" => c.flag().map(drop),
                _ => c.stamp().map(drop),
            };
            let bad = read.unwrap_err();
            assert_eq!(format!("{} {}", bad.column, bad.what), what);
        }
    }
}
