//! Many processes at once: on a missing file, and on one group.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::SqliteStore;
use super::test_process::{TestProcess, part, wait_to_be_let_go};
use crate::store::{Records as _, RunQuery, Tokens as _};
use crate::token::record::fixture::{SUCCESS, run_of};
use crate::token::swap::{grant, release};
use crate::token::{
    About, Claim, ClientId, GrantKind, GroupName, Outcome, SessionId, Swapped, Timing, Version,
    Wishes,
};

const PROCESSES: usize = 200;

fn claim(group: &str, session: SessionId) -> Claim {
    Claim {
        group: GroupName::new(group).unwrap(),
        client: ClientId::new("a").unwrap(),
        session,
        expected: None,
        failback: false,
        nested_in: None,
        timing: Timing::new(&Wishes::default()).unwrap(),
        about: About::default(),
    }
}

/// A version that no other process draws.
fn version(n: u32) -> Version {
    Version::from_random((u64::from(std::process::id()) << 32 | u64::from(n)) << 1)
}

/// Waits for the start signal, then claims a group; later takes a group of its own through a whole
/// run. Prints the result.
fn compete(file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    println!("\nready");
    wait_to_be_let_go();
    let mut store = SqliteStore::open(file, Duration::from_secs(60))?;
    let me = SessionId::from_random(u128::from(std::process::id()));
    let mine = claim("contested", me.clone());
    let reading = store.read(&mine.group)?;
    let won = if reading.row.is_some() {
        false
    } else {
        let swap = grant(&mine, GrantKind::Bind, None, &reading.now, version(1));
        // The expiry is not under test here.
        let swap = crate::token::Swap {
            expiry: reading.now.until(Duration::from_secs(3600)),
            ..swap
        };
        matches!(store.swap(&swap)?, Swapped::Done(_))
    };
    let own = claim(&format!("own {}", std::process::id()), me);
    let now = store.read(&own.group)?.now;
    let hour = now.until(Duration::from_secs(3600));
    let mut swap = grant(&own, GrantKind::Bind, None, &now, version(2));
    swap.expiry = hour.clone();
    store.swap(&swap)?;
    let held = store
        .read(&own.group)?
        .row
        .ok_or("the grant is not there")?;
    let swapped = store.swap(&release(
        &held,
        run_of(&held).ended(SUCCESS),
        version(3),
        hour,
    ))?;
    if !matches!(swapped, Swapped::Done(_)) {
        return Err(format!("the release of a token of one's own: {swapped:?}").into());
    }
    println!("\nresult: {}", if won { "won" } else { "refused" });
    Ok(())
}

#[test]
fn two_hundred_processes_start_on_a_missing_file_and_one_wins() {
    if let Some(file) = part() {
        if let Err(error) = compete(&file) {
            println!("\nresult: {error}");
        }
        return;
    }
    let test = "store::sqlite::contention_tests::two_hundred_processes_start_on_a_missing_file_and_one_wins";
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("deep/er/tokens.db");
    let mut processes: Vec<TestProcess> = (0..PROCESSES)
        .map(|_| TestProcess::start(TestProcess::command(test, &path)))
        .collect();
    for test_process in &mut processes {
        test_process.heard("ready");
    }
    // All at once: the end of their standard input is the start signal.
    for test_process in &mut processes {
        test_process.let_go();
    }
    let results: Vec<String> = processes
        .iter_mut()
        .map(|test_process| test_process.heard("result: "))
        .collect();
    processes.into_iter().for_each(TestProcess::finish);
    let count = |word: &str| results.iter().filter(|result| *result == word).count();
    assert_eq!(count("won"), 1, "{results:?}");
    assert_eq!(count("refused"), PROCESSES - 1, "{results:?}");

    let check: String = Connection::open(&path)
        .unwrap()
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
    let mut store = SqliteStore::open(&path, Duration::from_secs(1)).unwrap();
    assert_eq!(store.list().unwrap().rows.len(), PROCESSES + 1);
    let runs = store.runs(&RunQuery::default()).unwrap();
    let succeeded = runs.iter().filter(|run| run.outcome == Outcome::Succeeded);
    assert_eq!(succeeded.count(), PROCESSES);
    let log = std::fs::metadata(crate::sys::sqlite_files::companion(&path, "-wal")).unwrap();
    assert!(
        log.len() < 4 << 20,
        "the log has grown to {} bytes",
        log.len()
    );
}

/// True if this process has SQLite's shared lock on a database, which keeps others from removing
/// the log. The list can lose a line while others change.
fn is_locked(database: &Path) -> bool {
    let inode = std::fs::metadata(database).unwrap().ino();
    let ours = format!(" READ {} ", std::process::id());
    (0..20).any(|_| {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ") + " ";
        locks
            .lines()
            .map(words)
            .any(|line| line.contains(&ours) && line.contains(&format!(":{inode} ")))
    })
}

#[test]
fn handles_of_one_process_do_not_drop_each_others_locks() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("tokens.db");
    let open = || SqliteStore::open(&path, Duration::from_secs(1)).unwrap();
    let first = open();
    assert!(is_locked(&path));
    let second = open();
    assert!(is_locked(&path));
    drop(second);
    drop(open());
    assert!(is_locked(&path));
    drop(first);
    assert!(!is_locked(&path));
}
