//! The note of the incarnation: the one row of `tokenrun_meta`, which each look at a token also reads.
//!
//! The incarnation is the server's own id with its name and port, and the time when the table of tokens
//! was made: a restored dump makes it anew.

use std::time::Duration;

use super::MysqlStore;
use super::statements::sql;
use super::swaps::{Outcome, expiry_values};
use crate::store::StoreError;
use crate::store::sql::cell::{BadColumn, Cells, flag};
use crate::store::sql::server::tables::noted;
use crate::store::sql::swap;
use crate::token::{Incarnation, IncarnationNote, Memory, NoteSwap, Served, StoreTime, Swapped};

/// The only engine whose transactions and locks of rows tokenrun relies on.
const ENGINE: &str = "InnoDB";

/// What an answer of `read.sql` tells of the store's memory.
struct Noted<'a> {
    note: Option<IncarnationNote>,
    /// The present incarnation.
    incarnation: Incarnation,
    /// The tables whose rows are locked, with their engines.
    engines: [(&'static str, Option<&'a str>); 2],
    /// True if each commit is on the disk before its answer, by the present settings.
    flushes: bool,
}

fn in_reading<'a>(c: &mut Cells<'a>) -> Result<Noted<'a>, BadColumn> {
    let note = noted(c)?;
    let server = c.needed(Cells::text)?;
    let made = c.needed(Cells::text)?;
    let (made, engine) = made.split_once(' ').unwrap_or((made, ""));
    Ok(Noted {
        note,
        incarnation: Incarnation(format!("{server}_{made}")),
        engines: [
            ("tokenrun_tokens", Some(engine)),
            ("tokenrun_fences", c.text()?),
        ],
        flushes: c.flag()?,
    })
}

impl MysqlStore {
    /// Two sessions could get one grant from a table that locks no rows.
    fn other_engine(&self, table: &str, engine: &str) -> StoreError {
        let what = format!("its table {table} has the engine {engine:?}, and tokens need {ENGINE}");
        self.unusable(what).remedy(format!(
            "have every table of tokenrun's made {ENGINE} again: ALTER TABLE {table} ENGINE = {ENGINE}"
        ))
    }

    /// What the store may have forgotten, from an answer of `read.sql` at `now`.
    pub(super) fn remembered(
        &mut self,
        mut note: Cells<'_>,
        now: &StoreTime,
    ) -> Result<Memory, StoreError> {
        let found = in_reading(&mut note);
        let Noted {
            note,
            incarnation,
            engines,
            flushes,
        } = found.map_err(|bad| self.bad_column("meta", &bad))?;
        for (table, engine) in engines {
            if let Some(engine) = engine.filter(|engine| *engine != ENGINE) {
                return Err(self.other_engine(table, engine));
            }
        }
        let is_of_now = |note: &IncarnationNote| note.epoch == now.epoch;
        let durable = match note.as_ref().filter(|note| is_of_now(note)) {
            Some(note) => note.durable_then && flushes,
            None => self.is_durable()?,
        };
        Ok(Memory {
            incarnation: Some(incarnation),
            durable,
            note,
            unnoted: Served::NOTHING,
            lag: Duration::ZERO,
        })
    }

    /// True if a restart of the server certainly loses nothing.
    fn is_durable(&mut self) -> Result<bool, StoreError> {
        let columns = [flag("durable")];
        let row = self.first(self.timeout, sql!("incarnation"), &[], &columns);
        let row = row.map_err(|failed| failed.error)?;
        let durable = Cells::new(&columns, &row).flag();
        durable.map_err(|bad| self.bad_column("meta", &bad))
    }

    /// Writes the note, unless it has changed since it was read.
    pub(super) fn write_note(&mut self, swap: &NoteSwap) -> Result<Swapped, StoreError> {
        let values = swap::note(swap, expiry_values(&swap.expiry));
        let statement = self.own.statements.of(sql!("note"), &values);
        match self.call(&statement)? {
            Outcome::Swapped(swapped) => Ok(swapped),
            Outcome::Locked | Outcome::Held => Err(StoreError::locked(format!(
                "the store {} can't be used: its table tokenrun_meta is locked by another session",
                self.connection.store_name()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::store::conformance::{claim, version};
    use crate::store::mysql::played::{self, Played, flag};
    use crate::store::mysql::settings;
    use crate::store::mysql::test_server::{Database, Kind, Server};
    use crate::store::{Reading, Tokens as _};
    use crate::token::rule::tests::fixture::epoch;
    use crate::token::swap::grant;
    use crate::token::{GrantKind, GroupName, Swap};

    const TIMEOUT: Duration = Duration::from_secs(10);

    fn store(database: &Database<'_>) -> MysqlStore {
        let mut store = MysqlStore::new(settings(&database.url(), "test").unwrap(), TIMEOUT);
        store.init().unwrap();
        store
    }

    fn read(store: &mut MysqlStore) -> Reading {
        store.read(&GroupName::new("g").unwrap()).unwrap()
    }

    /// A grant by what was read.
    fn granted(reading: &Reading, n: u64) -> Swap {
        let row = reading.row.as_ref();
        let claim = claim("g", "a", &format!("s{n}"));
        let mut swap = grant(&claim, GrantKind::Bind, row, &reading.now, version(n));
        swap.note = reading.memory.note.clone().map(Box::new);
        swap
    }

    /// Writes the next note.
    fn note(store: &mut MysqlStore, n: u64) {
        let reading = read(store);
        let (memory, now) = (&reading.memory, &reading.now);
        let next = memory.next_note(now, || version(n)).unwrap();
        let swapped = store.note(&memory.swap(next, now, TIMEOUT)).unwrap();
        assert!(matches!(swapped, Swapped::Done(_)), "{swapped:?}");
    }

    /// A server that has synced since its note, and does not now, may lose what it has promised; and so may one that did not
    /// then.
    #[test]
    fn commits_are_durable_if_the_note_of_this_clock_says_so_or_without_one_the_server() {
        let server = Played::start();
        let mut store = server.store();
        let mut looked = |note: &IncarnationNote, flushes| {
            server.says("read", played::read(None, note, [flushes, false]));
            (read(&mut store).memory.durable, server.asked())
        };
        let incarnation = Incarnation("server_made".into());
        let note = |durable| {
            IncarnationNote::of_new(incarnation.clone(), durable, &played::now(), version(1))
        };
        assert_eq!(looked(&note(true), true), (true, "open set-up read".into()));
        assert_eq!(looked(&note(false), true), (false, "read".into()));
        assert_eq!(looked(&note(true), false), (false, "read".into()));
        let of_another = IncarnationNote {
            epoch: epoch("another"),
            ..note(true)
        };
        for durable in [true, false] {
            server.says("durable", flag(durable));
            let asked = "read durable".into();
            assert_eq!(looked(&of_another, true), (durable, asked));
        }
    }

    /// Tables that are made again between the look and the grant have the versions that were read.
    #[test]
    fn a_grant_that_was_judged_before_a_restore_conflicts() {
        let database = Server::shared_of(Kind::Mariadb).database();
        let mut store = store(&database);
        for n in [1, 3] {
            let before = read(&mut store);
            let swap = granted(&before, n);
            let begun = Instant::now();
            while read(&mut store).memory.incarnation == before.memory.incarnation {
                // The time has whole seconds.
                database.sql("ALTER TABLE tokenrun_tokens FORCE");
                assert!(begun.elapsed() < 6 * TIMEOUT, "it stays the same");
            }
            assert_eq!(store.swap(&swap).unwrap(), Swapped::Conflict, "{n}");
            note(&mut store, n + 1);
            let after = read(&mut store);
            let again = store.swap(&granted(&after, n)).unwrap();
            assert!(matches!(again, Swapped::Done(_)), "{again:?}");
        }
    }

    #[test]
    fn a_note_that_another_session_has_locked_is_refused_at_once() {
        let database = Server::shared_of(Kind::Mariadb).database();
        let mut store = store(&database);
        let reading = read(&mut store);
        let (memory, now) = (&reading.memory, &reading.now);
        let incarnation = memory.incarnation.clone().unwrap();
        let judged = memory.judged(&incarnation, false, now, version(2));
        let swap = memory.swap(judged, now, TIMEOUT);
        let mut locker = self::store(&database);
        let lock = "START TRANSACTION; SELECT one FROM tokenrun_meta FOR UPDATE";
        locker.connection.ask(TIMEOUT, lock).unwrap();
        let locked = store.note(&swap).unwrap_err();
        // A note that waited for the lock would end with an error of the server's.
        let words = "tokenrun_meta is locked by another session";
        assert!(locked.what.contains(words), "{locked}");
        drop(locker);
        let done = store.note(&swap).unwrap();
        assert!(matches!(done, Swapped::Done(_)), "{done:?}");
    }

    #[test]
    fn a_server_that_stops_to_sync_is_noted_and_grants_nothing_by_the_note_before() {
        let server = Server::start_of(Kind::Mariadb, &[]);
        let database = server.database();
        let mut store = store(&database);
        let before = read(&mut store);
        assert!(before.memory.durable);
        let swap = granted(&before, 1);
        database.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 2");
        assert_eq!(store.swap(&swap).unwrap(), Swapped::Conflict);
        note(&mut store, 2);
        let after = read(&mut store);
        let noted = after.memory.note.clone().unwrap();
        assert!(!noted.durable_then, "{noted:?}");
        let observed = after.memory.observed(&after.now).0;
        assert_eq!(observed, Served::Everything);
        let done = store.swap(&granted(&after, 3)).unwrap();
        assert!(matches!(done, Swapped::Done(_)), "{done:?}");
    }
}
