//! Waits for the effect of an act: the revoked job has ended, or the token is open to the client
//! that it goes to. The rule itself says when.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::super::explain;
use super::super::shared::groups::unknown_group;
use super::super::shared::node::{about, bystander};
use super::one::ToCome;
use crate::exit::{self, Exit};
use crate::report::act_waits::{STAYS, Seen as WaitedFor, ended, given_up, may_have_it, waiting};
use crate::report::log::Log;
use crate::report::message::Message;
use crate::run::machine::Wait;
use crate::store::Store;
use crate::sys::clock::LocalClock;
use crate::token::{ClientId, GroupName, Refusal, State, Verdict, Version};

/// The pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// An effect in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Awaited {
    pub(crate) group: GroupName,
    pub(crate) effect: ToCome,
}

/// Waits for each effect, one after the other, within one limit.
pub(crate) fn await_all(
    store: &mut dyn Store,
    all: &[Awaited],
    limit: Wait,
    locks: Option<&Path>,
    log: &mut Log,
) -> Result<Exit> {
    if limit == Wait::No {
        return Ok(Exit::OK);
    }
    let clock = LocalClock::start();
    let mut exit = Exit::OK;
    let mut told = false;
    for awaited in all {
        log.about(about(&awaited.group));
        let mut watch = Watch {
            awaited,
            locks,
            version: None,
            reported: None,
        };
        loop {
            match watch.look(store, &clock)? {
                Seen::Effect(message) => {
                    log.write(&message, false);
                    break;
                }
                Seen::News(mut message) => {
                    if !std::mem::replace(&mut told, true) {
                        message.text.push_str(STAYS);
                    }
                    log.write(&message, false);
                }
                Seen::NoNews => {}
            }
            let waited = clock.now().0;
            let left = match limit {
                Wait::For(limit) => limit.saturating_sub(waited),
                Wait::No | Wait::Forever => Duration::MAX,
            };
            if left.is_zero() {
                log.write(&given_up(&awaited.group, store.name(), waited), false);
                exit = Exit::Code(exit::NOT_NOW);
                break;
            }
            thread::sleep(LOOK_EVERY.min(left));
        }
    }
    Ok(exit)
}

/// One effect that is watched for.
struct Watch<'a> {
    awaited: &'a Awaited,
    /// The directory for the locks of the store's runs on this host.
    locks: Option<&'a Path>,
    /// The version that was seen last, and since when, on this process's clock.
    version: Option<(Version, Duration)>,
    reported: Option<Reported>,
}

/// What was reported last.
#[derive(PartialEq, Eq)]
struct Reported {
    /// In a word.
    reason: Option<&'static str>,
    /// The client that has the token.
    holder: Option<ClientId>,
}

/// What a look has seen.
enum Seen {
    /// The effect has come.
    Effect(Message),
    /// The effect is still to come, for another reason than before.
    News(Message),
    NoNews,
}

impl Watch<'_> {
    fn look(&mut self, store: &mut dyn Store, clock: &LocalClock) -> Result<Seen> {
        let Awaited { group, effect } = self.awaited;
        let before = clock.now().0;
        let mut reading = store.read(group)?;
        let Some(row) = &mut reading.row else {
            return Err(unknown_group(store.name(), group).into());
        };
        let unchanged_for = match self.version {
            Some((version, since)) if version == row.version => before.saturating_sub(since),
            _ => {
                self.version = Some((row.version, clock.now().0));
                Duration::ZERO
            }
        };
        let (client, gets_it) = match effect {
            ToCome::Taken(client) => (client, true),
            ToCome::Ended(client, _) => {
                // The only question is whether the session's lease is over.
                row.document.paused = None;
                row.document.not_before = Duration::ZERO;
                if let Some(note) = &mut reading.memory.note {
                    note.paused_clients.clear();
                }
                reading.queue.clear();
                (client, false)
            }
        };
        let row = row.clone();
        let claim = bystander(group, client.clone(), Some(&row))?;
        let evidence = explain::evidence(self.locks, &reading, &claim);
        let decided = explain::at(&claim, &reading, &evidence, Duration::ZERO, unchanged_for);
        let waited_for = WaitedFor {
            row: &row,
            store: store.name(),
            verdict: &decided.verdict,
            client,
            gets_it,
        };
        if let Some(message) = has_come(effect, &waited_for) {
            return Ok(Seen::Effect(message));
        }
        let message = waiting(&waited_for);
        let reported = Some(Reported {
            reason: message.reason,
            holder: row.client_bound().cloned(),
        });
        let is_known = self.reported == reported;
        self.reported = reported;
        Ok(match is_known {
            true => Seen::NoNews,
            false => Seen::News(message),
        })
    }
}

/// The message of the effect, if it has come.
fn has_come(effect: &ToCome, seen: &WaitedFor<'_>) -> Option<Message> {
    match effect {
        ToCome::Ended(_, session) => {
            let is_in_row = seen.row.session() == Some(session);
            (!is_in_row || is_open(seen.verdict)).then(|| ended(seen, is_in_row))
        }
        ToCome::Taken(to) => {
            let runs = matches!(&seen.row.state, State::Running { client, .. } if client == to);
            let may = matches!(seen.verdict, Verdict::Grant(_));
            (runs || may).then(|| may_have_it(seen, runs))
        }
    }
}

/// The lease of the session in the row is over.
const fn is_open(verdict: &Verdict) -> bool {
    !matches!(
        verdict,
        Verdict::Refused(Refusal::Held { .. } | Refusal::AliveHere(_))
            | Verdict::RefusedWithHandoff(Refusal::Held { .. })
            | Verdict::Observe(_)
            | Verdict::ObserveStore { .. }
    )
}
