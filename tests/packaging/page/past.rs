//! Stores with a past: rows as runs leave them, by the dozen.

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{Store, boot_ms};

pub(super) const MINUTE: i64 = 60_000;
pub(super) const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;

/// A store whose rows are written by hand, beside one that a run has left.
pub(crate) struct Past {
    store: Store,
    pub(super) sql: Connection,
    /// The wall clock, in milliseconds since 1970.
    now: i64,
    /// Where the next random number comes from.
    seed: u64,
    /// The fence of the last run.
    fence: i64,
}

/// A run that is over.
pub(crate) struct Ran<'a> {
    pub(crate) group: &'a str,
    pub(crate) client: &'a str,
    /// How long ago it began, and how long it took.
    pub(crate) ago: i64,
    pub(crate) took: i64,
    pub(crate) outcome: &'a str,
    /// What else its document has.
    pub(crate) more: Value,
}

impl Past {
    /// One group, `job`, of which a real run is over.
    pub(crate) fn new() -> Self {
        let store = Store::new();
        store.free_run("vm-1").job(&["true"]).end().with_code(0);
        let sql = Connection::open(store.database()).unwrap();
        let text = "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)";
        let now = sql.query_row(text, [], |row| row.get(0)).unwrap();
        Self {
            store,
            sql,
            now,
            seed: 20,
            fence: now - 40 * DAY,
        }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Forgets the group that was there first.
    pub(crate) fn without_the_first(self) -> Self {
        let text = "DELETE FROM tokens WHERE token_group = 'job'; DELETE FROM runs WHERE token_group = 'job'";
        self.sql.execute_batch(text).unwrap();
        self
    }

    /// A number from 0 to `most`, the same in each run of the test.
    pub(super) fn random(&mut self, most: i64) -> i64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        i64::try_from(self.seed >> 33).unwrap() % (most + 1)
    }

    /// Another group: a copy of the first one's token with changes.
    pub(crate) fn group(
        &self,
        name: &str,
        state: &str,
        client: Option<&str>,
        ago: i64,
        change: &Value,
    ) {
        let stamp = |ago: i64| json!({"tick_ms": boot_ms() - ago, "wall_ms": self.now - ago});
        let mut document =
            json!({"stamp_of": "released", "acquired": stamp(ago), "host": client, "keep_ms": 0});
        let mut stamped = ago;
        if state == "running" {
            stamped = 4_000;
            document["stamp_of"] = "heartbeat".into();
            document["run"] =
                json!({"session": format!("s-{name}"), "program": "run.sh", "grant": "renew"});
        }
        merge(&mut document, change);
        if let Some(silent) = document["silent"].as_i64() {
            stamped = silent;
        }
        self.sql
            .execute(
                "INSERT INTO tokens (token_group, version, fence, state, client_bound, expected_client,
                     stamped_at, stamped_tick, clock_epoch, document)
                 SELECT ?1, version, ?2, ?3, ?4, ?5, strftime('%Y-%m-%dT%H:%M:%fZ', ?6 / 1000.0, 'unixepoch'),
                     ?7, clock_epoch, json_patch(document, ?8) FROM tokens WHERE token_group = 'job'",
                rusqlite::params![
                    name,
                    self.fence,
                    state,
                    client,
                    document["expected"].as_str(),
                    self.now - stamped,
                    boot_ms() - stamped,
                    document.to_string(),
                ],
            )
            .unwrap();
    }

    /// A run of a group.
    pub(crate) fn ran(&mut self, run: &Ran<'_>) {
        self.fence += 1;
        let mut document =
            json!({"host": run.client, "pid": 4711, "program": "run.sh", "grant": "renew"});
        if run.outcome == "succeeded" {
            document["exit_code"] = 0.into();
        }
        merge(&mut document, &run.more);
        let begun = self.now - run.ago;
        let time = "strftime('%Y-%m-%dT%H:%M:%fZ', ? / 1000.0, 'unixepoch')";
        let text = format!("INSERT INTO runs VALUES (?, ?, ?, ?, ?, {time}, {time}, ?, {time})");
        let ended = begun + run.took;
        self.sql
            .prepare_cached(&text)
            .unwrap()
            .execute(rusqlite::params![
                run.group,
                self.fence,
                format!("s{}", self.fence),
                run.client,
                run.outcome,
                begun,
                ended,
                document.to_string(),
                ended,
            ])
            .unwrap();
    }

    /// Runs in equal distances for a month, the last one `last` ago; each takes up to `more`
    /// longer than `least`.
    pub(super) fn series(
        &mut self,
        group: &str,
        last: i64,
        every: i64,
        [least, more]: [i64; 2],
        client: impl Fn(i64) -> &'static str,
    ) {
        let mut ago = last + (30 * DAY - last) / every * every;
        let mut before = "";
        while ago >= last {
            let (took, client) = (least + self.random(more), client(ago));
            let grant = match before {
                "" => json!({}),
                it if it == client => json!({}),
                it => json!({"grant": "takeover", "previous_client": it}),
            };
            self.ran(&Ran {
                group,
                client,
                ago,
                took,
                outcome: "succeeded",
                more: grant,
            });
            before = client;
            ago -= every;
        }
    }

    /// Has the run of a group that was at this time end otherwise.
    pub(super) fn fails(&self, group: &str, ago: i64, outcome: &str, more: &Value) {
        let text = "UPDATE runs SET outcome = ?3, document = json_patch(document, ?4)
             WHERE token_group = ?1 AND fence = (SELECT max(fence) FROM runs WHERE token_group = ?1
                 AND started_at <= strftime('%Y-%m-%dT%H:%M:%fZ', ?2 / 1000.0, 'unixepoch'))";
        let params = rusqlite::params![group, self.now - ago, outcome, more.to_string()];
        assert_eq!(self.sql.execute(text, params).unwrap(), 1);
    }

    pub(super) fn act(&self, group: &str, ago: i64, act: &str, reason: &str) {
        let document = json!({"act": act, "by": "alice", "host": "admin", "reason": reason});
        let text = "INSERT INTO acts VALUES (?, strftime('%Y-%m-%dT%H:%M:%fZ', ? / 1000.0, 'unixepoch'), 1, 1, ?)";
        let params = rusqlite::params![group, self.now - ago, document.to_string()];
        self.sql.execute(text, params).unwrap();
    }

    /// Refusals of a client, each an hour or more after the one before.
    pub(super) fn refuses(
        &self,
        group: &str,
        client: &str,
        reason: &str,
        all: impl Iterator<Item = i64>,
    ) {
        let time = "strftime('%Y-%m-%dT%H:%M:%fZ', ?4 / 1000.0, 'unixepoch')";
        let text =
            format!("INSERT INTO refusals VALUES (?1, ?2, ?3, ?3, {time}, {time}, 1, 1, '{{}}')");
        for ago in all {
            let params = rusqlite::params![group, client, reason, self.now - ago];
            self.sql
                .prepare_cached(&text)
                .unwrap()
                .execute(params)
                .unwrap();
        }
    }

    /// All writes are one.
    pub(super) fn at_once(&mut self, write: impl FnOnce(&mut Self)) {
        self.sql.execute_batch("BEGIN").unwrap();
        write(self);
        self.sql.execute_batch("COMMIT").unwrap();
    }

    /// How long ago it was this time of the day, UTC.
    pub(super) fn since(&self, hour: i64) -> i64 {
        (self.now - hour * HOUR).rem_euclid(DAY)
    }
}

/// The fields of `from`, into `into`.
fn merge(into: &mut Value, from: &Value) {
    for (name, value) in from.as_object().unwrap() {
        into[name] = value.clone();
    }
}
