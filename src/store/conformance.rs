//! The promises of every store. Each test runs on each store: a new store needs a [`Fixture`] and
//! one line `on_store!`.

pub(crate) mod acts;
mod counts;
mod fences;
mod fixtures;
mod groups;
mod incarnation;
mod keys;
pub(crate) mod memory_kv;
mod queue;
mod records;
mod refusals;
pub(crate) mod strategies;
mod swaps;

use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::Duration;

use proptest::prelude::*;

use self::acts::*;
use self::counts::*;
use self::fences::*;
use self::fixtures::*;
use self::groups::*;
use self::incarnation::*;
use self::keys::*;
use self::memory_kv::MemoryKv;
use self::queue::*;
use self::records::*;
use self::refusals::*;
use self::swaps::*;
use super::etcd::EtcdKv;
use super::etcd::settings::Settings as EtcdSettings;
use super::etcd::test_server::Cluster as EtcdCluster;
use super::kv::KvStore;
use super::kv::flights::Turned;
use super::model::ModelStore;
use super::mysql::{self, MysqlStore};
use super::postgres::test_server::{Database, Server};
use super::postgres::{PostgresStore, settings};
use super::redis::RedisKv;
use super::redis::quorum::QuorumKv;
use super::redis::settings::Settings as RedisSettings;
use super::redis::test_server::{Quorum, Server as RedisServer};
use super::sqlite::SqliteStore;
use super::sqlite::clock::Clock;
use super::zookeeper::ZkKv;
use super::zookeeper::settings::Settings as ZkSettings;
use super::zookeeper::test_server::Cluster as ZkCluster;
use super::{ActQuery, Advanced, Retention, RunQuery, Store, history};
use crate::token::operator::{Act, Effect, perform};
use crate::token::record::fixture::{SUCCESS, run_of, unheld_run};
use crate::token::swap::{creation, grant, heartbeat, release};
use crate::token::{
    About, ActRecord, Actor, Claim, ClientId, ClockEpoch, Doubt, Fence, GrantKind, GroupName,
    Others, Outcome, Pause, Recorded, ResourceName, Row, RunEnd, RunRecord, Served, SessionId,
    Stamp, State, StoreTime, Swap, Swapped, Timing, Until, Version, WallTime, Wishes,
};

/// A store for a test, with its own data and a clock that the test sets.
pub(crate) trait Fixture: Sync {
    /// Another handle to the same data.
    fn store(&self) -> Box<dyn Store>;

    /// The store's time.
    fn now(&self) -> StoreTime;

    /// Sets the store's time: its tick, its wall clock, its clock epoch.
    fn set_clock(&self, to: StoreTime);

    /// The stamp as the store keeps it: a store with a single clock keeps only the wall time.
    fn as_kept(&self, stamp: Stamp) -> Stamp {
        stamp
    }

    /// How long a new store counts as observed, and why.
    fn when_new(&self) -> (Served, Doubt) {
        (Served::Everything, Doubt::New)
    }

    /// Lets time pass.
    fn advance(&self, by: Duration) {
        self.set_clock(self.now().plus(by));
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
    an_expiry_of_another_epoch_has_expired,
    a_conflict_is_reported_before_an_expiry,
    fence_survives_release,
    heartbeat_of_a_lost_session_changes_nothing,
    stamps_are_the_stores_own,
    operators_stamp_nothing,
    a_stamp_is_kept_to_the_millisecond_in_every_epoch,
    every_column_comes_back_as_written,
    every_column_of_a_record_comes_back_as_written,
    a_grant_makes_the_run_that_vanished_unknown,
    a_vanished_run_that_was_recorded_stays_as_it_is,
    a_release_records_the_run_in_the_same_swap,
    a_release_that_does_not_happen_records_nothing,
    a_forced_release_makes_the_run_unknown_until_its_session_tells,
    two_runs_may_have_one_fence,
    a_session_closes_its_own_record_late_but_never_twice,
    a_run_that_history_lost_is_written_whole_with_its_key,
    a_release_writes_a_run_that_history_lost,
    history_is_newest_first_by_group_and_limited,
    finished_runs_come_by_fence_in_a_group_and_by_start_across_groups,
    history_is_filtered_by_client_outcome_and_time,
    an_act_is_recorded_in_the_swap_that_does_it,
    an_act_that_does_not_happen_is_not_recorded,
    acts_are_newest_first_by_group_time_and_limited,
    a_refusal_is_recorded_with_the_stores_time,
    refusals_that_are_close_are_one_record,
    a_refusal_before_the_last_one_is_recorded,
    refusals_of_other_clients_and_reasons_are_other_records,
    refusals_with_other_names_are_other_records,
    an_output_is_kept_with_its_run,
    a_key_is_done_by_the_swap_that_records_success,
    a_key_is_done_at_most_once_and_by_a_late_record_too,
    keys_come_by_the_time_at_which_they_were_done,
    a_key_is_forgotten_in_the_swap_of_an_act,
    a_raised_fence_is_recorded_and_the_next_grant_is_higher,
    a_mark_never_falls_and_each_resource_has_its_own,
    of_marks_set_at_once_the_highest_stays,
    what_is_too_old_is_pruned_and_the_newest_run_stays,
    outputs_go_before_history,
    of_many_outputs_the_newest_stay,
    a_clock_that_leaps_prunes_nothing_that_has_not_lived_for_so_long,
    a_leap_past_both_retentions_prunes_no_key_that_has_lived_for_history_alone,
    keys_that_are_kept_for_less_than_history_go_first,
    a_host_that_restarts_each_day_prunes_too,
    each_end_is_counted_once_and_pruning_takes_no_count_back,
    list_shows_every_group,
    groups_hold_quotes_and_unicode_and_percent_signs,
    a_line_keeps_the_order_of_arrival,
    a_sign_of_life_keeps_the_place_and_takes_the_stores_time,
    a_sign_of_life_that_comes_too_late_is_none,
    who_leaves_the_line_is_not_in_it,
    a_look_clears_a_notification,
    a_grant_takes_the_session_out_of_the_line_and_nobody_else,
    a_grant_that_does_not_happen_leaves_the_line_as_it_is,
    a_place_is_forgotten_after_a_minute,
    a_line_is_of_one_group,
    a_line_that_many_join_at_once_has_one_order,
    a_new_store_is_trusted_and_says_which_it_is,
    a_note_comes_with_the_token_as_it_was_written,
    of_two_notes_at_once_one_is_written,
    a_note_expires_and_with_the_epoch_too,
    another_epoch_asks_for_another_note,
    the_note_is_no_group,
    a_judgement_is_recorded_with_its_note,
    a_grant_that_was_judged_by_another_note_conflicts,
);

on_store!(model, InModel::new());
on_store!(memory, InMemory::new());
on_store!(sqlite, InSqlite::new());
on_store!(postgres, InPostgres::new());
on_store!(redis, InRedis::new());
on_store!(etcd, InCluster::of_etcd());
on_store!(zookeeper, InCluster::of_zookeeper());
on_store!(quorum, InCluster::of_quorum());
on_store!(mariadb, InMysql::on(mysql::test_server::Server::shared()));
on_store!(
    needs_root_mysql,
    InMysql::on(mysql::test_server::Server::shared_of(
        mysql::test_server::Kind::Mysql
    ))
);

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
    found(store, &RunQuery::default())
}

/// The runs that match the query: those that go on, and those that are over.
fn found(store: &mut dyn Store, query: &RunQuery) -> Vec<RunRecord> {
    let listing = store.list().unwrap();
    let over = store.runs(query).unwrap();
    assert!(over.iter().all(|run| query.wants(run)));
    history::runs(&listing, over, query)
}

fn done(swapped: Swapped) -> StoreTime {
    match swapped {
        Swapped::Done(at) => at,
        other => panic!("the swap should have happened: {other:?}"),
    }
}

/// Grants the group to the claim from any row.
fn grant_to(store: &mut dyn Store, claim: &Claim, n: u64) -> Row {
    let reading = store.read(&claim.group).unwrap();
    let kind = GrantKind::Bind;
    let swap = grant(claim, kind, reading.row.as_ref(), &reading.now, version(n));
    done(store.swap(&swap).unwrap());
    row(store, claim.group.as_str())
}

fn ten_seconds_from(fixture: &dyn Fixture) -> Until {
    fixture.now().until(Duration::from_secs(10))
}
