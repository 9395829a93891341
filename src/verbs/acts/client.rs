//! The pause of a client in every group, and its end.

use anyhow::Result;

use super::super::names::is_known;
use super::super::shared::node::new_version;
use super::super::shared::noting::change_note;
use crate::exit;
use crate::report::acts::{
    client_acted, client_stays_paused, client_unchanged, stranger, too_many_paused,
};
use crate::report::log::Log;
use crate::report::records::{ActObject, Performed};
use crate::store::Store;
use crate::token::operator::{ClientAct, ClientEffect};
use crate::token::{ActRecord, Actor, ClientId};

use super::super::shared::failure::Failure;
use super::one::{Wish, pause_of};

/// Carries the wish out on this client; the record of the act, unless nothing is to do.
pub(super) fn act_on(
    store: &mut dyn Store,
    client: &ClientId,
    wish: &Wish,
    actor: &Actor,
    log: &mut Log,
) -> Result<Option<Box<ActRecord>>> {
    let name = store.name().to_owned();
    if matches!(wish, Wish::Pause(_)) && !is_known(store, client)? {
        log.write(&stranger(client, &name), false);
    }
    let mut made = None;
    let record = change_note(store, |reading, _| {
        let now = &reading.now;
        let act = match wish {
            Wish::Pause(lasts) => ClientAct::Pause(pause_of(*lasts, actor, now)),
            Wish::Resume { others: false } => ClientAct::Resume(Some(actor.by.clone())),
            _ => ClientAct::Resume(None),
        };
        let memory = reading.memory.noted(now);
        let Some(present) = &memory.note else {
            return Ok(None);
        };
        let effect = act.perform(client, present, now, new_version()?, actor.clone());
        let change = match &effect {
            ClientEffect::Note(note, record) => Some(((**note).clone(), record.clone())),
            _ => None,
        };
        made = Some((act, effect));
        Ok(change)
    })?;
    let Some((act, effect)) = made else {
        return Ok(None);
    };
    match effect {
        ClientEffect::TooMany => {
            return Err(Failure::new(exit::CONFIG, "too_many", too_many_paused(&name)).into());
        }
        ClientEffect::Note(..) => log.write(&client_acted(&act, client, &name), false),
        ClientEffect::Nothing => log.write(&client_unchanged(&act, client, &name), false),
        ClientEffect::StaysPaused(pause) => {
            log.write(&client_stays_paused(&act, client, &pause, &name), false);
        }
    }
    Ok(record)
}

/// The act, as JSON shows it.
pub(super) fn shown(record: &ActRecord) -> Performed<'_> {
    Performed {
        act: ActObject(record),
        old_job_until: None,
    }
}
