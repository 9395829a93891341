//! The acts of operators on a token. They never stamp a heartbeat, and they keep `session_version`,
//! so that a holder can tell its own swaps from theirs.

use std::time::Duration;

use super::document::{Handoff, Others, Pause};
use super::incarnation::IncarnationNote;
use super::mutant::{Mutant, is_mutant};
use super::names::{ClientId, Fence, GroupName, Incarnation, Version};
use super::record::{ActRecord, Actor, RAISE, RunRecord};
use super::row::{Row, State};
use super::swap::{Swap, raised_fence};
use super::time::{StoreTime, WallTime};

/// The group name under which acts on the whole store are recorded.
pub const EVERY_GROUP: &str = "*";

/// An operator's judgement of a store that may have forgotten a grant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Judgement {
    /// This incarnation has lost nothing.
    Settle(Incarnation),
    /// It may have lost a grant, although it does not show that.
    Distrust,
}

impl Judgement {
    /// The act's word in history.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Settle(_) => "settle",
            Self::Distrust => "distrust",
        }
    }

    /// The act's record in history. `None` if [`EVERY_GROUP`] is not a valid group name, which does
    /// not happen.
    pub fn record(&self, note: &IncarnationNote, actor: Actor) -> Option<ActRecord> {
        act_on_every_group(self.word(), note, actor)
    }
}

/// The record of an act that changes the note. `None` if [`EVERY_GROUP`] is not a valid group name, which
/// does not happen.
fn act_on_every_group(act: &str, note: &IncarnationNote, actor: Actor) -> Option<ActRecord> {
    Some(ActRecord {
        group: GroupName::new(EVERY_GROUP).ok()?,
        at: note.first_seen.wall,
        version: note.version,
        act: act.to_owned(),
        client: None,
        until: None,
        once_key: None,
        incarnation: Some(note.incarnation.clone()),
        fence: Fence::default(),
        actor,
    })
}

/// The most clients that can be paused at a time: each look at a token reads all of them.
pub const MOST_PAUSED_CLIENTS: usize = 100;

/// A pause of a client in every group, or its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ClientAct {
    /// Grant no token to the client; a running job goes on.
    Pause(Pause),
    /// Grant it tokens again; with an operator's name, only if that operator has paused it.
    Resume(Option<String>),
}

/// The result of an act on a client, before a store has carried it out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ClientEffect {
    /// Write this note, and this record.
    Note(Box<IncarnationNote>, Option<Box<ActRecord>>),
    /// The client is paused like that already, or is not paused.
    Nothing,
    /// This pause stays, as [`Effect::StaysPaused`].
    StaysPaused(Pause),
    /// [`MOST_PAUSED_CLIENTS`] are paused.
    TooMany,
}

impl ClientAct {
    /// The act's word in history.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Pause(_) => "pause_client",
            Self::Resume(_) => "resume_client",
        }
    }

    /// What the act does to the note of the store's incarnation. `present`: the note that a run would
    /// write now, or the last one.
    pub fn perform(
        &self,
        client: &ClientId,
        present: &IncarnationNote,
        now: &StoreTime,
        version: Version,
        actor: Actor,
    ) -> ClientEffect {
        let mut paused = present.paused_clients.clone();
        paused.retain(|_, pause| pause.is_in_force(now));
        let pause = paused.get(client);
        let next = match self {
            Self::Pause(new) => begun(pause, new).map(Some),
            Self::Resume(only_by) => ended(pause, only_by.as_deref()).map(|()| None),
        };
        match next {
            Err(stays) => return ClientEffect::StaysPaused(stays),
            Ok(next) if next.as_ref() == pause => return ClientEffect::Nothing,
            Ok(None) => drop(paused.remove(client)),
            Ok(Some(_)) if pause.is_none() && paused.len() >= MOST_PAUSED_CLIENTS => {
                return ClientEffect::TooMany;
            }
            Ok(Some(next)) => drop(paused.insert(client.clone(), next)),
        }
        let note = IncarnationNote {
            version,
            paused_clients: paused,
            ..present.clone()
        };
        let record = act_on_every_group(self.word(), &note, actor).map(|record| ActRecord {
            client: Some(client.clone()),
            until: match self {
                Self::Pause(pause) => pause.until,
                Self::Resume(_) => None,
            },
            incarnation: None,
            ..record
        });
        ClientEffect::Note(Box::new(note), record.map(Box::new))
    }
}

/// The pause after an operator's `new` one, where `present` is in force.
///
/// # Errors
/// The present pause stays: it lasts as long or longer.
fn begun(present: Option<&Pause>, new: &Pause) -> Result<Pause, Pause> {
    match present {
        Some(pause) if pause != new && lasts(pause) >= lasts(new) => Err(pause.clone()),
        _ => Ok(new.clone()),
    }
}

/// Ends a pause; with an operator's name, only that operator's.
///
/// # Errors
/// The present pause stays: it is another operator's.
fn ended(present: Option<&Pause>, only_by: Option<&str>) -> Result<(), Pause> {
    match (present, only_by) {
        (Some(pause), Some(operator)) if pause.by != operator => Err(pause.clone()),
        _ => Ok(()),
    }
}

/// One act of an operator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Act {
    /// Stop new grants; a running job goes on.
    Pause(Pause),
    /// Allow new grants again; with an operator's name, only if that operator has paused them.
    Resume(Option<String>),
    /// The token goes to this client next.
    Handoff(ClientId),
    /// The token leaves its client: a running job is revoked, and that client gives way to any other.
    Away,
    /// Change the configured primary.
    Expect(Option<ClientId>),
    /// Ask the holder to end its job and to free the token, without overlap.
    Revoke,
    /// Forget that this key of `--once` is done.
    Forget(String),
    /// Raise the fence, at least to this one: every earlier grant becomes stale.
    Raise(Option<Fence>),
    /// Free the token now, and end the time of its `--at-least`. From a running session only with force.
    Release {
        /// Free it although a job may be running.
        force: bool,
    },
}

impl Act {
    /// The act's word in history.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Pause(_) => "pause",
            Self::Resume(_) => "resume",
            Self::Handoff(_) => "handoff",
            Self::Away => "move_away",
            Self::Expect(_) => "expect",
            Self::Revoke => "revoke",
            Self::Forget(_) => "once_forget",
            Self::Raise(_) => RAISE,
            Self::Release { force: false } => "release",
            Self::Release { force: true } => "release_by_force",
        }
    }

    /// The record in history of this act on a row that was read at `now`.
    pub fn record(&self, row: &Row, now: &StoreTime, version: Version, actor: Actor) -> ActRecord {
        let fence = match self {
            Self::Raise(to) => raised_fence(row, now, *to),
            _ => row.fence,
        };
        let client = match self {
            Self::Handoff(client) => Some(client.clone()),
            Self::Expect(client) => client.clone(),
            Self::Away | Self::Revoke | Self::Release { .. } => row.client_bound().cloned(),
            Self::Pause(_) | Self::Resume(_) | Self::Forget(_) | Self::Raise(_) => None,
        };
        let once_key = match self {
            Self::Forget(key) => Some(key.clone()),
            _ => None,
        };
        let until = match self {
            Self::Pause(pause) => pause.until,
            _ => None,
        };
        ActRecord {
            group: row.group.clone(),
            at: now.stamp.wall,
            version,
            act: self.word().to_owned(),
            client,
            until,
            once_key,
            incarnation: None,
            fence,
            actor,
        }
    }
}

/// The result of an act, before a store has carried it out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// This swap. After it the old job may still run for this long.
    Swap {
        /// What to write.
        swap: Box<Swap>,
        /// How long the old holder may go on trusting its lease, at most.
        old_job_for: Duration,
    },
    /// A running token is not freed without force.
    Running,
    /// No session runs that could be revoked, or no client has the token that could leave it.
    NotRunning,
    /// This pause stays: it lasts as long as the new one or longer, or another operator made it.
    StaysPaused(Pause),
}

/// What an act does to a row that was read at `now`; the swap expires after `limit`.
pub fn perform(act: &Act, row: &Row, now: &StoreTime, limit: Duration, version: Version) -> Effect {
    let mut to = row.clone();
    to.version = version;
    let running = matches!(row.state, State::Running { .. });
    let mut old_job_for = Duration::ZERO;
    let mut vanished = None;
    match act {
        Act::Pause(new) => match begun(row.pause_at(now), new) {
            Ok(pause) => to.document.paused = Some(pause),
            Err(stays) => return Effect::StaysPaused(stays),
        },
        Act::Resume(only_by) => match ended(row.pause_at(now), only_by.as_deref()) {
            Ok(()) => to.document.paused = None,
            Err(stays) => return Effect::StaysPaused(stays),
        },
        Act::Handoff(client) => {
            to.document.handoff = Some(Handoff {
                to: client.clone(),
                at: now.stamp.wall,
                for_failback: false,
                other: Others::new(),
            });
        }
        Act::Away if row.client_bound().is_none() => return Effect::NotRunning,
        Act::Away => {
            to.document.gives_way = row.client_bound().cloned();
            to.document.handoff = None;
            match row.state {
                State::Running { .. } => to.document.revoke_requested = true,
                State::Idle { .. } | State::Free => {
                    to.keep_stamp();
                    to.state = State::Free;
                }
            }
        }
        Act::Expect(client) => to.expected_client.clone_from(client),
        Act::Revoke if !running => return Effect::NotRunning,
        Act::Revoke => to.document.revoke_requested = true,
        Act::Forget(_) => {}
        // The session's heartbeats and its record carry the fence of its grant.
        Act::Raise(_) if running => return Effect::Running,
        Act::Raise(to_fence) => to.fence = raised_fence(row, now, *to_fence),
        Act::Release { force: false } if running => return Effect::Running,
        Act::Release { .. } => {
            old_job_for = still_trusted(row, now);
            vanished = RunRecord::vanished(row);
            let counters = &mut to.document.counters;
            counters.forced = counters.forced.saturating_add(i64::from(running));
            // Afterwards the state no longer shows what the stamp records.
            to.keep_stamp();
            to.state = State::Free;
            to.document.session_version = None;
            to.document.revoke_requested = false;
            to.document.gives_way = None;
            if row.too_soon_for(now).is_some() {
                to.document.not_before = Duration::ZERO;
            }
        }
    }
    let swap = Box::new(Swap {
        from: Some(row.version),
        to,
        stamp: None,
        expiry: now.until(limit),
        ended: vanished.map(Box::new),
        note: None,
        leaves: None,
        act: None,
    });
    Effect::Swap { swap, old_job_for }
}

/// The end of a pause; one without an end is the longest.
fn lasts(pause: &Pause) -> WallTime {
    pause.until.unwrap_or(WallTime(i64::MAX))
}

/// How long the session in the row may go on trusting its lease. A heartbeat that is on its way
/// conflicts with the act, so the row gives the upper bound.
fn still_trusted(row: &Row, now: &StoreTime) -> Duration {
    if row.run().is_none() {
        return Duration::ZERO;
    }
    if is_mutant(Mutant::ForceClaimsNoOverlap) {
        return Duration::ZERO;
    }
    let silent_for = row.age(now).unwrap_or_default();
    row.document.takeover_after.saturating_sub(silent_for)
}

#[cfg(test)]
#[path = "operator_tests.rs"]
mod tests;
