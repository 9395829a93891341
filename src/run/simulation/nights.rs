//! A year of nights: a cron entry on two nodes whose clocks are seconds apart. Every night it runs
//! once, on its node; in the night that the node is gone, on the other.

mod year;

use super::happening::Planned;
use crate::token::GrantKind;
use year::{DAY, DUE, Entry, Gone, LATE, NIGHTS, OFF, PLAIN, Year};

/// How many years each entry is simulated.
const SEEDS: u64 = 12;

/// On which node the entry must run in a night.
type Plan = fn(u64, Gone) -> usize;

/// The entry stays where it went.
fn stays(night: u64, gone: Gone) -> usize {
    usize::from(night >= gone.from) ^ gone.node
}

/// The entry returns in the first night of its node.
fn comes_back(night: u64, gone: Gone) -> usize {
    usize::from((gone.from..gone.until).contains(&night)) ^ gone.node
}

/// The entry returns a night later: that night's slot had run when its node looked.
fn comes_back_a_night_later(night: u64, gone: Gone) -> usize {
    usize::from((gone.from..=gone.until).contains(&night)) ^ gone.node
}

/// A year of this entry, in which its node is gone for some nights. Returns the grants of the
/// nights in which the entry moved.
fn year(seed: u64, entry: Entry, plan: Plan) -> Result<Vec<GrantKind>, String> {
    let mut year = Year::new(seed, entry);
    let dice = &mut year.world.dice;
    let from = dice.within(20, 300);
    let mut gone = Gone {
        node: 0,
        from,
        until: from + dice.within(1, 40),
    };
    let mut moves = Vec::new();
    let mut home = None;
    for night in 0..NIGHTS {
        // The entry's node is known after the first night.
        let here = home.map(|_| plan(night, gone));
        let runs = year.night(night, gone, here)?;
        let [run] = &runs[..] else {
            return Err(format!(
                "seed {seed}, night {night}, {gone:?}: the runs are {runs:?}"
            ));
        };
        let on = usize::from(run.client.as_str() == "n1");
        if home.is_none() {
            gone.node = on;
        }
        if on != plan(night, gone) {
            return Err(format!(
                "seed {seed}, night {night}, {gone:?}: it ran on {on}"
            ));
        }
        if home.replace(on).is_some_and(|home: usize| home != on) {
            moves.push(run.grant);
        }
    }
    Ok(moves)
}

#[track_caller]
fn years(entry: Entry, plan: Plan, moves: &[GrantKind]) {
    for seed in 0..SEEDS {
        assert_eq!(year(seed, entry, plan).unwrap(), moves, "seed {seed}");
    }
}

#[test]
fn an_entry_stays_on_its_node_for_a_year_and_moves_in_the_night_that_it_is_gone() {
    years(PLAIN, stays, &[GrantKind::Takeover]);
}

#[test]
fn it_does_with_options_of_a_users_own_too() {
    let entry = Entry {
        keep: Some(60),
        head_start: Some(30),
        at_least: Some(12 * 3_600),
        expected: true,
        ..PLAIN
    };
    years(entry, stays, &[GrantKind::Takeover]);
}

/// The primary's clock is early, so that it looks first.
#[test]
fn with_failback_an_early_primary_has_it_back_in_its_first_night() {
    let entry = Entry {
        expected: true,
        failback: true,
        early: Some(4_000),
        ..PLAIN
    };
    years(
        entry,
        comes_back,
        &[GrantKind::Takeover, GrantKind::Failback],
    );
}

/// The primary's clock is late, and the job is over when it looks: once is enough for that night.
#[test]
fn with_failback_a_late_primary_has_it_back_a_night_later() {
    let entry = Entry {
        expected: true,
        failback: true,
        early: Some(-4_000),
        job: (10, 1_500, 5),
        ..PLAIN
    };
    let moves = [GrantKind::Takeover, GrantKind::Handoff];
    years(entry, comes_back_a_night_later, &moves);
}

/// A running job keeps its token, but the next night belongs to the primary.
#[test]
fn with_failback_a_primary_that_always_comes_into_a_running_job_has_it_back_a_night_later() {
    let entry = Entry {
        expected: true,
        failback: true,
        early: Some(-4_000),
        job: (60_000, 600_000, 5),
        ..PLAIN
    };
    let moves = [GrantKind::Takeover, GrantKind::Handoff];
    years(entry, comes_back_a_night_later, &moves);
}

/// The simulation detects this: without a head start the earlier node gets the token.
#[test]
fn without_a_head_start_an_entry_moves_for_no_reason() {
    let entry = Entry {
        head_start: Some(0),
        ..PLAIN
    };
    let moved = (0..SEEDS).filter(|seed| year(*seed, entry, stays).is_err());
    assert!(moved.count() > 5);
}

/// The simulation detects this: without keep a late clock runs the entry again.
#[test]
fn without_keep_a_late_clock_runs_an_entry_twice() {
    let entry = Entry {
        keep: Some(0),
        job: (10, 100, 5),
        ..PLAIN
    };
    let violation = year(1, entry, stays).unwrap_err();
    assert!(
        violation.contains("n0") && violation.contains("n1"),
        "{violation}"
    );
}

/// `--wait=1h --once DATE` on both nodes, one of which may lose its power while the job runs.
/// Returns how many nights had a success.
fn year_of_keys(seed: u64, entry: Entry) -> Result<u64, String> {
    let mut year = Year::new(seed, entry);
    let mut nights = 0;
    for night in 0..NIGHTS {
        let due = night * DAY + DUE;
        for node in 0..2 {
            // A clock that is late by minutes comes long after the job has ended.
            let late = match year.world.dice.within(0, 4) {
                0 => year.world.dice.within(0, 2_400_000),
                _ => year.world.dice.within(0, LATE),
            };
            let late = year.off[node] + late;
            year.start(node, due + late, night);
        }
        if year.world.dice.one_in(5) {
            let node = usize::from(year.world.dice.one_in(2));
            let in_the_job = OFF * 2 + LATE + 10_000;
            year.at(due + in_the_job, Planned::PowerOff(node));
        } else {
            let home = usize::from(year.world.dice.one_in(2));
            year.trouble(due, home, true);
        }
        let before = year.world.tally.successes;
        let passed = year.world.pass_until((night + 1) * DAY);
        passed.map_err(|violation| format!("seed {seed}, night {night}: {violation}"))?;
        let successes = year.world.tally.successes - before;
        let key = format!("night {night}");
        let marks = year.world.store.marks.iter();
        let marks = marks.filter(|mark| mark.key == key).count() as u64;
        if successes > 1 || marks != successes {
            return Err(format!(
                "seed {seed}, {key}: {successes} successes, {marks} marks"
            ));
        }
        nights += successes;
    }
    Ok(nights)
}

const KEYS: Entry = Entry {
    once: true,
    ..PLAIN
};

#[test]
fn with_a_key_for_each_night_it_succeeds_once_a_night_even_if_its_node_dies_in_the_job() {
    let entry = Entry {
        job: (60_000, 600_000, u64::MAX),
        ..KEYS
    };
    for seed in 0..SEEDS {
        assert_eq!(year_of_keys(seed, entry), Ok(NIGHTS));
    }
}

#[test]
fn with_a_key_for_each_night_a_failure_is_tried_again_by_the_other_and_a_success_never() {
    let entry = Entry {
        job: (60_000, 600_000, 3),
        ..KEYS
    };
    for seed in 0..SEEDS {
        let nights = year_of_keys(seed, entry).unwrap();
        // Both fail in one night of nine, or the one that is left does.
        // The mean of the seeds is 306, and their standard deviation 7.
        assert!((280..350).contains(&nights), "{nights}");
    }
}
