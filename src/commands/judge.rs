//! Judgements of operators on a store that may have forgotten a grant: `settle` and `distrust`.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::asking;
use super::failure::Failure;
use super::print_json;
use super::status::every_group;
use crate::cli::JudgementRequest;
use crate::exit::{self, Exit};
use crate::report::acts::{ActObject, Performed};
use crate::report::asking::all;
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

/// Refuses a judgement where no person can be asked.
///
/// # Errors
/// If `--yes` is missing.
pub fn check(request: &JudgementRequest) -> Result<()> {
    let line = match &request.judgement {
        Judgement::Settle(incarnation) => format!("settle {incarnation}"),
        Judgement::Distrust => "distrust".to_owned(),
    };
    let what = format!(
        "{} concerns every group of the store",
        request.judgement.word()
    );
    asking::check(request.yes, &what, &line)
}

/// Writes an operator's judgement into the note of the store's incarnation.
///
/// # Errors
/// If the store is unusable, or does not report its incarnation.
pub fn judge(
    store: &mut dyn Store,
    request: &JudgementRequest,
    actor: &Actor,
    log: &mut Log,
) -> Result<Exit> {
    let (judgement, as_json) = (&request.judgement, request.json);
    if !request.yes && asking::is_possible() && !asking::agrees(&all(judgement, store.name()), log)?
    {
        return Ok(Exit::Code(exit::NOT_NOW));
    }
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
