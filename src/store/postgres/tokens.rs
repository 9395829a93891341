//! The table `tokens`: a token's columns, and back.

use std::time::{Instant, SystemTime};

use tokio_postgres::Row as Found;

use super::cells::Cells;
use super::statements::{FIRST_SEGMENT, sql};
use super::{PostgresStore, queue, schema};
use crate::store::sql::cell::{BadColumn, Cell};
use crate::store::sql::token::Columns;
use crate::store::{Listing, Reading, StoreError, Tokens, Unreadable};
use crate::token::{Domain, GroupName, NoteSwap, Row, Swap, Swapped, Until, Version};

/// Where the token begins in an answer of `read.sql` or `list.sql`: after the time and the oldest
/// reader.
pub(super) const IN_ANSWER: usize = 4;

/// How many columns of an answer are the token's, in the order of [`from_row`].
pub(super) const COUNT: usize = 9;

/// What every swap sends: $1 to $13.
pub(super) fn to_values(swap: &Swap) -> Vec<Cell> {
    let columns = Columns::of(&swap.to);
    let [expires, started, timeline, domain] = expiry_values(&swap.expiry);
    vec![
        Cell::text(columns.group),
        Cell::number(columns.version),
        Cell::number(columns.fence),
        Cell::text(columns.state),
        Cell::maybe(columns.client_bound),
        Cell::maybe(columns.expected_client),
        Cell::Flag(swap.stamp.is_some()),
        Cell::text(&columns.document),
        Cell::Number(swap.from.map(Version::number)),
        expires,
        started,
        timeline,
        // The time that is put in is one of this domain: in another the swap expires.
        domain,
    ]
}

/// After which time, and in which incarnation of the server alone: when it was started, the name
/// that tells its timeline, and the domain that the two are.
pub(super) fn expiry_values(expiry: &Until) -> [Cell; 4] {
    let (started, timeline) = incarnation(expiry.domain());
    [
        Cell::Time(Some(expiry.tick_ms())),
        Cell::Instant(started),
        Cell::text(&format!("{timeline}{FIRST_SEGMENT}")),
        Cell::text(expiry.domain()),
    ]
}

/// When the server was started, and its timeline, as [`domain`] has put them together.
fn incarnation(of: &Domain) -> (Option<SystemTime>, &str) {
    let parts = of.0.split_once(' ').and_then(|(started, timeline)| {
        let at = humantime::parse_rfc3339(started).ok()?;
        (domain(Some(at), timeline) == *of).then_some((Some(at), timeline))
    });
    // Then it is not this server's.
    parts.unwrap_or((None, &of.0))
}

/// The domain of a server that was started then, with this timeline, which the statements give with
/// a name's rest. It is put together here: its text would take a new process of the server 0.45 ms.
pub(super) fn domain_of(started: Option<SystemTime>, name: &str) -> Domain {
    domain(started, name.strip_suffix(FIRST_SEGMENT).unwrap_or(name))
}

fn domain(started: Option<SystemTime>, timeline: &str) -> Domain {
    Domain(match started {
        Some(at) => format!("{} {timeline}", humantime::format_rfc3339_micros(at)),
        None => timeline.to_owned(),
    })
}

/// The row that the columns from `first` on stand for; `None` if there is none.
pub(super) fn from_row(found: &Found, first: usize) -> Result<Option<Row>, BadColumn> {
    let c = &mut Cells::new(found, first);
    let Some(group) = c.cell()? else {
        return Ok(None);
    };
    let columns = Columns {
        group,
        version: c.needed()?,
        fence: c.needed()?,
        state: c.needed()?,
        client_bound: c.cell()?,
        expected_client: c.cell()?,
        stamped: c.time()?,
        document: c.needed()?,
    };
    columns.row().map(Some)
}

impl PostgresStore {
    /// The answer of `read.sql` or `list.sql`: the rows, and the time.
    fn tokens(&mut self, rows: &[tokio_postgres::Row]) -> Result<Listing, StoreError> {
        let first = rows.first().ok_or_else(|| self.no_answer())?;
        let now = self.now(first)?;
        if !self.checked {
            let oldest: Option<&str> = first.try_get(IN_ANSWER - 1).ok().flatten();
            schema::check(self.session.place(), oldest)?;
            self.checked = true;
        }
        let mut listing = Listing {
            rows: Vec::new(),
            unreadable: Vec::new(),
            now,
            lines: Vec::new(),
        };
        for row in rows {
            match from_row(row, IN_ANSWER) {
                Ok(token) => listing.rows.extend(token),
                Err(bad) => listing.unreadable.push(Unreadable {
                    group: row.try_get("token_group").unwrap_or("?").to_owned(),
                    error: self.bad_column("tokens", &bad),
                }),
            }
        }
        Ok(listing)
    }
}

impl Tokens for PostgresStore {
    fn read(&mut self, group: &GroupName) -> Result<Reading, StoreError> {
        let begun = Instant::now();
        let statement = self.statements.of(sql!("read"));
        let values = [Cell::text(group)];
        let rows = match self.session.ask(self.timeout, &statement, &values) {
            Err(failed) if failed.no_schema && !self.checked => {
                self.init_within(self.timeout.saturating_sub(begun.elapsed()))?;
                let left = self.timeout.saturating_sub(begun.elapsed());
                self.session.ask(left, &statement, &values)
            }
            answer => answer,
        };
        let rows = rows.map_err(|failed| failed.error)?;
        let mut found = self.tokens(&rows)?;
        if let Some(unreadable) = found.unreadable.pop() {
            return Err(unreadable.error);
        }
        let first = rows.first().ok_or_else(|| self.no_answer())?;
        Ok(Reading {
            row: found.rows.pop(),
            line: self.line(&rows, queue::in_reading)?,
            memory: self.memory(first, &found.now)?,
            now: found.now,
        })
    }

    fn swap(&mut self, swap: &Swap) -> Result<Swapped, StoreError> {
        self.carry_out(swap)
    }

    fn note(&mut self, swap: &NoteSwap) -> Result<Swapped, StoreError> {
        self.write_note(swap)
    }

    fn list(&mut self) -> Result<Listing, StoreError> {
        let statement = self.statements.of(sql!("list"));
        let rows = self.session.ask(self.timeout, &statement, &[]);
        let rows = rows.map_err(|failed| self.listed(failed))?;
        let listing = self.tokens(&rows)?;
        Ok(Listing {
            lines: self.lines()?,
            ..listing
        })
    }
}
