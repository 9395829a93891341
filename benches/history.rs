//! What a long history costs: `status` and a run of `true` with a million rows of history,
//! next to the same with none; and how long others wait while a million rows are pruned.
//!
//! `cargo bench --bench history` prints two tables for each store; `-- sqlite` or `-- postgres`
//! asks for one.

#![allow(clippy::expect_used, clippy::unwrap_used)]

// The fixture for the tests; not all of it is used here.
#[allow(dead_code, unused_imports, clippy::panic)]
#[path = "../src/store/postgres/test_server.rs"]
mod server;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use server::Server;
use tokenrun::store::open::Opening;
use tokenrun::store::sqlite::SqliteStore;
use tokenrun::store::url::StoreUrl;
use tokenrun::store::{Retention, Store};
use tokenrun::token::{Fence, GroupName, OutputLimits, ResourceName};

/// Rows of history.
const ROWS: u32 = 1_000_000;

/// Pairs per line; the first tenth is not counted.
const PAIRS: usize = 200;

/// What a long history may cost.
const BOUND: f64 = 1.1;

/// How long a commit may wait for pruning.
const LONGEST: Duration = Duration::from_millis(250);

/// What a short run takes, at least.
const BETWEEN_RUNS: Duration = Duration::from_millis(3);

/// For how long it is pruned, at most.
const PRUNED_FOR: Duration = Duration::from_secs(60);

const TIMEOUT: Duration = Duration::from_secs(10);

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let [empty, full] = ["empty.db", "full.db"].map(|name| folder.path().join(name));
    let [empty, full] = [&empty, &full].map(|path| path.to_str().expect("a path"));
    let sqlite = |store: &str, sql: &str| {
        let connection = rusqlite::Connection::open(store).expect("it opens");
        connection.execute_batch(sql).expect("it fills");
    };
    let open = || Box::new(SqliteStore::open(Path::new(full), TIMEOUT).unwrap()) as Box<dyn Store>;
    let wanted = |store: &str| {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let mut asked = words.iter().filter(|word| !word.starts_with('-'));
        let all = asked.clone().next().is_none();
        all || asked.any(|word| word == store)
    };
    if wanted("sqlite") {
        measure(
            "SQLite",
            [empty, full],
            &|age| sqlite(full, &rows_in_sqlite(age)),
            &open,
        );
    }
    if !wanted("postgres") {
        return;
    }
    let server = Server::start(&[]);
    let [empty, full] = [server.database(), server.database()];
    let urls = [empty.url(), full.url()];
    let open = || {
        let opening = Opening {
            timeout: TIMEOUT,
            limit: TIMEOUT,
            application: "bench",
            state: None,
        };
        let url = StoreUrl::parse(&urls[1]).unwrap();
        url.open(&opening, &mut |_| ()).unwrap().store
    };
    let fill = |age: &str| {
        full.sql(&rows_in_postgres(age));
        full.sql("VACUUM ANALYZE tokenrun.runs");
    };
    measure("PostgreSQL", [&urls[0], &urls[1]], &fill, &open);
}

/// A note by which they have lived for long enough.
const NOTE: &str =
    r#"{"lived_ms": 9000000000, "wall_ms": 0, "tick": null, "marks": [[1000000, 0]]}"#;

/// What a run's document holds.
const DOCUMENT: &str =
    r#"{"host": "node-a", "pid": 4711, "program": "job", "grant": "renew", "exit_code": 0}"#;

/// A million runs, of this age or a little less; none before.
fn rows_in_sqlite(age: &str) -> String {
    format!(
        "DELETE FROM runs WHERE session LIKE 'old%';
         WITH RECURSIVE counted(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM counted LIMIT {ROWS})
         INSERT INTO runs SELECT 'g', n, 'old' || n, 'node-a', 'succeeded', at, at, '{DOCUMENT}', at
             FROM (SELECT n, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-{age}', (n / 100) || ' seconds')
                 AS at FROM counted);
         UPDATE tokens SET pruning_note = '{NOTE}';
         PRAGMA wal_checkpoint(TRUNCATE);"
    )
}

/// The same.
fn rows_in_postgres(age: &str) -> String {
    format!(
        "DELETE FROM tokenrun.runs WHERE session LIKE 'old%';
         INSERT INTO tokenrun.runs
         SELECT 'g', n, 'old' || n, 'node-a', 'succeeded', at, at, '{DOCUMENT}', at
         FROM (SELECT n, now() - interval '{age}' + n / 100 * interval '1 second' AS at
             FROM generate_series(1, {ROWS}) AS n) AS counted;
         UPDATE tokenrun.tokens SET pruning_note = '{NOTE}'"
    )
}

fn measure(
    name: &str,
    stores: [&str; 2],
    fill: &dyn Fn(&str),
    open: &(dyn Fn() -> Box<dyn Store> + Sync),
) {
    for store in stores {
        timed(store, &["-g", "g", "--", "true"]);
    }
    println!("{name}: {PAIRS} interleaved pairs each; medians in ms\n");
    println!("| what | {ROWS} rows | none | ratio | bound |\n|---|---|---|---|---|");
    // Nothing of it is old enough to be pruned.
    fill("20 days");
    for (what, words) in [
        ("status", &["status"][..]),
        ("a run of `true`", &["-g", "g", "--", "true"]),
        (
            "check --succeeded-within",
            &["check", "-g", "g", "--succeeded-within=26h"],
        ),
        ("history --limit 20", &["history", "--limit=20"]),
        (
            "history -g g --limit 20",
            &["history", "-g", "g", "--limit=20"],
        ),
        ("metrics", &["metrics"]),
    ] {
        let [none, many] = pairs(stores, words);
        let ratio = many.as_secs_f64() / none.as_secs_f64();
        println!(
            "| {what} | {:.2} | {:.2} | {ratio:.2} | {BOUND} |",
            ms(many),
            ms(none)
        );
    }
    fill("60 days");
    prune(stores[1], open);
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// Medians, without and with history.
fn pairs(stores: [&str; 2], words: &[&str]) -> [Duration; 2] {
    let mut times = [Vec::new(), Vec::new()];
    // What takes long is not asked for that often.
    let slow = timed(stores[1], words) > Duration::from_millis(100);
    let count = if slow { PAIRS / 10 } else { PAIRS };
    for number in 0..count + count / 10 {
        for (store, times) in stores.iter().zip(&mut times) {
            let time = timed(store, words);
            if number >= count / 10 {
                times.push(time);
            }
        }
    }
    times.map(median)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn timed(store: &str, words: &[&str]) -> Duration {
    let (verb, rest) = words.split_at(usize::from(!words[0].starts_with('-')));
    let mut command = Command::new(env!("CARGO_BIN_EXE_tokenrun"));
    command.args(verb).args(["-s", store]).args(rest);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let begun = Instant::now();
    let status = command.stderr(Stdio::null()).status().expect("it starts");
    let took = begun.elapsed();
    assert!(status.success(), "{words:?}: {status}");
    took
}

/// Prunes a million rows as if a run ended each few milliseconds and each pruned, while another
/// commits and runs come and go.
fn prune(store: &str, open: &(dyn Fn() -> Box<dyn Store> + Sync)) {
    let group = GroupName::new("g").unwrap();
    let month = Duration::from_secs(30 * 86_400);
    let retention = Retention {
        history: month,
        once: month,
        outputs: OutputLimits {
            retain: month,
            count: 100,
        },
    };
    let batches = ROWS / tokenrun::store::PRUNE_BATCH;
    let over = AtomicBool::new(false);
    let (mut commits, mut runs, mut pruning) = (Vec::new(), Vec::new(), Vec::new());
    let took = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut store, resource) = (open(), ResourceName::new("r").unwrap());
            for number in 1.. {
                let begun = Instant::now();
                store.advance(&resource, Fence(number)).unwrap();
                commits.push(begun.elapsed());
                if over.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                runs.push(timed(store, &["-g", "g", "--", "true"]));
            }
        });
        let started = Instant::now();
        let mut store = open();
        for _ in 0..batches {
            if started.elapsed() > PRUNED_FOR {
                break;
            }
            let begun = Instant::now();
            store.prune(&group, retention).unwrap();
            pruning.push(begun.elapsed());
            std::thread::sleep(BETWEEN_RUNS);
        }
        over.store(true, Ordering::Relaxed);
        started.elapsed()
    });
    let pruned = pruning.len() * tokenrun::store::PRUNE_BATCH as usize;
    let left = timed(store, &["history", "-g", "g", "--limit=1"]);
    let longest = |times: &[Duration]| times.iter().max().copied().unwrap_or_default();
    println!(
        "\n| {pruned} rows are pruned in {:.1} s, meanwhile | count | median | longest | bound |",
        took.as_secs_f64()
    );
    println!("|---|---|---|---|---|");
    for (what, times) in [
        ("another's commit", commits),
        ("a run of `true`", runs),
        ("a batch, its own wait included", pruning),
    ] {
        let (count, worst) = (times.len(), longest(&times));
        let median = ms(median(times));
        println!(
            "| {what} | {count} | {median:.2} | {:.1} | {} |",
            ms(worst),
            LONGEST.as_millis()
        );
    }
    println!("\nafterwards `history` takes {:.2} ms\n", ms(left));
}
