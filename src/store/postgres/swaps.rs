//! Swaps: one statement each, retried while the row is locked, and explained when not carried out.

use std::time::{Duration, Instant};

use super::PostgresStore;
use super::cells::expiry_values;
use super::statements::sql;
use crate::store::net::session::Failed;
use crate::store::sql::cell::{Cell, Cells, Column, Kind, flag, number, text};
use crate::store::sql::server::Server as _;
use crate::store::sql::server::tables::NOW;
use crate::store::sql::swap::{self, patiently};
use crate::store::{Listing, Reading, StoreError, Tokens};
use crate::token::hidden::quoted;
use crate::token::{
    GroupName, NoteSwap, Recorded, RunRecord, StampOf, StoreTime, Swap, Swapped, Until, Version,
};

/// The time of a swap that was carried out.
pub(super) const DONE: [Column; 1] = [Column::new("now", Kind::Stamp)];

/// The processes of the server that have locked a row.
const PIDS: [Column; 1] = [text("pids")];

/// The statement of a swap. A new fence is a new key, so no other transaction may have locked the old one.
fn statement(swap: &Swap) -> &'static str {
    let is_grant = swap.stamp == Some(StampOf::Granted);
    match (swap.act.as_deref(), swap.ended.is_some()) {
        _ if swap.from.is_none() => sql!("swap_create"),
        (Some(act), _) if act.raised_fence() => sql!("swap_raise"),
        (Some(_), _) => sql!("swap_act"),
        (None, ends) if swap.leaves.is_some() || (ends && is_grant) => sql!("swap_takeover"),
        (None, true) => sql!("swap_release"),
        (None, false) if is_grant => sql!("swap_grant"),
        (None, false) => sql!("swap_heartbeat"),
    }
}

impl PostgresStore {
    /// Writes a run by itself. Missing tables are made: a finished run is recorded, whatever
    /// happened to them.
    pub(super) fn record_alone(&mut self, run: &RunRecord) -> Result<Recorded, StoreError> {
        let rows = self.ask_or_make(sql!("record"), &swap::record(run), &[], |answer| {
            answer.as_ref().is_err_and(Self::is_without_tables)
        })?;
        Ok(match rows.first() {
            Some(_) => Recorded::Written,
            None => Recorded::Already,
        })
    }

    /// `None`: another transaction has locked the row. Nothing happened.
    fn swap_once(
        &mut self,
        swap: &Swap,
        values: &[Cell],
        limit: Duration,
    ) -> Result<Option<Swapped>, Failed> {
        let begun = Instant::now();
        let rows = self.ask(limit, statement(swap), values, &DONE)?;
        let Some(row) = rows.first() else {
            let why_not = self.why_not(swap, limit.saturating_sub(begun.elapsed()));
            // Whatever the result of that query: the swap was not carried out.
            return why_not.map_err(Failed::without_effect);
        };
        let done = self.done_at(row, &swap.expiry).map_err(Failed::by)?;
        Ok(Some(Swapped::Done(done)))
    }

    /// The time of a swap.
    pub(super) fn done_at(&self, row: &[Cell], expiry: &Until) -> Result<StoreTime, StoreError> {
        let stamp = Cells::new(&DONE, row).needed(Cells::stamp);
        Ok(StoreTime {
            stamp: stamp.map_err(|bad| self.bad_column("tokens", &bad))?,
            // In another clock epoch it would have expired.
            epoch: expiry.epoch().clone(),
        })
    }

    /// Finds out why nothing has happened.
    fn why_not(&mut self, swap: &Swap, limit: Duration) -> Result<Option<Swapped>, Failed> {
        let columns = [
            NOW.as_slice(),
            &[number("version"), number("note"), flag("durable")],
        ]
        .concat();
        let values = [Cell::text(swap.group())];
        let row = self.first(limit, sql!("swap_state"), &values, &columns)?;
        let mut cells = Cells::new(&columns, &row);
        let now = cells.time();
        let now = now.map_err(|bad| Failed::by(self.bad_time(&bad)))?;
        let version = cells.number().ok().flatten();
        let note = cells.number().ok().flatten();
        let durable = cells.flag().unwrap_or(false);
        let is_judged_by = swap.note.as_ref().is_none_or(|judged| {
            note == Some(judged.version.number()) && (durable || !judged.durable_then)
        });
        if version != swap.from.map(Version::number) || !is_judged_by {
            return Ok(Some(Swapped::Conflict));
        }
        if now.is_past(&swap.expiry) {
            return Ok(Some(Swapped::Expired(now)));
        }
        // Without a row that was read: the row of another client was in the way, and is gone.
        Ok(swap.from.is_none().then_some(Swapped::Conflict))
    }

    /// The error that names the session with the lock of the group's row.
    fn held(&mut self, group: &GroupName, limit: Duration) -> StoreError {
        let statements = [sql!("swap_locker"), sql!("swap_lockers")];
        let pid = statements.into_iter().find_map(|statement| {
            let rows = self.ask(limit, statement, &[Cell::text(group)], &PIDS);
            let rows = rows.ok()?;
            let pids = Cells::new(&PIDS, rows.first()?).text();
            pids.ok()?.map(str::to_owned)
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

impl Tokens for PostgresStore {
    fn look(&mut self, group: &GroupName, key: Option<&str>) -> Result<Reading, StoreError> {
        self.look_at(group, key)
    }

    /// A swap is tried again for a moment while another transaction has the row locked.
    fn swap(&mut self, swap: &Swap) -> Result<Swapped, StoreError> {
        let channel = self.own.statements.channel(swap.group());
        let mut values = swap::values(swap);
        // The statement's time belongs to this clock epoch: in another the swap expires.
        values.extend(expiry_values(&swap.expiry));
        values.push(Cell::text(&channel));
        patiently(self.timeout, |left, may_wait| {
            let begun = Instant::now();
            let swapped = self.swap_once(swap, &values, left);
            match swapped.map_err(|failed| failed.error)? {
                None if !may_wait => {
                    Err(self.held(swap.group(), left.saturating_sub(begun.elapsed())))
                }
                swapped => Ok(swapped),
            }
        })
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
    use crate::store::conformance::acts::act_on;
    use crate::store::conformance::{claim, version};
    use crate::token::operator::Act;
    use crate::token::record::fixture::{SUCCESS, run_of};
    use crate::token::swap::{creation, grant, heartbeat, release};
    use crate::token::{ClockEpoch, GrantKind, Stamp, WallTime};

    /// A statement touches no more tables than its swap needs.
    #[test]
    fn each_kind_of_swap_has_its_own_statement() {
        let now = StoreTime {
            epoch: ClockEpoch("e".into()),
            stamp: Stamp {
                tick_ms: 1,
                wall: WallTime(1_790_000_000_000),
            },
        };
        let (me, other) = (claim("g", "a", "s"), claim("g", "b", "t"));
        let until = now.until(Duration::from_secs(1));
        let made = creation(&me, &now, version(1));
        assert_eq!(statement(&made), sql!("swap_create"));
        let row = Some(&made.to);
        let granted = grant(&me, GrantKind::Bind, row, &now, version(2));
        assert_eq!(statement(&granted), sql!("swap_grant"));
        let mut of_queue = granted.clone();
        of_queue.leaves = Some(me.session.clone());
        assert_eq!(statement(&of_queue), sql!("swap_takeover"));
        let held = Some(&granted.to);
        let taken = grant(&other, GrantKind::Takeover, held, &now, version(3));
        assert_eq!(statement(&taken), sql!("swap_takeover"));
        let beat = heartbeat(&granted.to, version(3), until.clone());
        assert_eq!(statement(&beat), sql!("swap_heartbeat"));
        let run = run_of(&granted.to).ended(SUCCESS);
        let ended = release(&granted.to, run, version(4), until);
        assert_eq!(statement(&ended), sql!("swap_release"));
        let (raised, _) = act_on(&made.to, &Act::Raise(None), &now, 5);
        assert_eq!(statement(&raised), sql!("swap_raise"));
        let (handed, _) = act_on(&made.to, &Act::Handoff(me.client), &now, 6);
        assert_eq!(statement(&handed), sql!("swap_act"));
    }
}
