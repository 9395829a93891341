//! Judgements of operators on a store that may have forgotten a grant: `settle` and `distrust`.

use anyhow::Result;
use clap::Args;

use super::shared::node::{actor, new_version};
use super::shared::noting::change_note;
use super::shared::options::RecordOptions;
use super::shared::stores::known_store;
use super::shared::terminal::print_json;
use super::shared::{Action, Context, terminal};
use crate::cli::Unusable;
use crate::exit::{self, Exit};
use crate::report::acts::all;
use crate::report::incarnation::{is_another, is_settled, judged};
use crate::report::log::Style;
use crate::report::records::{ActObject, Performed};
use crate::token::operator::Judgement;
use crate::token::{Incarnation, Served};

/// Confirm that the store has forgotten no grant, so that no run waits for it
///
/// Use it when you know that nothing was lost, for example after a planned switch-over. It
/// counts for the incarnation of the store that you name, and for no other. The message of the
/// run that waits shows the incarnation.
#[derive(Debug, Args)]
pub(super) struct Settle {
    /// The incarnation of the store, as the message of the run that waits shows it
    #[arg(value_name = "INCARNATION")]
    incarnation: String,
    #[command(flatten)]
    judging: Judging,
}

/// Grant nothing until every lease is over that the store may have forgotten
///
/// Use it after a restore or a rollback that the store does not show by itself: a snapshot or a
/// file that was put back in place.
#[derive(Debug, Args)]
pub(super) struct Distrust {
    #[command(flatten)]
    judging: Judging,
}

#[derive(Debug, Args)]
struct Judging {
    #[command(flatten)]
    record: RecordOptions,
    /// Ask no question; needed without a terminal
    #[arg(short, long)]
    yes: bool,
}

impl Action for Settle {
    fn check(&self) -> Result<(), Unusable> {
        match self.incarnation.is_empty() {
            true => Err(Unusable::usage(
                "settle: the incarnation is empty; use the one that the waiting run shows",
            )),
            false => Ok(()),
        }
    }

    fn style(&self) -> Style {
        self.judging.record.log.style()
    }

    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        let incarnation = Incarnation(self.incarnation.clone());
        self.judging.judge(&Judgement::Settle(incarnation), context)
    }
}

impl Action for Distrust {
    fn style(&self) -> Style {
        self.judging.record.log.style()
    }

    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        self.judging.judge(&Judgement::Distrust, context)
    }
}

impl Judging {
    /// Writes an operator's judgement into the note of the store's incarnation. Without `--yes` it is
    /// refused where no person can be asked.
    fn judge(&self, judgement: &Judgement, context: &mut Context<'_>) -> Result<Exit> {
        let line = match judgement {
            Judgement::Settle(incarnation) => format!("settle {incarnation}"),
            Judgement::Distrust => "distrust".to_owned(),
        };
        let what = format!("{} concerns every group of the store", judgement.word());
        terminal::check_can_ask(self.yes, &what, &line)?;
        let log = &mut *context.log;
        let mut store = known_store(&self.record.store, log)?;
        let asks = !self.yes && terminal::can_ask();
        if asks && !terminal::agrees(&all(judgement, store.name()), log)? {
            return Ok(Exit::Code(exit::NOT_NOW));
        }
        let as_json = self.record.json;
        let actor = actor(self.record.reason.as_ref());
        let name = store.name().to_owned();
        let mut exit = None;
        let mut seen = None;
        let record = change_note(store.as_mut(), |reading, incarnation| {
            let (memory, now) = (&reading.memory, &reading.now);
            let trusted = match judgement {
                Judgement::Settle(shown) if shown != incarnation => {
                    log.write(&is_another(shown, incarnation, &name), false);
                    exit = Some(Exit::Code(exit::NOT_NOW));
                    return Ok(None);
                }
                Judgement::Settle(_) => true,
                Judgement::Distrust => false,
            };
            if trusted && memory.observed(now).0 == Served::Everything {
                log.write(&is_settled(incarnation, &name), false);
                return Ok(None);
            }
            let note = memory.judged(incarnation, trusted, now, new_version()?);
            let record = judgement.record(&note, actor.clone()).map(Box::new);
            seen = Some(incarnation.clone());
            Ok(Some((note, record)))
        })?;
        if let Some(exit) = exit {
            return Ok(exit);
        }
        if let Some(incarnation) = seen.filter(|_| record.is_some()) {
            log.write(&judged(judgement, &incarnation, &name), false);
        }
        let performed = record.as_ref().map(|record| Performed {
            act: ActObject(record),
            old_job_until: None,
        });
        match as_json {
            true => print_json(performed.as_slice()),
            false => Ok(Exit::OK),
        }
    }
}
