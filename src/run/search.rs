//! An exhaustive search: every state that two clients can reach, with the real rule, the real swaps
//! and the real machine, in steps of a second. States that differ only in names and in the time of
//! day count as one, so the search ends. In each state the invariants hold: never two jobs alive,
//! no heartbeat over a grant of another session, a rising fence, no grant to a session that is long
//! dead, no grant of a paused token or of a slot that has just run. From each state the token can
//! still be granted without a further fault.
//!
//! The first client has the faults: the clients are alike, except where their terms differ. The
//! number of each fault is bounded; everything else is not.

mod explore;
mod invariants;
mod key;
mod network;
mod processes;
mod steps;
mod store;
mod world;

use std::time::{Duration, Instant};

use crate::token::mutant::{Mutant, with_mutant};
use crate::token::{Timing, Wishes};
use explore::search;

/// How often each fault may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Left {
    /// A second passes in which `a`'s request or its answer does not arrive. After it the sender
    /// may give up, and the request may arrive or not.
    slow: u8,
    /// A supervisor is killed.
    killed: u8,
    /// A client loses its power.
    off: u8,
    /// A client is suspended.
    frozen: u8,
    /// An operator writes.
    acts: u8,
    /// The store's clock epoch changes.
    clocks: u8,
    /// The store loses its last commit in a failover.
    commits: u8,
    /// The store loses everything in a failover.
    wipes: u8,
    /// A client starts a session, by client; not a fault.
    starts: [u8; 2],
}

const NO_FAULTS: Left = Left {
    slow: 0,
    killed: 0,
    off: 0,
    frozen: 0,
    acts: 0,
    clocks: 0,
    commits: 0,
    wipes: 0,
    starts: [u8::MAX; 2],
};

/// What is searched.
#[derive(Debug, Clone, Copy)]
struct Scenario {
    timings: [Timing; 2],
    /// The expected client, which wants the token back.
    expected: Option<usize>,
    /// True if runs have lock files.
    locks: bool,
    /// True if jobs leave processes behind.
    leftovers: bool,
    acts: &'static [&'static str],
    /// Which client's sessions wait in the queue.
    waits: [bool; 2],
    /// How many servers the store fails over between.
    servers: u8,
    left: Left,
}

/// Seconds: takeover-after, grace, keep, head start.
fn timing(takeover: u64, grace: u64, keep: u64, head_start: u64) -> Timing {
    let seconds = |n| Some(Duration::from_secs(n));
    Timing::new(&Wishes {
        heartbeat: seconds(1),
        takeover_after: seconds(takeover),
        keep: seconds(keep),
        head_start: seconds(head_start),
        at_least: seconds(0),
        kill_grace: seconds(grace),
        store_timeout: seconds(1),
    })
    .unwrap()
}

fn alike(timing: Timing) -> [Timing; 2] {
    [timing; 2]
}

/// No grace, no keep, no head start: nothing hides an overlap.
fn plain() -> Scenario {
    Scenario {
        timings: alike(timing(5, 0, 0, 0)),
        expected: None,
        locks: false,
        leftovers: false,
        acts: &[],
        waits: [false; 2],
        servers: u8::MAX,
        left: NO_FAULTS,
    }
}

/// Jobs with a grace, with lock files, and with processes that they leave behind.
fn graceful() -> Scenario {
    Scenario {
        timings: alike(timing(6, 1, 0, 0)),
        locks: true,
        leftovers: true,
        ..plain()
    }
}

/// The token stays with its client for a while, which then has a head start.
fn kept() -> Scenario {
    Scenario {
        timings: alike(timing(6, 1, 1, 1)),
        ..plain()
    }
}

/// The first client is expected, and takes the token back.
fn failback() -> Scenario {
    Scenario {
        expected: Some(0),
        timings: alike(timing(5, 0, 1, 1)),
        ..plain()
    }
}

/// The first client may be silent for longer than the second.
fn unequal() -> Scenario {
    Scenario {
        timings: [timing(9, 0, 0, 0), timing(5, 0, 0, 0)],
        ..plain()
    }
}

/// Both clients' sessions wait in the queue.
fn waiting(scenario: Scenario) -> Scenario {
    Scenario {
        waits: [true; 2],
        ..scenario
    }
}

/// Only the first client's sessions wait.
fn one_waits(scenario: Scenario) -> Scenario {
    Scenario {
        waits: [true, false],
        ..scenario
    }
}

/// A snapshot of the store is put back in place; the store does not show that.
fn put_back(left: Left) -> Scenario {
    Scenario {
        servers: 1,
        left,
        ..plain()
    }
}

/// Two servers alternate.
fn two_servers(left: Left) -> Scenario {
    Scenario {
        servers: 2,
        left,
        ..plain()
    }
}

fn with(scenario: Scenario, left: Left) -> Scenario {
    Scenario { left, ..scenario }
}

fn once(act: &'static [&'static str], scenario: Scenario) -> Scenario {
    let left = Left {
        acts: 1,
        ..scenario.left
    };
    Scenario {
        acts: act,
        left,
        ..scenario
    }
}

const fn slow(slow: u8) -> Left {
    Left { slow, ..NO_FAULTS }
}

/// Searches all states. Too few states mean that the scenario does too little.
fn all_is_well(name: &str, scenario: Scenario, at_least: usize) {
    let start = Instant::now();
    let found = search(&scenario, 200_000);
    let (states, steps) = (found.states, found.steps);
    println!(
        "{name}: {states} states, {steps} steps, {:?}",
        start.elapsed()
    );
    assert_eq!(found.violation, None, "{name}");
    assert!(states >= at_least, "{name}: {states} states");
}

macro_rules! searches {
    ($($name:ident: $scenario:expr, $at_least:expr;)+) => {
        $(#[test]
        fn $name() {
            all_is_well(stringify!($name), $scenario, $at_least);
        })+
    };
}

searches! {
    without_faults: plain(), 64;
    the_network_is_slow: with(plain(), slow(2)), 4_955;
    the_network_is_slow_and_jobs_are_too: with(graceful(), slow(2)), 6_472;
    the_network_is_slow_and_terms_differ: with(unequal(), slow(2)), 5_660;
    a_supervisor_is_killed: with(graceful(), Left { killed: 1, ..slow(1) }), 3_808;
    a_supervisor_is_killed_and_the_token_kept: with(kept(), Left { killed: 1, ..slow(1) }), 14_528;
    the_power_fails: with(plain(), Left { off: 1, ..slow(1) }), 3_049;
    the_power_fails_and_terms_differ: with(unequal(), Left { off: 1, ..slow(1) }), 3_238;
    the_power_of_the_expected_client_fails: with(failback(), Left { off: 1, ..slow(0) }), 2_890;
    the_expected_clients_network_is_slow: with(failback(), slow(1)), 4_121;
    a_client_is_suspended: with(plain(), Left { frozen: 1, ..slow(0) }), 16_758;
    the_stores_clock_starts_anew: with(plain(), Left { clocks: 1, ..slow(1) }), 6_771;
    the_stores_clock_starts_anew_and_the_power_fails:
        with(kept(), Left { clocks: 1, off: 1, ..slow(0) }), 8_495;
    the_store_loses_a_commit: with(plain(), Left { commits: 1, ..slow(0) }), 1_979;
    the_store_loses_a_commit_and_is_started_anew:
        with(plain(), Left { commits: 1, clocks: 1, ..slow(0) }), 1_979;
    the_store_loses_commits_and_comes_back: two_servers(Left { commits: 2, ..slow(0) }), 1_979;
    the_store_is_put_back_in_place: put_back(Left { commits: 1, ..slow(0) }), 1_500;
    the_store_loses_everything: with(plain(), Left { wipes: 1, ..slow(0) }), 500;
    an_operator_releases_by_force: once(&["force"], with(plain(), slow(1))), 7_898;
    an_operator_pauses: once(&["pause"], with(plain(), slow(1))), 7_396;
    an_operator_revokes: once(&["revoke"], with(plain(), slow(1))), 2_964;
    both_wait: waiting(plain()), 50;
    both_wait_and_the_token_is_kept: waiting(kept()), 50;
    one_waits_and_the_other_does_not: one_waits(kept()), 50;
    both_wait_and_the_network_is_slow: waiting(with(plain(), slow(1))), 500;
    both_wait_and_a_supervisor_is_killed:
        waiting(with(graceful(), Left { killed: 1, ..slow(0) })), 200;
    both_wait_and_the_power_fails: waiting(with(kept(), Left { off: 1, ..slow(0) })), 200;
    the_expected_client_waits: waiting(failback()), 50;
    both_wait_and_an_operator_hands_off: waiting(once(&["hand off to b"], kept())), 200;
    an_operator_hands_off: once(&["hand off to b"], kept()), 3_444;
}

/// The smallest known scenario that exposes a mutant: few sessions are started.
fn shows(mutant: Mutant) -> (Scenario, &'static str) {
    use Mutant as M;
    let only_a = Left {
        starts: [1, 0],
        ..NO_FAULTS
    };
    let each = Left {
        starts: [1, 1],
        ..NO_FAULTS
    };
    let overlap = "two jobs are alive";
    match mutant {
        M::HeartbeatKnownBySession => {
            let left = Left { slow: 3, ..each };
            (once(&["expect b"], with(plain(), left)), overlap)
        }
        M::TrustFromReread => (with(plain(), Left { slow: 4, ..each }), overlap),
        M::VersionIsCounter => (
            put_back(Left { commits: 1, ..each }),
            "a heartbeat overwrote another session's grant",
        ),
        M::DeathOfSupervisorAlone => {
            let left = Left {
                killed: 1,
                starts: [2, 0],
                ..NO_FAULTS
            };
            (with(graceful(), left), overlap)
        }
        M::ForceClaimsNoOverlap => (once(&["force"], with(plain(), each)), overlap),
        M::AgesAcrossEpochs => (with(plain(), Left { clocks: 1, ..each }), overlap),
        M::PausedTakenFromDead => (
            once(&["pause"], with(plain(), Left { off: 1, ..each })),
            "a paused token was granted",
        ),
        M::FailbackInSameSlot => (
            with(
                failback(),
                Left {
                    starts: [2, 2],
                    ..NO_FAULTS
                },
            ),
            "a slot that has just run was granted to another",
        ),
        M::AbandonedSwapHappens => (
            with(
                plain(),
                Left {
                    killed: 1,
                    ..only_a
                },
            ),
            "the token was granted to a process long dead",
        ),
        M::LateStart => (
            with(
                plain(),
                Left {
                    frozen: 1,
                    slow: 1,
                    ..only_a
                },
            ),
            "a job was started too late",
        ),
        M::ReleaseBeforeReaped => (
            with(graceful(), only_a),
            "the token was released while its job was alive",
        ),
        M::ContendersTakeoverAfter => (with(unequal(), Left { slow: 4, ..each }), overlap),
        M::ForgottenGrantGranted => (with(plain(), Left { commits: 1, ..each }), overlap),
        M::FirstIncarnationTrusted => (with(plain(), Left { wipes: 1, ..each }), overlap),
        M::NoteByIncarnation => (two_servers(Left { commits: 2, ..each }), overlap),
        M::RestartEndsQuarantine => {
            let left = Left {
                commits: 1,
                clocks: 1,
                ..each
            };
            (with(plain(), left), overlap)
        }
        M::LostHeartbeatEndsHolder => (
            with(plain(), Left { commits: 1, ..each }),
            "a session ended for a token that it still held",
        ),
    }
}

fn caught(mutant: Mutant) {
    let (scenario, words) = shows(mutant);
    let found = with_mutant(mutant, || search(&scenario, 100_000));
    let violation = found.violation.unwrap_or_default();
    println!("{mutant:?}: {violation}");
    assert!(violation.contains(words), "{mutant:?}: {violation}");
}

macro_rules! mutants {
    ($($test:ident: $mutant:ident;)+) => {
        $(#[test]
        fn $test() {
            caught(Mutant::$mutant);
        })+
    };
}

mutants! {
    a_heartbeat_known_by_its_session_is_caught: HeartbeatKnownBySession;
    trust_anchored_at_the_reread_is_caught: TrustFromReread;
    a_version_that_counts_is_caught: VersionIsCounter;
    death_of_the_supervisor_alone_is_caught: DeathOfSupervisorAlone;
    a_forced_release_without_overlap_is_caught: ForceClaimsNoOverlap;
    ages_across_epochs_are_caught: AgesAcrossEpochs;
    a_paused_token_taken_from_the_dead_is_caught: PausedTakenFromDead;
    failback_in_the_same_slot_is_caught: FailbackInSameSlot;
    an_abandoned_swap_that_happens_is_caught: AbandonedSwapHappens;
    a_late_start_is_caught: LateStart;
    a_release_before_the_tree_is_reaped_is_caught: ReleaseBeforeReaped;
    the_contenders_takeover_after_is_caught: ContendersTakeoverAfter;
    a_forgotten_grant_that_is_granted_again_is_caught: ForgottenGrantGranted;
    a_first_incarnation_that_is_trusted_is_caught: FirstIncarnationTrusted;
    a_note_that_is_looked_up_by_its_incarnation_is_caught: NoteByIncarnation;
    a_restart_that_ends_an_observation_is_caught: RestartEndsQuarantine;
    a_lost_heartbeat_that_ends_its_holder_is_caught: LostHeartbeatEndsHolder;
}
