//! The table `tokens`: a token's columns, and back.

use std::time::SystemTime;

use tokio_postgres::Row as Found;

use super::cells::Cells;
use super::statements::FIRST_SEGMENT;
use crate::store::sql::cell::{BadColumn, Cell};
use crate::store::sql::token::Columns;
use crate::token::{Domain, Row, StoreTime, Swap, Version};

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
pub(super) fn expiry_values(expiry: &StoreTime) -> [Cell; 4] {
    let (started, timeline) = incarnation(&expiry.domain);
    [
        Cell::Time(Some(expiry.stamp.tick_ms)),
        Cell::Instant(started),
        Cell::text(&format!("{timeline}{FIRST_SEGMENT}")),
        Cell::text(&expiry.domain),
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
