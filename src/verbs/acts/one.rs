//! An act of an operator on one token: `pause`, `resume`, `move`, `expect`, `revoke`,
//! `release`, `fence raise` and `once forget`.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::super::shared::failure::{Failure, STORE_FAILED, kept_changing};
use super::super::shared::groups::unknown_group;
use super::super::shared::node::new_version;
use crate::exit::{self, Exit};
use crate::report::acts::{done, has_it, held, nothing, stays_paused};
use crate::report::log::Log;
use crate::report::printable::quoted;
use crate::report::records::{ActObject, Performed};
use crate::report::rfc3339;
use crate::run::ending::of_trouble;
use crate::store::{Reading, Store, StoreError, Trouble, check_reader};
use crate::token::operator::{Effect, perform};
use crate::token::{
    Act, ActRecord, Actor, ClientId, GroupName, Others, Pause, Row, SessionId, State, StoreTime,
    Swapped,
};

/// How long after it was sent an act may still happen.
const LIMIT: Duration = Duration::from_secs(10);

/// How often an act is retried because another client wrote the row: a holder does at every
/// heartbeat, so that more than a few conflicts are no coincidence.
const TRIES: u32 = 100;

/// The pause before the next try.
const PAUSE: Duration = Duration::from_millis(20);

/// What an operator wishes: an act, or what becomes one by the row and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// No new grants, for this long, or until they are allowed again.
    Pause(Option<Duration>),
    /// Grants again.
    Resume {
        /// Although another operator has paused them.
        others: bool,
    },
    /// The token goes to this client next, and another client that runs the job now ends it.
    Move(ClientId),
    Act(Act),
}

impl Wish {
    /// The client that is to get the token next.
    pub(crate) const fn target(&self) -> Option<&ClientId> {
        match self {
            Self::Act(Act::Handoff(to)) | Self::Move(to) => Some(to),
            _ => None,
        }
    }
}

/// What came of a wish for one group.
#[derive(Debug)]
pub(crate) struct Acted {
    /// What was done.
    pub(crate) performed: Vec<Done>,
    pub(crate) exit: Exit,
    /// The effect that is still to come, if it can be waited for.
    pub(crate) effect: Option<ToCome>,
}

/// An act that was performed.
#[derive(Debug)]
pub(crate) struct Done {
    record: Box<ActRecord>,
    /// Until when the job that lost its token may still run, at most.
    old_job_until: Option<String>,
}

impl Done {
    /// The act, as JSON shows it.
    pub(crate) fn shown(&self) -> Performed<'_> {
        Performed {
            act: ActObject(&self.record),
            old_job_until: self.old_job_until.clone(),
        }
    }
}

/// The effect of an act that happens later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToCome {
    /// This session ends its job and frees the token.
    Ended(ClientId, SessionId),
    /// This client may have the token.
    Taken(ClientId),
}

/// Carries a wish out, unless the row has that state already, or the token no longer belongs to the
/// client that it is to be taken `of`.
pub(crate) fn act_on(
    store: &mut dyn Store,
    group: &GroupName,
    wish: &Wish,
    of: Option<&ClientId>,
    actor: &Actor,
    log: &mut Log,
) -> Result<Acted> {
    if let Wish::Move(to) = wish {
        return moved(store, group, to, of, actor, log);
    }
    let (row, made) = make(store, group, wish, actor, &|row| is_of(of, row))?;
    let effect = match (wish, row.session(), row.client_bound()) {
        (Wish::Act(Act::Revoke | Act::Away), Some(session), Some(client)) => {
            Some(ToCome::Ended(client.clone(), session.clone()))
        }
        _ => None,
    };
    let exit = match &made {
        Made::Held(_) => Exit::Code(exit::NOT_NOW),
        _ => Exit::OK,
    };
    Ok(Acted {
        performed: report(store.name(), &row, made, log).into_iter().collect(),
        exit,
        effect,
    })
}

/// True if the token belongs to that client, if one is named.
fn is_of(of: Option<&ClientId>, row: &Row) -> bool {
    of.is_none_or(|client| row.client_bound() == Some(client))
}

/// Hands the token off, then revokes it from another client that runs the job. In this order: the
/// token is reserved before it is free.
fn moved(
    store: &mut dyn Store,
    group: &GroupName,
    to: &ClientId,
    of: Option<&ClientId>,
    actor: &Actor,
    log: &mut Log,
) -> Result<Acted> {
    let runs_on = |row: &Row| match &row.state {
        State::Running { client, .. } => Some(client.clone()),
        State::Free | State::Idle { .. } => None,
    };
    let handoff = Wish::Act(Act::Handoff(to.clone()));
    let elsewhere = |row: &Row| is_of(of, row) && runs_on(row).is_none_or(|client| client != *to);
    let (row, made) = make(store, group, &handoff, actor, &elsewhere)?;
    if matches!(made, Made::Unneeded) {
        log.write(&has_it(to, group, store.name()), false);
        return Ok(Acted {
            performed: Vec::new(),
            exit: Exit::OK,
            effect: None,
        });
    }
    let mut performed: Vec<Done> = report(store.name(), &row, made, log).into_iter().collect();
    let by_another = |row: &Row| runs_on(row).is_some_and(|client| client != *to);
    let (row, made) = make(store, group, &Wish::Act(Act::Revoke), actor, &by_another)?;
    performed.extend(report(store.name(), &row, made, log));
    Ok(Acted {
        performed,
        exit: Exit::OK,
        effect: Some(ToCome::Taken(to.clone())),
    })
}

/// Reports what was made of a row, and gives the act if it was performed.
fn report(store: &str, row: &Row, made: Made, log: &mut Log) -> Option<Done> {
    match made {
        Made::Unneeded => None,
        Made::Nothing(act) => {
            log.write(&nothing(&act, row, store), false);
            None
        }
        Made::Held(act) => {
            log.write(&held(&act, row, store), false);
            None
        }
        Made::StaysPaused(act, pause) => {
            log.write(&stays_paused(&act, &pause, row, store), false);
            None
        }
        Made::Done {
            act,
            record,
            at,
            old_job_for,
        } => {
            let message = done(&act, row, store, &record, &at, old_job_for);
            log.write(&message, false);
            let until = at.plus(old_job_for).stamp.wall;
            Some(Done {
                record,
                old_job_until: (!old_job_for.is_zero()).then(|| rfc3339(until)),
            })
        }
    }
}

/// What was made of one row.
enum Made {
    Done {
        act: Act,
        record: Box<ActRecord>,
        at: StoreTime,
        old_job_for: Duration,
    },
    /// The row has that state already.
    Nothing(Act),
    /// A job runs.
    Held(Act),
    /// This pause stays as it is.
    StaysPaused(Act, Pause),
    /// The act is not wanted for a row like this.
    Unneeded,
}

/// Performs an act on the row as it is now, if that is `wanted`. Returns the row before it.
fn make(
    store: &mut dyn Store,
    group: &GroupName,
    wish: &Wish,
    actor: &Actor,
    wanted: &dyn Fn(&Row) -> bool,
) -> Result<(Row, Made)> {
    for _ in 0..TRIES {
        let Reading { row, now, .. } = store.read(group)?;
        let Some(row) = row else {
            return Err(unknown_group(store.name(), group).into());
        };
        check_reader(&row)?;
        if !wanted(&row) {
            return Ok((row, Made::Unneeded));
        }
        match attempt(store, wish, actor, &row, &now)? {
            Some(made) => return Ok((row, made)),
            None => thread::sleep(PAUSE),
        }
    }
    let name = quoted(group.as_str());
    let row = format_args!("the row of {name} in {}", store.name());
    Err(kept_changing(row, TRIES).into())
}

/// One try. `None`: another client wrote the row, or the store was slow.
fn attempt(
    store: &mut dyn Store,
    wish: &Wish,
    actor: &Actor,
    row: &Row,
    now: &StoreTime,
) -> Result<Option<Made>> {
    let version = new_version()?;
    let act = act_of(wish, actor, now);
    if let Act::Forget(key) = &act {
        let found = store.once(&row.group, key);
        if found?.is_none() {
            return Ok(Some(Made::Nothing(act)));
        }
    }
    let (mut swap, old_job_for) = match perform(&act, row, now, LIMIT, version) {
        Effect::Running => return Ok(Some(Made::Held(act))),
        Effect::NotRunning => return Ok(Some(Made::Nothing(act))),
        Effect::StaysPaused(pause) => return Ok(Some(Made::StaysPaused(act, pause))),
        Effect::Swap { swap, old_job_for } => (swap, old_job_for),
    };
    if is_same(&swap.to, row, &act) {
        return Ok(Some(Made::Nothing(act)));
    }
    let mut record = Box::new(act.record(row, now, version, actor.clone()));
    swap.act = Some(record.clone());
    match store.swap(&swap) {
        Ok(Swapped::Done(at)) => {
            record.at = at.stamp.wall;
            Ok(Some(Made::Done {
                act,
                record,
                at,
                old_job_for,
            }))
        }
        Ok(Swapped::Conflict | Swapped::Expired(_)) => Ok(None),
        Err(error) => Err(unclear(error)),
    }
}

/// The act would change only the version and the time of the request.
fn is_same(to: &Row, row: &Row, act: &Act) -> bool {
    let mut to = to.clone();
    to.version = row.version;
    if let (Act::Handoff(_), Some(new), Some(old)) =
        (act, &mut to.document.handoff, &row.document.handoff)
    {
        new.at = old.at;
    }
    to == *row && !matches!(act, Act::Forget(_))
}

/// This operator's pause from `now` on; without a length until it is resumed.
pub(super) fn pause_of(lasts: Option<Duration>, actor: &Actor, now: &StoreTime) -> Pause {
    Pause {
        by: actor.by.clone(),
        reason: actor.reason.clone().unwrap_or_default(),
        until: lasts.map(|lasts| now.plus(lasts).stamp.wall),
        other: Others::new(),
    }
}

fn act_of(wish: &Wish, actor: &Actor, now: &StoreTime) -> Act {
    match wish {
        Wish::Pause(lasts) => Act::Pause(pause_of(*lasts, actor, now)),
        Wish::Resume { others } => Act::Resume((!others).then(|| actor.by.clone())),
        Wish::Move(to) => Act::Handoff(to.clone()),
        Wish::Act(act) => act.clone(),
    }
}

/// The error of an act whose answer did not come: its result is unknown.
fn unclear(error: StoreError) -> anyhow::Error {
    if matches!(error.trouble, Trouble::Unavailable | Trouble::Gone) {
        let text = format!(
            "{error}; it is not known whether that was done: tokenrun history shows it if it was"
        );
        return Failure::new(of_trouble(error.trouble), STORE_FAILED, text).into();
    }
    error.into()
}
