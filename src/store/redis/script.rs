//! The two scripts: one reads, one compares and writes. Each is one command, and the server carries
//! nothing else out meanwhile.

use std::time::Duration;

use redis::Value;
use serde_json::{Value as Json, json};

use super::fault::Said;
use super::settings::Settings;
use crate::store::kv::{
    Announcement, Ask, Commit, Entry, Fields, Found, Outcome, Put, Rank, Server,
};
use crate::token::{ClockEpoch, Incarnation, Served, Stamp, StoreTime, Until, WallTime};

/// How long an old master accepts writes after one of its replicas was promoted, if it needs that
/// replica: `min-replicas-max-lag`, by default 10 s, then up to a second each for whole seconds and for
/// the regular check.
const LAG: Duration = Duration::from_secs(MOST_LAG + 2);

/// The highest `min-replicas-max-lag` that [`LAG`] covers.
pub(super) const MOST_LAG: u64 = 10;

/// The part of every script that knows the server.
pub(super) const SERVER: &str = include_str!("server.lua");

/// The scripts' texts.
pub(super) struct Scripts {
    read: String,
    commit: String,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self::with_clock(include_str!("clock.lua"))
    }

    /// The scripts with this function `clock` in place of the server's.
    pub(super) fn with_clock(clock: &str) -> Self {
        let common = include_str!("common.lua");
        let script = |own: &str| text(&[clock, SERVER, common, own]);
        Self {
            read: script(include_str!("read.lua")),
            commit: script(include_str!("commit.lua")),
        }
    }

    /// The command that reads.
    pub(super) fn read(&self, settings: &Settings, asked: &[Ask]) -> Vec<u8> {
        command(&self.read, settings, &list(asked, ask))
    }

    /// The command that commits.
    pub(super) fn commit(&self, settings: &Settings, request: &Commit) -> Vec<u8> {
        command(&self.commit, settings, &commit(request))
    }
}

/// A script of these parts, without comments.
pub(super) fn text(parts: &[&str]) -> String {
    let lines = parts.iter().flat_map(|part| part.lines());
    let lines = lines
        .map(str::trim_start)
        .filter(|line| !line.starts_with("--") && !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// A cluster finds the node by the key, which all others share a hash tag with.
pub(super) fn command(script: &str, settings: &Settings, request: &Json) -> Vec<u8> {
    let mut command = redis::cmd("EVAL");
    let prefix = &settings.prefix;
    command.arg(script).arg(1).arg(format!("{prefix}tokens"));
    command.arg(prefix).arg(request.to_string());
    let place = match settings.database {
        0 => String::new(),
        number => format!("/{number}"),
    };
    command.arg(place);
    command.get_packed_command()
}

/// What a script reads. Ranks are texts: a number of Lua's has 53 bits.
pub(super) fn ask(ask: &Ask) -> Json {
    let part = match ask {
        Ask::One(key) => return json!({ "one": key }),
        Ask::Part(part) => part,
    };
    let bound = |rank: i64| match rank {
        i64::MIN => "-inf".to_owned(),
        i64::MAX => "+inf".to_owned(),
        rank => rank.to_string(),
    };
    json!({
        "list": part.list,
        "from": bound(part.ranks.0),
        "to": bound(part.ranks.1),
        "newest_first": part.newest_first,
        "skip": part.skip,
        // A negative number is no limit.
        "limit": match part.limit {
            u32::MAX => -1,
            limit => i64::from(limit),
        },
    })
}

fn put(put: &Put) -> Json {
    let fields = put.fields.iter().flat_map(|(name, value)| [name, value]);
    let version = ["version", &put.version].into_iter();
    let fields: Vec<&str> = version.chain(fields.map(String::as_str)).collect();
    let place = |(list, rank): &(String, Rank)| match rank {
        Rank::At(rank) => json!([list, rank.to_string()]),
        Rank::Now => json!([list, "now"]),
        Rank::Number => json!([list, "number"]),
    };
    json!({
        "key": put.key,
        "fields": fields,
        "stamps": put.stamps,
        "numbered": put.numbered,
        "lists": list(&put.lists, place),
    })
}

/// A version or a part that is absent is `false`: Lua takes `null` for true.
fn commit(commit: &Commit) -> Json {
    let compare = |(key, version): &(String, Option<String>)| match version {
        Some(version) => json!([key, version]),
        None => json!([key, false]),
    };
    let until = |until: &Until| json!([until.epoch().0, until.tick_ms().to_string()]);
    let announcement = |told: &Announcement| json!([told.channel, told.if_any_in]);
    json!({
        "compare": list(&commit.compare, compare),
        "puts": list(&commit.puts, put),
        "deletes": list(&commit.deletes, |delete| json!([delete.key, delete.lists])),
        "grants": commit.grants,
        "until": commit.until.as_ref().map_or(json!(false), until),
        "announces": commit.announces.as_ref().map_or(json!(false), announcement),
        "then": list(&commit.then, ask),
    })
}

pub(super) fn list<T>(of: &[T], to: impl Fn(&T) -> Json) -> Json {
    of.iter().map(to).collect()
}

/// The answer of a script that was carried out.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) outcome: Outcome,
    pub(super) found: Box<Found>,
    /// The policy by which the server removes tokens, if it does and the note was read.
    pub(super) evicts: Option<String>,
}

/// What a server has said in place of an answer to a script.
pub(super) fn refused(value: &Value) -> Option<Said> {
    let parts = array(value)?;
    let part = |at| words(parts.get(at)?);
    match part(0)? {
        "replica" => Some(Said::Replica([part(1)?, part(2)?].join(":"))),
        "mixed" => Some(Said::Mixed),
        "evicts" => Some(Said::Evicts(part(1)?.to_owned())),
        _ => None,
    }
}

/// Reads a script's answer; `None` if it is none.
pub(super) fn answered(value: &Value) -> Option<Answer> {
    let parts = array(value)?;
    let outcome = match words(parts.first()?)? {
        "done" => Outcome::Done,
        "conflict" => Outcome::Conflict,
        "expired" => Outcome::Expired,
        _ => return None,
    };
    let now = number(parts.get(1)?)?;
    let epoch = words(parts.get(2)?)?;
    let incarnation = words(parts.get(3)?)?;
    let mut server = Server {
        incarnation: Some(Incarnation(incarnation.to_owned())),
        // Whatever is set now: what counts is what was set when the last commits were made.
        durable: false,
        unnoted: Served::NOTHING,
        lag: match incarnation.contains('-') {
            true => LAG,
            false => Duration::ZERO,
        },
    };
    let mut entries = std::collections::BTreeMap::new();
    for pair in array(parts.get(4)?)?.chunks_exact(2) {
        let key = words(&pair[0])?;
        if key.is_empty() {
            let seconds = u64::try_from(number(&pair[1])?).ok()?;
            server.unnoted = Served::For(Duration::from_secs(seconds));
        } else {
            entries.insert(key.to_owned(), entry(array(&pair[1])?)?);
        }
    }
    let found = Found {
        entries,
        now: time(epoch, now),
        server,
        refuses: None,
    };
    let policy = words(parts.get(5)?)?;
    Some(Answer {
        outcome,
        found: Box::new(found),
        evicts: Some(policy.to_owned()).filter(|policy| !policy.is_empty()),
    })
}

/// The server has one clock.
fn time(epoch: &str, ms: i64) -> StoreTime {
    StoreTime {
        epoch: ClockEpoch(epoch.to_owned()),
        stamp: Stamp {
            tick_ms: ms,
            wall: WallTime(ms),
        },
    }
}

/// An entry of a hash. A malformed number counts as 0: only people write one.
fn entry(fields: &[Value]) -> Option<Entry> {
    let mut all = Fields::new();
    for pair in fields.chunks_exact(2) {
        all.insert(lossy(&pair[0])?, lossy(&pair[1])?);
    }
    let mut take = |name: &str| all.remove(name).unwrap_or_default();
    let version = take("version");
    let number = take("number").parse().unwrap_or_default();
    let epoch = take("clock_epoch");
    // A malformed stamp belongs to no clock: its age is unknown.
    let stamp = match take("stamped_at_ms").parse() {
        Ok(ms) => time(&epoch, ms),
        Err(_) => time("", 0),
    };
    Some(Entry {
        version,
        stamp,
        number,
        fields: all,
    })
}

pub(super) fn array(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(values) => Some(values),
        _ => None,
    }
}

pub(super) fn words(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

fn lossy(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        other => words(other).map(str::to_owned),
    }
}

pub(super) fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        other => words(other)?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::redis::any_value::values;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn list(texts: &[&str]) -> Value {
        Value::Array(texts.iter().map(|text| bulk(text)).collect())
    }

    fn answer(outcome: &str, entries: Vec<Value>) -> Value {
        let head = [outcome, "1700", "e1", "i1"].map(bulk);
        let all = head.into_iter().chain([Value::Array(entries), bulk("")]);
        Value::Array(all.collect())
    }

    fn found(value: &Value) -> Found {
        *answered(value).unwrap().found
    }

    #[test]
    fn an_answer_has_the_time_the_server_and_its_entries() {
        let fields = [
            "version",
            "7",
            "stamped_at_ms",
            "1600",
            "clock_epoch",
            "e0",
            "state",
            "free",
        ];
        let found = found(&answer("done", vec![bulk("token:g"), list(&fields)]));
        assert_eq!(found.now, time("e1", 1700));
        assert_eq!(found.server.incarnation, Some(Incarnation("i1".into())));
        assert_eq!(
            found.server.unnoted,
            Served::NOTHING,
            "the note was not asked for"
        );
        let entry = &found.entries["token:g"];
        assert_eq!((entry.version.as_str(), entry.number), ("7", 0));
        assert_eq!(entry.stamp, time("e0", 1600));
        assert_eq!(entry.fields["state"], "free");
    }

    #[test]
    fn without_a_note_it_says_how_long_the_server_has_kept_everything() {
        let found = found(&answer("done", vec![bulk(""), bulk("12")]));
        let twelve = Duration::from_secs(12);
        assert_eq!(found.server.unnoted, Served::For(twelve));
    }

    /// A time that can't be read must not look old: its holder would be taken over.
    #[test]
    fn a_malformed_stamp_has_no_age() {
        for stamp in ["", "x", "1e3"] {
            let fields = ["version", "7", "stamped_at_ms", stamp, "clock_epoch", "e1"];
            let found = found(&answer("done", vec![bulk("token:g"), list(&fields)]));
            let StoreTime { epoch, stamp } = &found.entries["token:g"].stamp;
            assert_eq!(found.now.age_of(*stamp, Some(epoch)), None);
        }
    }

    #[test]
    fn what_is_no_answer_is_none() {
        for value in [
            Value::Nil,
            Value::Okay,
            list(&["done"]),
            list(&["else", "1", "e", "i"]),
            answer("done", vec![bulk("token:g"), bulk("x")]),
        ] {
            assert!(answered(&value).is_none(), "{value:?}");
        }
        let replica = list(&["replica", "db1", "6379"]);
        let said = refused(&replica);
        assert!(matches!(said, Some(Said::Replica(of)) if of == "db1:6379"));
    }

    #[test]
    fn a_script_is_sent_without_its_comments() {
        let Scripts { read, commit } = Scripts::new();
        assert!(!read.contains("--") && !commit.contains("--"));
        assert!(read.len() < 3_300, "{}", read.len());
    }

    proptest! {
        #[test]
        fn no_answer_panics(
            value in values(),
            entries in proptest::collection::vec(values(), 0..4),
        ) {
            for value in [value, answer("done", entries)] {
                let _ = refused(&value);
                let _ = answered(&value);
            }
        }
    }
}
