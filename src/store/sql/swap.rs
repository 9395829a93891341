//! The values of a swap's statement, and how a swap waits for a row that another transaction has locked.

use std::time::{Duration, Instant};

use super::cell::Cell;
use super::table::{ACTS, KEYS, RUNS};
use crate::store::StoreError;
use crate::token::{ActRecord, NoteSwap, RunRecord, Version, WallTime};

/// How long a row may be locked before the swap is reported as held: far longer than another
/// client's swap takes.
const LOCKED_FOR: Duration = Duration::from_millis(500);

/// The first pause before a locked row is tried again; each is twice the last.
const FIRST_PAUSE: Duration = Duration::from_millis(2);

/// A run's columns behind its group, and its document.
pub fn run(run: Option<&RunRecord>) -> impl Iterator<Item = Cell> {
    let cells = run.map_or_else(|| RUNS.none(), |run| RUNS.cells(run));
    cells.into_iter().skip(1)
}

/// The key that a run makes done, with its document.
pub fn key(run: Option<&RunRecord>) -> [Cell; 2] {
    // The server sets the time.
    let mark = run.and_then(|run| run.once_mark(WallTime(0)));
    let document = mark.as_ref().and_then(|mark| KEYS.cells(mark).pop());
    [
        Cell::maybe(mark.as_ref().map(|mark| &mark.key)),
        document.unwrap_or(Cell::Text(None)),
    ]
}

/// The fence and the document of an operator's act.
pub fn act(act: Option<&ActRecord>) -> [Cell; 2] {
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
    values.extend(act(swap.act.as_deref()));
    values
}

/// Tries again for a moment while another transaction is in the way, which `once` tells by `None`. It gets the
/// time that is left, and whether it may say so again.
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
