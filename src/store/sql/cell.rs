//! A value in a column, and the error of a malformed one.

use std::time::SystemTime;

use crate::token::WallTime;
use crate::token::document::BadDocument;

/// A value in a column, or NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// A text. Documents are texts in JSON.
    Text(Option<String>),
    /// A whole number.
    Number(Option<i64>),
    /// A wall time.
    Time(Option<WallTime>),
    /// Yes or no: in statements only.
    Flag(bool),
    /// A time with the store's full precision: in statements only.
    Instant(Option<SystemTime>),
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// A whole number.
    Number,
    /// A wall time.
    Time,
}

impl Kind {
    /// NULL in a column of this kind.
    #[must_use]
    pub const fn none(self) -> Cell {
        match self {
            Self::Text => Cell::Text(None),
            Self::Number => Cell::Number(None),
            Self::Time => Cell::Time(None),
        }
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
    #[must_use]
    pub const fn number(from: i64) -> Self {
        Self::Number(Some(from))
    }

    /// A limit of rows, or none.
    #[must_use]
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
