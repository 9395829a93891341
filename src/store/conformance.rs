//! What every store must do. Each test runs on each store: a store is added
//! with a [`Fixture`] and one line `on_store!`.

mod line;
mod strategies;

use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::Duration;

use proptest::prelude::*;

use self::line::*;
use super::memory::MemoryStore;
use super::postgres::server::{Database, Server};
use super::postgres::{PostgresStore, settings};
use super::sqlite::SqliteStore;
use super::sqlite::clock::Clock;
use super::{ActQuery, Advanced, HistoryQuery, Retention, Store};
use crate::token::operator::{Act, Effect, perform};
use crate::token::swap::{creation, grant, heartbeat, release};
use crate::token::{
    About, ActRecord, Actor, Claim, ClientId, Domain, Fence, GrantKind, GroupName, History,
    Outcome, Pause, ResourceName, Row, RunEnd, RunId, RunRecord, SessionId, Stamp, State,
    StoreTime, Swap, Swapped, Timing, Touch, Version, Wishes,
};

/// Data of its own, and a clock that the test turns.
pub(crate) trait Fixture: Sync {
    /// A further handle on the same data.
    fn store(&self) -> Box<dyn Store>;

    /// The store's time.
    fn now(&self) -> StoreTime;

    /// Sets the store's time: its tick, its wall clock, its domain.
    fn set_clock(&self, to: StoreTime);

    /// What the store can tell of this stamp: one that has a single clock keeps only
    /// the wall time.
    fn told(&self, stamp: Stamp) -> Stamp {
        stamp
    }

    /// Lets time pass.
    fn advance(&self, by: Duration) {
        self.set_clock(self.now().plus(by));
    }
}

struct InMemory(MemoryStore);

impl InMemory {
    fn new() -> Self {
        Self(MemoryStore::new())
    }
}

impl Fixture for InMemory {
    fn store(&self) -> Box<dyn Store> {
        Box::new(self.0.clone())
    }

    fn now(&self) -> StoreTime {
        self.0.now()
    }

    fn set_clock(&self, to: StoreTime) {
        self.0.set_clock(to);
    }
}

/// A clock that stands still until it is turned.
pub(crate) struct TurnedClock(Mutex<StoreTime>);

impl TurnedClock {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(MemoryStore::new().now()))
    }

    pub(crate) fn set(&self, to: StoreTime) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = to;
    }
}

impl Clock for TurnedClock {
    fn now(&self) -> StoreTime {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

struct InSqlite {
    directory: tempfile::TempDir,
    clock: Arc<TurnedClock>,
}

impl InSqlite {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            clock: Arc::new(TurnedClock::new()),
        }
    }
}

impl Fixture for InSqlite {
    fn store(&self) -> Box<dyn Store> {
        let path = self.directory.path().join("tokens.db");
        let clock = Box::new(Arc::clone(&self.clock));
        Box::new(SqliteStore::open_with_clock(&path, Duration::from_secs(10), clock).unwrap())
    }

    fn now(&self) -> StoreTime {
        self.clock.now()
    }

    fn set_clock(&self, to: StoreTime) {
        self.clock.set(to);
    }
}

struct InPostgres {
    database: Database<'static>,
    clock: TurnedClock,
}

/// What [`InPostgres`] turns.
const TURNED: &str = "SELECT now, now_domain FROM turned LIMIT 1";

impl InPostgres {
    fn new() -> Self {
        let this = Self {
            database: Server::shared().database(),
            clock: TurnedClock::new(),
        };
        this.database
            .sql("CREATE TABLE turned (now timestamptz NOT NULL, now_domain text NOT NULL)");
        this.set_clock(this.clock.now());
        this
    }
}

impl Fixture for InPostgres {
    fn store(&self) -> Box<dyn Store> {
        let settings = settings(&self.database.url(), "conformance").unwrap();
        let mut store = PostgresStore::new(settings, Duration::from_secs(10)).with_clock(TURNED);
        store.init().unwrap();
        Box::new(store)
    }

    fn now(&self) -> StoreTime {
        self.clock.now()
    }

    fn set_clock(&self, to: StoreTime) {
        let wall_ms = to.stamp.wall_ms;
        let domain = to.domain.0.replace('\'', "''");
        self.clock.set(StoreTime {
            stamp: self.told(to.stamp),
            ..to
        });
        self.database.sql(&format!(
            "BEGIN; DELETE FROM turned; INSERT INTO turned
             VALUES ('epoch'::timestamptz + {wall_ms} * interval '1 ms', '{domain}'); COMMIT"
        ));
    }

    fn told(&self, stamp: Stamp) -> Stamp {
        Stamp {
            tick_ms: stamp.wall_ms,
            ..stamp
        }
    }
}

/// Lists the tests; makes the macro that runs them all on one store.
macro_rules! suite {
    ($($test:ident),+ $(,)?) => {
        macro_rules! on_store {
            ($store:ident, $fixture:expr) => {
                mod $store {
                    use super::*;
                    $(
                        #[test]
                        fn $test() {
                            super::$test(&$fixture);
                        }
                    )+
                }
            };
        }
    };
}

suite!(
    an_unknown_group_has_no_row_but_a_time,
    two_claims_race_one_wins,
    a_conflict_changes_nothing,
    a_swap_of_a_row_that_is_not_there_conflicts,
    an_expired_swap_changes_nothing_and_is_no_conflict,
    a_swap_happens_until_its_last_millisecond,
    an_expiry_of_another_domain_has_expired,
    a_conflict_is_told_before_an_expiry,
    fence_survives_release,
    heartbeat_of_a_lost_session_changes_nothing,
    stamps_are_the_stores_own,
    operators_stamp_nothing,
    a_stamp_is_told_to_the_millisecond_in_every_domain,
    every_column_comes_back_as_written,
    every_column_of_a_record_comes_back_as_written,
    a_grant_opens_a_record_and_makes_the_vanished_one_unknown,
    a_vanished_record_that_was_closed_stays_closed,
    a_release_closes_the_record_in_the_same_swap,
    a_release_that_does_not_happen_closes_no_record,
    a_session_closes_its_own_record_late_but_never_twice,
    a_record_of_nobody_is_no_error,
    history_is_newest_first_by_group_and_limited,
    history_is_filtered_by_client_outcome_and_time,
    an_act_is_recorded_in_the_swap_that_does_it,
    an_act_that_does_not_happen_is_not_recorded,
    acts_are_newest_first_by_group_time_and_limited,
    a_key_is_done_by_the_swap_that_records_success,
    a_key_is_done_at_most_once_and_by_a_late_record_too,
    a_key_is_forgotten_in_the_swap_of_an_act,
    a_raised_fence_is_recorded_and_the_next_grant_is_higher,
    a_mark_never_falls_and_each_resource_has_its_own,
    of_marks_set_at_once_the_highest_stays,
    what_is_too_old_is_pruned_and_the_newest_run_stays,
    each_end_is_counted_once_and_pruning_takes_no_count_back,
    list_shows_every_group,
    groups_hold_quotes_and_unicode_and_percent_signs,
    a_line_keeps_the_order_of_arrival,
    a_sign_of_life_keeps_the_place_and_takes_the_stores_time,
    who_leaves_the_line_is_not_in_it,
    a_grant_takes_the_session_out_of_the_line_and_nobody_else,
    a_grant_that_does_not_happen_leaves_the_line_as_it_is,
    a_place_is_forgotten_after_a_minute,
    a_line_is_of_one_group,
    a_line_that_many_join_at_once_has_one_order,
);

on_store!(memory, InMemory::new());
on_store!(sqlite, InSqlite::new());
on_store!(postgres, InPostgres::new());

pub(crate) fn claim(group: &str, client: &str, session: &str) -> Claim {
    Claim {
        group: GroupName::new(group).unwrap(),
        client: ClientId::new(client).unwrap(),
        session: SessionId::new(session).unwrap(),
        expected: None,
        failback: false,
        nested_in: None,
        timing: Timing::new(&Wishes::default()).unwrap(),
        about: About {
            host: Some("host".into()),
            pid: Some(4711),
            program: "run.sh".into(),
            ..About::default()
        },
    }
}

pub(crate) fn version(n: u64) -> Version {
    Version::from_random(n << 1)
}

fn row(store: &mut dyn Store, group: &str) -> Row {
    let group = GroupName::new(group).unwrap();
    store.read(&group).unwrap().row.unwrap()
}

fn runs(store: &mut dyn Store) -> Vec<RunRecord> {
    store.history(&HistoryQuery::default()).unwrap()
}

fn done(swapped: Swapped) -> StoreTime {
    match swapped {
        Swapped::Done(at) => at,
        other => panic!("the swap should have happened: {other:?}"),
    }
}

/// Grants the group to the claim from whatever row there is.
fn grant_to(store: &mut dyn Store, claim: &Claim, n: u64) -> Row {
    let reading = store.read(&claim.group).unwrap();
    let kind = GrantKind::Bind;
    let swap = grant(claim, kind, reading.row.as_ref(), &reading.now, version(n));
    done(store.swap(&swap).unwrap());
    row(store, claim.group.as_str())
}

const SUCCESS: RunEnd = RunEnd {
    marks_once: false,
    outcome: Outcome::Succeeded,
    exit_code: Some(0),
    signal: None,
};

fn ten_seconds_from(fixture: &dyn Fixture) -> StoreTime {
    fixture.now().plus(Duration::from_secs(10))
}

fn an_unknown_group_has_no_row_but_a_time(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let reading = store.read(&GroupName::new("g").unwrap()).unwrap();
    assert_eq!(reading.row, None);
    assert_eq!(reading.now, fixture.now());
    assert_eq!(store.list().unwrap().rows, []);
    assert_eq!(store.list().unwrap().now, fixture.now());
    assert_eq!(runs(store.as_mut()), []);
}

fn two_claims_race_one_wins(fixture: &dyn Fixture) {
    const RACERS: usize = 8;
    let start = Barrier::new(RACERS);
    let wins: Vec<bool> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..RACERS)
            .map(|n| {
                let start = &start;
                scope.spawn(move || {
                    let mut store = fixture.store();
                    let me = claim("g", "client", &format!("s{n}"));
                    let swap = grant(
                        &me,
                        GrantKind::Bind,
                        None,
                        &fixture.now(),
                        version(n as u64),
                    );
                    start.wait();
                    match store.swap(&swap).unwrap() {
                        Swapped::Done(_) => true,
                        Swapped::Conflict => false,
                        Swapped::Expired(_) => panic!("no time has passed"),
                    }
                })
            })
            .collect();
        racers.into_iter().map(|r| r.join().unwrap()).collect()
    });
    assert_eq!(wins.iter().filter(|won| **won).count(), 1);
    let winner = wins.iter().position(|won| *won).unwrap();
    let mut store = fixture.store();
    let session = row(store.as_mut(), "g").session().unwrap().clone();
    assert_eq!(session.as_str(), format!("s{winner}"));
    assert_eq!(runs(store.as_mut()).len(), 1);
}

/// What a store holds, to be compared.
fn everything(store: &mut dyn Store) -> (Vec<Row>, Vec<RunRecord>) {
    (store.list().unwrap().rows, runs(store))
}

fn a_conflict_changes_nothing(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let held = grant_to(store.as_mut(), &claim("g", "a", "s1"), 1);
    let before = everything(store.as_mut());
    let mut stale = held.clone();
    stale.version = version(99);
    let mut swap = grant(
        &claim("g", "b", "s2"),
        GrantKind::Takeover,
        Some(&stale),
        &fixture.now(),
        version(2),
    );
    assert_eq!(store.swap(&swap).unwrap(), Swapped::Conflict);
    swap.from = None;
    assert_eq!(store.swap(&swap).unwrap(), Swapped::Conflict);
    assert_eq!(everything(store.as_mut()), before);
}

fn a_swap_of_a_row_that_is_not_there_conflicts(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let mut swap = creation(&claim("g", "a", "s1"), &fixture.now(), version(1));
    swap.from = Some(version(7));
    assert_eq!(store.swap(&swap).unwrap(), Swapped::Conflict);
    assert_eq!(everything(store.as_mut()), (vec![], vec![]));
}

fn an_expired_swap_changes_nothing_and_is_no_conflict(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let held = grant_to(store.as_mut(), &claim("g", "a", "s1"), 1);
    let before = everything(store.as_mut());
    let beat = heartbeat(&held, version(2), fixture.now());
    let end = release(
        &held,
        held.run().unwrap(),
        SUCCESS,
        version(3),
        fixture.now(),
    );
    fixture.advance(Duration::from_millis(1));
    for swap in [beat, end] {
        let answer = store.swap(&swap).unwrap();
        assert_eq!(answer, Swapped::Expired(fixture.now()));
    }
    assert_eq!(everything(store.as_mut()), before);
}

fn a_swap_happens_until_its_last_millisecond(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let held = grant_to(store.as_mut(), &claim("g", "a", "s1"), 1);
    let beat = heartbeat(&held, version(2), ten_seconds_from(fixture));
    fixture.advance(Duration::from_secs(10));
    assert_eq!(done(store.swap(&beat).unwrap()), fixture.now());
}

fn an_expiry_of_another_domain_has_expired(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let held = grant_to(store.as_mut(), &claim("g", "a", "s1"), 1);
    let beat = heartbeat(&held, version(2), ten_seconds_from(fixture));
    let mut other = fixture.now();
    other.domain = Domain("another".into());
    other.stamp.tick_ms = 0;
    fixture.set_clock(other);
    assert_eq!(store.swap(&beat).unwrap(), Swapped::Expired(fixture.now()));
    assert_eq!(row(store.as_mut(), "g"), held);
}

fn a_conflict_is_told_before_an_expiry(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let held = grant_to(store.as_mut(), &claim("g", "a", "s1"), 1);
    let late = heartbeat(&held, version(2), fixture.now());
    let beat = heartbeat(&held, version(3), ten_seconds_from(fixture));
    done(store.swap(&beat).unwrap());
    fixture.advance(Duration::from_secs(1));
    assert_eq!(store.swap(&late).unwrap(), Swapped::Conflict);
}

fn fence_survives_release(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let mut me = claim("g", "a", "s1");
    me.timing.keep = Duration::ZERO;
    let held = grant_to(store.as_mut(), &me, 1);
    let swap = release(
        &held,
        held.run().unwrap(),
        SUCCESS,
        version(2),
        ten_seconds_from(fixture),
    );
    done(store.swap(&swap).unwrap());
    let free = row(store.as_mut(), "g");
    assert_eq!(free.state, State::Free);
    assert_eq!(free.fence, held.fence);
    let again = grant_to(store.as_mut(), &claim("g", "b", "s2"), 3);
    assert!(again.fence > held.fence);
}

fn heartbeat_of_a_lost_session_changes_nothing(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let lost = grant_to(store.as_mut(), &claim("g", "a", "s1"), 1);
    grant_to(store.as_mut(), &claim("g", "b", "s2"), 2);
    let before = everything(store.as_mut());
    let beat = heartbeat(&lost, version(3), ten_seconds_from(fixture));
    assert_eq!(store.swap(&beat).unwrap(), Swapped::Conflict);
    assert_eq!(everything(store.as_mut()), before);
}

fn stamps_are_the_stores_own(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let second = Duration::from_secs(1);

    let swap = creation(&claim("g", "a", "s1"), &fixture.now(), version(1));
    fixture.advance(second);
    let created = done(store.swap(&swap).unwrap());
    let found = row(store, "g");
    assert_eq!(found.created_at, created.stamp);
    assert_eq!(found.acquired_at, None);

    let me = claim("g", "a", "s1");
    let swap = grant(
        &me,
        GrantKind::Bind,
        Some(&found),
        &fixture.now(),
        version(2),
    );
    fixture.advance(second);
    let granted = done(store.swap(&swap).unwrap());
    let held = row(store, "g");
    assert_eq!(held.created_at, created.stamp);
    assert_eq!(held.acquired_at, Some(granted.stamp));
    assert_eq!(heartbeat_at(&held), granted.stamp);
    assert_eq!(runs(store)[0].started_at_ms, granted.stamp.wall_ms);

    let swap = heartbeat(&held, version(3), ten_seconds_from(fixture));
    fixture.advance(second);
    let beaten = done(store.swap(&swap).unwrap());
    let held = row(store, "g");
    assert_eq!(heartbeat_at(&held), beaten.stamp);
    assert_eq!(held.acquired_at, Some(granted.stamp));

    let swap = release(
        &held,
        held.run().unwrap(),
        SUCCESS,
        version(4),
        ten_seconds_from(fixture),
    );
    fixture.advance(second);
    let released = done(store.swap(&swap).unwrap());
    let idle = row(store, "g");
    let State::Idle { released_at, .. } = idle.state else {
        panic!("{idle:?} should be idle");
    };
    assert_eq!(released_at, released.stamp);
    assert_eq!(runs(store)[0].ended_at_ms, Some(released.stamp.wall_ms));

    let me = claim("new", "a", "s9");
    let swap = grant(&me, GrantKind::Bind, None, &fixture.now(), version(5));
    fixture.advance(second);
    let at_once = done(store.swap(&swap).unwrap());
    assert_eq!(row(store, "new").created_at, at_once.stamp);
}

fn heartbeat_at(row: &Row) -> Stamp {
    match &row.state {
        State::Running { heartbeat_at, .. } => *heartbeat_at,
        other => panic!("{other:?} should be running"),
    }
}

fn operators_stamp_nothing(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let held = grant_to(store.as_mut(), &claim("g", "a", "s1"), 1);
    fixture.advance(Duration::from_secs(60));
    let mut later = fixture.now();
    later.domain = Domain("another".into());
    fixture.set_clock(later.clone());
    let pause = Pause {
        by: "root".into(),
        reason: String::new(),
        until_wall_ms: Some(later.stamp.wall_ms),
    };
    let act = Act::Pause(pause.clone());
    let limit = Duration::from_secs(1);
    let Effect::Swap { swap, .. } = perform(&act, &held, &later, limit, version(2)) else {
        panic!("a pause is a swap");
    };
    assert_eq!(done(store.swap(&swap).unwrap()), later);
    let mut expected = held;
    expected.version = version(2);
    expected.paused = Some(pause);
    assert_eq!(row(store.as_mut(), "g"), expected);
}

fn a_stamp_is_told_to_the_millisecond_in_every_domain(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let odd = StoreTime {
        domain: Domain("a 'domain' of its own, 5 %".into()),
        stamp: Stamp {
            tick_ms: -123_456_789,
            wall_ms: 1_790_000_000_987,
        },
    };
    fixture.set_clock(odd.clone());
    let held = grant_to(store.as_mut(), &claim("g", "a", "s1"), 1);
    assert_eq!(heartbeat_at(&held), fixture.told(odd.stamp));
    assert_eq!(held.domain, odd.domain);
    assert_eq!(held.granted_domain, Some(odd.domain));
}

/// Writes a row as it is, over whatever is there.
fn put(store: &mut dyn Store, fixture: &dyn Fixture, to: &Row, history: History) {
    let from = store.read(&to.group).unwrap().row.map(|row| row.version);
    let swap = Swap {
        from,
        to: to.clone(),
        touch: Touch::Nothing,
        expiry: fixture.now(),
        history,
    };
    done(store.swap(&swap).unwrap());
}

/// A row as the store can tell it.
fn told(fixture: &dyn Fixture, mut row: Row) -> Row {
    row.created_at = fixture.told(row.created_at);
    row.acquired_at = row.acquired_at.map(|stamp| fixture.told(stamp));
    match &mut row.state {
        State::Free => {}
        State::Idle {
            released_at: at, ..
        }
        | State::Running {
            heartbeat_at: at, ..
        } => {
            *at = fixture.told(*at);
        }
    }
    row
}

fn every_column_comes_back_as_written(fixture: &dyn Fixture) {
    let store = Mutex::new(fixture.store());
    proptest!(|(written in strategies::rows(), then in strategies::rows())| {
        let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
        let (written, then) = (told(fixture, written), told(fixture, then));
        // The end of a run, since that is when everything may change.
        let end = || History::End { run: nobodys_run(), end: DONE };
        put(store.as_mut(), fixture, &written, end());
        prop_assert_eq!(&row(store.as_mut(), written.group.as_str()), &written);
        // Nothing of the old row shines through the new.
        let then = Row { group: written.group, ..then };
        put(store.as_mut(), fixture, &then, end());
        prop_assert_eq!(&row(store.as_mut(), then.group.as_str()), &then);
    });
}

fn every_column_of_a_record_comes_back_as_written(fixture: &dyn Fixture) {
    let store = Mutex::new(fixture.store());
    let token = grant_to(fixture.store().as_mut(), &claim("g", "a", "s1"), 1);
    let fence = std::cell::Cell::new(0);
    proptest!(|(written in strategies::records())| {
        let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
        fence.set(fence.get() + 1);
        let run = RunRecord {
            started_at_ms: fixture.now().stamp.wall_ms,
            fence: Fence(fence.get()),
            ..written
        };
        let begin = History::Begin { run: Box::new(run.clone()), vanished: None, waited: false };
        let to = Row { group: run.group.clone(), ..token.clone() };
        put(store.as_mut(), fixture, &to, begin);
        let query = HistoryQuery { group: Some(run.group.clone()), ..HistoryQuery::default() };
        let found = store.history(&query).unwrap();
        prop_assert!(found.contains(&run), "{run:?} is not in {found:?}");
    });
}

fn a_grant_opens_a_record_and_makes_the_vanished_one_unknown(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let first = grant_to(store, &claim("g", "a", "s1"), 1);
    let other = grant_to(store, &claim("other", "a", "s1"), 2);
    fixture.advance(Duration::from_secs(600));
    let second = grant_to(store, &claim("g", "b", "s2"), 3);
    let outcomes: Vec<_> = runs(store)
        .into_iter()
        .map(|run| {
            (
                run.group.to_string(),
                run.fence,
                run.outcome,
                run.ended_at_ms,
            )
        })
        .collect();
    assert_eq!(
        outcomes[0],
        ("g".into(), second.fence, Outcome::Running, None)
    );
    assert!(outcomes.contains(&("g".into(), first.fence, Outcome::Unknown, None)));
    assert!(
        outcomes.contains(&("other".into(), other.fence, Outcome::Running, None)),
        "another group's record is left alone"
    );
    assert_eq!(
        runs(store)[0].previous_client.as_ref().unwrap().as_str(),
        "a"
    );
}

fn a_vanished_record_that_was_closed_stays_closed(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let first = claim("g", "a", "s1");
    let run = grant_to(store, &first, 1).run().unwrap();
    store.record(&first.group, &run, &SUCCESS).unwrap();
    grant_to(store, &claim("g", "b", "s2"), 2);
    let closed = runs(store)
        .into_iter()
        .find(|run| run.session == first.session);
    assert_eq!(closed.unwrap().outcome, Outcome::Succeeded);
}

fn a_release_closes_the_record_in_the_same_swap(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let held = grant_to(store, &claim("g", "a", "s1"), 1);
    fixture.advance(Duration::from_secs(5));
    let end = RunEnd {
        marks_once: false,
        outcome: Outcome::Signalled,
        exit_code: None,
        signal: Some(9),
    };
    let swap = release(
        &held,
        held.run().unwrap(),
        end,
        version(2),
        ten_seconds_from(fixture),
    );
    done(store.swap(&swap).unwrap());
    let run = runs(store).pop().unwrap();
    assert_eq!(run.outcome, Outcome::Signalled);
    assert_eq!((run.exit_code, run.signal), (None, Some(9)));
    assert_eq!(run.ended_at_ms, Some(fixture.now().stamp.wall_ms));
    let idle = row(store, "g");
    assert_eq!(idle.session(), None);
    assert_eq!(idle.last_outcome, Some(Outcome::Signalled));
    assert_eq!(idle.counters.failures, 1);
}

fn a_release_that_does_not_happen_closes_no_record(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let held = grant_to(store, &claim("g", "a", "s1"), 1);
    let conflicting = release(
        &Row {
            version: version(7),
            ..held.clone()
        },
        held.run().unwrap(),
        SUCCESS,
        version(2),
        ten_seconds_from(fixture),
    );
    let expired = release(
        &held,
        held.run().unwrap(),
        SUCCESS,
        version(3),
        fixture.now(),
    );
    fixture.advance(Duration::from_secs(1));
    assert_eq!(store.swap(&conflicting).unwrap(), Swapped::Conflict);
    assert_eq!(
        store.swap(&expired).unwrap(),
        Swapped::Expired(fixture.now())
    );
    assert_eq!(runs(store)[0].outcome, Outcome::Running);
}

fn a_session_closes_its_own_record_late_but_never_twice(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let first = claim("g", "a", "s1");
    let id = grant_to(store, &first, 1).run().unwrap();
    let second = grant_to(store, &claim("g", "b", "s2"), 2).run().unwrap();
    let before = row(store, "g");
    fixture.advance(Duration::from_secs(60));
    let lost = RunEnd {
        marks_once: false,
        outcome: Outcome::Lost,
        exit_code: Some(143),
        signal: None,
    };
    store.record(&first.group, &id, &lost).unwrap();
    let closed_at = fixture.now().stamp.wall_ms;
    fixture.advance(Duration::from_secs(60));
    store.record(&first.group, &id, &SUCCESS).unwrap();
    let foreign = RunId {
        session: id.session,
        ..second
    };
    store.record(&first.group, &foreign, &SUCCESS).unwrap();
    let run = runs(store)
        .into_iter()
        .find(|run| run.session == first.session);
    let run = run.unwrap();
    assert_eq!((run.outcome, run.exit_code), (Outcome::Lost, Some(143)));
    assert_eq!(run.ended_at_ms, Some(closed_at));
    assert_eq!(row(store, "g"), before, "the token is not touched");
    let others = runs(store)
        .into_iter()
        .find(|run| run.session != first.session);
    assert_eq!(others.unwrap().outcome, Outcome::Running);
}

fn nobodys_run() -> RunId {
    RunId {
        fence: Fence(1),
        session: claim("g", "a", "s1").session,
    }
}

fn a_record_of_nobody_is_no_error(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let group = GroupName::new("g").unwrap();
    store.record(&group, &nobodys_run(), &SUCCESS).unwrap();
    assert_eq!(everything(store.as_mut()), (vec![], vec![]));
}

fn history_is_newest_first_by_group_and_limited(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    for n in 0..6 {
        let group = if n % 2 == 0 { "even" } else { "odd" };
        grant_to(store, &claim(group, "a", &format!("s{n}")), n);
        fixture.advance(Duration::from_secs(1));
    }
    let mut sessions = |group: Option<&str>, limit| {
        let group = group.map(|group| GroupName::new(group).unwrap());
        let query = HistoryQuery {
            group,
            limit,
            ..HistoryQuery::default()
        };
        let found = store.history(&query).unwrap();
        let names = found.iter().map(|run| run.session.as_str());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(sessions(None, None), "s5 s4 s3 s2 s1 s0");
    assert_eq!(sessions(None, Some(2)), "s5 s4");
    assert_eq!(sessions(None, Some(0)), "");
    assert_eq!(sessions(Some("even"), None), "s4 s2 s0");
    assert_eq!(sessions(Some("odd"), Some(1)), "s5");
    assert_eq!(sessions(Some("none"), Some(9)), "");
}

fn history_is_filtered_by_client_outcome_and_time(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let mut third = fixture.now();
    for n in 0..4u64 {
        let client = if n % 2 == 0 { "a" } else { "b" };
        let held = grant_to(store, &claim("g", client, &format!("s{n}")), 10 + n);
        let end = RunEnd {
            marks_once: false,
            outcome: if n == 2 {
                Outcome::Failed
            } else {
                Outcome::Succeeded
            },
            exit_code: Some(0),
            signal: None,
        };
        let limit = ten_seconds_from(fixture);
        let swap = release(&held, held.run().unwrap(), end, version(20 + n), limit);
        done(store.swap(&swap).unwrap());
        fixture.advance(Duration::from_secs(1));
        if n == 1 {
            third = fixture.now();
        }
    }
    let mut sessions = |query: HistoryQuery| {
        let found = store.history(&query).unwrap();
        assert!(found.iter().all(|run| query.wants(run)));
        let names = found.iter().map(|run| run.session.as_str());
        names.collect::<Vec<_>>().join(" ")
    };
    let all = HistoryQuery::default();
    for group in [None, Some(GroupName::new("g").unwrap())] {
        let all = HistoryQuery {
            group,
            ..all.clone()
        };
        let of_b = HistoryQuery {
            client: Some(ClientId::new("b").unwrap()),
            ..all.clone()
        };
        assert_eq!(sessions(of_b), "s3 s1");
        let failed = HistoryQuery {
            outcome: Some(Outcome::Failed),
            ..all.clone()
        };
        assert_eq!(sessions(failed), "s2");
        let since = HistoryQuery {
            since_ms: Some(third.stamp.wall_ms),
            ..all.clone()
        };
        assert_eq!(sessions(since), "s3 s2");
        let both = HistoryQuery {
            outcome: Some(Outcome::Succeeded),
            since_ms: Some(third.stamp.wall_ms),
            limit: Some(5),
            ..all
        };
        assert_eq!(sessions(both), "s3");
    }
}

fn actor() -> Actor {
    Actor {
        by: "root (sudo by o'neil)".into(),
        host: Some("jump-host".into()),
        reason: Some("100 % \"quoted\"".into()),
    }
}

/// An act's swap, with its record.
fn act_on(row: &Row, act: &Act, fixture: &dyn Fixture, n: u64) -> (Swap, ActRecord) {
    let now = fixture.now();
    let limit = Duration::from_secs(10);
    let Effect::Swap { mut swap, .. } = perform(act, row, &now, limit, version(n)) else {
        panic!("{act:?} has no effect");
    };
    let record = act.record(row, &now, version(n), actor());
    swap.history = History::Act(Box::new(record.clone()));
    (*swap, record)
}

fn an_act_is_recorded_in_the_swap_that_does_it(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    assert_eq!(store.acts(&ActQuery::default()).unwrap(), []);
    let held = grant_to(store, &claim("g", "a", "s1"), 1);
    let pause = Act::Pause(Pause {
        by: "root".into(),
        reason: String::new(),
        until_wall_ms: Some(fixture.now().stamp.wall_ms + 1_000),
    });
    let (swap, record) = act_on(&held, &pause, fixture, 2);
    fixture.advance(Duration::from_secs(3));
    let at = done(store.swap(&swap).unwrap());
    assert_eq!(at, fixture.now());
    let recorded = ActRecord { at, ..record };
    assert_eq!(store.acts(&ActQuery::default()).unwrap(), [recorded]);
    let paused = row(store, "g");
    assert!(paused.paused.is_some());
    assert_eq!(paused.session_version, held.session_version);
    assert_eq!(
        paused.state, held.state,
        "no operator vouches for a session"
    );
    // A holder reads, adopts the row, and goes on.
    let beat = heartbeat(&paused, version(3), ten_seconds_from(fixture));
    done(store.swap(&beat).unwrap());
    assert_eq!(runs(store).len(), 1);
}

fn an_act_that_does_not_happen_is_not_recorded(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let held = grant_to(store, &claim("g", "a", "s1"), 1);
    let (expired, _) = act_on(&held, &Act::Revoke, fixture, 2);
    let mut conflicting = expired.clone();
    conflicting.from = Some(version(77));
    assert_eq!(store.swap(&conflicting).unwrap(), Swapped::Conflict);
    fixture.advance(Duration::from_secs(11));
    let answer = store.swap(&expired).unwrap();
    assert_eq!(answer, Swapped::Expired(fixture.now()));
    assert_eq!(store.acts(&ActQuery::default()).unwrap(), []);
    assert_eq!(row(store, "g"), held);
}

fn acts_are_newest_first_by_group_time_and_limited(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let begun = fixture.now().stamp.wall_ms;
    for (n, group) in ["one", "two", "one"].into_iter().enumerate() {
        let n = n as u64;
        let held = grant_to(store, &claim(group, "a", &format!("s{n}")), 10 + n);
        let client = ClientId::new(&format!("c{n}")).unwrap();
        let (swap, _) = act_on(&held, &Act::Handoff(client), fixture, 20 + n);
        done(store.swap(&swap).unwrap());
        fixture.advance(Duration::from_secs(1));
    }
    let mut clients = |query: ActQuery| {
        let found = store.acts(&query).unwrap();
        let names = found.into_iter().map(|act| act.client.unwrap().to_string());
        names.collect::<Vec<_>>().join(" ")
    };
    let all = ActQuery::default();
    assert_eq!(clients(all.clone()), "c2 c1 c0");
    let one = ActQuery {
        group: Some(GroupName::new("one").unwrap()),
        ..all.clone()
    };
    assert_eq!(clients(one), "c2 c0");
    let newest = ActQuery {
        limit: Some(1),
        ..all.clone()
    };
    assert_eq!(clients(newest), "c2");
    let late = ActQuery {
        since_ms: Some(begun + 1_000),
        ..all
    };
    assert_eq!(clients(late), "c2 c1");
}

/// A grant with a key.
fn grant_with_key(store: &mut dyn Store, client: &str, key: &str, n: u64) -> Row {
    let mut me = claim("g", client, &format!("s{n}"));
    me.about.once_key = Some(key.into());
    grant_to(store, &me, n)
}

const DONE: RunEnd = RunEnd {
    marks_once: true,
    ..SUCCESS
};

fn a_key_is_done_by_the_swap_that_records_success(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let group = GroupName::new("g").unwrap();
    assert_eq!(store.once(&group, "it's \"1\"").unwrap(), None);
    let held = grant_with_key(store, "a", "it's \"1\"", 1);
    fixture.advance(Duration::from_secs(1));
    let limit = ten_seconds_from(fixture);
    let swap = release(&held, held.run().unwrap(), DONE, version(2), limit);
    let mut conflicting = swap.clone();
    conflicting.from = Some(version(9));
    assert_eq!(store.swap(&conflicting).unwrap(), Swapped::Conflict);
    assert_eq!(store.once(&group, "it's \"1\"").unwrap(), None);
    done(store.swap(&swap).unwrap());
    let mark = store.once(&group, "it's \"1\"").unwrap().unwrap();
    assert_eq!(mark.done_at_ms, fixture.now().stamp.wall_ms);
    assert_eq!((mark.fence, mark.client.as_str()), (held.fence, "a"));
    assert_eq!(store.once(&group, "2").unwrap(), None);
    let other = GroupName::new("h").unwrap();
    assert_eq!(store.once(&other, "it's \"1\"").unwrap(), None);
    let of_group = store.once_marks(Some(&group)).unwrap();
    assert_eq!(of_group, store.once_marks(None).unwrap());
    assert_eq!(of_group, [mark]);
    assert_eq!(store.once_marks(Some(&other)).unwrap(), []);
    // A run without a key marks none.
    let held = grant_to(store, &claim("g", "a", "s7"), 7);
    let limit = ten_seconds_from(fixture);
    let swap = release(&held, held.run().unwrap(), DONE, version(8), limit);
    done(store.swap(&swap).unwrap());
    assert_eq!(store.once_marks(None).unwrap().len(), 1);
}

fn a_key_is_done_at_most_once_and_by_a_late_record_too(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let group = GroupName::new("g").unwrap();
    let first = grant_with_key(store, "a", "k", 1).run().unwrap();
    let second = grant_with_key(store, "b", "k", 2).run().unwrap();
    store.record(&group, &first, &DONE).unwrap();
    let mark = store.once(&group, "k").unwrap().unwrap();
    assert_eq!(mark.client.as_str(), "a");
    fixture.advance(Duration::from_secs(1));
    store.record(&group, &second, &DONE).unwrap();
    assert_eq!(store.once(&group, "k").unwrap(), Some(mark));
    let closed = runs(store)
        .into_iter()
        .filter(|run| run.outcome == Outcome::Succeeded);
    assert_eq!(closed.count(), 2, "both are told as they ended");
    // A record that is closed marks nothing any more.
    let third = grant_with_key(store, "a", "other", 3).run().unwrap();
    let failed = RunEnd {
        outcome: Outcome::Failed,
        ..SUCCESS
    };
    store.record(&group, &third, &failed).unwrap();
    store.record(&group, &third, &DONE).unwrap();
    assert_eq!(store.once(&group, "other").unwrap(), None);
}

fn a_key_is_forgotten_in_the_swap_of_an_act(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let group = GroupName::new("g").unwrap();
    for (n, key) in [(1, "k"), (2, "l")] {
        let run = grant_with_key(store, "a", key, n).run().unwrap();
        store.record(&group, &run, &DONE).unwrap();
    }
    let held = row(store, "g");
    let (swap, record) = act_on(&held, &Act::Forget("k".into()), fixture, 5);
    assert_eq!(record.once_key.as_deref(), Some("k"));
    done(store.swap(&swap).unwrap());
    assert_eq!(store.once(&group, "k").unwrap(), None);
    assert!(store.once(&group, "l").unwrap().is_some());
    assert_eq!(store.acts(&ActQuery::default()).unwrap(), [record]);
    // It can be done again.
    let run = grant_with_key(store, "b", "k", 6).run().unwrap();
    store.record(&group, &run, &DONE).unwrap();
    let mark = store.once(&group, "k").unwrap().unwrap();
    assert_eq!(mark.client.as_str(), "b");
}

fn a_raised_fence_is_recorded_and_the_next_grant_is_higher(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let held = grant_to(store, &claim("g", "a", "s1"), 1);
    let run = RunId {
        fence: held.fence,
        session: SessionId::new("s1").unwrap(),
    };
    let end = release(&held, run, SUCCESS, version(2), ten_seconds_from(fixture));
    done(store.swap(&end).unwrap());
    let mut last = held.fence;
    let far = Fence(held.fence.0 + 1_000_000_000);
    for (n, to) in [(3, None), (4, Some(far))] {
        let before = row(store, "g");
        let (swap, record) = act_on(&before, &Act::Raise(to), fixture, n);
        done(store.swap(&swap).unwrap());
        let raised = row(store, "g");
        assert!(raised.fence > last, "{raised:?}");
        assert_eq!(raised.fence, record.fence);
        let expected = Row {
            fence: raised.fence,
            version: version(n),
            ..before
        };
        assert_eq!(raised, expected, "nothing else is changed");
        last = raised.fence;
    }
    assert_eq!(last, far);
    let recorded = store.acts(&ActQuery::default()).unwrap();
    let fences: Vec<_> = recorded.iter().map(|act| act.fence).collect();
    assert!(fences.contains(&far), "{fences:?}");
    assert_eq!(fences.len(), 2);
    let next = grant_to(store, &claim("g", "a", "s2"), 5);
    assert!(next.fence > far);
}

fn resource(name: &str) -> ResourceName {
    ResourceName::new(name).unwrap()
}

fn a_mark_never_falls_and_each_resource_has_its_own(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let (one, two) = (resource("s3://b/o'neil %"), resource("two"));
    for (n, expected) in [
        (5, Advanced::Stored),
        (5, Advanced::Stored),
        (4, Advanced::Behind(Fence(5))),
        (Fence::MAX, Advanced::Stored),
        (6, Advanced::Behind(Fence(Fence::MAX))),
    ] {
        assert_eq!(store.advance(&one, Fence(n)).unwrap(), expected, "{n}");
    }
    let mut other = fixture.store();
    let behind = Advanced::Behind(Fence(Fence::MAX));
    assert_eq!(other.advance(&one, Fence(7)).unwrap(), behind);
    assert_eq!(other.advance(&two, Fence(1)).unwrap(), Advanced::Stored);
}

fn of_marks_set_at_once_the_highest_stays(fixture: &dyn Fixture) {
    let barrier = Arc::new(Barrier::new(8));
    std::thread::scope(|scope| {
        for n in 1..=8 {
            let barrier = Arc::clone(&barrier);
            scope.spawn(move || {
                let mut store = fixture.store();
                barrier.wait();
                for step in 0..5 {
                    let fence = Fence(step * 8 + n);
                    store.advance(&resource("r"), fence).unwrap();
                }
            });
        }
    });
    let answer = fixture.store().advance(&resource("r"), Fence(1)).unwrap();
    assert_eq!(answer, Advanced::Behind(Fence(40)));
}

fn what_is_too_old_is_pruned_and_the_newest_run_stays(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let group = GroupName::new("g").unwrap();
    let day = Duration::from_secs(86_400);
    for n in 0..6 {
        let run = grant_with_key(store, "a", &format!("k{n}"), 10 + n);
        // The first is never closed.
        if n != 0 {
            store.record(&group, &run.run().unwrap(), &DONE).unwrap();
        }
        grant_to(store, &claim("other", "a", &format!("o{n}")), 30 + n);
        fixture.advance(day);
    }
    let held = row(store, "g");
    let (act, _) = act_on(&held, &Act::Revoke, fixture, 50);
    done(store.swap(&act).unwrap());
    let left = |store: &mut dyn Store| {
        let runs = runs(store).into_iter().filter(|run| run.group == group);
        let names = runs.map(|run| run.session.to_string());
        names.collect::<Vec<_>>().join(" ")
    };
    let retention = |history: Duration, once: Duration| Retention { history, once };
    store.prune(&group, retention(day * 9, day * 9)).unwrap();
    assert_eq!(left(store), "s15 s14 s13 s12 s11 s10");
    store.prune(&group, retention(day * 3, day * 9)).unwrap();
    // The one that was taken over is unknown: over, too.
    assert_eq!(left(store), "s15 s14 s13");
    assert_eq!(
        store.once_marks(None).unwrap().len(),
        5,
        "keys outlive history"
    );
    assert_eq!(store.acts(&ActQuery::default()).unwrap().len(), 1);
    fixture.advance(day * 30);
    store.prune(&group, retention(day, day * 33)).unwrap();
    assert_eq!(
        left(store),
        "s15",
        "whom the token was taken from is found by it"
    );
    assert_eq!(store.acts(&ActQuery::default()).unwrap(), []);
    assert_eq!(store.once_marks(None).unwrap().len(), 3);
    let others = runs(store).into_iter().filter(|run| run.group != group);
    assert_eq!(others.count(), 6, "another group's are its own");
}

/// What is listed as counted, by outcome, without the zeros.
fn counted(store: &mut dyn Store) -> Vec<(&'static str, i64)> {
    let listing = store.list().unwrap();
    let row = listing.rows.first().unwrap();
    let running = matches!(row.state, State::Running { .. });
    let all = row.counters.by_outcome(running).into_iter();
    all.filter(|(_, count)| *count != 0).collect()
}

fn each_end_is_counted_once_and_pruning_takes_no_count_back(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let day = Duration::from_secs(86_400);
    let ends = [
        Outcome::Succeeded,
        Outcome::Succeeded,
        Outcome::Failed,
        Outcome::Signalled,
        Outcome::TimedOut,
        Outcome::Lost,
        Outcome::NotStarted,
    ];
    for (n, outcome) in (10..).zip(ends) {
        let held = grant_to(store, &claim("g", "a", &format!("s{n}")), n);
        let end = RunEnd { outcome, ..SUCCESS };
        let limit = ten_seconds_from(fixture);
        let swap = release(&held, held.run().unwrap(), end, version(100 + n), limit);
        done(store.swap(&swap).unwrap());
        fixture.advance(day);
    }
    let vanished = grant_to(store, &claim("g", "a", "s20"), 20);
    let held = grant_to(store, &claim("g", "b", "s21"), 21);
    let (act, _) = act_on(&held, &Act::Release { force: true }, fixture, 22);
    done(store.swap(&act).unwrap());
    // What sessions say later is history's.
    for run in [&vanished, &held] {
        let run = run.run().unwrap();
        store.record(&held.group, &run, &SUCCESS).unwrap();
    }
    let (act, _) = act_on(&row(store, "g"), &Act::Release { force: true }, fixture, 23);
    done(store.swap(&act).unwrap());
    grant_to(store, &claim("g", "b", "s24"), 24);
    let expected = [
        ("succeeded", 2),
        ("failed", 1),
        ("signalled", 1),
        ("timed_out", 1),
        ("lost", 1),
        ("unknown", 1),
        ("not_started", 1),
        ("forced", 1),
    ];
    assert_eq!(counted(store), expected);
    fixture.advance(day * 30);
    let retention = Retention {
        history: day,
        once: day,
    };
    store.prune(&held.group, retention).unwrap();
    assert_eq!(runs(store).len(), 1, "all else is pruned");
    assert_eq!(counted(store), expected);
    assert_eq!(row(store, "g").counters.runs, 10);
}

fn list_shows_every_group(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    for (n, group) in ["b", "a", "c"].into_iter().enumerate() {
        grant_to(store, &claim(group, "x", &format!("s{n}")), n as u64);
    }
    let listing = store.list().unwrap();
    let groups: Vec<_> = listing.rows.iter().map(|row| row.group.as_str()).collect();
    assert_eq!(groups, ["a", "b", "c"]);
    assert_eq!(listing.now, fixture.now());
    for found in listing.rows {
        assert_eq!(found, row(store, found.group.as_str()));
    }
}

fn groups_hold_quotes_and_unicode_and_percent_signs(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let names = [
        "it's",
        "\"quoted\"",
        "100 %",
        "a_b",
        "a?b=$1",
        "nächtlich",
        "夜間",
        "'; DROP TABLE tokens;--",
        "A",
        "a",
        "back\\slash",
        "e\u{301}",
        "é",
        " padded ",
    ];
    for (n, name) in names.into_iter().enumerate() {
        grant_to(store, &claim(name, "x", &format!("s{n}")), n as u64);
    }
    for (n, name) in names.into_iter().enumerate() {
        let found = row(store, name);
        assert_eq!(found.group.as_str(), name);
        assert_eq!(found.session().unwrap().as_str(), format!("s{n}"));
        let group = Some(found.group);
        let query = HistoryQuery {
            group,
            ..HistoryQuery::default()
        };
        assert_eq!(store.history(&query).unwrap().len(), 1, "{name}");
    }
    assert_eq!(store.list().unwrap().rows.len(), names.len());
}
