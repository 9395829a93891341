//! A swap, inside of a transaction.

use rusqlite::{ErrorCode, OptionalExtension as _, Transaction, params, params_from_iter};

use super::fault::Place;
use super::{events, line, once, runs, tokens};
use crate::store::StoreError;
use crate::token::{History, Recorded, RunRecord, SessionId, StoreTime, Swap, Swapped, Version};

/// What a transaction answers, and whether it is committed.
pub(super) enum Kept<T> {
    Yes(T),
    No(T),
}

/// What can go wrong while a transaction is open.
pub(super) enum WriteError {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for WriteError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Carries a swap out, or says why not. The lock is held.
pub(super) fn carry_out(
    transaction: &Transaction<'_>,
    swap: &Swap,
    place: &Place,
    now: &StoreTime,
) -> Result<Kept<Swapped>, WriteError> {
    let group = swap.group();
    // The statement of the look before: to prepare another would cost more than to run it.
    let found = transaction
        .prepare_cached(sql!("token_read"))?
        .query_row([group.as_str()], |row| row.get("version"))
        .optional()?
        .map(Version::from_stored);
    if found != swap.from {
        return Ok(Kept::No(Swapped::Conflict));
    }
    if now.is_past(&swap.expiry) {
        return Ok(Kept::No(Swapped::Expired(now.clone())));
    }
    let mut row = swap.to.clone();
    row.stamp(swap.touch, now);
    let statement = if found.is_some() {
        sql!("token_update")
    } else {
        sql!("token_insert")
    };
    // Kept for the next swap of this run: to read the statement costs more than to
    // carry it out.
    let mut statement = transaction.prepare_cached(statement)?;
    statement.execute(params_from_iter(tokens::to_values(&row)))?;
    match &swap.history {
        History::Nothing => {}
        History::Begin {
            run,
            vanished,
            waited,
        } => {
            if *waited {
                line::leave(transaction, group, &run.session)?;
            }
            begin(transaction, run, vanished.as_ref(), place, now)?;
        }
        History::Act(act) => {
            transaction.execute_batch(sql!("events_create"))?;
            let values = events::to_values(act, now);
            transaction.execute(sql!("event_add"), params_from_iter(values))?;
            if let Some(key) = &act.once_key {
                transaction.execute_batch(sql!("once_create"))?;
                transaction.execute(sql!("once_forget"), [group.as_str(), key])?;
            }
        }
        History::End(run) => {
            close(transaction, run, place, now)?;
        }
    }
    Ok(Kept::Yes(Swapped::Done(now.clone())))
}

fn begin(
    transaction: &Transaction<'_>,
    run: &RunRecord,
    vanished: Option<&SessionId>,
    place: &Place,
    now: &StoreTime,
) -> Result<(), WriteError> {
    if let Some(session) = vanished {
        transaction.execute(sql!("run_vanished"), [run.group.as_str(), session.as_str()])?;
    }
    let mut run = run.clone();
    run.started_at_ms = now.stamp.wall_ms;
    let begun = transaction
        .prepare_cached(sql!("run_begin"))?
        .execute(params_from_iter(runs::to_values(&run)));
    match begun {
        Ok(_) => Ok(()),
        Err(rusqlite::Error::SqliteFailure(failure, _))
            if failure.code == ErrorCode::ConstraintViolation =>
        {
            Err(WriteError::Store(place.misconfigured(format!(
                "group {:?} has a run with the fence {} in its history already, so its token was \
                 deleted or put back; set its fence above those in the history with sqlite3",
                run.group.as_str(),
                run.fence
            ))))
        }
        Err(error) => Err(error.into()),
    }
}

/// Writes a run that is over, unless its session has done so before, and marks its key as done.
pub(super) fn close(
    transaction: &Transaction<'_>,
    run: &RunRecord,
    place: &Place,
    now: &StoreTime,
) -> Result<Recorded, WriteError> {
    let run = RunRecord {
        ended_at_ms: Some(now.stamp.wall_ms),
        ..run.clone()
    };
    let mut statement = transaction.prepare_cached(sql!("run_end"))?;
    if statement.execute(params_from_iter(runs::to_values(&run)))? == 0 {
        let of = params![run.group.as_str(), run.fence.0];
        let session: String = transaction.query_row(sql!("run_session"), of, |row| row.get(0))?;
        return if session == run.session.as_str() {
            Ok(Recorded::Already)
        } else {
            Err(WriteError::Store(
                place.misconfigured(super::super::place_taken(&run)),
            ))
        };
    }
    if let Some(mark) = run.once_mark(now.stamp.wall_ms) {
        transaction.execute_batch(sql!("once_create"))?;
        transaction.execute(sql!("once_mark"), params_from_iter(once::to_values(&mark)))?;
    }
    Ok(Recorded::Written)
}
