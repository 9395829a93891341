//! Requests to one member, and its reports. `member.lua` carries them out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use redis::Value;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::register::{self, Ballot, Held, majority};
use crate::store::kv::Ask;
use crate::store::kv::written::Written;
use crate::store::redis::link::Command;
use crate::store::redis::script::{array, ask, command, list, number, words};
use crate::store::redis::settings::Settings;

/// What a request wants of a member.
#[derive(Debug, Clone)]
pub(super) enum Wish {
    /// Shows what it holds of what is asked for.
    Show(Vec<Ask>),
    /// Promises to refuse lower ballots for these registers, and shows them, with what was written together with each, and
    /// what is asked for.
    Prepare {
        ballot: Ballot,
        registers: BTreeSet<String>,
        asked: Vec<Ask>,
    },
    /// Takes what is newer than what it holds, if no higher ballot was promised for these registers, and shows what is
    /// asked for.
    Accept {
        ballot: Ballot,
        registers: BTreeSet<String>,
        puts: Vec<Put>,
        /// The channel where it is announced.
        announces: Option<String>,
        asked: Vec<Ask>,
    },
    /// Enters the request's generation, and tells the ballots of all keys. One that has not joined refuses, if another client
    /// than this one lets it join now.
    Enter { by: Option<u64> },
    /// Counts again from now on: it has been given all that it had forgotten.
    Join { incarnation: String },
}

/// An entry to be taken. The lists that it is in are those of its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Put {
    pub(super) key: String,
    pub(super) ballot: Ballot,
    pub(super) kept: Kept,
}

/// What is kept of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// `None`: there is no such entry, any more or yet.
    pub(super) written: Option<Written>,
    /// The time since its last stamp, by the member's own clock, in milliseconds.
    pub(super) age_ms: i64,
    pub(super) about: About,
}

/// How a register came to its value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct About {
    /// The keys of the entries that were written together with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) with: Vec<String>,
    /// The ballots that wrote this value and those before it: the last one of each client, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) writes: Vec<Ballot>,
}

/// The last writes of so many clients are known.
const REMEMBERED: usize = 16;

impl About {
    /// The writes that led to a value that is written over this one. A client that writes again knows of its last write.
    pub(super) fn then(&self, ballot: Ballot) -> Vec<Ballot> {
        let before = self.writes.iter().copied();
        let others = before.filter(|it| it.client != ballot.client);
        iter::once(ballot).chain(others).take(REMEMBERED).collect()
    }

    /// True if one of these writes of one client has happened; `None`: it would be too long ago to be known.
    pub(super) fn has(&self, these: &[Ballot]) -> Option<bool> {
        if these.iter().any(|it| self.writes.contains(it)) {
            return Some(true);
        }
        let first = these.iter().min()?;
        let reaches = self.writes.len() < REMEMBERED || self.writes.iter().any(|it| it < first);
        reaches.then_some(false)
    }
}

/// What the highest ballot has left, of what so many members hold.
pub(super) fn newest(members: usize, held: &[Held<Kept>]) -> Option<Held<Kept>> {
    Some(aged(members, held, register::newest(held)?))
}

/// What a majority of so many members holds of one ballot.
pub(super) fn chosen(members: usize, held: &[Held<Kept>]) -> Option<Held<Kept>> {
    Some(aged(members, held, register::chosen(members, held)?))
}

/// One of these, with the age of the majority's last one of its ballot: the clocks of fewer members that were set change
/// nothing.
fn aged(members: usize, held: &[Held<Kept>], one: &Held<Kept>) -> Held<Kept> {
    let same = held.iter().filter(|it| it.accepted == one.accepted);
    let mut ages: Vec<i64> = same.map(|it| it.value.age_ms).collect();
    ages.sort_unstable_by_key(|age| Reverse(*age));
    let age = ages.get(majority(members) - 1).or(ages.last());
    let mut one = one.clone();
    one.value.age_ms = age.copied().unwrap_or_default();
    one
}

/// The member to which a request goes, as it must be.
#[derive(Debug, Clone, Default)]
pub(super) struct To {
    /// The server's process, if it is known.
    pub(super) process: Option<String>,
    /// `None`: any.
    pub(super) generation: Option<Ballot>,
    /// True for a member that has not joined.
    pub(super) of_unsure: bool,
    /// For how long at most the client lets it join, in milliseconds.
    pub(super) within_ms: u64,
    /// By its own clock, the last millisecond at which it accepts.
    pub(super) expiry_ms: Option<i64>,
}

impl Wish {
    /// Takes what is newer than what it holds.
    pub(super) const fn keep(puts: Vec<Put>) -> Self {
        Self::Accept {
            ballot: Ballot::LOWEST,
            registers: BTreeSet::new(),
            puts,
            announces: None,
            asked: Vec::new(),
        }
    }

    /// The command. `script`: the text of `member.lua`.
    pub(super) fn command(&self, script: &str, settings: &Settings, to: &To) -> Command {
        let mut request = self.json();
        let text = |of: Option<String>| of.map_or(json!(false), Json::String);
        request["process"] = text(to.process.clone());
        request["generation"] = text(to.generation.map(|it| it.to_string()));
        request["of_unsure"] = json!(to.of_unsure);
        request["within"] = json!(to.within_ms);
        request["expiry"] = text(to.expiry_ms.map(|it| it.to_string()));
        Command {
            bytes: command(script, settings, &request),
            only_reads: matches!(self, Self::Show(_)),
        }
    }

    fn json(&self) -> Json {
        let asks = |asked: &Vec<Ask>| list(asked, of_member);
        match self {
            Self::Show(asked) => json!({ "wish": "show", "asked": asks(asked) }),
            Self::Prepare {
                ballot,
                registers,
                asked,
            } => json!({
                "wish": "prepare",
                "ballot": ballot.to_string(),
                "registers": registers,
                "asked": asks(asked),
            }),
            Self::Accept {
                ballot,
                registers,
                puts,
                announces,
                asked,
            } => json!({
                "wish": "accept",
                "ballot": ballot.to_string(),
                "registers": registers,
                "puts": list(puts, put),
                "announces": announces.as_ref().map_or(json!(false), |it| json!(it)),
                "asked": asks(asked),
            }),
            Self::Enter { by } => json!({
                "wish": "enter",
                "by": by.map_or(json!(false), |by| json!(format!("{by:x}"))),
            }),
            Self::Join { incarnation } => json!({ "wish": "join", "incarnation": incarnation }),
        }
    }
}

/// The members' lists differ: each shows the first ones up to the limit.
fn of_member(asked: &Ask) -> Json {
    match asked {
        Ask::One(_) => ask(asked),
        Ask::Part(part) => {
            let mut part = part.clone();
            part.list = format!("list:{}", part.list);
            part.limit = part.limit.saturating_add(part.skip);
            part.skip = 0;
            ask(&Ask::Part(part))
        }
    }
}

fn put(put: &Put) -> Json {
    let Kept {
        written,
        age_ms,
        about,
    } = &put.kept;
    let text = written.as_ref().map(|it| {
        let json = String::from_utf8(it.json());
        json.unwrap_or_default()
    });
    let lists = written.iter().flat_map(|it| &it.lists);
    let lists: Vec<Json> = lists
        .map(|(list, rank)| json!([list, rank.to_string()]))
        .collect();
    json!({
        "key": put.key,
        "ballot": put.ballot.to_string(),
        "value": text.map_or(json!(false), Json::String),
        "age": age_ms.to_string(),
        "about": json!(about).to_string(),
        "lists": lists,
    })
}

/// What a member did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Did {
    /// What was wished.
    Done,
    /// Nothing: it has promised a higher ballot.
    Behind,
    /// Nothing: it is later than the expiry.
    Expired,
    /// Nothing: it is another process, has not joined, or is in another generation.
    Refused,
    /// Nothing: it keeps tokens of nodes that take it alone for the store.
    Alone,
}

/// A member's answer.
#[derive(Debug, Clone)]
pub(super) struct Report {
    pub(super) did: Did,
    pub(super) process: String,
    /// True if it has joined: it knows all that it has promised and accepted.
    pub(super) is_sure: bool,
    pub(super) generation: Ballot,
    /// The generation in which a majority had forgotten.
    pub(super) incarnation: String,
    /// The highest ballot that it has met.
    pub(super) highest: Ballot,
    /// The time by the member's clock.
    pub(super) now_ms: i64,
    /// The keys of each part that was asked for.
    pub(super) parts: Vec<Vec<String>>,
    pub(super) held: BTreeMap<String, Held<Kept>>,
}

impl Report {
    /// Reads an answer; `None` if it is none.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let [
            did,
            process,
            is_sure,
            generation,
            incarnation,
            highest,
            now,
            parts,
            held,
        ] = array(value)?
        else {
            return None;
        };
        let did = match words(did)? {
            "done" => Did::Done,
            "behind" => Did::Behind,
            "expired" => Did::Expired,
            "refused" => Did::Refused,
            "alone" => Did::Alone,
            _ => return None,
        };
        let keys = |part: &Value| -> Option<Vec<String>> {
            let keys = array(part)?.iter();
            keys.map(|key| Some(words(key)?.to_owned())).collect()
        };
        let parts = array(parts)?.iter().map(keys).collect::<Option<_>>()?;
        let held = array(held)?.iter().map(of_key).collect::<Option<_>>()?;
        Some(Self {
            did,
            process: words(process)?.to_owned(),
            is_sure: number(is_sure)? != 0,
            generation: Ballot::read(words(generation)?)?,
            incarnation: words(incarnation)?.to_owned(),
            highest: Ballot::read(words(highest)?)?,
            now_ms: number(now)?,
            parts,
            held,
        })
    }
}

fn of_key(held: &Value) -> Option<(String, Held<Kept>)> {
    let [key, accepted, value, age, about] = array(held)? else {
        return None;
    };
    let written = Some(words(value)?).filter(|text| !text.is_empty());
    let kept = Kept {
        written: written.map(|text| Written::read(text.as_bytes())),
        age_ms: number(age).unwrap_or_default(),
        about: serde_json::from_str(words(about)?).unwrap_or_default(),
    };
    let accepted = Ballot::read(words(accepted)?)?;
    let held = Held {
        accepted,
        value: kept,
    };
    Some((words(key)?.to_owned(), held))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::redis::any_value::values;

    proptest! {
        #[test]
        fn no_report_panics(
            value in values(),
            parts in proptest::collection::vec(values(), 9),
            held in proptest::collection::vec(values(), 5),
        ) {
            let mut parts = parts;
            let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
            (parts[0], parts[1], parts[5]) = (text("done"), text("p"), text(""));
            let held = Value::Array(vec![Value::Array(held)]);
            let mut with_held = parts.clone();
            (with_held[7], with_held[8]) = (Value::Array(Vec::new()), held);
            for value in [value, Value::Array(parts), Value::Array(with_held)] {
                let _ = Report::read(&value);
            }
        }
    }

    fn of(client: u64, number: u64) -> Ballot {
        Ballot { number, client }
    }

    fn about(writes: impl IntoIterator<Item = Ballot>) -> About {
        let none = About::default();
        writes.into_iter().fold(none, |about, it| About {
            writes: about.then(it),
            ..about
        })
    }

    #[test]
    fn an_overtaken_write_is_known_by_those_that_came_after_it() {
        let many = |from| (from..from + 100).map(|number| of(number % 15 + 1, number));
        let overtaken = about(iter::once(of(99, 1)).chain(many(2)));
        assert_eq!(overtaken.has(&[of(99, 1)]), Some(true));
        assert_eq!(overtaken.has(&[of(98, 1)]), None);
        assert_eq!(overtaken.has(&[of(98, 90)]), Some(false));
        assert_eq!(overtaken.writes.len(), REMEMBERED);
        assert_eq!(about(many(2)).has(&[of(99, 1)]), Some(false));
        assert_eq!(about([]).has(&[of(99, 1)]), Some(false));
    }
}
