//! A change of the note of the store's incarnation, for an act that concerns every group.

use std::time::Duration;

use anyhow::Result;

use super::failure::kept_changing;
use super::groups::every_group;
use crate::store::{Reading, Store, unknown_incarnation};
use crate::token::{ActRecord, Incarnation, IncarnationNote, Swapped};

/// How long after it was sent the note may still be written.
const LIMIT: Duration = Duration::from_secs(10);

/// How often the write is retried because another client wrote the note.
const TRIES: u32 = 10;

/// The new note, and the record of the act.
pub(crate) type Change = (IncarnationNote, Option<Box<ActRecord>>);

/// Writes the note that `change` makes of what the store says, and records the act, with the store's time.
/// `None`: it is to stay as it is.
///
/// # Errors
/// The store fails or does not report its incarnation, or other clients write the note again and again.
pub(crate) fn change_note(
    store: &mut dyn Store,
    mut change: impl FnMut(&Reading, &Incarnation) -> Result<Option<Change>>,
) -> Result<Option<Box<ActRecord>>> {
    let every = every_group()?;
    for _ in 0..TRIES {
        let reading = store.read(&every)?;
        let Some(incarnation) = &reading.memory.incarnation else {
            return Err(unknown_incarnation().into());
        };
        let Some((note, act)) = change(&reading, incarnation)? else {
            return Ok(None);
        };
        let mut swap = reading.memory.swap(note, &reading.now, LIMIT);
        swap.act = act;
        if let Swapped::Done(at) = store.note(&swap)? {
            return Ok(swap.act.map(|mut record| {
                record.at = at.stamp.wall;
                record
            }));
        }
    }
    let note = format_args!("the note of {}", store.name());
    Err(kept_changing(note, TRIES).into())
}
