//! What a store may have forgotten. After a promotion that lost commits, or from a restored copy,
//! the last grant may be missing: the row is older than the truth, or gone, and its holder goes on
//! until it no longer trusts its lease. So a store says which *incarnation* it is, one *note* in it
//! says which one was seen last and since when, and nothing is granted before the present one has
//! been observed for as long as a forgotten lease may last (clause 0 of the rule).
//!
//! Only the last note counts. It is never looked up by the incarnation that it names: a store that
//! was another in between may come back without what happened there.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::act_record::ActRecord;
use super::document::Others;
use super::mutant::{Mutant, is_mutant};
use super::names::{Incarnation, Version};
use super::row::Row;
use super::time::{ClockEpoch, Stamp, StoreTime, Until};

/// How long an incarnation has surely stood without having forgotten anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Served {
    /// For this long.
    For(Duration),
    /// Nothing was granted before it.
    Everything,
}

impl Served {
    /// Not at all.
    pub const NOTHING: Self = Self::For(Duration::ZERO);

    /// What is missing to this length.
    #[must_use]
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
    /// It has no past: what holds its tokens was made with the note.
    New,
    /// It has a past, and no note.
    Unnoted,
    /// It is another incarnation than the one before: a promotion, a restored or copied store.
    Another,
    /// It was started anew, and may have lost its last commits.
    Restarted,
    /// It does not say which incarnation it is.
    Unknown,
    /// An operator distrusts it.
    Distrusted,
    /// An operator knows that nothing was lost.
    Settled,
    /// Its note can't be read.
    Unreadable,
    /// What a newer program knows.
    #[serde(other)]
    Newer,
}

/// The note of the incarnation that was seen last: one in a store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IncarnationNote {
    /// Changes with every write; drawn by the writer.
    pub version: Version,
    pub incarnation: Incarnation,
    /// The clock of [`Self::first_seen`].
    pub epoch: ClockEpoch,
    /// The store's time when the incarnation was first seen in that clock epoch.
    pub first_seen: Stamp,
    /// Whether its commits would have survived a crash then.
    pub durable_then: bool,
    /// For how long it had stood before that, or was verified to since.
    pub served: Served,
    /// Why it had to be observed, if it had to.
    pub why: Doubt,
    /// What a newer program has added.
    #[serde(flatten)]
    pub other: Others,
}

impl IncarnationNote {
    /// The note of a store without a past: it is written in the transaction that makes the tables.
    #[must_use]
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
            other: Others::new(),
        }
    }

    /// The text that a store keeps.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Maps have texts as keys, and numbers are whole: nothing in it can fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The note that a store keeps, by the version that the store keeps beside it. A text that is
    /// not a note counts as a note of another incarnation: what it is must be observed, and it is
    /// replaced.
    #[must_use]
    pub fn from_json(text: &str, version: Version) -> Self {
        let note = serde_json::from_str(text).unwrap_or_else(|_| Self {
            version,
            incarnation: Incarnation(String::new()),
            epoch: ClockEpoch(String::new()),
            first_seen: Stamp {
                tick_ms: 0,
                wall_ms: 0,
            },
            durable_then: false,
            served: Served::NOTHING,
            why: Doubt::Unreadable,
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
    /// The new note. Its version was drawn for this swap.
    pub to: IncarnationNote,
    /// After this time, and in another clock epoch, the store carries the swap out no more.
    pub expiry: Until,
    /// The act of an operator, which is recorded in the same transaction. The store sets its time.
    pub act: Option<Box<ActRecord>>,
}

/// An observation of the store that is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// For how much longer nothing is granted.
    pub wait: Duration,
    /// Why the store is observed.
    pub doubt: Doubt,
}

/// What a reading says of the store's memory, in one snapshot with the row and the time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Memory {
    /// Which incarnation the store is; `None`: it does not say.
    pub incarnation: Option<Incarnation>,
    /// Whether its commits survive a crash, as it is set now.
    pub durable: bool,
    /// The last note. One that was itself restored names no incarnation that there is.
    pub note: Option<IncarnationNote>,
    /// For how long it has stood if there is no note: nothing, unless it surely has no past.
    pub unnoted: Served,
}

impl Memory {
    /// Of a store that surely has forgotten nothing.
    #[cfg(test)]
    pub(crate) const SOUND: Self = Self {
        incarnation: None,
        durable: true,
        note: None,
        unnoted: Served::Everything,
    };

    /// For how long the present incarnation has been observed, and why it has to be.
    #[must_use]
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
        let age = now.age_of(note.first_seen, Some(&note.epoch));
        let age = Served::For(age.unwrap_or_default());
        (note.served.max(age), note.why)
    }

    /// The observation before a grant where a forgotten lease may last for this length; `None` if the
    /// store has been observed for long enough.
    #[must_use]
    pub fn observation(&self, length: Duration, now: &StoreTime) -> Option<Observation> {
        let (served, doubt) = self.observed(now);
        let wait = served.missing_to(length);
        (!wait.is_zero()).then_some(Observation { wait, doubt })
    }

    /// What becomes of what was served when the note is another incarnation's, or of another start.
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

    /// The note to write before anything is decided; `None` if the last one names this
    /// incarnation and clock epoch, or the store does not say which it is.
    #[must_use]
    pub fn next_note(
        &self,
        now: &StoreTime,
        version: impl FnOnce() -> Version,
    ) -> Option<IncarnationNote> {
        let incarnation = self.incarnation.as_ref()?;
        let (served, why, other) = match &self.note {
            Some(note) if note.names(incarnation, now) => return None,
            Some(note) => {
                let (served, why) = self.carried(note, incarnation);
                (served, why, note.other.clone())
            }
            None if is_mutant(Mutant::FirstIncarnationTrusted) => {
                (Served::Everything, Doubt::New, Others::new())
            }
            None => {
                let (served, why) = self.observed(now);
                (served, why, Others::new())
            }
        };
        Some(IncarnationNote {
            version: version(),
            incarnation: incarnation.clone(),
            epoch: now.epoch.clone(),
            first_seen: now.stamp,
            durable_then: self.durable,
            served,
            why,
            other,
        })
    }

    /// Whether the store is observed since the row's last grant, by the same clock: then another
    /// grant may have been forgotten, although the clock says nothing of it.
    #[must_use]
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

    /// What it will say when [`Self::next_note`] is written: for commands that write nothing.
    #[must_use]
    pub fn noted(&self, now: &StoreTime) -> Self {
        let note = self.next_note(now, || Version::from_random(0));
        Self {
            note: note.or_else(|| self.note.clone()),
            ..self.clone()
        }
    }

    /// The note that says what a grant has verified: that the incarnation has stood for this
    /// length. So a restart that loses nothing does not begin the observation anew. `None` if the
    /// note says it, or it has not stood for so long.
    #[must_use]
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

    /// The swap of the last note for this one.
    #[must_use]
    pub fn swap(&self, to: IncarnationNote, now: &StoreTime, limit: Duration) -> NoteSwap {
        NoteSwap {
            from: self.note.as_ref().map(|note| note.version),
            to,
            expiry: now.until(limit),
            act: None,
        }
    }

    /// The note by which an operator says that nothing was lost, or begins an observation.
    #[must_use]
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
        let other = self.note.as_ref().map(|note| note.other.clone());
        IncarnationNote {
            version,
            incarnation: incarnation.clone(),
            epoch: now.epoch.clone(),
            first_seen: now.stamp,
            durable_then: self.durable,
            served,
            why,
            other: other.unwrap_or_default(),
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
