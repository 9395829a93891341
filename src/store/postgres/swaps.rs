//! Swaps: one statement each, retried while the row is locked, and explained when not carried out.

use std::time::{Duration, Instant};

use super::PostgresStore;
use super::cells::{Cells, stamp};
use super::link::Answered as _;
use super::statements::sql;
use super::tokens;
use crate::store::StoreError;
use crate::store::net::session::Failed;
use crate::store::sql::cell::Cell;
use crate::store::sql::table::{ACTS, KEYS, RUNS};
use crate::token::WallTime;
use crate::token::hidden::quoted;
use crate::token::{
    GroupName, Recorded, RunRecord, StampOf, StoreTime, Swap, Swapped, Until, Version,
};

/// How long a row may be locked before the swap is reported as held: far longer than another
/// client's swap takes.
const LOCKED_FOR: Duration = Duration::from_millis(500);

/// The first pause before a locked row is tried again; each is twice the last.
const FIRST_PAUSE: Duration = Duration::from_millis(2);

/// The statement of a swap, and its values. A new fence is a new key, so no other transaction may
/// have locked the old one.
fn asked(swap: &Swap, channel: &str) -> (&'static str, Vec<Cell>) {
    let mut values = tokens::to_values(swap);
    let run = swap.ended.as_deref();
    let is_grant = swap.stamp == Some(StampOf::Granted);
    let leaves = Cell::maybe(swap.leaves.as_ref());
    let statement = match (&swap.act, run) {
        _ if swap.from.is_none() => {
            values.extend(note_cells(swap));
            values.push(leaves);
            sql!("swap_create")
        }
        (Some(act), _) => {
            values.extend(ACTS.cells(act.as_ref()).into_iter().skip(3));
            if act.raised_fence() {
                sql!("swap_raise")
            } else {
                values.push(Cell::maybe(act.once_key.as_ref()));
                values.extend(run_cells(run));
                values.push(Cell::text(channel));
                sql!("swap_act")
            }
        }
        (None, run) if swap.leaves.is_some() || (run.is_some() && is_grant) => {
            values.extend(note_cells(swap));
            values.push(leaves);
            values.extend(run_cells(run));
            sql!("swap_takeover")
        }
        (None, Some(run)) => {
            values.extend(run_cells(Some(run)));
            values.extend(key_cells(run));
            values.push(Cell::text(channel));
            sql!("swap_release")
        }
        (None, None) if is_grant => {
            values.extend(note_cells(swap));
            sql!("swap_grant")
        }
        (None, None) => sql!("swap_heartbeat"),
    };
    (statement, values)
}

/// The note that a grant was judged by.
fn note_cells(swap: &Swap) -> [Cell; 2] {
    let note = swap.note.as_ref();
    [
        Cell::Number(note.map(|note| note.version.number())),
        Cell::Flag(note.is_some_and(|note| note.durable_then)),
    ]
}

/// A run's columns behind its group, and its document.
fn run_cells(run: Option<&RunRecord>) -> Vec<Cell> {
    let none = || {
        let columns = RUNS.columns.iter().map(|column| column.kind.none());
        columns.chain([Cell::Text(None)]).collect()
    };
    let cells: Vec<Cell> = run.map_or_else(none, |run| RUNS.cells(run));
    cells.into_iter().skip(1).collect()
}

/// The key that a run makes done, with its document.
fn key_cells(run: &RunRecord) -> [Cell; 2] {
    // The server sets the time.
    let Some(mark) = run.once_mark(WallTime(0)) else {
        return [Cell::Text(None), Cell::Text(None)];
    };
    let document = KEYS.cells(&mark).pop();
    [Cell::text(&mark.key), document.unwrap_or(Cell::Text(None))]
}

/// The answer to a swap's statement.
enum Answer {
    Swapped(Swapped),
    /// Another transaction has locked the row. Nothing happened.
    Locked,
}

impl PostgresStore {
    /// Carries out a swap, with retries for a moment while another transaction has the row locked.
    pub(super) fn carry_out(&mut self, swap: &Swap) -> Result<Swapped, StoreError> {
        let begun = Instant::now();
        let channel = self.statements.channel(swap.group().as_str());
        let (statement, values) = asked(swap, &channel);
        let statement = self.statements.of(statement);
        let patience = LOCKED_FOR.min(self.timeout / 2);
        let mut pause = FIRST_PAUSE;
        loop {
            let left = self.timeout.saturating_sub(begun.elapsed());
            let answer = self.swap_once(swap, &statement, &values, left);
            match answer.map_err(|failed| failed.error)? {
                Answer::Swapped(swapped) => return Ok(swapped),
                Answer::Locked if begun.elapsed() >= patience => {
                    let left = self.timeout.saturating_sub(begun.elapsed());
                    return Err(self.held(swap.group(), left));
                }
                Answer::Locked => std::thread::sleep(pause),
            }
            pause = pause.saturating_mul(2);
        }
    }

    /// Writes a run by itself. Missing tables are made: a finished run is recorded, whatever
    /// happened to them.
    pub(super) fn write_run(&mut self, run: &RunRecord) -> Result<Recorded, StoreError> {
        let begun = Instant::now();
        let statement = self.statements.of(sql!("record"));
        let mut values = vec![Cell::text(&run.group)];
        values.extend(run_cells(Some(run)));
        values.extend(key_cells(run));
        let rows = match self.connection.query(self.timeout, &statement, &values) {
            Err(failed) if failed.has_no_tables() => {
                self.init_within(self.timeout.saturating_sub(begun.elapsed()))?;
                let left = self.timeout.saturating_sub(begun.elapsed());
                self.connection.query(left, &statement, &values)
            }
            answer => answer,
        };
        let rows = rows.map_err(|failed| failed.error)?;
        Ok(match rows.first() {
            Some(_) => Recorded::Written,
            None => Recorded::Already,
        })
    }

    fn swap_once(
        &mut self,
        swap: &Swap,
        statement: &str,
        values: &[Cell],
        limit: Duration,
    ) -> Result<Answer, Failed> {
        let begun = Instant::now();
        let rows = self.connection.query(limit, statement, values)?;
        let Some(row) = rows.first() else {
            let why_not = self.why_not(swap, limit.saturating_sub(begun.elapsed()));
            // Whatever the result of that query: the swap was not carried out.
            return why_not.map_err(Failed::without_effect);
        };
        let done = self.done_at(row, &swap.expiry).map_err(Failed::by)?;
        Ok(Answer::Swapped(Swapped::Done(done)))
    }

    /// The time of a swap: the first column of its answer.
    pub(super) fn done_at(
        &self,
        row: &tokio_postgres::Row,
        expiry: &Until,
    ) -> Result<StoreTime, StoreError> {
        let mut cells = Cells::new(row, 0);
        let wall = cells
            .wall()
            .and_then(|wall| wall.ok_or_else(|| cells.bad("is NULL")));
        let wall = wall.map_err(|bad| self.bad_column("tokens", &bad))?;
        Ok(StoreTime {
            stamp: stamp(wall),
            // In another clock epoch it would have expired.
            epoch: expiry.epoch().clone(),
        })
    }

    /// Finds out why nothing has happened.
    fn why_not(&mut self, swap: &Swap, limit: Duration) -> Result<Answer, Failed> {
        let statement = self.statements.of(sql!("swap_state"));
        let rows = (self.connection).query(limit, &statement, &[Cell::text(swap.group())])?;
        let row = rows.first().ok_or_else(|| Failed::by(self.no_answer()))?;
        let now = self.now(row).map_err(Failed::by)?;
        let version: Option<i64> = row.try_get("version").ok().flatten();
        let note: Option<i64> = row.try_get("note").ok().flatten();
        let durable = row.try_get("durable").unwrap_or(false);
        let is_judged_by = swap.note.as_ref().is_none_or(|judged| {
            note == Some(judged.version.number()) && (durable || !judged.durable_then)
        });
        if version != swap.from.map(Version::number) || !is_judged_by {
            return Ok(Answer::Swapped(Swapped::Conflict));
        }
        if now.is_past(&swap.expiry) {
            return Ok(Answer::Swapped(Swapped::Expired(now)));
        }
        Ok(match swap.from {
            Some(_) => Answer::Locked,
            // The row of another client was in the way, and is gone.
            None => Answer::Swapped(Swapped::Conflict),
        })
    }

    /// The error that names the session with the lock of the group's row.
    fn held(&mut self, group: &GroupName, limit: Duration) -> StoreError {
        let statements = [sql!("swap_locker"), sql!("swap_lockers")];
        let pid = statements.into_iter().find_map(|statement| {
            let rows = self
                .connection
                .query(limit, statement, &[Cell::text(group)]);
            rows.ok()?.first()?.try_get::<_, Option<String>>(0).ok()?
        });
        let who = pid.map_or_else(String::new, |pid| format!(", pid {pid}"));
        StoreError::held(format!(
            "the token of {} in {} is held by a transaction of the earlier run{who} on the \
             server; it ends with that transaction",
            quoted(group.as_str()),
            self.connection.store_name()
        ))
    }
}
