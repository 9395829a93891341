//! Swaps: one call of a procedure each, retried while the row is locked.

use std::time::{Duration, Instant};

use super::MysqlStore;
use super::cells::Cells;
use super::fault::code;
use super::link::Missing as _;
use super::statements::sql;
use super::tokens::{expiry_values, to_values};
use super::wire::Answer;
use crate::store::StoreError;
use crate::store::sql::cell::Cell;
use crate::store::sql::table::{ACTS, KEYS, RUNS};
use crate::token::{
    GroupName, IncarnationNote, Recorded, RunRecord, StampOf, State, StoreTime, Swap, Swapped,
    WallTime,
};

/// How long a row may be locked before the swap is reported as held: far longer than another
/// client's swap takes.
const LOCKED_FOR: Duration = Duration::from_millis(500);

/// The first pause before a locked row is tried again; each is twice the last.
const FIRST_PAUSE: Duration = Duration::from_millis(2);

/// How long the call may take that only prepares a later one.
const PREPARED_WITHIN: Duration = Duration::from_millis(500);

/// Why a swap can't have the row of a token, or that of its fence.
const LOCKED_ROW: &str = "locked by another session on the server, which SHOW PROCESSLIST shows; it ends \
                          with that session's transaction";
const LOCKED_FENCE: &str = "held by a transaction of the earlier run on the server; it ends with that \
                            transaction";

/// How many values `swap.sql` has.
const PARAMETERS: usize = 29;

/// How many of them are the token's: the record of a run alone has none.
const OF_TOKEN: usize = 16;

/// The values of `swap.sql`.
fn values(swap: &Swap) -> Vec<Cell> {
    let is_grant = swap.stamp == Some(StampOf::Granted);
    let act = swap.act.as_deref();
    let is_raise = act.is_some_and(|act| act.raised_fence());
    let mut values = vec![
        Cell::text(swap.group()),
        Cell::Number(swap.from.map(|version| version.number())),
    ];
    values.extend(to_values(swap));
    values.extend(expiry_values(&swap.expiry));
    values.push(Cell::Flag(is_grant || is_raise));
    values.push(Cell::maybe(swap.leaves.as_ref()));
    let mut of_act = act.map(|act| ACTS.cells(act)).unwrap_or_default();
    let document = of_act.pop();
    values.push(of_act.pop().unwrap_or(Cell::Number(None)));
    values.push(document.unwrap_or(Cell::Text(None)));
    values.push(Cell::maybe(act.and_then(|act| act.once_key.as_ref())));
    // The session itself writes its run when it releases the token.
    let own = !is_grant && act.is_none();
    values.extend(run_values(swap.ended.as_deref(), own));
    values.extend(note_values(swap.note.as_deref()));
    values
}

/// The note that a grant was judged by.
fn note_values(note: Option<&IncarnationNote>) -> [Cell; 3] {
    [
        Cell::Number(note.map(|note| note.version.number())),
        Cell::maybe(note.map(|note| &note.incarnation)),
        Cell::Flag(note.is_some_and(|note| note.durable_then)),
    ]
}

/// A run, whether its own session writes it, and the key that it makes done then.
fn run_values(run: Option<&RunRecord>, own: bool) -> Vec<Cell> {
    let none = || {
        let columns = RUNS.columns.iter().map(|column| column.kind.none());
        columns.chain([Cell::Text(None)]).collect()
    };
    let cells: Vec<Cell> = run.map_or_else(none, |run| RUNS.cells(run));
    let mut values: Vec<Cell> = cells.into_iter().skip(1).collect();
    values.push(Cell::Flag(own));
    // The server sets the time.
    let mark = run
        .filter(|_| own)
        .and_then(|run| run.once_mark(WallTime(0)));
    values.push(Cell::maybe(mark.as_ref().map(|mark| &mark.key)));
    let document = mark.and_then(|mark| KEYS.cells(&mark).pop());
    values.push(document.unwrap_or(Cell::Text(None)));
    values
}

/// The answer of a procedure.
pub(super) enum Outcome {
    Done(StoreTime),
    Already,
    Conflict,
    Expired(StoreTime),
    /// Another swap has locked the row. Nothing happened.
    Locked,
    /// A job's transaction has locked the fence. Nothing happened.
    Held,
}

impl MysqlStore {
    /// Carries out a swap, with retries for a moment while another transaction has the row locked.
    pub(super) fn carry_out(&mut self, swap: &Swap) -> Result<Swapped, StoreError> {
        let mut statement = self.statements.of(sql!("swap"), &values(swap));
        let holds = matches!(swap.to.state, State::Running { .. });
        if let Some(ring) = self.ringing(holds) {
            statement = format!("{};\n{ring}", statement.trim_end());
        }
        match self.call(&statement)? {
            Outcome::Done(at) => {
                self.held_on(swap);
                Ok(Swapped::Done(at))
            }
            Outcome::Conflict | Outcome::Already => Ok(Swapped::Conflict),
            Outcome::Expired(now) => Ok(Swapped::Expired(now)),
            Outcome::Locked => Err(self.held(swap.group(), LOCKED_ROW)),
            Outcome::Held => Err(self.held(swap.group(), LOCKED_FENCE)),
        }
    }

    /// Writes a run by itself. Missing tables are made: a finished run is recorded, whatever
    /// happened to them.
    pub(super) fn write_run(&mut self, run: &RunRecord) -> Result<Recorded, StoreError> {
        let begun = Instant::now();
        let mut values = vec![Cell::text(&run.group)];
        values.resize(OF_TOKEN, Cell::Number(None));
        values.extend(run_values(Some(run), true));
        values.extend(note_values(None));
        let statement = self.statements.of(sql!("swap"), &values);
        let answer = match self.connection.ask(self.timeout, &statement) {
            Err(failed) if failed.has_no_tables() => {
                self.init_within(self.timeout.saturating_sub(begun.elapsed()))?;
                let left = self.timeout.saturating_sub(begun.elapsed());
                self.connection.ask(left, &statement)
            }
            answer => answer,
        };
        let answer = answer.map_err(|failed| failed.error)?;
        Ok(match self.outcome(&answer)? {
            Outcome::Done(_) => Recorded::Written,
            _ => Recorded::Already,
        })
    }

    /// Makes the server read the procedure's text, which it does when a session first calls it: a call without
    /// effect. For a session in the queue, whose swap must be quick.
    pub(super) fn prepare(&mut self) {
        if !self.is_prepared {
            let nothing = vec![Cell::Number(None); PARAMETERS];
            let statement = self.statements.of(sql!("swap"), &nothing);
            let limit = PREPARED_WITHIN.min(self.timeout);
            self.is_prepared = self.connection.ask(limit, &statement).is_ok();
        }
    }

    /// Calls a procedure, and again for a moment while another transaction is in the way.
    pub(super) fn call(&mut self, statement: &str) -> Result<Outcome, StoreError> {
        let begun = Instant::now();
        let patience = LOCKED_FOR.min(self.timeout / 2);
        let mut pause = FIRST_PAUSE;
        loop {
            let left = self.timeout.saturating_sub(begun.elapsed());
            let is_early = begun.elapsed() < patience;
            match self.connection.ask(left, statement) {
                // An administrator's script that is run again makes the procedures anew in MySQL.
                Err(failed) if failed.code() == Some(code::NO_PROCEDURE) && is_early => {}
                Err(failed) => return Err(failed.error),
                Ok(answer) => match self.outcome(&answer)? {
                    Outcome::Locked | Outcome::Held if is_early => {}
                    outcome => return Ok(outcome),
                },
            }
            std::thread::sleep(pause);
            pause = pause.saturating_mul(2);
        }
    }

    fn outcome(&mut self, answer: &Answer) -> Result<Outcome, StoreError> {
        self.waits = Cells::first(answer).is_some_and(|mut cells| cells.waits() > 0);
        let mut cells = Cells::first(answer).ok_or_else(|| self.no_answer())?;
        let read = |bad| self.bad_column("tokenrun_tokens", &bad);
        let what = cells.needed_text().map_err(read)?;
        let mut time = || cells.time().map_err(|bad| self.bad_time(&bad));
        Ok(match what {
            "done" => Outcome::Done(time()?),
            "already" => Outcome::Already,
            "conflict" => Outcome::Conflict,
            "expired" => Outcome::Expired(time()?),
            "locked" => Outcome::Locked,
            "held" => Outcome::Held,
            _ => return Err(self.no_answer()),
        })
    }

    fn held(&self, group: &GroupName, by: &str) -> StoreError {
        let place = self.connection.store_name();
        StoreError::held(format!(
            "the token of {:?} in {place} is {by}",
            group.as_str()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Tokens as _;
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
        let statement = store.statements.of(sql!("swap"), &nothing);
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
        assert!(store.is_prepared);
        for table in ["tokens", "fences", "runs", "acts", "done_keys"] {
            let count = database.sql(&format!("SELECT COUNT(*) FROM tokenrun_{table}"));
            assert_eq!(count.trim(), "0", "{table}");
        }
    }
}
