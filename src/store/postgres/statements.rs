//! The statements: what stands in the .sql files, with the names filled in. The values of a
//! swap have names there too; those of the other statements have numbers.

macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!("../sql/postgres/", $name, ".sql"))
    };
}

use std::fmt::Write as _;

use super::cells::Value;

/// Where a timeline is the first part of a name. The rest is the same for every server: the
/// place of a log's first segment. A standby refuses to tell it, and can't hold a token.
const TIMELINE: &str = "pg_walfile_name('0/1')";

/// That rest.
pub(super) const FIRST_SEGMENT: &str = "0000000000000000";

/// Values, by the names that the statements have for them.
pub(super) type Named = Vec<(&'static str, Value)>;

/// What a swap does besides the token's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    Nothing,
    Begin,
    BeginAfterVanished,
    End,
    /// With a success that makes a key done.
    EndOnce,
    Act,
    /// An act that forgets a key.
    Forget,
}

impl Beside {
    /// Whether it writes to a table that came after the first ones.
    pub(super) const fn needs_added_tables(self) -> bool {
        matches!(self, Self::EndOnce | Self::Act | Self::Forget)
    }

    /// Whether those in line are told: of the end of a run, and of what an operator does.
    const fn tells(self) -> bool {
        matches!(self, Self::End | Self::EndOnce | Self::Act | Self::Forget)
    }

    /// As [`Self::Begin`], of a session that leaves the line with it.
    const fn begins(self) -> bool {
        matches!(self, Self::Begin | Self::BeginAfterVanished)
    }
}

/// Puts numbers in the place of names, as the protocol wants it. What the statement does not
/// name is not sent, nor are its comments.
fn numbered(statement: &str, mut named: Named) -> (String, Vec<Value>) {
    let lines = statement.lines().map(str::trim_start);
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with("--")).collect();
    let joined = lines.join("\n");
    let mut parts = joined.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut values = Vec::new();
    let mut numbers: Vec<&str> = Vec::new();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_lowercase() && c != '_');
        let (name, rest) = part.split_at(end.unwrap_or(part.len()));
        let known = numbers.iter().position(|it| *it == name);
        let number = known.unwrap_or_else(|| {
            if let Some(at) = named.iter().position(|(it, _)| *it == name) {
                values.push(named.swap_remove(at).1);
            }
            numbers.push(name);
            numbers.len() - 1
        });
        let _ = write!(text, "${}{rest}", number + 1);
    }
    (text, values)
}

/// A quotation's begin and end that this name does not have in it.
fn quote_around(name: &str) -> String {
    let mut tag = "do".to_owned();
    // It grows longer than the name is.
    while name.contains(&format!("${tag}$")) {
        tag.push('_');
    }
    format!("${tag}$")
}

/// Fills the names into statements.
#[derive(Debug, Clone)]
pub(super) struct Statements {
    schema: String,
    schema_text: String,
    /// What a quotation begins and ends with that has names in it.
    quote: String,
    /// The time, when the server was started, and its timeline, in SQL.
    clock: [String; 3],
}

impl Statements {
    /// Statements on the tables of this schema.
    pub(super) fn new(schema: &str) -> Self {
        Self {
            schema: format!("\"{}\"", schema.replace('"', "\"\"")),
            schema_text: format!("'{}'", schema.replace('\'', "''")),
            quote: quote_around(schema),
            clock: ["clock_timestamp()", "pg_postmaster_start_time()", TIMELINE].map(str::to_owned),
        }
    }

    /// The same, with another clock than the server's.
    #[cfg(test)]
    pub(super) fn with_clock(mut self, clock: &str) -> Self {
        self.clock = [
            format!("(SELECT now FROM ({clock}) AS turned)"),
            "NULL::timestamptz".to_owned(),
            format!("(SELECT now_domain || '{FIRST_SEGMENT}' FROM ({clock}) AS turned)"),
        ];
        self
    }

    fn fill(&self, statement: &str) -> String {
        let [now, started, timeline] = &self.clock;
        statement
            .replace("{clock}", sql!("clock"))
            // A standby refuses to tell it: what it has may be old.
            .replace("{primary}", "{timeline} IS NOT NULL")
            .replace("{now}", now)
            .replace("{started}", started)
            .replace("{timeline}", timeline)
            .replace("{domain}", sql!("domain"))
            .replace("{durable}", sql!("durable"))
            .replace("{quote}", &self.quote)
            // Last, and at once: the name may hold anything.
            .split("{schema}")
            .map(|part| part.replace("{schema_text}", &self.schema_text))
            .collect::<Vec<_>>()
            .join(&self.schema)
    }

    /// A swap with its values, as it is sent.
    pub(super) fn bind(&self, swap: &str, named: Named) -> (String, Vec<Value>) {
        let (statement, values) = numbered(swap, named);
        (self.fill(&statement), values)
    }

    /// A group that is there; of another it answers with no row.
    pub(super) fn token_read(&self) -> String {
        let read = sql!("token_read").replace("{found}", "{schema}.tokens AS token");
        self.fill(&read.replace("{where}", "WHERE token.token_group = $1"))
    }

    /// A group that may not be there. It takes longer.
    pub(super) fn token_seek(&self) -> String {
        let found =
            "(VALUES (1)) AS one LEFT JOIN {schema}.tokens AS token ON token.token_group = $1";
        let read = sql!("token_read").replace("{found}", found);
        self.fill(&read.replace("{where}", ""))
    }

    pub(super) fn token_list(&self) -> String {
        self.fill(sql!("token_list"))
    }

    pub(super) fn history(&self, of_group: bool) -> String {
        self.fill(if of_group {
            sql!("history_of_group")
        } else {
            sql!("history")
        })
    }

    pub(super) fn once_read(&self) -> String {
        self.fill(sql!("once_read"))
    }

    pub(super) fn once_list(&self) -> String {
        self.fill(sql!("once_list"))
    }

    pub(super) fn resource_advance(&self) -> String {
        self.fill(sql!("resource_advance"))
    }

    pub(super) fn resource_read(&self) -> String {
        self.fill(sql!("resource_read"))
    }

    pub(super) fn prune_look(&self) -> String {
        self.fill(sql!("prune_look"))
    }

    pub(super) fn prune_note(&self) -> String {
        self.fill(sql!("prune_note"))
    }

    pub(super) fn prune(&self) -> String {
        self.fill(sql!("prune"))
    }

    pub(super) fn token_locker(&self) -> String {
        self.fill(sql!("token_locker"))
    }

    pub(super) fn token_lockers(&self) -> String {
        self.fill(sql!("token_lockers"))
    }

    /// Why a swap was not carried out.
    pub(super) fn token_state(&self) -> String {
        self.fill(sql!("token_state"))
    }

    /// A swap of a row that is there, to be bound: what it sets. A new fence is a new key: nobody
    /// may have locked the old one.
    pub(super) fn update(changes: &str, new_fence: bool, beside: Beside, waited: bool) -> String {
        let lock = if new_fence {
            "FOR UPDATE"
        } else {
            "FOR NO KEY UPDATE"
        };
        let update = sql!("token_update").replace("{lock}", lock);
        let update = update.replace("{changes}", changes);
        let answer = if beside.tells() {
            sql!("token_told")
        } else {
            sql!("token_swapped")
        };
        Self::swap(&update, beside, waited, answer)
    }

    /// A swap of a row that is not there, to be bound: its columns, and what goes into them.
    pub(super) fn insert(
        (columns, values): &(String, String),
        beside: Beside,
        waited: bool,
    ) -> String {
        let insert = sql!("token_insert").replace("{columns}", columns);
        let insert = insert.replace("{values}", values);
        Self::swap(&insert, beside, waited, sql!("token_swapped"))
    }

    fn swap(token: &str, beside: Beside, waited: bool, answer: &str) -> String {
        let runs: &[&str] = match beside {
            Beside::Nothing => &[],
            Beside::Begin => &[sql!("run_begin")],
            Beside::BeginAfterVanished => &[sql!("run_begin"), sql!("run_vanished")],
            Beside::End => &[sql!("run_end")],
            Beside::EndOnce => &[sql!("run_end"), sql!("run_marks")],
            Beside::Act => &[sql!("event_add")],
            Beside::Forget => &[sql!("event_add"), sql!("once_forget")],
        };
        let left = (waited && beside.begins()).then_some(sql!("line_left"));
        let parts = [token].into_iter().chain(runs.iter().copied()).chain(left);
        let parts: Vec<&str> = parts.collect();
        format!("WITH {}{answer}", parts.join(",\n"))
    }

    /// A run by itself, to be bound.
    pub(super) fn record(marks_once: bool) -> String {
        let marks: &[&str] = if marks_once {
            &[sql!("run_marks")]
        } else {
            &[]
        };
        let parts = [sql!("run_record"), sql!("run_end")];
        let parts: Vec<&str> = parts.into_iter().chain(marks.iter().copied()).collect();
        format!("WITH {}{}", parts.join(",\n"), sql!("run_recorded"))
    }

    pub(super) fn schema_version(&self) -> String {
        self.fill(sql!("schema_version"))
    }

    pub(super) fn schema_create(&self) -> String {
        self.fill(sql!("schema_create"))
    }

    pub(super) fn grants(&self) -> String {
        self.fill(sql!("grants"))
    }

    pub(super) fn events(&self) -> String {
        self.fill(sql!("events"))
    }

    pub(super) fn schema_added(&self) -> String {
        self.fill(sql!("schema_added"))
    }

    pub(super) fn schema(&self) -> String {
        format!("{}\n{}", self.fill(sql!("schema")), self.schema_later())
    }

    /// What version 2 has beside version 1.
    pub(super) fn schema_later(&self) -> String {
        self.fill(sql!("schema_2"))
    }

    pub(super) fn doctor_server(&self) -> String {
        self.fill(sql!("doctor_server"))
    }

    pub(super) fn doctor_pooler(&self) -> String {
        self.fill(sql!("doctor_pooler"))
    }

    pub(super) fn doctor_clock(&self) -> String {
        self.fill(sql!("doctor_clock"))
    }

    pub(super) fn doctor_stamps(&self) -> String {
        self.fill(sql!("doctor_stamps"))
    }

    pub(super) fn doctor_rights(&self) -> String {
        self.fill(sql!("doctor_rights"))
    }

    pub(super) fn doctor_replication(&self) -> String {
        self.fill(sql!("doctor_replication"))
    }

    pub(super) fn doctor_limits(&self) -> String {
        self.fill(sql!("doctor_limits"))
    }

    pub(super) fn line_join(&self) -> String {
        self.fill(sql!("line_join"))
    }

    pub(super) fn line_leave(&self) -> String {
        self.fill(sql!("line_leave"))
    }

    pub(super) fn line_list(&self) -> String {
        self.fill(sql!("line_list"))
    }

    /// On which channel those in line for a group listen: 64 bits of FNV-1a, because a
    /// channel's name is shorter than a group's may be. Two groups with one channel only
    /// look more often than they need.
    pub(super) fn channel(&self, group: &str) -> String {
        let bytes = self.schema_text.bytes().chain(group.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("tokenrun_{hash:016x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_numbers_and_only_what_is_named_is_sent() {
        let named = vec![
            ("fence", Value::long(7)),
            ("fence_of", Value::long(8)),
            ("unused", Value::long(9)),
            ("client", Value::text("a")),
        ];
        let statement =
            "-- $unused\nSELECT $client,$fence_of\n  -- also $unused\n+ $client - $fence";
        let (text, values) = numbered(statement, named);
        assert_eq!(text, "SELECT $1,$2\n+ $1 - $3");
        let wanted = [Value::text("a"), Value::long(8), Value::long(7)];
        assert_eq!(values, wanted);
    }
}
