//! Acts of operators on a token: `pause`, `resume`, `handoff`, `expect`, `revoke`, `release` and
//! `fence raise`.

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::failure::{Failure, STORE_FAILED};
use super::print_json;
use super::status::unknown_group;
use crate::cli::Wish;
use crate::exit::{self, Exit};
use crate::report::acts::{ActObject, Performed, done, held, nothing};
use crate::report::log::Log;
use crate::report::printable::quoted;
use crate::report::rfc3339;
use crate::run::ending::of_trouble;
use crate::store::Trouble;
use crate::store::{Reading, Store, StoreError, check_reader};
use crate::sys::random;
use crate::token::operator::{Effect, perform};
use crate::token::{
    Act, ActRecord, Actor, GroupName, Others, Pause, Row, StoreTime, Swapped, Version,
};

/// How long after it was sent an act may still happen.
const LIMIT: Duration = Duration::from_secs(10);

/// How often an act is retried because another client wrote the row: a holder does at every
/// heartbeat, so that more than a few conflicts are no coincidence.
const TRIES: u32 = 100;

/// The pause before the next try.
const PAUSE: Duration = Duration::from_millis(20);

/// Performs an act, unless the row has that state already.
///
/// # Errors
/// If the store is unusable, the group is unknown, or other clients write without end.
pub fn act(
    store: &mut dyn Store,
    group: &GroupName,
    wish: &Wish,
    actor: &Actor,
    as_json: bool,
    log: &mut Log,
) -> Result<Exit> {
    for _ in 0..TRIES {
        let Reading { row, now, .. } = store.read(group)?;
        let Some(row) = row else {
            return Err(unknown_group(store.name(), group).into());
        };
        check_reader(&row)?;
        match attempt(store, wish, actor, &row, &now)? {
            Attempt::Again => thread::sleep(PAUSE),
            Attempt::Nothing(act) => {
                log.write(&nothing(&act, group, store.name()), false);
                return match as_json {
                    true => print_json::<Performed<'_>>(&[]),
                    false => Ok(Exit::OK),
                };
            }
            Attempt::Held(act) => {
                log.write(&held(&act, &row, store.name()), false);
                return Ok(Exit::Code(exit::NOT_NOW));
            }
            Attempt::Done {
                act,
                record,
                at,
                old_job_for,
            } => {
                let message = done(&act, &row, store.name(), (&record, &at), old_job_for);
                log.write(&message, false);
                let until = at.plus(old_job_for).stamp.wall;
                let performed = Performed {
                    act: ActObject::of(&record),
                    old_job_until: (!old_job_for.is_zero()).then(|| rfc3339(until)),
                };
                return match as_json {
                    true => print_json(&[performed]),
                    false => Ok(Exit::OK),
                };
            }
        }
    }
    let text = format!(
        "the row of {} in {} kept changing; gave up after {TRIES} conflicts, and nothing was changed; try again",
        quoted(group.as_str()),
        store.name()
    );
    Err(Failure::new(exit::UNAVAILABLE, "conflicts", text).into())
}

enum Attempt {
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
    /// Another client wrote the row, or the store was slow.
    Again,
}

fn attempt(
    store: &mut dyn Store,
    wish: &Wish,
    actor: &Actor,
    row: &Row,
    now: &StoreTime,
) -> Result<Attempt> {
    let bits = random::bits64().context("cannot read random bytes")?;
    let version = Version::from_random(bits);
    let act = act_of(wish, actor, now);
    if let Act::Forget(key) = &act {
        let found = store.once(&row.group, key);
        if found?.is_none() {
            return Ok(Attempt::Nothing(act));
        }
    }
    let (mut swap, old_job_for) = match perform(&act, row, now, LIMIT, version) {
        Effect::Running => return Ok(Attempt::Held(act)),
        Effect::NotRunning => return Ok(Attempt::Nothing(act)),
        Effect::Swap { swap, old_job_for } => (swap, old_job_for),
    };
    if is_same(&swap.to, row, &act) {
        return Ok(Attempt::Nothing(act));
    }
    let mut record = Box::new(act.record(row, now, version, actor.clone()));
    swap.act = Some(record.clone());
    match store.swap(&swap) {
        Ok(Swapped::Done(at)) => {
            record.at = at.stamp.wall;
            Ok(Attempt::Done {
                act,
                record,
                at,
                old_job_for,
            })
        }
        Ok(Swapped::Conflict | Swapped::Expired(_)) => Ok(Attempt::Again),
        Err(error) => Err(unclear(error)),
    }
}

/// Whether the act would change only the version and the time of the request.
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

fn act_of(wish: &Wish, actor: &Actor, now: &StoreTime) -> Act {
    match wish {
        Wish::Pause(lasts) => Act::Pause(Pause {
            by: actor.by.clone(),
            reason: actor.reason.clone().unwrap_or_default(),
            until: lasts.map(|lasts| now.plus(lasts).stamp.wall),
            other: Others::new(),
        }),
        Wish::Resume => Act::Resume,
        Wish::Handoff(to) => Act::Handoff(to.clone()),
        Wish::Expect(client) => Act::Expect(client.clone()),
        Wish::Forget(key) => Act::Forget(key.as_str().to_owned()),
        Wish::Raise(to) => Act::Raise(*to),
        Wish::Revoke => Act::Revoke,
        Wish::Release { force } => Act::Release { force: *force },
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
