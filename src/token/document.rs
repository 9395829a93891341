//! The part of a token that only tokenrun understands: one document, which stores keep as JSON.
//!
//! Every field of a token is declared here. Programs of two versions use one store side by side: a
//! program carries fields that it does not know through its swaps (`other`), at the top and in each
//! part that is replaced as a whole, because such a field lives as long as its part.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::names::{ClientId, SessionId, Version};
use super::outcome::{GrantKind, Outcome};
use super::time::WallTime;
use super::time::{ClockEpoch, Stamp, StoreTime};

/// The fields that a newer program has added.
pub type Others = Map<String, Value>;

/// The version of the document that this program reads and writes.
pub const VERSION: u32 = 1;

/// The event that the token's stamp records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StampOf {
    /// The first look at the group, which found no token.
    #[default]
    Created,
    /// A grant, which is the session's first heartbeat.
    Granted,
    /// A later heartbeat.
    Heartbeat,
    /// The end of a run.
    Released,
}

/// A run that holds the token. A grant replaces it as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Run {
    pub session: SessionId,
    /// The file whose locks prove that the run is alive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_file: Option<String>,
    /// The program's name. Arguments are never stored: they can hold secrets.
    pub program: String,
    /// The key of `--once`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub once_key: Option<String>,
    /// How the client got the token.
    pub grant: GrantKind,
    /// The client that the token belonged to before, if another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_client: Option<ClientId>,
    /// If the job fails, the next run may come from any other client.
    #[serde(default, skip_serializing_if = "is_false")]
    pub move_on_failure: bool,
    /// What a newer program has added.
    #[serde(flatten)]
    pub other: Others,
}

/// An operator has stopped new grants: of a group, or to a client.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pause {
    /// The operator.
    pub by: String,
    pub reason: String,
    /// Until when; `None` until an operator resumes them.
    #[serde(default, rename = "until_ms", skip_serializing_if = "Option::is_none")]
    pub until: Option<WallTime>,
    /// What a newer program has added.
    #[serde(flatten)]
    pub other: Others,
}

impl Pause {
    /// True if the pause is not over. Its end is by the store's wall clock, in any clock epoch.
    pub fn is_in_force(&self, now: &StoreTime) -> bool {
        self.until.is_none_or(|until| now.stamp.wall < until)
    }
}

/// The token goes to a certain client at its next grant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Handoff {
    pub to: ClientId,
    /// The time of the hand-off.
    #[serde(rename = "at_ms")]
    pub at: WallTime,
    /// The target itself requested the hand-off, for its failback. An operator's hand-off ends a
    /// run that yields; this one waits until the token is idle, since failback ends no run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub for_failback: bool,
    /// What a newer program has added.
    #[serde(flatten)]
    pub other: Others,
}

/// What has been counted since the token was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Grants.
    pub runs: i64,
    /// Runs whose job failed, was killed or timed out.
    pub failures: i64,
    /// Grants to a client other than the one that the token belonged to.
    pub takeovers: i64,
    /// Runs that lost their token or vanished, other than by an operator's revoke.
    pub losses: i64,
    // Endings that the counts above do not separate. Each run is counted once, in the swap that
    // takes its token. A later record by its session changes history alone.
    /// The job succeeded.
    pub succeeded: i64,
    /// A signal killed the job. Also a failure.
    pub signalled: i64,
    /// The job was stopped at its time-out. Also a failure.
    pub timed_out: i64,
    /// The job was not started.
    pub not_started: i64,
    /// The run vanished: another session was granted the token. Also a loss.
    #[serde(rename = "vanished")]
    pub unknown: i64,
    /// An operator freed the token by force.
    pub forced: i64,
    /// The job was ended because an operator revoked the token. Not a loss.
    pub revoked: i64,
}

impl Counters {
    /// Counts a grant. `takes_over`: the token belonged to another client.
    pub const fn count_grant(&mut self, takes_over: bool) {
        self.runs = self.runs.saturating_add(1);
        if takes_over {
            self.takeovers = self.takeovers.saturating_add(1);
        }
    }

    /// Counts a run with this outcome; `revoked`: an operator has revoked its token.
    pub fn count_end(&mut self, outcome: Outcome, revoked: bool) {
        let counters: &mut [&mut i64] = match outcome {
            Outcome::Succeeded => &mut [&mut self.succeeded],
            Outcome::Failed => &mut [&mut self.failures],
            Outcome::Signalled => &mut [&mut self.failures, &mut self.signalled],
            Outcome::TimedOut => &mut [&mut self.failures, &mut self.timed_out],
            Outcome::Lost if revoked => &mut [&mut self.revoked],
            Outcome::Lost => &mut [&mut self.losses],
            Outcome::Unknown => &mut [&mut self.losses, &mut self.unknown],
            Outcome::NotStarted => &mut [&mut self.not_started],
            Outcome::Running => &mut [],
        };
        for counter in counters {
            **counter = counter.saturating_add(1);
        }
    }

    /// The runs that are over, by the word of their outcome. `running`: the last run is not over.
    /// The word `other` counts the runs that an older tokenrun ended without such counts.
    pub fn by_outcome(&self, running: bool) -> [(&'static str, i64); 10] {
        let Self {
            succeeded,
            signalled,
            timed_out,
            not_started,
            unknown,
            forced,
            revoked,
            ..
        } = *self;
        let less = |all: i64, some: &[i64]| {
            let left = some.iter().fold(all, |left, n| left.saturating_sub(*n));
            left.max(0)
        };
        let ended = [self.failures, self.losses, succeeded, not_started];
        let counted = [&ended[..], &[forced, revoked]].concat();
        let over = less(self.runs, &[i64::from(running)]);
        [
            (Outcome::Succeeded.word(), succeeded),
            (
                Outcome::Failed.word(),
                less(self.failures, &[signalled, timed_out]),
            ),
            (Outcome::Signalled.word(), signalled),
            (Outcome::TimedOut.word(), timed_out),
            (Outcome::Lost.word(), less(self.losses, &[unknown])),
            (Outcome::Unknown.word(), unknown),
            (Outcome::NotStarted.word(), not_started),
            ("forced", forced),
            ("revoked", revoked),
            ("other", less(over, &counted)),
        ]
    }
}

/// The part of a token that stores carry without reading it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Document {
    /// The oldest version of a program that may act on the token: [`VERSION`].
    pub reader: u32,
    /// The event that the token's stamp records.
    pub stamp_of: StampOf,
    /// The last version that the running session itself wrote; operators keep it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_version: Option<Version>,
    /// The clock epoch that the last grant was made in. `None`: never granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granted_epoch: Option<ClockEpoch>,
    /// When the token was created, unless the token's stamp records it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Stamp>,
    /// When the token was last granted, in `granted_epoch`, unless the token's stamp records it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acquired: Option<Stamp>,
    /// How long the holder may be silent.
    #[serde(rename = "takeover_after_ms", with = "millis")]
    pub takeover_after: Duration,
    /// The longest takeover-after of any holder of this group. It never falls: a grant that the
    /// store has forgotten may have had longer terms.
    #[serde(rename = "longest_takeover_after_ms", with = "millis")]
    pub longest_takeover_after: Duration,
    /// How long after a run other clients are refused outright.
    #[serde(rename = "keep_ms", with = "millis")]
    pub keep: Duration,
    /// How long a client without preference waits.
    #[serde(rename = "head_start_ms", with = "millis")]
    pub head_start: Duration,
    /// The least time from the last grant to the next. Zero for none.
    #[serde(rename = "not_before_ms", with = "millis")]
    pub not_before: Duration,
    /// The holder's (or last holder's) host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The holder's (or last holder's) supervisor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// The holder's name for its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// New grants are stopped.
    #[serde(rename = "pause", skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause>,
    /// Which client gets the token next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Handoff>,
    /// The client that waits the head start at the next grant, while no client is preferred: its run
    /// failed with `--move-on-failure`, or an operator moved the token away from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gives_way: Option<ClientId>,
    /// The holder is asked to end its job and to free the token.
    #[serde(rename = "revoke", skip_serializing_if = "is_false")]
    pub revoke_requested: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_outcome: Option<Outcome>,
    #[serde(flatten)]
    pub counters: Counters,
    /// What a newer program has added.
    #[serde(flatten)]
    pub other: Others,
}

/// The fields that every document must have: a default would be a guess.
const NEEDED: [&str; 6] = [
    "reader",
    "stamp_of",
    "takeover_after_ms",
    "keep_ms",
    "head_start_ms",
    "not_before_ms",
];

/// The key of the run that holds the token.
const RUN: &str = "run";

/// Why a text is not a token's document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {what}")]
pub struct BadDocument {
    /// The field's name in the JSON; `document` for all of it.
    pub field: String,
    /// What is wrong with it; reads after the field's name.
    pub what: String,
}

impl BadDocument {
    fn of(field: &str, what: impl ToString) -> Self {
        Self {
            field: field.to_owned(),
            what: what.to_string(),
        }
    }
}

impl Document {
    /// True if only a newer program may grant this token or act on it.
    pub const fn needs_newer_program(&self) -> bool {
        self.reader > VERSION
    }

    /// The JSON that a store keeps, with the run that holds the token.
    pub fn to_json(&self, run: Option<&Run>) -> String {
        #[derive(Serialize)]
        struct Whole<'a> {
            #[serde(flatten)]
            document: &'a Document,
            #[serde(skip_serializing_if = "Option::is_none")]
            run: Option<&'a Run>,
        }
        let document = self;
        let whole = Whole { document, run };
        // Maps have texts as keys, and numbers are whole: nothing in it can fail.
        if self.needs_newer_program() {
            // A part that this program could not read replaces its default.
            let value = serde_json::to_value(&whole).unwrap_or_default();
            return value.to_string();
        }
        serde_json::to_string(&whole).unwrap_or_default()
    }

    /// The document that a store keeps, and the run that holds the token.
    ///
    /// In a document that needs a newer program, an unreadable part is carried on as it is.
    ///
    /// # Errors
    /// Says what is wrong with a malformed text.
    pub fn from_json(text: &str) -> Result<(Self, Option<Run>), BadDocument> {
        let bad = |error: serde_json::Error| BadDocument::of("document", error);
        let mut fields: Others = serde_json::from_str(text).map_err(bad)?;
        let reader = fields.get("reader").and_then(Value::as_u64).unwrap_or(0);
        let is_newer = reader > u64::from(VERSION);
        let missing = NEEDED.iter().find(|field| !fields.contains_key(**field));
        if let Some(missing) = missing.filter(|_| !is_newer) {
            return Err(BadDocument::of(missing, "is missing"));
        }
        let run = match fields.remove(RUN) {
            None => None,
            Some(run) if is_newer => Some(newer_run(run)?),
            Some(run) => {
                Some(serde_json::from_value(run).map_err(|why| BadDocument::of(RUN, why))?)
            }
        };
        let mut foreign = Others::new();
        for field in fields.keys().cloned().collect::<Vec<_>>() {
            let Err(why) = understood(&fields, &field) else {
                continue;
            };
            if !is_newer {
                return Err(BadDocument::of(&field, why));
            }
            foreign.extend(fields.remove_entry(&field));
        }
        let mut document: Self = serde_json::from_value(Value::Object(fields)).map_err(bad)?;
        document.other.extend(foreign);
        Ok((document, run))
    }
}

/// The run of a document that needs a newer program: its session, and every other readable field.
fn newer_run(run: Value) -> Result<Run, BadDocument> {
    let bad = |why: serde_json::Error| BadDocument::of(RUN, why);
    let fields: Others = serde_json::from_value(run).map_err(bad)?;
    let plain = json!({"program": "?", "grant": GrantKind::Bind, "session": fields.get("session")});
    let plain: Others = serde_json::from_value(plain).map_err(bad)?;
    let mut known = plain.clone();
    let mut foreign = Others::new();
    for (field, value) in fields {
        let mut with = plain.clone();
        with.insert(field.clone(), value.clone());
        let understood = serde_json::from_value::<Run>(Value::Object(with)).is_ok();
        let of = if understood { &mut known } else { &mut foreign };
        of.insert(field, value);
    }
    let mut run: Run = serde_json::from_value(Value::Object(known)).map_err(bad)?;
    run.other.extend(foreign);
    Ok(run)
}

/// Reads this field alone.
fn understood(fields: &Others, field: &str) -> serde_json::Result<()> {
    let alone = fields
        .get(field)
        .map(|value| (field.to_owned(), value.clone()));
    let alone: Others = alone.into_iter().collect();
    serde_json::from_value::<Document>(Value::Object(alone)).map(drop)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

pub(super) mod millis {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(in crate::token) fn serialize<S: Serializer>(
        of: &Duration,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(of.as_millis()).unwrap_or(u64::MAX))
    }

    pub(in crate::token) fn deserialize<'a, D: Deserializer<'a>>(
        from: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mutated::mutated_text;

    fn fields(json: &str) -> Others {
        serde_json::from_str(json).unwrap()
    }

    const PLAIN: &str = r#"{"reader": 1, "stamp_of": "granted", "takeover_after_ms": 300000,
        "keep_ms": 0, "head_start_ms": 10000, "not_before_ms": 0}"#;

    /// The document with these additional fields, after it was read and written.
    fn carried(more: &Value) -> Others {
        fields(&carried_text(more))
    }

    fn carried_text(more: &Value) -> String {
        let mut document = fields(PLAIN);
        document.extend(serde_json::from_value::<Others>(more.clone()).unwrap());
        let text = Value::Object(document).to_string();
        let (document, run) = Document::from_json(&text).unwrap();
        document.to_json(run.as_ref())
    }

    #[test]
    fn unknown_fields_are_carried_on_in_every_part() {
        let more = json!({
            "colour": {"shade": [1, null]},
            "run": {"session": "s", "program": "p", "grant": "bind", "colour": 1},
            "pause": {"by": "x", "reason": "", "colour": 2},
            "handoff": {"to": "b", "at_ms": 5, "colour": 3},
        });
        let found = carried(&more);
        for (field, value) in more.as_object().unwrap() {
            assert_eq!(found.get(field), Some(value), "{field}");
        }
    }

    #[test]
    fn unknown_words_are_carried_on_where_a_newer_program_is_needed() {
        let more = json!({
            "reader": 2,
            "last_outcome": "transcended",
            "keep_ms": "a while",
            "runs": [1, 2],
            "pause": "see elsewhere",
            "run": {"session": "s", "grant": "levitation", "program": 7, "lock_file": false},
        });
        let found = carried(&more);
        for (field, value) in more.as_object().unwrap() {
            assert_eq!(found.get(field), Some(value), "{field}");
        }
        assert_eq!(found.get("takeover_after_ms"), Some(&json!(300_000)));
        // Readers differ in which of two they take.
        let text = carried_text(&more);
        for field in more.as_object().unwrap().keys() {
            let count = text.matches(&format!("\"{field}\":")).count();
            assert_eq!(count, 1, "{field}: {text}");
        }
    }

    #[test]
    fn a_missing_or_wrong_field_is_an_error_and_not_guessed() {
        for (field, value) in [
            ("last_outcome", json!("transcended")),
            ("keep_ms", json!("a while")),
            (
                "run",
                json!({"session": "s", "program": "p", "grant": "levitation"}),
            ),
            ("pause", json!({})),
            ("reader", json!("2")),
        ] {
            let mut document = fields(PLAIN);
            document.insert(field.to_owned(), value);
            let text = Value::Object(document).to_string();
            assert_eq!(
                Document::from_json(&text).unwrap_err().field,
                field,
                "{text}"
            );
        }
        for needed in NEEDED {
            let mut document = fields(PLAIN);
            document.remove(needed);
            let text = Value::Object(document).to_string();
            assert!(Document::from_json(&text).is_err(), "{needed}");
        }
        // The session of a newer program's run must be readable.
        let mut document = fields(PLAIN);
        document.extend(fields(r#"{"reader": 2, "run": {"session": 5}}"#));
        let text = Value::Object(document).to_string();
        assert_eq!(Document::from_json(&text).unwrap_err().field, "run");
    }

    #[test]
    fn a_replaced_part_takes_its_unknown_fields_with_it() {
        let mut document = fields(PLAIN);
        let run = r#"{"run": {"session": "s", "program": "p", "grant": "bind", "colour": 1}}"#;
        document.extend(fields(run));
        let text = Value::Object(document).to_string();
        let (document, _) = Document::from_json(&text).unwrap();
        assert!(!fields(&document.to_json(None)).contains_key("run"));
    }

    proptest! {
        /// What is read is written so that it is read again alike.
        #[test]
        fn no_document_panics(text in mutated_text(&[
            PLAIN,
            r#"{"reader":1,"stamp_of":"granted","takeover_after_ms":300000,"keep_ms":0,"head_start_ms":10000,"not_before_ms":0,"host":"h","pid":7,"pause":{"by":"x","reason":"","until_ms":5},"handoff":{"to":"b","at_ms":5},"run":{"session":"s","program":"p","grant":"bind","once_key":"k"}}"#,
        ]), any in ".{0,60}") {
            for text in [text, any] {
                let Ok((document, run)) = Document::from_json(&text) else {
                    continue;
                };
                let again = Document::from_json(&document.to_json(run.as_ref()));
                prop_assert_eq!(again.ok(), Some((document, run)), "{}", text);
            }
        }
    }
}
