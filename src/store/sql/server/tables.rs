//! The tables of tokens, waiters and records on a server.

use std::time::{Duration, Instant};

use super::{Server, SqlStore, check};
use crate::store::net::session::{Failed, Link};
use crate::store::pruning::{Note, Outlived};
use crate::store::sql::Statements;
use crate::store::sql::cell::text;
use crate::store::sql::cell::{BadColumn, Cell, Cells, Column, Kind, Rows, flag, group_of};
use crate::store::sql::records::{self, Reads, SEEN, seen};
use crate::store::sql::table::{KEYS, OUTPUTS, REFUSALS};
use crate::store::sql::token::{self, TOKEN};
use crate::store::sql::waiter::{self, WAITER};
use crate::store::{
    ActQuery, OUTPUT_BATCH, PRUNE_BATCH, Records, RefusalQuery, Retention, RunQuery,
};
use crate::store::{Listing, Reading, StoreError};
use crate::token::refusal::{LEAST_PAUSE, SAME_RECORD};
use crate::token::{
    ActRecord, Fence, GroupName, IncarnationNote, OnceMark, OutputLimits, OutputRecord, QueueEntry,
    Recorded, RefusalRecord, RefusalTotal, Row, RunRecord, SessionId, Version,
};

/// The time of an answer, with its clock epoch.
pub(in crate::store) const NOW: [Column; 2] = [
    Column::new("now", Kind::Stamp),
    Column::new("epoch", Kind::Epoch),
];

/// The note of the incarnation and its version, in the next two columns.
pub(in crate::store) fn noted(c: &mut Cells<'_>) -> Result<Option<IncarnationNote>, BadColumn> {
    let text = c.text()?;
    let version = c.number()?;
    Ok((text.is_some() || version.is_some()).then(|| {
        let version = Version::from_stored(version.unwrap_or_default());
        IncarnationNote::from_json(text.unwrap_or_default(), version)
    }))
}

/// Where the token begins in an answer of `read.sql` or `list.sql`: after the time and the oldest
/// reader.
const IN_ANSWER: usize = NOW.len() + 1;

/// The columns of `list.sql`, with which those of `read.sql` begin.
fn columns_of_list() -> Vec<Column> {
    let head = NOW.into_iter().chain([text("oldest_reader")]);
    head.chain(TOKEN).collect()
}

/// The token in a row of `read.sql`, whose cells in these columns `decode` gives.
pub(in crate::store) fn token_in(
    decode: impl FnOnce(&[Column]) -> Vec<Cell>,
) -> Result<Option<Row>, BadColumn> {
    let columns = columns_of_list();
    let row = decode(&columns);
    token::row(Cells::new(&columns, &row).after(IN_ANSWER))
}

impl<L: Link, O> SqlStore<L, O>
where
    Self: Server,
{
    /// Reads the token of a group, its queue and the note, and then a key: a reading that shows the release of a run
    /// shows the key that was made done with it. A plain run reads no table of keys, because each table costs a new
    /// connection of PostgreSQL's some 0.2 ms.
    pub(in crate::store) fn look_at(
        &mut self,
        group: &GroupName,
        key: Option<&str>,
    ) -> Result<Reading, StoreError> {
        let begun = Instant::now();
        let mut columns = columns_of_list();
        columns.extend(WAITER.iter().chain(Self::NOTE));
        let values = [Cell::text(group)];
        let checked = self.checked;
        let is_missing = |answer: &Result<Rows, Failed>| match answer {
            // A store without its last row is not complete.
            Ok(rows) => rows.is_empty() && !checked,
            Err(failed) => Self::is_without_tables(failed) && !checked,
        };
        let rows = self.ask_or_make(Self::TABLES.read, &values, &columns, is_missing)?;
        let mut found = self.tokens(&columns, &rows)?;
        if let Some(unreadable) = found.unreadable.pop() {
            return Err(unreadable.error);
        }
        let first = rows.first().ok_or_else(|| self.no_answer())?;
        let note = Cells::new(&columns, first).after(IN_ANSWER + TOKEN.len() + WAITER.len());
        let left = self.timeout.saturating_sub(begun.elapsed());
        let done = match key {
            Some(key) => self.key_within(left, group, key)?,
            None => None,
        };
        Ok(Reading {
            row: found.rows.pop(),
            queue: self.queue(&columns, &rows)?,
            memory: self.memory(note, &found.now)?,
            done: done.map(Box::new),
            now: found.now,
            refuses: self.refuses(note),
        })
    }

    /// The run that made a key done, by a call that takes at most `limit`.
    fn key_within(
        &mut self,
        limit: Duration,
        group: &GroupName,
        key: &str,
    ) -> Result<Option<OnceMark>, StoreError> {
        let columns = KEYS.answer();
        let values = [Cell::text(group), Cell::text(key)];
        let rows = self.ask(limit, Self::TABLES.records.key, &values, &columns);
        let row = rows.map_err(|failed| failed.error)?.into_iter().next();
        let mark = row.map(|row| KEYS.value(row)).transpose();
        mark.map_err(|bad| self.bad_column(KEYS.name, &bad))
    }

    /// Lists all tokens and all waiters.
    pub(in crate::store) fn list_all(&mut self) -> Result<Listing, StoreError> {
        let columns = columns_of_list();
        let rows = self.ask(self.timeout, Self::TABLES.list, &[], &columns);
        let rows = rows.map_err(|failed| self.listed(failed))?;
        if rows.is_empty() {
            return Err(self.no_store());
        }
        let mut listing = self.tokens(&columns, &rows)?;
        let columns = waiter::with_group();
        let rows = self.ask(self.timeout, Self::TABLES.queues, &[], &columns);
        let rows = rows.map_err(|failed| failed.error)?;
        let waiters = rows.iter().map(|row| {
            let cells = Cells::new(&columns, row);
            let found = waiter::in_group(cells);
            let found = found.map_err(|bad| self.bad_column("waiters", &bad));
            (group_of(cells), found)
        });
        waiter::list(waiters, &mut listing);
        Ok(listing)
    }

    /// The tokens in an answer of `read.sql` or `list.sql`, with its time.
    fn tokens(&mut self, columns: &[Column], rows: &Rows) -> Result<Listing, StoreError> {
        let first = rows.first().ok_or_else(|| self.no_answer())?;
        let mut head = Cells::new(columns, first);
        let now = head.time().map_err(|bad| self.bad_time(&bad))?;
        if !self.checked {
            let oldest = head.text().ok().flatten();
            check::<Self>(self.connection.store_name(), oldest)?;
            self.checked = true;
        }
        let bad_row = |_: &str, bad: &BadColumn| self.bad_column("tokens", bad);
        Ok(token::list(columns, rows, IN_ANSWER, now, bad_row))
    }

    /// The waiters in an answer of `read.sql`.
    fn queue(&self, columns: &[Column], rows: &Rows) -> Result<Vec<QueueEntry>, StoreError> {
        let entries = rows.iter().filter_map(|row| {
            let mut cells = Cells::new(columns, row).after(IN_ANSWER + TOKEN.len());
            waiter::waiter(&mut cells).transpose()
        });
        let entries = entries.collect::<Result<Vec<_>, _>>();
        let mut entries = entries.map_err(|bad| self.bad_column("waiters", &bad))?;
        entries.sort_by_key(|entry| entry.number);
        Ok(entries)
    }

    /// Removes a session from the queue.
    pub(in crate::store) fn leave_queue(
        &mut self,
        group: &GroupName,
        session: &SessionId,
    ) -> Result<(), StoreError> {
        let values = [Cell::text(group), Cell::text(session)];
        self.tell(Self::TABLES.queue_leave, &values)
    }

    /// Prunes in three steps: reads the candidates, leaves the note for the next pruning, removes what is
    /// too old. So the token's row is locked only while the note is written.
    fn prune_a_batch(&mut self, group: &GroupName, retention: Retention) -> Result<(), Failed> {
        let begun = Instant::now();
        let own = [text("pruning_note"), flag("crowded")];
        let columns = [NOW.as_slice(), &own, &SEEN].concat();
        let batch = Cell::number(i64::from(PRUNE_BATCH));
        let OutputLimits { retain, count } = retention.outputs;
        let count = Cell::number(i64::from(count));
        let values = [Cell::text(group), batch.clone(), count.clone()];
        let rows = self.ask(self.timeout, Self::TABLES.prune_look, &values, &columns)?;
        let Some(first) = rows.first() else {
            return Ok(());
        };
        let mut cells = Cells::new(&columns, first);
        let now = cells.time();
        let now = now.map_err(|bad| Failed::by(self.bad_time(&bad)))?;
        let text = cells.text().ok().flatten();
        let last = text.and_then(Note::from_text);
        let crowded = cells.flag().is_ok_and(|it| it);
        let mut runs = seen(&columns, &rows, NOW.len() + own.len());
        let note = Note::next(last, &now, false, &mut runs, retention);
        let outlived = note.outlived(retention);
        let values = [
            Cell::text(group),
            Cell::maybe(text),
            Cell::text(&note.to_text()),
        ];
        let left = self.timeout.saturating_sub(begun.elapsed());
        let noted = self.ask(left, Self::TABLES.prune_note, &values, &[flag("noted")])?;
        let is_noted = noted.first().is_some_and(|row| row == &[Cell::Flag(true)]);
        if !is_noted || (outlived == Outlived::default() && !crowded) {
            return Ok(());
        }
        let values = [
            Cell::text(group),
            Cell::millis(retention.history),
            Cell::millis(retention.once),
            batch,
            Cell::Number(outlived.history.map(|fence| fence.0)),
            Cell::Number(outlived.once.map(|fence| fence.0)),
            Cell::millis(retain),
            Cell::number(i64::from(OUTPUT_BATCH)),
            Cell::Number(outlived.outputs.map(|fence| fence.0)),
            count,
        ];
        let left = self.timeout.saturating_sub(begun.elapsed());
        self.ask(left, Self::TABLES.prune, &values, &[]).map(drop)
    }
}

impl<L: Link, O> Reads for SqlStore<L, O>
where
    Self: Server,
{
    fn statements(&self) -> &'static Statements {
        &Self::TABLES.records
    }

    fn select(
        &mut self,
        statement: &'static str,
        values: &[Cell],
        columns: &[Column],
    ) -> Result<Rows, StoreError> {
        let rows = self.ask(self.timeout, statement, values, columns);
        self.lacks_tables = rows.as_ref().is_err_and(Self::is_without_tables);
        rows.map_err(|failed| self.listed(failed))
    }

    fn bad_row(&self, table: &str, _: &str, bad: &BadColumn) -> StoreError {
        self.bad_column(table, bad)
    }
}

impl<L: Link, O> Records for SqlStore<L, O>
where
    Self: Server,
{
    fn record(&mut self, run: &RunRecord) -> Result<Recorded, StoreError> {
        self.write_run(run)
    }

    fn runs(&mut self, query: &RunQuery) -> Result<Vec<RunRecord>, StoreError> {
        records::runs(self, query)
    }

    fn acts(&mut self, query: &ActQuery) -> Result<Vec<ActRecord>, StoreError> {
        records::acts(self, query)
    }

    fn refuse(&mut self, refusal: &RefusalRecord) -> Result<(), StoreError> {
        let cells = REFUSALS.cells(refusal).into_iter().enumerate();
        // The server sets the times and the count.
        let cells = cells.filter(|(at, _)| !(4..7).contains(at));
        let mut values: Vec<Cell> = cells.map(|(_, cell)| cell).collect();
        values.extend([LEAST_PAUSE, SAME_RECORD].map(Cell::millis));
        self.tell(Self::TABLES.refuse, &values)
    }

    fn refusals(&mut self, query: &RefusalQuery) -> Result<Vec<RefusalRecord>, StoreError> {
        records::refusals(self, query)
    }

    fn refusal_totals(&mut self) -> Result<Vec<RefusalTotal>, StoreError> {
        records::refusal_totals(self)
    }

    fn keep_output(&mut self, output: &OutputRecord) -> Result<(), StoreError> {
        let mut values = OUTPUTS.cells(output);
        // The server sets the time, before the document.
        values.remove(OUTPUTS.columns.len() - 1);
        self.tell(Self::TABLES.output_write, &values)
    }

    fn output(
        &mut self,
        group: &GroupName,
        fence: Option<Fence>,
    ) -> Result<Option<OutputRecord>, StoreError> {
        records::output(self, group, fence)
    }

    fn once(&mut self, group: &GroupName, key: &str) -> Result<Option<OnceMark>, StoreError> {
        let found = records::key(self, group, key);
        if found.is_err() && std::mem::take(&mut self.lacks_tables) {
            // This read comes before the first look at the token.
            self.init()?;
            return records::key(self, group, key);
        }
        found
    }

    fn once_marks(&mut self, group: Option<&GroupName>) -> Result<Vec<OnceMark>, StoreError> {
        records::keys(self, group)
    }

    /// Without the right to leave a note, nothing is pruned.
    fn prune(&mut self, group: &GroupName, retention: Retention) -> Result<(), StoreError> {
        match self.prune_a_batch(group, retention) {
            Err(failed) if Self::is_not_allowed(&failed) => Ok(()),
            answer => answer.map_err(|failed| failed.error),
        }
    }
}
