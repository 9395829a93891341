//! The record of a run that is refused, or that could not begin. Pure.

use super::ending::Ending;
use super::event::Note;
use crate::token::document::Others;
use crate::token::{Claim, ClientId, Fence, Outcome, Refusal, RefusalRecord, Row, WallTime};

/// What the record needs of the row that the rule judged last.
#[derive(Debug, Default)]
pub(super) struct Refusing {
    fence: Fence,
    bound: Option<ClientId>,
}

impl Refusing {
    /// Takes a note of the run.
    pub(super) fn hear(&mut self, note: &Note) {
        if let Note::Decided { row, .. } = note {
            let row = row.as_deref();
            self.fence = row.map(|row| row.fence).unwrap_or_default();
            self.bound = row.and_then(Row::client_bound).cloned();
        }
    }

    /// The record of a run that ends like this, if it is refused. The store sets its times.
    pub(super) fn record(&self, claim: &Claim, ending: &Ending) -> Option<RefusalRecord> {
        let why = match ending {
            Ending::Refused { why, .. } => why,
            Ending::Unstartable(why) => {
                return Some(
                    RefusalRecord {
                        reason: Outcome::NotStarted.to_string(),
                        error: why.reason(),
                        ..self.plain(claim)
                    }
                    .with_cause(),
                );
            }
            _ => return None,
        };
        let paused = match why {
            Refusal::Paused(pause) | Refusal::ClientPaused(pause) => Some(pause),
            _ => None,
        };
        let reason = paused.map(|pause| pause.reason.clone());
        let record = RefusalRecord {
            reason: why.word().to_owned(),
            holder: self.holder(why),
            paused_by: paused.map(|pause| pause.by.clone()),
            paused_reason: reason.filter(|reason| !reason.is_empty()),
            paused_until: paused.and_then(|pause| pause.until),
            ahead: match why {
                Refusal::Behind { ahead } => u64::try_from(*ahead).ok(),
                _ => None,
            },
            ..self.plain(claim)
        };
        Some(record.with_cause())
    }

    /// A record of this claim without a reason.
    fn plain(&self, claim: &Claim) -> RefusalRecord {
        RefusalRecord {
            group: claim.group.clone(),
            client: claim.client.clone(),
            reason: String::new(),
            cause: String::new(),
            first_at: WallTime(0),
            last_at: WallTime(0),
            count: 1,
            fence: self.fence,
            host: claim.about.host.clone(),
            holder: None,
            paused_by: None,
            paused_reason: None,
            paused_until: None,
            ahead: None,
            error: None,
            other: Others::new(),
        }
    }

    /// The client that is in the way.
    fn holder(&self, why: &Refusal) -> Option<ClientId> {
        match why {
            Refusal::Held { by: holder, .. }
            | Refusal::Bound { to: holder, .. }
            | Refusal::Reserved { to: holder, .. } => Some(holder.clone()),
            Refusal::HeadStart { of, .. } => of.clone(),
            Refusal::AliveHere(_) => self.bound.clone(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::token::rule::tests::fixture::{claim, running, seen};
    use crate::token::{Clause, Verdict};

    fn refused(why: Refusal) -> Ending {
        let clause = Clause::Paused;
        Ending::Refused { clause, why }
    }

    fn after_a_look() -> Refusing {
        let row = running("a");
        let mut refusing = Refusing::default();
        refusing.hear(&Note::Decided {
            now: seen(row.clone()).now,
            row: Some(Box::new(Row {
                fence: Fence(42),
                ..row
            })),
            clause: Clause::Paused,
            verdict: Verdict::Create,
        });
        refusing
    }

    #[test]
    fn the_record_says_what_is_in_the_way() {
        let (refusing, claim) = (after_a_look(), claim("b"));
        let record = |why| refusing.record(&claim, &refused(why)).unwrap();
        let wait = Duration::ZERO;
        let a = ClientId::new("a").unwrap();
        let alive = record(Refusal::AliveHere(Vec::new()));
        assert_eq!(alive.reason, "alive_here");
        assert_eq!((alive.fence, alive.holder), (Fence(42), Some(a.clone())));
        let to = ClientId::new("vm-3").unwrap();
        let bound = record(Refusal::Bound {
            to: to.clone(),
            wait,
        });
        assert_eq!(
            (bound.reason.as_str(), bound.holder),
            ("bound", Some(to.clone()))
        );
        let reserved = record(Refusal::Reserved {
            to: to.clone(),
            wait,
        });
        assert_eq!(
            (reserved.reason.as_str(), reserved.holder),
            ("reserved", Some(to))
        );
        let behind = record(Refusal::Behind { ahead: 3 });
        assert_eq!((behind.ahead, behind.holder), (Some(3), None));
        let paused = record(Refusal::Paused(crate::token::Pause {
            by: "root".into(),
            reason: String::new(),
            until: Some(WallTime(5)),
            other: Others::new(),
        }));
        assert_eq!(paused.paused_by.as_deref(), Some("root"));
        assert_eq!(
            (paused.paused_reason, paused.paused_until),
            (None, Some(WallTime(5)))
        );
        assert_eq!(paused.client, claim.client);
    }

    #[test]
    fn a_run_that_is_not_refused_leaves_none() {
        let claim = claim("b");
        for ending in [Ending::NoGuard, Ending::Stopped(15)] {
            assert_eq!(after_a_look().record(&claim, &ending), None);
        }
    }
}
