//! A server under examination, and its queries.

use std::time::{Duration, Instant};

use tokio_postgres::Row;

use super::super::link::Session;
use super::super::statements::Statements;
use crate::store::Trouble;
use crate::store::checkup::{Check, Tell};
use crate::store::net::host::Host;
use crate::store::sql::cell::Cell;

/// The connection is gone, and a check has reported that: no more statements can be sent.
pub(super) struct Over;

/// A connected server.
pub(super) struct Server<'a, 'b> {
    pub(super) connection: Session,
    pub(super) statements: Statements,
    pub(super) host: Host,
    pub(super) limit: Duration,
    pub(super) begun: Instant,
    pub(super) tell: &'a mut Tell<'b>,
}

impl Server<'_, '_> {
    pub(super) fn tell(&mut self, check: Check) {
        (self.tell)(check);
    }

    /// Returns the first row of a statement's answer. A refusal is reported as this step's failure.
    pub(super) fn ask(&mut self, step: &'static str, statement: &str) -> Result<Option<Row>, Over> {
        let rows = self.ask_with(step, statement, &[], Check::fail)?;
        Ok(rows.and_then(|rows| rows.into_iter().next()))
    }

    /// The same, for facts that no run needs: a refusal is no failure.
    pub(super) fn ask_aside(
        &mut self,
        step: &'static str,
        statement: &str,
    ) -> Result<Option<Row>, Over> {
        let aside = |step, trouble, found: String, remedy: &'static str| match trouble {
            Trouble::Unavailable | Trouble::Refused | Trouble::Locked => {
                Check::fail(step, trouble, found, remedy)
            }
            _ => Check::unknown(
                step,
                format!("unknown: {found}"),
                "nothing, if this is intended: no run needs it",
            ),
        };
        let rows = self.ask_with(step, statement, &[], aside)?;
        Ok(rows.and_then(|rows| rows.into_iter().next()))
    }

    pub(super) fn ask_with(
        &mut self,
        step: &'static str,
        statement: &str,
        values: &[Cell],
        refused: impl FnOnce(&'static str, Trouble, String, &'static str) -> Check,
    ) -> Result<Option<Vec<Row>>, Over> {
        let failed = match self.connection.query(self.limit, statement, values) {
            Ok(rows) => return Ok(Some(rows)),
            Err(failed) => failed,
        };
        let remedy = match failed.error.trouble {
            Trouble::Denied => "give the role what tokenrun init --print-sql prints",
            Trouble::Misconfigured => "check whether the schema is whole and this is PostgreSQL",
            _ => "check the server's log, and whether it is overloaded, stopped or out of disk",
        };
        self.tell(refused(step, failed.error.trouble, failed.words, remedy));
        if self.connection.link().is_some() {
            Ok(None)
        } else {
            Err(Over)
        }
    }
}

/// A cell of a query's answer; a malformed one counts as empty.
pub(super) fn text(row: &Row, name: &str) -> String {
    row.try_get(name).unwrap_or_default()
}

pub(super) fn flag(row: &Row, name: &str) -> bool {
    row.try_get(name).unwrap_or(false)
}

pub(super) fn number(row: &Row, name: &str) -> i64 {
    row.try_get::<_, Option<i64>>(name)
        .ok()
        .flatten()
        .unwrap_or(0)
}

pub(super) fn list(row: &Row, name: &str) -> Vec<String> {
    row.try_get(name).unwrap_or_default()
}
