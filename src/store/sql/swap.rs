//! The values of a swap's statement, and how a swap waits for a row that another transaction has locked.

use std::time::{Duration, Instant};

use super::cell::Cell;
use super::table::{ACTS, KEYS, RUNS};
use super::token::Columns;
use crate::store::StoreError;
use crate::token::{ActRecord, NoteSwap, RunRecord, StampOf, Swap, Version, WallTime};

/// How long a row may be locked before the swap is reported as held: far longer than another
/// client's swap takes.
pub(in crate::store) const LOCKED_FOR: Duration = Duration::from_millis(500);

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
    use crate::token::record::fixture::{SUCCESS, act, run_of};
    use crate::token::rule::tests::fixture::{but, expecting, idle, running, session};
    use crate::token::{Incarnation, IncarnationNote, Row, StoreTime};

    fn now() -> StoreTime {
        idle("a").stamped
    }

    fn note_of(durable: bool) -> IncarnationNote {
        let incarnation = Incarnation("i".into());
        IncarnationNote::of_new(incarnation, durable, &now(), Version::from_stored(8))
    }

    fn swap_to(to: Row) -> Swap {
        Swap {
            from: None,
            to,
            stamp: None,
            expiry: now().until(Duration::ZERO),
            note: None,
            ended: None,
            leaves: None,
            act: None,
        }
    }

    /// The run of a row, which has succeeded with a key.
    fn succeeded(row: &Row) -> RunRecord {
        let run = RunRecord {
            once_key: Some("key".into()),
            ..run_of(row)
        };
        run.ended(SUCCESS)
    }

    /// The cells of a row, $3 to $7.
    fn cells_of(row: &Row, state: &str, client: &str, expected: Option<&str>) -> Vec<Cell> {
        vec![
            Cell::number(row.version.number()),
            Cell::number(row.fence.0),
            Cell::text(state),
            Cell::text(client),
            Cell::maybe(expected),
        ]
    }

    /// The document of a row, $9.
    fn document_of(row: &Row) -> Cell {
        Cell::text(&row.document.to_json(row.run()))
    }

    const NULL: Cell = Cell::Text(None);
    const NO_NUMBER: Cell = Cell::Number(None);

    #[test]
    fn a_grant_sends_the_lost_run_and_the_note_that_it_was_judged_by() {
        let row = expecting(running("a"), "b");
        let lost = succeeded(&running("c"));
        let swap = Swap {
            from: Some(Version::from_stored(2)),
            stamp: Some(StampOf::Granted),
            note: Some(Box::new(note_of(true))),
            ended: Some(Box::new(lost.clone())),
            leaves: Some(session("w")),
            ..swap_to(row.clone())
        };
        let expected = [
            vec![Cell::text("g"), Cell::number(2)],
            cells_of(&row, "running", "a", Some("b")),
            vec![Cell::Flag(true), document_of(&row)],
            vec![Cell::Flag(true), Cell::text("w")],
            vec![NO_NUMBER, NULL, NULL],
            RUNS.cells(&lost).split_off(1),
            vec![Cell::Flag(false), NULL, NULL],
            vec![Cell::number(8), Cell::text("i"), Cell::Flag(true)],
        ];
        assert_eq!(values(&swap), expected.concat());
    }

    #[test]
    fn a_release_makes_the_key_of_its_run_done() {
        let row = idle("a");
        let run = succeeded(&running("a"));
        let mark = run.once_mark(WallTime(0)).unwrap();
        let swap = Swap {
            stamp: Some(StampOf::Released),
            ended: Some(Box::new(run.clone())),
            ..swap_to(row.clone())
        };
        let of_run = [
            RUNS.cells(&run).split_off(1),
            vec![Cell::Flag(true), Cell::text("key")],
            vec![KEYS.cells(&mark)[4].clone()],
        ]
        .concat();
        let expected = [
            vec![Cell::text("g"), NO_NUMBER],
            cells_of(&row, "idle", "a", None),
            vec![Cell::Flag(true), document_of(&row)],
            vec![Cell::Flag(false), NULL],
            vec![NO_NUMBER, NULL, NULL],
            of_run.clone(),
            vec![NO_NUMBER, NULL, Cell::Flag(false)],
        ];
        assert_eq!(values(&swap), expected.concat());
        let alone = [vec![Cell::text("g")], vec![NO_NUMBER; 13], of_run];
        assert_eq!(record(&run), alone.concat());
    }

    #[test]
    fn an_act_is_sent_with_the_key_that_it_forgets_and_whether_it_raises_the_fence() {
        for (word, raises) in [("fence_raise", true), ("free", false)] {
            let act = act(word);
            let document = ACTS.cells(&act).pop().unwrap();
            let swap = Swap {
                act: Some(Box::new(act)),
                ended: (!raises).then(|| Box::new(succeeded(&running("a")))),
                ..swap_to(idle("a"))
            };
            let found = values(&swap);
            assert_eq!(found.len(), 27);
            assert_eq!(
                (&found[7], &found[9]),
                (&Cell::Flag(false), &Cell::Flag(raises))
            );
            let forgets = [Cell::number(7), document, Cell::text("forgotten")];
            assert_eq!(found[11..14], forgets);
            // The act ends the run, not its session: its key is not done.
            assert_eq!(found[21..24], [Cell::Flag(false), NULL, NULL]);
        }
    }

    #[test]
    fn a_note_is_sent_with_its_expiry_and_its_act() {
        let to = note_of(false);
        let json = Cell::text(&to.to_json());
        let swap = NoteSwap {
            from: Some(Version::from_stored(2)),
            to,
            expiry: now().until(Duration::ZERO),
            act: Some(Box::new(act("free"))),
        };
        let sent = note(&swap, [Cell::text("e1"), Cell::text("e2")]);
        let document = ACTS.cells(&act("free")).pop().unwrap();
        let expected = [
            [Cell::number(2), Cell::number(8), json],
            [Cell::text("e1"), Cell::text("e2"), Cell::text("g")],
        ];
        assert_eq!(sent[..6], expected.concat());
        assert_eq!(sent[6..], [Cell::number(7), document]);
        let without = note(&but(swap, |it| it.act = None), []);
        assert_eq!(without[3..], [NULL, NO_NUMBER, NULL]);
    }

    #[test]
    fn a_locked_row_is_tried_again_ever_more_rarely_for_half_the_time() {
        let timeout = Duration::from_millis(100);
        let (begun, mut tries) = (Instant::now(), 0);
        let done = patiently(timeout, |left, may_wait| {
            tries += 1;
            assert!(left <= timeout);
            Ok((!may_wait).then_some("locked"))
        });
        assert_eq!(done, Ok("locked"));
        assert!(begun.elapsed() >= timeout / 2);
        // The sixth comes 62 ms after the first, or later.
        assert!(tries <= 6, "{tries} tries");
    }
}
