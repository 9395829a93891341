//! A deterministic simulation: the real rule and the real machine, over the memory store's
//! contents, on nodes whose clocks drift, with a network that loses and delays requests, processes
//! that are killed, stopped and suspended, a store that changes its clock or loses its last
//! commits, and operators that write in between. The invariants are checked after every step.
//!
//! A failing seed prints the steps that lead to it. `TOKENRUN_SEED=N cargo test --lib
//! simulation::one_seed -- --nocapture` prints all steps of a seed.

mod dice;
mod faults;
mod guards;
mod happening;
mod invariants;
mod jobs;
mod network;
mod nights;
mod nodes;
mod processes;
mod retention;
mod waiting;
mod week;
mod world;

use crate::token::mutant::{Mutant, with_mutant};
use crate::token::swap::EPOCH_FENCE_STEP;
use world::World;

/// Runs one seed to its end. `Err` names the violated invariant.
fn run(seed: u64) -> Result<World, String> {
    let mut world = World::new(seed, false);
    match world.run() {
        Ok(()) => Ok(world),
        Err(violation) => Err(format!("seed {seed}: {violation}")),
    }
}

/// The steps of a seed.
fn steps(seed: u64) -> String {
    let mut world = World::new(seed, true);
    let result = world.run();
    world.last_steps() + &format!("\n{result:?}")
}

#[test]
fn thousands_of_seeds_keep_every_invariant() {
    let (mut grants, mut takeovers, mut losses, mut jobs) = (0, 0, 0, 0);
    let mut furthest_behind = 0;
    for seed in 0..4_000 {
        let world = run(seed)
            .unwrap_or_else(|violation| panic!("{violation}\nthe steps to it:\n{}", steps(seed)));
        grants += world.tally.grants;
        takeovers += world.tally.takeovers;
        losses += world.tally.losses;
        jobs += world.tally.jobs;
        furthest_behind = furthest_behind.max(world.tally.furthest_behind);
    }
    // The check asks of the fence exactly what its documented limit covers.
    let covered = EPOCH_FENCE_STEP.unsigned_abs();
    let furthest = furthest_behind;
    assert!(furthest < covered, "{furthest} ms behind");
    assert!(furthest > covered * 9 / 10, "{furthest} ms behind");
    // A simulation in which nothing happens proves nothing.
    assert!(grants > 40_000, "{grants} grants");
    assert!(takeovers > 4_000, "{takeovers} takeovers");
    assert!(losses > 2_000, "{losses} losses");
    assert!(jobs > 30_000, "{jobs} jobs");
}

#[test]
fn one_seed() {
    let Some(seed) = std::env::var("TOKENRUN_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
    else {
        assert!(run(1).is_ok());
        return;
    };
    println!("{}", steps(seed));
    assert!(run(seed).is_ok());
}

#[test]
fn the_same_seed_takes_the_same_steps() {
    assert_eq!(steps(7), steps(7));
}

/// Asserts that the simulation fails within 20,000 seeds from this one, with one of these messages.
fn caught(mutant: Mutant, first: u64, words: &[&str]) {
    let mut seeds = first..first + 20_000;
    let found = with_mutant(mutant, || seeds.find_map(|seed| run(seed).err()));
    let violation = found.unwrap_or_else(|| panic!("{mutant:?} went unnoticed"));
    println!("{mutant:?}: {violation}");
    assert!(
        words.iter().any(|words| violation.contains(words)),
        "{mutant:?} was caught, but for another reason: {violation}"
    );
}

macro_rules! mutants {
    ($($test:ident: $mutant:ident $(from $first:literal)?, $words:expr;)+) => {
        $(#[test]
        fn $test() {
            caught(Mutant::$mutant, [$($first,)? 0][0], &$words);
        })+
    };
}

const OVERLAP: &str = "two jobs are alive";

mutants! {
    a_heartbeat_known_by_its_session_is_caught: HeartbeatKnownBySession, [OVERLAP];
    trust_anchored_at_the_reread_is_caught: TrustFromReread, [OVERLAP];
    // One seed in thousands has what it takes. The search begins near one of those, to save two minutes.
    a_version_that_counts_is_caught: VersionIsCounter from 7_500, ["another session's grant", OVERLAP];
    death_of_the_supervisor_alone_is_caught: DeathOfSupervisorAlone, [OVERLAP];
    a_forced_release_without_overlap_is_caught: ForceClaimsNoOverlap, [OVERLAP];
    ages_across_epochs_are_caught: AgesAcrossEpochs, [OVERLAP, "slot has just run"];
    a_paused_token_taken_from_the_dead_is_caught: PausedTakenFromDead, ["paused"];
    failback_in_the_same_slot_is_caught: FailbackInSameSlot, ["slot has just run"];
    an_abandoned_swap_that_happens_is_caught: AbandonedSwapHappens, ["dead process", OVERLAP];
    a_late_start_is_caught: LateStart, ["started too late", OVERLAP];
    a_release_before_the_tree_is_reaped_is_caught: ReleaseBeforeReaped, [OVERLAP, "released while"];
    the_contenders_takeover_after_is_caught: ContendersTakeoverAfter, [OVERLAP];
    a_forgotten_grant_that_is_granted_again_is_caught: ForgottenGrantGranted, [OVERLAP];
    a_first_incarnation_that_is_trusted_is_caught: FirstIncarnationTrusted, [OVERLAP];
    a_note_that_is_looked_up_by_its_incarnation_is_caught: NoteByIncarnation, [OVERLAP];
    a_restart_that_ends_an_observation_is_caught: RestartEndsQuarantine, [OVERLAP];
    a_lost_heartbeat_that_ends_its_holder_is_caught: LostHeartbeatEndsHolder, [
        "ends for a token that it still holds"
    ];
}
