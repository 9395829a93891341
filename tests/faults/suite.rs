//! A suite from begin to end: faults, silence, a last run, and the check.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::Duration;

use super::call::{LONGEST_WAIT, Paths};
use super::check::{Violation, check};
use super::database::{Database, Sqlite};
use super::evidence::{Ended, Evidence, Record};
use super::faults::Faults;
use super::job::Plan;
use super::mysql::Mysql;
use super::options::{Options, STORES};
use super::postgres::Postgres;
use super::quorum::{ETCD, QUORUM, Quorum, ZOOKEEPER};
use super::random::Random;
use super::redis::Redis;
use super::stamps::now;
use super::world::{World, lock_files, node_name};

/// The tolerance of a busy machine for the time in which no job runs.
const SLACK: Duration = Duration::from_secs(3);

/// How long the last ones may take to end: a job's life, its end, its record.
const PATIENCE: Duration = Duration::from_secs(60);

/// Plays a suite. Says whether nothing was wrong.
pub(crate) fn play(options: &Options, store: &str) -> bool {
    tokenrun::sys::process::become_subreaper().unwrap();
    let played = catch_unwind(AssertUnwindSafe(|| play_and_check(options, store)));
    World::end_all_processes();
    played.unwrap_or(false)
}

fn play_and_check(options: &Options, store: &str) -> bool {
    println!(
        "seed {} (--seed {0} plays these faults again)",
        options.seed
    );
    // Kept if anything is wrong, a panic of this suite included.
    let made = tempfile::Builder::new().prefix("faults-").tempdir();
    let folder = &made.unwrap().keep();
    let several = |kind| -> Box<dyn Database> {
        Box::new(Quorum::new(kind, folder, options.nodes, &options.program))
    };
    let database: Box<dyn Database> = match store {
        "sqlite" => Box::new(Sqlite::new(folder)),
        "postgres" => Box::new(Postgres::new(folder, options.nodes)),
        "mysql" => Box::new(Mysql::new(folder, options.nodes)),
        "redis" => Box::new(Redis::new(folder, options.nodes, &options.program)),
        "etcd" => several(ETCD),
        "zookeeper" => several(ZOOKEEPER),
        "quorum" => several(QUORUM),
        other => panic!("--store {other}: there are {}", STORES.join(", ")),
    };
    let place = Paths {
        program: options.program.clone(),
        folder: folder.to_owned(),
    };
    let random = Random::new(options.seed);
    let mut world = World::new(place, random, database, (options.groups, options.nodes));
    if !options.locks {
        world.database.forbid_locks();
    }
    let mut faults = Faults::new(options.locks);
    let begun = now();
    while now() - begun < nanos(options.length) {
        for index in world.call_those_due(false) {
            faults.ambush(&mut world, index);
        }
        faults.turn(&mut world);
        world.turn();
    }
    faults.end(&mut world);
    let evidence = wind_up(&mut world, &mut faults);
    let violations = check(&evidence);
    figures(&evidence, &faults, options, violations.len());
    if !violations.is_empty() {
        tell(&violations, &world);
        println!("the evidence is in {}", folder.display());
        return false;
    }
    // The server writes into the folder.
    drop(world);
    std::fs::remove_dir_all(folder).unwrap();
    true
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap()
}

/// Lets a job run again, then lets all end, and collects the evidence.
fn wind_up(world: &mut World, faults: &mut Faults) -> Evidence {
    world.log.say("no more faults");
    let over_at = now();
    let idle = Duration::from_nanos(LONGEST_WAIT) + SLACK + world.database.patience();
    let groups = world.groups();
    let longest = idle + Duration::from_nanos(Plan::LONGEST);
    let _ = world.until(longest, |world| {
        world.call_those_due(true);
        (world.ran_since(over_at) == groups).then_some(())
    });
    world.log.say("no more calls");
    let _ = world.until(PATIENCE, |world| world.live.is_empty().then_some(()));
    let mut left = Vec::new();
    let files = lock_files(&world.database.locks()).len();
    world.age_lock_files();
    for group in groups {
        if !world.run_plainly(&group, idle) {
            left.push(format!("{group}: a last run did not succeed"));
        }
    }
    let _ = world.until(PATIENCE, |world| world.live.is_empty().then_some(()));
    left.extend(world.left());
    let history = history(world);
    let all = std::mem::take(&mut world.over).into_iter();
    let all = all.chain(std::mem::take(&mut world.live));
    Evidence {
        calls: all.map(|live| live.into_evidence(&world.place)).collect(),
        history,
        hindered: std::mem::take(&mut faults.hindered),
        lost: std::mem::take(&mut faults.lost),
        lock_files: files,
        left,
        recovery: Some((over_at, nanos(idle))),
    }
}

fn history(world: &World) -> Vec<Record> {
    let url = world.database.url(&node_name(0));
    let mut command = Command::new(&world.place.program);
    command.args(["history", "--json", "-n", "1000000", "--store", &url]);
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "history: {error}");
    let all: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    // Acts of operators have none.
    let runs = all.into_iter().filter(|it| it.get("outcome").is_some());
    runs.map(|it| serde_json::from_value(it).unwrap()).collect()
}

fn counted<T: Ord>(all: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_default() += 1;
    }
    counts
}

fn figures(evidence: &Evidence, faults: &Faults, options: &Options, violations: usize) {
    let line = |what: &str, count: usize| println!("{what:<48} {count:>7}");
    let runs = evidence.calls.iter().filter(|call| !call.lives.is_empty());
    line(
        "seconds of faults",
        usize::try_from(options.length.as_secs()).unwrap(),
    );
    line("calls", evidence.calls.len());
    line("runs that left evidence", runs.count());
    let stamping = evidence.calls.iter().map(|call| call.lives.len());
    line("processes that left evidence", stamping.sum());
    println!("runs by grant:");
    for (grant, count) in counted(evidence.history.iter().map(|record| &record.grant)) {
        line(&format!("  {grant}"), count);
    }
    println!("runs by outcome:");
    for (outcome, count) in counted(evidence.history.iter().map(|record| &record.outcome)) {
        line(&format!("  {outcome}"), count);
    }
    for outcome in ["lost", "unknown"] {
        let count = evidence.without_cause(outcome);
        line(&format!("  {outcome}, and no fault explains it"), count);
    }
    let idle = Duration::from_nanos(evidence.longest_idle()).as_millis();
    line(
        "longest time without a run, ms",
        usize::try_from(idle).unwrap(),
    );
    line("lock files of dead runs, swept", evidence.lock_files);
    println!("calls by end:");
    let ends = evidence.calls.iter().filter_map(|call| Some(call.ended?.1));
    let name = |ended| match ended {
        Ended::Code(1..=60) => "  the job's own failure".to_owned(),
        Ended::Code(code) => format!("  exit status {code}"),
        Ended::Signal(signal) => format!("  killed by signal {signal}"),
    };
    for (end, count) in counted(ends.map(name)) {
        line(&end, count);
    }
    println!("faults by kind:");
    for (kind, count) in &faults.counts {
        line(&format!("  {kind}"), usize::try_from(*count).unwrap());
    }
    let all: u64 = faults.counts.values().sum();
    line("faults", usize::try_from(all).unwrap());
    line("violations", violations);
}

fn tell(violations: &[Violation], world: &World) {
    println!("\nthe last events (CLOCK_MONOTONIC, and since the begin):");
    for line in world.log.last() {
        println!("{line}");
    }
    println!("\nviolations:");
    for violation in violations {
        println!("{violation}");
    }
}
