//! A token as stores with tables keep it: a few columns that the store itself or an administrator
//! reads, and the document with everything else.

use super::cell::{BadColumn, Cell, Cells, Column, Kind, Rows, group_of, number, text};
use crate::store::{Listing, StoreError, Unreadable};
use crate::token::{
    ClientId, Document, Fence, GroupName, NameError, Row, Run, State, StoreTime, Version,
};

const FREE: &str = "free";
const IDLE: &str = "idle";
const RUNNING: &str = "running";

/// A token's columns in an answer.
pub const TOKEN: [Column; 9] = [
    text("token_group"),
    number("version"),
    number("fence"),
    text("state"),
    text("client_bound"),
    text("expected_client"),
    Column::new("stamped_at", Kind::Stamp),
    text("clock_epoch"),
    text("document"),
];

/// The token in these cells; `None` if there is none.
pub fn row(mut c: Cells<'_>) -> Result<Option<Row>, BadColumn> {
    let Some(group) = c.text()? else {
        return Ok(None);
    };
    let columns = Columns {
        group,
        version: c.needed(Cells::number)?,
        fence: c.needed(Cells::number)?,
        state: c.needed(Cells::text)?,
        client_bound: c.text()?,
        expected_client: c.text()?,
        stamped: c.time()?,
        document: c.needed(Cells::text)?.to_owned(),
    };
    columns.row().map(Some)
}

/// The list of the tokens in these rows, which begin with column `first`. A malformed row hides no other.
pub fn list(
    columns: &[Column],
    rows: &Rows,
    first: usize,
    now: StoreTime,
    bad_row: impl Fn(&str, &BadColumn) -> StoreError,
) -> Listing {
    let mut listing = Listing {
        rows: Vec::new(),
        unreadable: Vec::new(),
        now,
        queues: Vec::new(),
    };
    for cells in rows {
        let cells = Cells::new(columns, cells).after(first);
        match row(cells) {
            Ok(token) => listing.rows.extend(token),
            Err(bad) => {
                let group = group_of(cells);
                let error = bad_row(&group, &bad);
                listing.unreadable.push(Unreadable { group, error });
            }
        }
    }
    listing
}

/// The values of a token's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns<'a> {
    /// `token_group`
    pub group: &'a str,
    /// `version`
    pub version: i64,
    /// `fence`
    pub fence: i64,
    /// `state`: free, idle, running
    pub state: &'a str,
    /// `client_bound`
    pub client_bound: Option<&'a str>,
    /// `expected_client`
    pub expected_client: Option<&'a str>,
    /// `stamped_at` and `clock_epoch`
    pub stamped: StoreTime,
    /// `document`
    pub document: String,
}

impl<'a> Columns<'a> {
    /// The columns of a row.
    pub fn of(row: &'a Row) -> Self {
        Self {
            group: row.group.as_str(),
            version: row.version.number(),
            fence: row.fence.0,
            state: match row.state {
                State::Free => FREE,
                State::Idle { .. } => IDLE,
                State::Running { .. } => RUNNING,
            },
            client_bound: row.client_bound().map(ClientId::as_str),
            expected_client: row.expected_client.as_ref().map(ClientId::as_str),
            stamped: row.stamped.clone(),
            document: row.document.to_json(row.run()),
        }
    }

    /// The cells before the stamp, and the document.
    pub fn cells(self) -> ([Cell; 6], Cell) {
        let before = [
            Cell::text(self.group),
            Cell::number(self.version),
            Cell::number(self.fence),
            Cell::text(self.state),
            Cell::maybe(self.client_bound),
            Cell::maybe(self.expected_client),
        ];
        (before, Cell::Text(Some(self.document)))
    }

    /// The row in the columns. A contradiction is an error: a guess might let a client run beside
    /// another.
    ///
    /// # Errors
    /// Which column is malformed, and what is wrong with it.
    pub fn row(self) -> Result<Row, BadColumn> {
        let group = name("token_group", self.group, GroupName::new)?;
        let client = maybe("client_bound", self.client_bound)?;
        let expected_client = maybe("expected_client", self.expected_client)?;
        let wrong = match self.fence {
            ..0 => Some("is negative"),
            0..=Fence::HIGHEST => None,
            _ => Some("no grant reaches"),
        };
        if let Some(wrong) = wrong {
            let what = format!("is {}, which {wrong}", self.fence);
            return Err(BadColumn::of("fence", what));
        }
        let (document, run) = Document::from_json(&self.document)?;
        Ok(Row {
            group,
            version: Version::from_stored(self.version),
            fence: Fence(self.fence),
            state: state(self.state, client, run)?,
            expected_client,
            stamped: self.stamped,
            document,
        })
    }
}

fn state(word: &str, client: Option<ClientId>, run: Option<Run>) -> Result<State, BadColumn> {
    let contradicts =
        |column, other: &str| Err(BadColumn::of(column, format!("contradicts the {other}")));
    match (word, client, run) {
        (FREE, None, None) => Ok(State::Free),
        (IDLE, Some(client), None) => Ok(State::Idle { client }),
        (RUNNING, Some(client), Some(run)) => Ok(State::Running {
            client,
            run: Box::new(run),
        }),
        (FREE, Some(_), _) | (IDLE | RUNNING, None, _) => {
            contradicts("client_bound", &format!("state {word:?}"))
        }
        (FREE | IDLE | RUNNING, ..) => contradicts("document", &format!("state {word:?}")),
        _ => {
            let shown: String = word.chars().take(60).collect();
            Err(BadColumn::of(
                "state",
                format!("is {shown:?}, an unknown word"),
            ))
        }
    }
}

fn name<T>(
    column: &'static str,
    text: &str,
    new: impl FnOnce(&str) -> Result<T, NameError>,
) -> Result<T, BadColumn> {
    new(text).map_err(|error| BadColumn::of(column, error))
}

fn maybe(column: &'static str, text: Option<&str>) -> Result<Option<ClientId>, BadColumn> {
    text.map(|text| name(column, text, ClientId::new))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::rule::tests::fixture::{expecting, free, idle, running};

    #[test]
    fn a_fence_that_no_grant_can_have_is_refused() {
        let row = idle("a");
        let with = |fence| Columns {
            fence,
            ..Columns::of(&row)
        };
        for fence in [i64::MIN, -1, Fence::HIGHEST + 1, i64::MAX] {
            let refused = with(fence).row().unwrap_err();
            assert_eq!(refused.column, "fence");
            assert!(refused.what.contains(&fence.to_string()), "{refused:?}");
        }
        for fence in [0, Fence::MAX, Fence::HIGHEST] {
            assert_eq!(with(fence).row().unwrap().fence, Fence(fence));
        }
    }
    /// The cells of a token behind another column.
    fn cells(row: &Row) -> Vec<Cell> {
        let (before, document) = Columns::of(row).cells();
        let stamped = [
            Cell::Stamp(Some(row.stamped.stamp)),
            Cell::text(&row.stamped.epoch),
            document,
        ];
        [&[Cell::number(1)], &before[..], &stamped].concat()
    }

    #[test]
    fn tokens_are_listed_as_written_and_a_malformed_one_hides_no_other() {
        let columns = [&[number("n")], &TOKEN[..]].concat();
        let tokens = [free(), expecting(running("a"), "b"), idle("a")];
        let mut rows: Rows = tokens.iter().map(cells).collect();
        rows.insert(1, vec![Cell::Text(None); columns.len()]);
        let mut bad = cells(&idle("a"));
        bad[4] = Cell::text("splendid");
        rows.insert(2, bad);
        let now = idle("a").stamped;
        let listing = list(&columns, &rows, 1, now, |group, bad| {
            StoreError::unavailable(format!("{group} {}", bad.column))
        });
        assert_eq!(listing.rows, tokens);
        let unreadable = Unreadable {
            group: "g".into(),
            error: StoreError::unavailable("g state"),
        };
        assert_eq!(listing.unreadable, [unreadable]);
    }
}
