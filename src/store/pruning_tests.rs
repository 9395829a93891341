//! Histories of a store, with clocks that leap, start in 1970 or restart with each boot.

use proptest::prelude::*;

use super::*;
use crate::token::WallTime;
use crate::token::{ClockEpoch, OutputLimits, Stamp};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

fn days(n: u32) -> Duration {
    Duration::from_hours(24) * n
}

fn retention(history: u32, once: u32) -> Retention {
    Retention {
        history: days(history),
        once: days(once),
        outputs: OutputLimits {
            retain: days(history),
            count: 100,
        },
    }
}

/// A group whose job runs from time to time.
struct Life {
    /// True time, in ms.
    now: i64,
    /// By how much the wall clock is wrong.
    wrong_by: i64,
    /// When the clock that can't be set was started, if there is one.
    booted: Option<i64>,
    note: Option<Note>,
    /// The runs, with their true times.
    runs: Vec<(Seen, i64)>,
}

impl Life {
    fn new(has_ticks: bool) -> Self {
        Self {
            now: 1_790_000_000_000,
            wrong_by: 0,
            booted: has_ticks.then_some(1_789_999_000_000),
            note: None,
            runs: Vec::new(),
        }
    }

    fn boot(&mut self) {
        self.booted = self.booted.map(|_| self.now);
    }

    fn time(&self) -> StoreTime {
        let wall = self.now + self.wrong_by;
        let tick_ms = self.booted.map_or(wall, |at| self.now - at);
        StoreTime {
            epoch: ClockEpoch(format!("boot {:?}", self.booted)),
            stamp: Stamp {
                tick_ms,
                wall: WallTime(wall),
            },
        }
    }

    fn run(&mut self) {
        let last = self.runs.last().map_or(0, |(run, _)| run.fence.0);
        let started_at = self.now + self.wrong_by;
        let run = Seen {
            fence: Fence(started_at.max(last + 1)),
            started_at: WallTime(started_at),
        };
        self.runs.push((run, self.now));
    }

    fn prune(&mut self, retention: Retention) {
        let from = self.runs.len().saturating_sub(200);
        let mut newest: Vec<Seen> = self.runs[from..].iter().map(|(run, _)| *run).collect();
        newest.reverse();
        let (last, has_ticks) = (self.note.take(), self.booted.is_some());
        let next = Note::next(last, &self.time(), has_ticks, &mut newest, retention);
        self.note = Note::from_text(&next.to_text());
        assert_eq!(self.note, Some(next));
    }

    /// The age of the youngest outlived run, in ms.
    fn outlived(&self, retention: Retention) -> Option<i64> {
        let fence = self.note.as_ref().unwrap().outlived(retention).once?;
        let mut old = self.runs.iter().rev();
        let (_, at) = old.find(|(run, _)| run.fence <= fence).unwrap();
        Some(self.now - at)
    }

    /// A run and a pruning per night, after which nothing was pruned early.
    fn nights(&mut self, count: u32, retention: Retention, mut night: impl FnMut(&mut Self, u32)) {
        for n in 0..count {
            self.now += DAY;
            night(self, n);
            self.run();
            self.prune(retention);
            self.assert_none_early(retention);
        }
    }

    #[track_caller]
    fn assert_none_early(&self, retention: Retention) {
        if let Some(age) = self.outlived(retention) {
            assert!(age >= millis(retention.once), "{} hours", age / HOUR);
        }
    }

    /// Nothing is pruned later than by this much.
    #[track_caller]
    fn assert_pruned_within(&self, retention: Retention, longest: u32) {
        let age = self.outlived(retention).expect("something is outlived");
        assert!(age <= i64::from(longest) * DAY, "{} days", age / DAY);
    }
}

const EACH: [bool; 2] = [true, false];

#[test]
fn records_are_outlived_soon_after_their_retention_and_a_day() {
    for has_ticks in EACH {
        for (keeps, longest) in [(10, 13), (30, 36), (400, 453)] {
            let retention = retention(keeps, keeps);
            let mut life = Life::new(has_ticks);
            life.nights(keeps, retention, |_, _| {});
            assert_eq!(life.outlived(retention), None);
            life.nights(longest - keeps + 1, retention, |_, _| {});
            life.assert_pruned_within(retention, longest);
        }
    }
}

/// History has a shorter retention than keys: the marks for keys are further apart.
#[test]
fn history_is_outlived_soon_beside_keys_with_a_longer_retention() {
    let retention = retention(30, 400);
    let mut life = Life::new(true);
    for n in 0..300 {
        life.nights(1, retention, |_, _| {});
        let fence = life.note.as_ref().unwrap().outlived(retention).history;
        let age = |(run, at): &&(Seen, i64)| (run.fence == fence?).then_some(life.now - at);
        let age = life.runs.iter().find_map(|run| age(&run));
        assert!(age.is_none_or(|age| age >= 30 * DAY), "{age:?}");
        assert!(n < 36 || age.is_some_and(|age| age <= 36 * DAY), "{age:?}");
    }
}

#[test]
fn a_host_that_restarts_each_day_prunes_too() {
    let retention = retention(30, 30);
    let mut life = Life::new(true);
    life.nights(90, retention, |life, _| life.boot());
    life.assert_pruned_within(retention, 36);
}

#[test]
fn a_leap_of_ten_years_prunes_nothing_early() {
    let retention = retention(10, 10);
    for (has_ticks, boots) in [(true, false), (true, true), (false, false)] {
        let mut life = Life::new(has_ticks);
        life.nights(8, retention, |_, _| {});
        life.wrong_by += 10 * YEAR;
        if boots {
            life.boot();
        }
        for _ in 0..100 {
            life.now += 1_000;
            life.run();
            life.prune(retention);
            assert_eq!(life.outlived(retention), None);
        }
        // Time goes on from there, and so does pruning.
        life.nights(20, retention, |_, _| {});
        life.assert_pruned_within(retention, 13);
        // Back again: time that only this clock shows has to wait.
        life.wrong_by = 0;
        life.nights(20, retention, |_, _| {});
        if has_ticks {
            life.assert_pruned_within(retention, 13);
        }
    }
}

#[test]
fn a_clock_that_starts_in_1970_at_each_boot_prunes_neither_early_nor_never() {
    let retention = retention(10, 10);
    // With and without a run before the clock is right, and after.
    for (before, after) in [(true, true), (false, true)] {
        for boots_a_day in [1, 24] {
            let mut life = Life::new(true);
            life.run();
            life.prune(retention);
            for n in 0..60 * boots_a_day {
                life.now += DAY / i64::from(boots_a_day);
                life.boot();
                // Some boots have only one of them.
                if before || n % 3 == 0 {
                    life.wrong_by = -life.now;
                    life.run();
                    life.prune(retention);
                    life.assert_none_early(retention);
                }
                life.now += 60_000;
                life.wrong_by = 0;
                if after && n % 5 != 0 {
                    life.run();
                    life.prune(retention);
                    life.assert_none_early(retention);
                }
            }
            life.assert_pruned_within(retention, 14);
        }
    }
}

/// A short run prunes once in sixteen times: the other runs are evidence of time.
#[test]
fn runs_between_two_prunings_show_that_time_has_passed() {
    let retention = retention(30, 30);
    for has_ticks in EACH {
        let mut life = Life::new(has_ticks);
        for n in 0..200 {
            life.now += DAY;
            life.boot();
            life.run();
            if n % 16 == 0 {
                life.prune(retention);
                life.assert_none_early(retention);
            }
        }
        life.assert_pruned_within(retention, 30 + 1 + 2 * 16);
    }
}

/// A shorter retention prunes earlier; a longer one is not misled by it.
#[test]
fn another_retention_prunes_nothing_early() {
    let (short, long) = (
        Retention {
            history: Duration::from_millis(500),
            once: Duration::from_millis(500),
            outputs: OutputLimits {
                retain: Duration::from_millis(500),
                count: 100,
            },
        },
        retention(30, 400),
    );
    let mut life = Life::new(true);
    life.run();
    life.prune(short);
    life.now += 999;
    life.run();
    life.prune(short);
    assert_eq!(life.outlived(short), None);
    life.now += 1;
    life.run();
    life.prune(short);
    assert_eq!(life.outlived(short), Some(1_000));
    life.nights(300, long, |life, n| {
        if n % 2 == 0 {
            life.prune(short);
        }
    });
    assert_eq!(life.outlived(long), None);
}

#[test]
fn an_unreadable_note_is_none() {
    for text in ["", "null", "{}", "[1]", "\u{0}", r#"{"lived_ms": 1e99}"#] {
        assert_eq!(Note::from_text(text), None, "{text}");
    }
}

#[test]
fn a_note_stays_short() {
    let retention = retention(30, 400);
    let mut life = Life::new(true);
    for _ in 0..6_000 {
        life.now += 3 * HOUR;
        life.run();
        life.prune(retention);
        let marks = life.note.as_ref().unwrap().marks.len();
        assert!(marks <= 40, "{marks} marks");
    }
    life.assert_pruned_within(retention, 453);
}

/// The events between two prunings.
#[derive(Debug, Clone)]
struct Between {
    hours: i64,
    boots: bool,
    set_back: i64,
}

fn between() -> impl Strategy<Value = Between> {
    let set_back = prop_oneof![4 => Just(0), 1 => 0..=100 * DAY];
    (0_i64..60, any::<bool>(), set_back).prop_map(|(hours, boots, set_back)| Between {
        hours,
        boots,
        set_back,
    })
}

#[test]
fn outputs_are_outlived_first() {
    let keeps = Retention {
        outputs: OutputLimits {
            retain: days(7),
            count: 100,
        },
        ..retention(30, 400)
    };
    let mut life = Life::new(true);
    life.nights(20, keeps, |_, _| {});
    let outlived = life.note.as_ref().unwrap().outlived(keeps);
    assert!(
        outlived.outputs.is_some() && outlived.history.is_none(),
        "{outlived:?}"
    );
    life.nights(20, keeps, |_, _| {});
    let outlived = life.note.as_ref().unwrap().outlived(keeps);
    assert!(
        outlived.outputs > outlived.history && outlived.history.is_some(),
        "{outlived:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// With any other clock events: one leap of any size prunes nothing early.
    #[test]
    fn nothing_is_pruned_early(
        has_ticks: bool,
        steps in proptest::collection::vec(between(), 1..60),
        leap in 0..50 * YEAR,
        when in 0_usize..60,
        keeps in 1_u32..20,
    ) {
        let retention = retention(keeps, keeps);
        let mut life = Life::new(has_ticks);
        for (n, step) in steps.iter().enumerate() {
            life.now += step.hours * HOUR;
            if step.boots {
                life.boot();
            }
            life.wrong_by -= step.set_back;
            if n == when {
                life.wrong_by += leap;
            }
            life.run();
            life.prune(retention);
            let age = life.outlived(retention);
            prop_assert!(age.is_none_or(|age| age >= millis(retention.once)), "{age:?}");
        }
    }

    #[test]
    fn no_note_panics(
        lived_ms: i64,
        wall: i64,
        tick: i64,
        marks: Vec<(i64, i64)>,
        at: i64,
        fence: i64,
    ) {
        let epoch = ClockEpoch("d".into());
        let tick = Some((epoch.0.clone(), tick));
        let note = Note { lived_ms, wall: WallTime(wall), tick, marks };
        let stamp = Stamp { tick_ms: at, wall: WallTime(at) };
        let run = Seen { fence: Fence(fence), started_at: WallTime(at) };
        let (keeps, now) = (retention(1, 2), StoreTime { epoch, stamp });
        let note = Note::next(Some(note), &now, true, &mut [run], keeps);
        let _ = note.outlived(keeps);
    }
}
