//! The decision if a store may have forgotten grants. After a promotion that lost commits, or in a restored
//! copy, the last grant may be missing: the row is outdated or gone, and its holder goes on until
//! it no longer trusts its lease. So a store reports which *incarnation* it is, and one *note* in
//! the store names the last incarnation seen, and since when. No token is granted before the
//! present incarnation has been observed for as long as a forgotten lease may last (clause 0 of the
//! rule).
//!
//! Only the last note counts. It is never looked up by the incarnation that it names: a store that
//! was another incarnation in between may come back without what happened there.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::document::{Others, Pause};
use super::mutant::{Mutant, is_mutant};
use super::names::{ClientId, Incarnation, Version};
use super::record::ActRecord;
use super::row::Row;
use super::time::WallTime;
use super::time::{ClockEpoch, Stamp, StoreTime, Until};

/// The time that an incarnation has certainly existed without forgetting a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Served {
    /// For this long.
    For(Duration),
    /// No grant came before this incarnation.
    Everything,
}

impl Served {
    pub const NOTHING: Self = Self::For(Duration::ZERO);

    /// The time that is missing to this length.
    pub const fn missing_to(self, length: Duration) -> Duration {
        match self {
            Self::For(served) => length.saturating_sub(served),
            Self::Everything => Duration::ZERO,
        }
    }
}

/// In JSON: a number of milliseconds, or a word.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ServedText {
    Millis(u64),
    Word(Everything),
}

#[derive(Serialize, Deserialize)]
enum Everything {
    #[serde(rename = "everything")]
    Everything,
}

impl Serialize for Served {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::For(served) => {
                ServedText::Millis(u64::try_from(served.as_millis()).unwrap_or(u64::MAX))
            }
            Self::Everything => ServedText::Word(Everything::Everything),
        }
        .serialize(to)
    }
}

impl<'a> Deserialize<'a> for Served {
    fn deserialize<D: serde::Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        Ok(match ServedText::deserialize(from)? {
            ServedText::Millis(ms) => Self::For(Duration::from_millis(ms)),
            ServedText::Word(Everything::Everything) => Self::Everything,
        })
    }
}

/// Why a store may have forgotten a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// The store has no past: its tables were made together with the note.
    New,
    /// The store has a past, and no note.
    Unnoted,
    /// The store is another incarnation than before: promoted, restored or copied.
    Another,
    /// The store was restarted, and may have lost its last commits.
    Restarted,
    /// The store does not report its incarnation.
    Unknown,
    /// An operator distrusts it.
    Distrusted,
    /// An operator knows that nothing was lost.
    Settled,
    /// The note is unreadable.
    Unreadable,
    /// A reason that only a newer program knows.
    #[serde(other)]
    Newer,
}

/// Clients whose pauses may be over.
pub type PausedClients = BTreeMap<ClientId, Pause>;

/// The note of the incarnation that was seen last: one per store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IncarnationNote {
    /// Changes with every write; the writer draws it.
    pub version: Version,
    pub incarnation: Incarnation,
    /// The clock of [`Self::first_seen`].
    pub epoch: ClockEpoch,
    /// The store's time when the incarnation was first seen in that clock epoch.
    pub first_seen: Stamp,
    /// True if the store's commits would have survived a crash then.
    pub durable_then: bool,
    /// The time that it had served before that, or that was verified since.
    pub served: Served,
    /// Why the store had to be observed, if it had to.
    pub why: Doubt,
    /// The clients that get no token of any group, each with its pause. They stand here because each look
    /// reads the note, and each grant fails if the note has changed since.
    #[serde(default, skip_serializing_if = "PausedClients::is_empty")]
    pub paused_clients: PausedClients,
    /// What a newer program has added.
    #[serde(flatten)]
    pub other: Others,
}

impl IncarnationNote {
    /// The note of a store without a past: the transaction that makes the tables writes it.
    pub fn of_new(
        incarnation: Incarnation,
        durable: bool,
        now: &StoreTime,
        version: Version,
    ) -> Self {
        Self {
            version,
            incarnation,
            epoch: now.epoch.clone(),
            first_seen: now.stamp,
            durable_then: durable,
            served: Served::Everything,
            why: Doubt::New,
            paused_clients: PausedClients::new(),
            other: Others::new(),
        }
    }

    pub fn to_json(&self) -> String {
        // Maps have texts as keys, and numbers are whole: nothing in it can fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The stored note; the store keeps its version beside it. A malformed text counts as the note
    /// of another incarnation: the store must be observed, and the note is replaced.
    pub fn from_json(text: &str, version: Version) -> Self {
        let note = serde_json::from_str(text).unwrap_or_else(|_| Self {
            version,
            incarnation: Incarnation(String::new()),
            epoch: ClockEpoch(String::new()),
            first_seen: Stamp {
                tick_ms: 0,
                wall: WallTime(0),
            },
            durable_then: false,
            served: Served::NOTHING,
            why: Doubt::Unreadable,
            paused_clients: PausedClients::new(),
            other: Others::new(),
        });
        Self { version, ..note }
    }
}

/// Writes a note if the last one is still the one that was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NoteSwap {
    /// The version that was read; `None` if there was no note.
    pub from: Option<Version>,
    /// The new note, with a version that was drawn for this swap.
    pub to: IncarnationNote,
    /// The store rejects the swap after this time, and in another clock epoch.
    pub expiry: Until,
    /// The act of an operator, recorded in the same transaction. The store sets its time.
    pub act: Option<Box<ActRecord>>,
}

/// An unfinished observation of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// How much longer no token is granted.
    pub wait: Duration,
    /// Why the store is observed.
    pub doubt: Doubt,
}

/// What a read reports of the store's memory, in one snapshot with the row and the time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Memory {
    /// The store's incarnation; `None`: the store does not report one.
    pub incarnation: Option<Incarnation>,
    /// True if the store's commits survive a crash, by its present settings.
    pub durable: bool,
    /// The last note. A note that was itself restored names an incarnation that no longer exists.
    pub note: Option<IncarnationNote>,
    /// What counts as served without a note: nothing, unless the store certainly has no past.
    pub unnoted: Served,
    /// How long another server may have accepted heartbeats after this incarnation began: an old master
    /// does, until it misses its replica. No grant comes before that is over too.
    pub lag: Duration,
}

impl Memory {
    /// A store that has certainly forgotten nothing.
    #[cfg(test)]
    pub(crate) const SOUND: Self = Self {
        incarnation: None,
        durable: true,
        note: None,
        unnoted: Served::Everything,
        lag: Duration::ZERO,
    };

    /// How long the present incarnation has been observed, and why that is necessary.
    pub fn observed(&self, now: &StoreTime) -> (Served, Doubt) {
        let Some(note) = &self.note else {
            return match (self.unnoted, &self.incarnation) {
                (Served::Everything, _) => (Served::Everything, Doubt::New),
                (_, None) => (Served::NOTHING, Doubt::Unknown),
                (served, Some(_)) => (served, Doubt::Unnoted),
            };
        };
        let Some(incarnation) = &self.incarnation else {
            return (Served::NOTHING, Doubt::Unknown);
        };
        if !note.names(incarnation, now) {
            return self.carried(note, incarnation);
        }
        let age = now
            .age_of(note.first_seen, Some(&note.epoch))
            .unwrap_or_default();
        let age = Served::For(age);
        (note.served.max(age), note.why)
    }

    /// The observation before a grant where a forgotten lease may last for this length; `None` if the
    /// store has been observed for long enough.
    pub fn observation(&self, length: Duration, now: &StoreTime) -> Option<Observation> {
        let (served, doubt) = self.observed(now);
        let wait = served.missing_to(length.saturating_add(self.lag));
        (!wait.is_zero()).then_some(Observation { wait, doubt })
    }

    /// What remains of the served time when the note names another incarnation or clock epoch.
    fn carried(&self, note: &IncarnationNote, incarnation: &Incarnation) -> (Served, Doubt) {
        if note.incarnation != *incarnation {
            let doubt = if note.incarnation.0.is_empty() {
                Doubt::Unreadable
            } else {
                Doubt::Another
            };
            return (Served::NOTHING, doubt);
        }
        if !(note.durable_then && self.durable) {
            return (Served::NOTHING, Doubt::Restarted);
        }
        if is_mutant(Mutant::RestartEndsQuarantine) {
            return (Served::Everything, note.why);
        }
        (note.served, note.why)
    }

    /// The note to write before any decision; `None` if the last note names this incarnation and
    /// clock epoch and promises no more than is kept, or the store does not report its incarnation. A note of
    /// the future is rewritten: the clock was set back, and the note has no age until it is where it was.
    pub fn next_note(
        &self,
        now: &StoreTime,
        version: impl FnOnce() -> Version,
    ) -> Option<IncarnationNote> {
        let incarnation = self.incarnation.as_ref()?;
        let mut first_seen = now.stamp;
        let (served, why) = match &self.note {
            Some(note) if note.names(incarnation, now) => {
                let is_of_future = note.first_seen.tick_ms > now.stamp.tick_ms;
                // The settings may have changed while the server ran.
                let is_lowered = note.durable_then && !self.durable;
                if !is_of_future && !is_lowered {
                    return None;
                }
                return Some(IncarnationNote {
                    version: version(),
                    first_seen: match is_of_future {
                        true => now.stamp,
                        false => note.first_seen,
                    },
                    durable_then: note.durable_then && self.durable,
                    ..note.clone()
                });
            }
            Some(note) => self.carried(note, incarnation),
            None if is_mutant(Mutant::FirstIncarnationTrusted) => (Served::Everything, Doubt::New),
            None => {
                let (served, why) = self.observed(now);
                if let Served::For(served) = served {
                    // A store that has existed for so long goes on to.
                    first_seen = first_seen.minus(served);
                }
                (served, why)
            }
        };
        Some(IncarnationNote {
            first_seen,
            served,
            why,
            ..self.new_note(incarnation, now, version())
        })
    }

    /// A note of this incarnation that keeps what the last note says of other things.
    fn new_note(
        &self,
        incarnation: &Incarnation,
        now: &StoreTime,
        version: Version,
    ) -> IncarnationNote {
        let last = self.note.as_ref();
        IncarnationNote {
            paused_clients: last.map(|it| it.paused_clients.clone()).unwrap_or_default(),
            other: last.map(|it| it.other.clone()).unwrap_or_default(),
            ..IncarnationNote::of_new(incarnation.clone(), self.durable, now, version)
        }
    }

    /// The pause of this client that is in force at this time, if any.
    pub fn pause_of(&self, client: &ClientId, now: &StoreTime) -> Option<&Pause> {
        let pause = self.note.as_ref()?.paused_clients.get(client);
        pause.filter(|pause| pause.is_in_force(now))
    }

    /// The clients that are paused at this time, by name.
    pub fn paused_clients(&self, now: &StoreTime) -> impl Iterator<Item = (&ClientId, &Pause)> {
        let all = self.note.iter().flat_map(|note| &note.paused_clients);
        let now = now.clone();
        all.filter(move |(_, pause)| pause.is_in_force(&now))
    }

    /// True if the observation of the store began after the row's last grant, by the same clock:
    /// then another grant may have been forgotten, although the clock epoch does not show it.
    pub fn is_newer_than_grant(&self, row: &Row) -> bool {
        let of_grant = row.document.granted_epoch.as_ref();
        let note = self
            .note
            .as_ref()
            .filter(|note| Some(&note.epoch) == of_grant);
        note.is_some_and(|note| {
            let granted = row.acquired_at();
            granted.is_none_or(|at| at.tick_ms <= note.first_seen.tick_ms)
        })
    }

    /// This memory as if [`Self::next_note`] were written: for commands that only read.
    pub fn noted(&self, now: &StoreTime) -> Self {
        let note = self.next_note(now, || Version::from_random(0));
        Self {
            note: note.or_else(|| self.note.clone()),
            ..self.clone()
        }
    }

    /// The note that records what a grant has verified: that the incarnation has existed for this
    /// length. So a restart that loses nothing does not begin the observation again. `None` if the
    /// note records it already, or the incarnation is younger.
    pub fn raised(
        &self,
        now: &StoreTime,
        length: Duration,
        version: impl FnOnce() -> Version,
    ) -> Option<IncarnationNote> {
        let note = self.note.as_ref()?;
        let is_named = note.names(self.incarnation.as_ref()?, now);
        let verified = self.observed(now).0 >= Served::For(length);
        if !is_named || !verified || note.served >= Served::For(length) {
            return None;
        }
        Some(IncarnationNote {
            version: version(),
            served: Served::For(length),
            ..note.clone()
        })
    }

    /// The swap from the last note to this one.
    pub fn swap(&self, to: IncarnationNote, now: &StoreTime, limit: Duration) -> NoteSwap {
        NoteSwap {
            from: self.note.as_ref().map(|note| note.version),
            to,
            expiry: now.until(limit),
            act: None,
        }
    }

    /// The note by which an operator declares that nothing was lost, or begins an observation.
    pub fn judged(
        &self,
        incarnation: &Incarnation,
        trusted: bool,
        now: &StoreTime,
        version: Version,
    ) -> IncarnationNote {
        let (served, why) = if trusted {
            (Served::Everything, Doubt::Settled)
        } else {
            (Served::NOTHING, Doubt::Distrusted)
        };
        IncarnationNote {
            served,
            why,
            ..self.new_note(incarnation, now, version)
        }
    }
}

impl IncarnationNote {
    fn names(&self, incarnation: &Incarnation, now: &StoreTime) -> bool {
        self.incarnation == *incarnation && self.epoch == now.epoch
    }
}

#[cfg(test)]
#[path = "incarnation_tests.rs"]
mod tests;
