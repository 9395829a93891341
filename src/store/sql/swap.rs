//! The values of a swap's statement, and how a swap waits for a row that another transaction has locked.

use std::time::{Duration, Instant};

use super::cell::Cell;
use super::table::{ACTS, KEYS, RUNS};
use super::token::Columns;
use crate::store::StoreError;
use crate::token::{ActRecord, NoteSwap, RunRecord, StampOf, Swap, Version, WallTime};

/// How long a row may be locked before the swap is reported as held: far longer than another
/// client's swap takes.
const LOCKED_FOR: Duration = Duration::from_millis(500);

/// The first pause before a locked row is tried again; each is twice the last.
const FIRST_PAUSE: Duration = Duration::from_millis(2);

/// The values that every swap's statement has, $1 to $27, where it needs them: the group; the version that was read;
/// the new row and whether it is stamped ($3 to $9); whether the fence is new; the session that leaves the queue; the
/// act with the key that it forgets ($12 to $14); the run that ends ($15 to $21), whether its own session writes that,
/// and the key that it makes done; the note that a grant was judged by ($25 to $27). The expiry comes after them.
pub fn values(swap: &Swap) -> Vec<Cell> {
    let is_grant = swap.stamp == Some(StampOf::Granted);
    let act = swap.act.as_deref();
    let is_raise = act.is_some_and(|act| act.raised_fence());
    let ([group, columns @ ..], document) = Columns::of(&swap.to).cells();
    let mut values = vec![group, Cell::Number(swap.from.map(Version::number))];
    values.extend(columns);
    values.extend([Cell::Flag(swap.stamp.is_some()), document]);
    values.push(Cell::Flag(is_grant || is_raise));
    values.push(Cell::maybe(swap.leaves.as_ref()));
    values.extend(of_act(act));
    values.push(Cell::maybe(act.and_then(|act| act.once_key.as_ref())));
    // The session itself writes its run when it releases the token.
    let own = !is_grant && act.is_none();
    values.extend(of_run(swap.ended.as_deref(), own));
    let note = swap.note.as_ref();
    values.extend([
        Cell::Number(note.map(|note| note.version.number())),
        Cell::maybe(note.map(|note| &note.incarnation)),
        Cell::Flag(note.is_some_and(|note| note.durable_then)),
    ]);
    values
}

/// The values of the record of a run alone, in the places of [`values`]: $1 to $24.
pub fn record(run: &RunRecord) -> Vec<Cell> {
    let mut values = vec![Cell::text(&run.group)];
    values.resize(14, Cell::Number(None));
    values.extend(of_run(Some(run), true));
    values
}

/// The run behind its group, whether its own session writes it, and the key that it makes done then.
fn of_run(run: Option<&RunRecord>, own: bool) -> impl Iterator<Item = Cell> {
    let cells = run.map_or_else(|| RUNS.none(), |run| RUNS.cells(run));
    // The server sets the time.
    let mark = run
        .filter(|_| own)
        .and_then(|run| run.once_mark(WallTime(0)));
    let document = mark.as_ref().and_then(|mark| KEYS.cells(mark).pop());
    cells.into_iter().skip(1).chain([
        Cell::Flag(own),
        Cell::maybe(mark.as_ref().map(|mark| &mark.key)),
        document.unwrap_or(Cell::Text(None)),
    ])
}

/// The fence and the document of an operator's act.
fn of_act(act: Option<&ActRecord>) -> [Cell; 2] {
    let document = act.and_then(|act| ACTS.cells(act).pop());
    [
        Cell::Number(act.map(|act| act.fence.0)),
        document.unwrap_or(Cell::Text(None)),
    ]
}

/// The values of `note.sql`: the note, the expiry in the store's own values, and the act.
pub fn note(swap: &NoteSwap, expiry: impl IntoIterator<Item = Cell>) -> Vec<Cell> {
    let mut values = vec![
        Cell::Number(swap.from.map(Version::number)),
        Cell::number(swap.to.version.number()),
        Cell::text(&swap.to.to_json()),
    ];
    values.extend(expiry);
    values.push(Cell::maybe(swap.act.as_ref().map(|act| &act.group)));
    values.extend(of_act(swap.act.as_deref()));
    values
}

/// Tries again for a moment while another transaction is in the way: then `once` returns `None`. It gets the time
/// that is left, and true if it may return `None`.
pub fn patiently<T>(
    timeout: Duration,
    mut once: impl FnMut(Duration, bool) -> Result<Option<T>, StoreError>,
) -> Result<T, StoreError> {
    let begun = Instant::now();
    let patience = LOCKED_FOR.min(timeout / 2);
    let mut pause = FIRST_PAUSE;
    loop {
        let left = timeout.saturating_sub(begun.elapsed());
        if let Some(done) = once(left, begun.elapsed() < patience)? {
            return Ok(done);
        }
        std::thread::sleep(pause);
        pause = pause.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::acts::act_on;
    use crate::store::conformance::{claim, version};
    use crate::token::operator::Act;
    use crate::token::record::fixture::run_of;
    use crate::token::swap::{creation, grant, heartbeat, release};
    use crate::token::{ClockEpoch, GrantKind, Outcome, RunEnd, Stamp, StoreTime};

    /// Only a grant and a raise make a fence. Only a session that ends its own run writes that for good.
    #[test]
    fn a_statement_is_told_of_a_new_fence_and_of_a_run_that_its_own_session_ends() {
        let now = StoreTime {
            epoch: ClockEpoch("e".into()),
            stamp: Stamp {
                tick_ms: 1,
                wall: WallTime(1_790_000_000_000),
            },
        };
        let me = claim("g", "a", "s");
        let until = now.until(Duration::from_secs(1));
        let made = creation(&me, &now, version(1));
        let granted = grant(&me, GrantKind::Bind, Some(&made.to), &now, version(2));
        let run = run_of(&granted.to).ended(RunEnd {
            outcome: Outcome::Succeeded,
            exit_code: Some(0),
            signal: None,
            revoked: false,
            reason: None,
        });
        let beat = heartbeat(&granted.to, version(3), until.clone());
        let ended = release(&granted.to, run, version(4), until);
        let (raised, _) = act_on(&made.to, &Act::Raise(None), &now, 5);
        let (handed, _) = act_on(&made.to, &Act::Handoff(me.client), &now, 6);
        for (name, swap, is_new_fence, is_own) in [
            ("grant", granted, true, false),
            ("heartbeat", beat, false, true),
            ("release", ended, false, true),
            ("raise", raised, true, false),
            ("handoff", handed, false, false),
        ] {
            let values = values(&swap);
            assert_eq!(values.len(), 27, "{name}");
            assert_eq!(values[9], Cell::Flag(is_new_fence), "{name}");
            assert_eq!(values[21], Cell::Flag(is_own), "{name}");
        }
    }

    /// The pauses before the last try are 2, 4, 8, 16 and 32 milliseconds, or longer on a busy host.
    #[test]
    fn a_locked_row_is_tried_again_for_half_of_the_time_with_longer_and_longer_pauses() {
        let timeout = Duration::from_millis(100);
        let begun = Instant::now();
        let mut lefts = Vec::new();
        let tried = patiently(timeout, |left, may_wait| {
            lefts.push(left);
            Ok((!may_wait).then_some("locked"))
        });
        assert_eq!(tried.unwrap(), "locked");
        assert!(begun.elapsed() >= timeout / 2);
        assert!((2..=6).contains(&lefts.len()), "{lefts:?}");
        assert!(lefts.is_sorted_by(|one, next| one > next), "{lefts:?}");
        assert!(lefts.iter().all(|left| *left <= timeout), "{lefts:?}");
    }
}
