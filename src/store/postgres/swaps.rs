//! Swaps: one statement each, tried again while the row is locked, and explained when nothing
//! was carried out.

use std::time::{Duration, Instant};

use super::PostgresStore;
use super::cells::{Cells, Value, stamp};
use super::session::Failed;
use super::statements::{Beside, Named, Statements};
use super::{events, runs, tokens};
use crate::store::StoreError;
use crate::token::{GroupName, History, Recorded, RunRecord, StoreTime, Swap, Swapped, Version};

/// How long a row may be locked before the swap is said to be held: far longer than
/// another's swap takes.
const LOCKED_FOR: Duration = Duration::from_millis(500);

/// The first pause before a locked row is tried again; each is twice the last.
const FIRST_PAUSE: Duration = Duration::from_millis(2);

/// What a swap sends.
fn values_of(swap: &Swap) -> Named {
    let mut values = tokens::to_values(swap);
    match &swap.history {
        History::Nothing => {}
        History::Begin { run, vanished, .. } => {
            values.extend(runs::to_values(run));
            values.push(("vanished_session", Value::maybe(vanished.as_ref())));
        }
        History::Act(act) => values.extend(events::to_values(act, &swap.expiry.domain)),
        History::End(run) => values.extend(runs::to_values(run)),
    }
    values
}

/// How a server answered a swap.
enum Answer {
    Swapped(Swapped),
    /// Another has locked the row. Nothing happened.
    Locked,
}

impl PostgresStore {
    /// Tries for as long as another has the row locked, within reason.
    pub(super) fn carry_out(&mut self, swap: &Swap) -> Result<Swapped, StoreError> {
        let begun = Instant::now();
        let (beside, statement, named) = self.asked(swap);
        let (statement, values) = self.statements.bind(&statement, named);
        let patience = LOCKED_FOR.min(self.timeout / 2);
        let mut pause = FIRST_PAUSE;
        loop {
            let left = self.timeout.saturating_sub(begun.elapsed());
            let answer = match self.swap_once(swap, &statement, &values, left) {
                // Made by a program that knew no such table. Nothing has happened.
                Err(failed) if failed.no_schema && beside.needs_added_tables() => {
                    self.add_tables(left)?;
                    let left = self.timeout.saturating_sub(begun.elapsed());
                    self.swap_once(swap, &statement, &values, left)
                }
                answer => answer,
            };
            match answer.map_err(|failed| self.explained(failed, swap))? {
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

    /// The statement that carries a swap out, to be bound, and what is sent with it.
    pub(super) fn asked(&self, swap: &Swap) -> (Beside, String, Named) {
        let (beside, new_fence) = match &swap.history {
            History::Nothing => (Beside::Nothing, false),
            History::Begin { vanished: None, .. } => (Beside::Begin, true),
            History::Begin { .. } => (Beside::BeginAfterVanished, true),
            History::Act(act) if act.once_key.is_some() => (Beside::Forget, false),
            History::Act(act) => (Beside::Act, act.raised_fence()),
            History::End(run) if run.makes_key_done() => (Beside::EndOnce, false),
            History::End(_) => (Beside::End, false),
        };
        let waited = matches!(swap.history, History::Begin { waited: true, .. });
        let mut values = values_of(swap);
        let channel = self.statements.channel(swap.group().as_str());
        values.push(("channel", Value::text(&channel)));
        let statement = match swap.from {
            None => Statements::insert(&tokens::insertion(swap), beside, waited),
            Some(_) => {
                let changes = tokens::changes(swap);
                Statements::update(&changes, new_fence, beside, waited)
            }
        };
        (beside, statement, values)
    }

    /// Writes a run by itself. Where its tables are missing they are made: a failover may
    /// have lost them with everything else.
    pub(super) fn write_run(&mut self, run: &RunRecord) -> Result<Recorded, StoreError> {
        let begun = Instant::now();
        let mut named = runs::to_values(run);
        named.push(("token_group", Value::text(&run.group)));
        let statement = Statements::record(run.makes_key_done());
        let (statement, values) = self.statements.bind(&statement, named);
        let rows = match self.session.ask(self.timeout, &statement, &values) {
            Err(failed) if failed.no_schema => {
                self.init_within(self.timeout.saturating_sub(begun.elapsed()))?;
                let left = self.timeout.saturating_sub(begun.elapsed());
                self.session.ask(left, &statement, &values)
            }
            answer => answer,
        };
        let rows = rows.map_err(|failed| failed.error)?;
        let row = rows.first().ok_or_else(|| self.no_answer())?;
        if row.try_get("written").unwrap_or(false) {
            return Ok(Recorded::Written);
        }
        match row.try_get::<_, Option<&str>>("session") {
            Ok(Some(session)) if session == run.session.as_str() => Ok(Recorded::Already),
            // Another session's run, or one that came while the statement ran: what is known
            // does not say that this run is written.
            _ => Err(StoreError::misconfigured(format!(
                "{}: {}",
                self.session.place(),
                crate::store::place_taken(run)
            ))),
        }
    }

    fn swap_once(
        &mut self,
        swap: &Swap,
        statement: &str,
        values: &[Value],
        limit: Duration,
    ) -> Result<Answer, Failed> {
        let begun = Instant::now();
        let rows = self.session.ask(limit, statement, values)?;
        let Some(row) = rows.first() else {
            let why_not = self.why_not(swap, limit.saturating_sub(begun.elapsed()));
            // Whatever becomes of that question: the swap was not carried out.
            return why_not.map_err(Failed::without_effect);
        };
        let mut cells = Cells::new(row, 0);
        let wall = cells.wall().and_then(|wall| cells.there(wall));
        let wall = wall.map_err(|bad| Failed::by(self.bad_cell("tokens", &bad)))?;
        Ok(Answer::Swapped(Swapped::Done(StoreTime {
            stamp: stamp(wall),
            // In another it would have expired.
            domain: swap.expiry.domain.clone(),
        })))
    }

    /// Nothing has happened; this asks what was in the way.
    fn why_not(&mut self, swap: &Swap, limit: Duration) -> Result<Answer, Failed> {
        let statement = self.statements.token_state();
        let rows = (self.session).ask(limit, &statement, &[Value::text(swap.group())])?;
        let row = rows.first().ok_or_else(|| Failed::by(self.no_answer()))?;
        let now = self.now(row).map_err(Failed::by)?;
        let version: Option<i64> = row.try_get("version").ok().flatten();
        if version != swap.from.map(Version::number) {
            return Ok(Answer::Swapped(Swapped::Conflict));
        }
        let expiry = &swap.expiry;
        if now.domain != expiry.domain || now.stamp.tick_ms > expiry.stamp.tick_ms {
            return Ok(Answer::Swapped(Swapped::Expired(now)));
        }
        Ok(match swap.from {
            Some(_) => Answer::Locked,
            // Another's row was in the way, and is gone.
            None => Answer::Swapped(Swapped::Conflict),
        })
    }

    fn explained(&self, failed: Failed, swap: &Swap) -> StoreError {
        if failed.code.as_deref() == Some("23505") {
            return StoreError::misconfigured(format!(
                "group {:?} in {} has a run with the fence {} in its history already, so its token was \
                 deleted or put back; set its fence above those in the history",
                swap.group().as_str(),
                self.session.place(),
                swap.to.fence
            ));
        }
        failed.error
    }

    /// Who has locked the group's row.
    fn held(&mut self, group: &GroupName, limit: Duration) -> StoreError {
        let statements = [
            self.statements.token_locker(),
            self.statements.token_lockers(),
        ];
        let pid = statements.iter().find_map(|statement| {
            let rows = self.session.ask(limit, statement, &[Value::text(group)]);
            rows.ok()?.first()?.try_get::<_, Option<String>>(0).ok()?
        });
        let who = pid.map_or_else(String::new, |pid| format!(", pid {pid}"));
        StoreError::held(format!(
            "the token of {group} in {} is held by a transaction of the earlier run{who} on the \
             server; it ends with that transaction",
            self.session.place()
        ))
    }
}
