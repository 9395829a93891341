//! Judgements of operators on a store that may have forgotten a grant: `settle` and `distrust`.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::failure::Failure;
use super::print_json;
use super::status::every_group;
use crate::exit::{self, Exit};
use crate::report::acts::{ActObject, Performed};
use crate::report::incarnation::{is_another, is_settled, judged};
use crate::report::log::Log;
use crate::store::{Store, unknown_incarnation};
use crate::sys::random;
use crate::token::operator::Judgement;
use crate::token::{Actor, Served, Swapped, Version};

/// How long after it was sent the note may still be written.
const LIMIT: Duration = Duration::from_secs(10);

/// How often the write is retried because another client wrote the note.
const TRIES: u32 = 10;

/// Writes an operator's judgement into the note of the store's incarnation.
///
/// # Errors
/// If the store is unusable, or does not report its incarnation.
pub fn judge(
    store: &mut dyn Store,
    judgement: &Judgement,
    actor: &Actor,
    as_json: bool,
    log: &mut Log,
) -> Result<Exit> {
    let every = every_group()?;
    for _ in 0..TRIES {
        let reading = store.read(&every);
        let reading = reading?;
        let (memory, now) = (&reading.memory, &reading.now);
        let Some(incarnation) = &memory.incarnation else {
            return Err(unknown_incarnation().into());
        };
        let trusted = match judgement {
            Judgement::Settle(shown) if shown != incarnation => {
                log.write(&is_another(shown, incarnation, store.name()), false);
                return Ok(Exit::Code(exit::NOT_NOW));
            }
            Judgement::Settle(_) => true,
            Judgement::Distrust => false,
        };
        if trusted && memory.observed(now).0 == Served::Everything {
            log.write(&is_settled(incarnation, store.name()), false);
            return match as_json {
                true => print_json::<Performed<'_>>(&[]),
                false => Ok(Exit::OK),
            };
        }
        let bits = random::bits64().context("cannot read random bytes")?;
        let note = memory.judged(incarnation, trusted, now, Version::from_random(bits));
        let mut swap = memory.swap(note, now, LIMIT);
        swap.act = judgement.record(&swap.to, actor.clone()).map(Box::new);
        let at = match store.note(&swap) {
            Ok(Swapped::Done(at)) => at,
            Ok(Swapped::Conflict | Swapped::Expired(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        log.write(&judged(judgement, incarnation, store.name()), false);
        let Some(mut record) = swap.act else {
            return Ok(Exit::OK);
        };
        record.at = at.stamp.wall;
        let performed = Performed {
            act: ActObject::of(&record),
            old_job_until: None,
        };
        return match as_json {
            true => print_json(&[performed]),
            false => Ok(Exit::OK),
        };
    }
    let text = format!(
        "the note of {} kept changing; gave up after {TRIES} conflicts, and nothing was changed; try again",
        store.name()
    );
    Err(Failure::new(exit::UNAVAILABLE, "conflicts", text).into())
}
