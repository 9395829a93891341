//! Swaps: one call of a procedure each, retried while the row is locked.

use std::time::Duration;

use super::MysqlStore;
use super::cells::rows;
use super::fault::code;
use super::link::code_of;
use super::statements::sql;
use crate::store::sql::cell::{Cell, Cells, Column, Rows, number, text};
use crate::store::sql::server::Server as _;
use crate::store::sql::server::tables::NOW;
use crate::store::sql::swap::{self, patiently};
use crate::store::{Listing, Reading, StoreError, Tokens};
use crate::token::{
    GroupName, NoteSwap, Recorded, Row, RunRecord, State, Swap, Swapped, Until, WallTime,
};

/// How long the call may take that only prepares a later one.
const PREPARED_WITHIN: Duration = Duration::from_millis(500);

/// Why a swap can't have the row of a token, or that of its fence.
const LOCKED_ROW: &str = "locked by another session on the server, which SHOW PROCESSLIST shows; it ends \
                          with that session's transaction";
const LOCKED_FENCE: &str = "held by a transaction of the earlier run on the server; it ends with that \
                            transaction";

/// How many values `swap.sql` has.
const PARAMETERS: usize = 29;

/// The expiry of a statement, and its clock epoch.
pub(super) fn expiry_values(expiry: &Until) -> [Cell; 2] {
    [
        Cell::Time(Some(WallTime(expiry.tick_ms()))),
        Cell::text(expiry.epoch()),
    ]
}

/// The columns of a procedure's answer; that of the note has no number of waiters.
fn answer() -> Vec<Column> {
    let columns = [text("what")].into_iter().chain(NOW);
    columns.chain([number("waits")]).collect()
}

/// The answer of a procedure.
pub(super) enum Outcome {
    Swapped(Swapped),
    /// Another swap has locked the row. Nothing happened.
    Locked,
    /// A job's transaction has locked the fence. Nothing happened.
    Held,
}

impl MysqlStore {
    /// Writes a run by itself. Missing tables are made: a finished run is recorded, whatever
    /// happened to them.
    pub(super) fn record_alone(&mut self, run: &RunRecord) -> Result<Recorded, StoreError> {
        let mut values = swap::record(run);
        values.resize(PARAMETERS, Cell::Number(None));
        let rows = self.ask_or_make(sql!("swap"), &values, &answer(), |answer| {
            answer.as_ref().is_err_and(Self::is_without_tables)
        })?;
        Ok(match self.outcome(&rows)? {
            Outcome::Swapped(Swapped::Done(_)) => Recorded::Written,
            _ => Recorded::Already,
        })
    }

    /// Makes the server read the procedure's text, which it does when a session first calls it: a call without
    /// effect. For a session in the queue, whose swap must be quick.
    pub(super) fn prepare(&mut self) {
        if !self.own.is_prepared {
            let nothing = vec![Cell::Number(None); PARAMETERS];
            let limit = PREPARED_WITHIN.min(self.timeout);
            self.own.is_prepared = self.ask(limit, sql!("swap"), &nothing, &[]).is_ok();
        }
    }

    /// Calls a procedure, and again for a moment while another transaction is in the way.
    pub(super) fn call(&mut self, statement: &str) -> Result<Outcome, StoreError> {
        patiently(self.timeout, |left, may_wait| {
            match self.connection.ask(left, statement) {
                // An administrator's script that is run again makes the procedures anew in MySQL.
                Err(failed) if code_of(&failed) == Some(code::NO_PROCEDURE) && may_wait => Ok(None),
                Err(failed) => Err(failed.error),
                Ok(found) => match self.outcome(&rows(&found, &answer()))? {
                    Outcome::Locked | Outcome::Held if may_wait => Ok(None),
                    outcome => Ok(Some(outcome)),
                },
            }
        })
    }

    fn outcome(&mut self, rows: &Rows) -> Result<Outcome, StoreError> {
        let columns = answer();
        let row = rows.first().map(Vec::as_slice);
        let mut cells = Cells::new(&columns, row.unwrap_or_default());
        let waits = cells.after(columns.len() - 1).number();
        self.own.waits = waits.is_ok_and(|waits| waits > Some(0));
        row.ok_or_else(|| self.no_answer())?;
        let what = cells.needed(Cells::text);
        let what = what.map_err(|bad| self.bad_column("tokens", &bad))?;
        let mut time = || cells.time().map_err(|bad| self.bad_time(&bad));
        Ok(Outcome::Swapped(match what {
            "done" => Swapped::Done(time()?),
            "already" | "conflict" => Swapped::Conflict,
            "expired" => Swapped::Expired(time()?),
            "locked" => return Ok(Outcome::Locked),
            "held" => return Ok(Outcome::Held),
            _ => return Err(self.no_answer()),
        }))
    }

    fn held(&self, group: &GroupName, by: &str) -> StoreError {
        let place = self.connection.store_name();
        StoreError::held(format!(
            "the token of {:?} in {place} is {by}",
            group.as_str()
        ))
    }
}

impl Tokens for MysqlStore {
    fn look(&mut self, group: &GroupName, key: Option<&str>) -> Result<Reading, StoreError> {
        let is_given_up = self.clear_notification();
        if self.own.listener.is_some() && !is_given_up {
            self.listen(group);
        }
        let reading = self.look_at(group, key)?;
        let is_held = |row: &Row| matches!(row.state, State::Running { .. });
        if is_given_up && reading.row.as_ref().is_some_and(is_held) {
            // Another session was quicker.
            self.listen(group);
            return self.look_at(group, key);
        }
        Ok(reading)
    }

    /// A swap is tried again for a moment while another transaction has the row locked.
    fn swap(&mut self, swap: &Swap) -> Result<Swapped, StoreError> {
        let mut values = swap::values(swap);
        values.extend(expiry_values(&swap.expiry));
        let mut statement = self.own.statements.of(sql!("swap"), &values);
        let holds = matches!(swap.to.state, State::Running { .. });
        if let Some(release) = self.giving_up(holds) {
            statement = format!("{};\n{release}", statement.trim_end());
        }
        match self.call(&statement)? {
            Outcome::Swapped(swapped) => {
                if matches!(swapped, Swapped::Done(_)) {
                    self.held_on(swap);
                }
                Ok(swapped)
            }
            Outcome::Locked => Err(self.held(swap.group(), LOCKED_ROW)),
            Outcome::Held => Err(self.held(swap.group(), LOCKED_FENCE)),
        }
    }

    fn note(&mut self, swap: &NoteSwap) -> Result<Swapped, StoreError> {
        self.write_note(swap)
    }

    fn list(&mut self) -> Result<Listing, StoreError> {
        self.list_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::mysql::settings;
    use crate::store::mysql::test_server::{Kind, Server};

    /// Behind a proxy that changes the session under its client.
    #[test]
    fn a_session_that_was_not_set_up_is_told() {
        let database = Server::shared_of(Kind::Mariadb).database();
        let settings = settings(&database.url(), "test").unwrap();
        let mut store = MysqlStore::new(settings, Duration::from_secs(10));
        store.init().unwrap();
        let (limit, group) = (Duration::from_secs(10), GroupName::new("g").unwrap());
        let other = "SET @tokenrun_epoch = NULL";
        store.connection.ask(limit, other).unwrap();
        let read = store.read(&group).unwrap_err();
        let nothing = vec![Cell::Number(None); PARAMETERS];
        let statement = store.own.statements.of(sql!("swap"), &nothing);
        store.connection.ask(limit, other).unwrap();
        let Err(swapped) = store.call(&statement) else {
            panic!("a swap in a session that was not set up");
        };
        for error in [read, swapped] {
            assert!(error.what.contains("a proxy in between"), "{error}");
        }
    }

    #[test]
    fn a_call_that_prepares_the_session_has_no_effect() {
        let database = Server::shared_of(Kind::Mariadb).database();
        let settings = settings(&database.url(), "test").unwrap();
        let mut store = MysqlStore::new(settings, Duration::from_secs(10));
        store.init().unwrap();
        store.prepare();
        assert!(store.own.is_prepared);
        for table in ["tokens", "fences", "runs", "acts", "done_keys"] {
            let count = database.sql(&format!("SELECT COUNT(*) FROM tokenrun_{table}"));
            assert_eq!(count.trim(), "0", "{table}");
        }
    }
}
