//! Waits for the effect of an act: the revoked job has ended, or the token is open to the client
//! that it goes to. The rule itself says when.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::super::explain;
use super::super::shared::groups::unknown_group;
use super::one::ToCome;
use crate::exit::{self, Exit};
use crate::report::act_waits::{STAYS, Seen, ended, given_up, may_have_it, waiting};
use crate::report::log::Log;
use crate::report::message::{Message, Subject};
use crate::run::machine::Wait;
use crate::store::{Reading, Store};
use crate::sys::clock::LocalClock;
use crate::token::{Claim, ClientId, Evidence, GroupName, Refusal, State, Verdict, Version};

/// The pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The claim of a client for a group, and what this host can prove about the run in the row.
pub(crate) type Prove<'a> =
    dyn FnMut(&GroupName, &ClientId, &Reading) -> Result<(Claim, Evidence)> + 'a;

/// An effect in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Awaited {
    pub(crate) group: GroupName,
    pub(crate) effect: ToCome,
}

/// Waits for each effect, one after the other, within one limit.
///
/// # Errors
/// If the store can't be read.
pub(crate) fn await_all(
    store: &mut dyn Store,
    all: &[Awaited],
    limit: Wait,
    about: &dyn Fn(&GroupName) -> Subject,
    prove: &mut Prove<'_>,
    log: &mut Log,
) -> Result<Exit> {
    let clock = LocalClock::start();
    let mut exit = Exit::OK;
    let mut told = false;
    for awaited in all {
        if limit == Wait::No {
            break;
        }
        log.about(about(&awaited.group));
        let mut watch = Watch::new(awaited);
        while let Some(message) = watch.look(store, &clock, prove)? {
            if let Some(mut message) = message {
                if !std::mem::replace(&mut told, true) {
                    message.text.push_str(STAYS);
                }
                log.write(&message, false);
            }
            let left = match limit {
                Wait::For(limit) => limit.saturating_sub(clock.now().0),
                Wait::No | Wait::Forever => Duration::MAX,
            };
            if left.is_zero() {
                let waited = clock.now().0;
                log.write(&given_up(&awaited.group, store.name(), waited), false);
                exit = Exit::Code(exit::NOT_NOW);
                break;
            }
            thread::sleep(LOOK_EVERY.min(left));
        }
        if let Some(message) = watch.end {
            log.write(&message, false);
        }
    }
    Ok(exit)
}

/// One effect that is watched for.
struct Watch<'a> {
    awaited: &'a Awaited,
    /// The version that was seen last, and since when, on this process's clock.
    version: Option<(Version, Duration)>,
    /// What was reported last: the reason in a word, and the client that has the token.
    reported: Option<(Option<&'static str>, Option<ClientId>)>,
    /// The message of the effect, once it has come.
    end: Option<Message>,
}

impl<'a> Watch<'a> {
    const fn new(awaited: &'a Awaited) -> Self {
        Self {
            awaited,
            version: None,
            reported: None,
            end: None,
        }
    }

    /// Looks once. `None`: the effect has come. Else what to say, if the reason is another one.
    fn look(
        &mut self,
        store: &mut dyn Store,
        clock: &LocalClock,
        prove: &mut Prove<'_>,
    ) -> Result<Option<Option<Message>>> {
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
                reading.queue.clear();
                (client, false)
            }
        };
        let (claim, evidence) = prove(group, client, &reading)?;
        let decided = explain::at(&claim, &reading, &evidence, Duration::ZERO, unchanged_for);
        let Some(row) = &reading.row else {
            return Ok(None);
        };
        let seen = Seen {
            row,
            store: store.name(),
            verdict: &decided.verdict,
            client,
            gets_it,
        };
        self.end = has_come(effect, &seen);
        if self.end.is_some() {
            return Ok(None);
        }
        let message = waiting(&seen);
        let news = Some((message.reason, row.client_bound().cloned()));
        let is_news = self.reported != news;
        self.reported = news;
        Ok(Some(is_news.then_some(message)))
    }
}

/// The message of the effect, if it has come.
fn has_come(effect: &ToCome, seen: &Seen<'_>) -> Option<Message> {
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

/// Whether the lease of the session in the row is over.
const fn is_open(verdict: &Verdict) -> bool {
    !matches!(
        verdict,
        Verdict::Refused(Refusal::Held { .. } | Refusal::AliveHere(_))
            | Verdict::RefusedWithHandoff(Refusal::Held { .. })
            | Verdict::Observe(_)
            | Verdict::ObserveStore { .. }
    )
}
