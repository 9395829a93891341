use proptest::prelude::*;

use super::*;
use crate::mutated::mutated_text;
use crate::token::WallTime;
use crate::token::rule::tests::fixture::{MS, but, running, s};

fn at(epoch: &str, seconds: u64) -> StoreTime {
    StoreTime {
        epoch: ClockEpoch(epoch.into()),
        stamp: Stamp {
            tick_ms: 1_000 * i64::try_from(seconds).unwrap(),
            wall: WallTime(0),
        },
    }
}

fn named(name: &str) -> Incarnation {
    Incarnation(name.into())
}

fn version() -> Version {
    Version::from_random(7)
}

/// The incarnation `i`, noted at 100 s in the clock epoch `d` with this served time.
fn noted(served: Served) -> Memory {
    let new = IncarnationNote::of_new(named("i"), true, &at("d", 100), version());
    Memory {
        incarnation: Some(named("i")),
        durable: true,
        note: Some(IncarnationNote { served, ..new }),
        unnoted: Served::NOTHING,
        lag: Duration::ZERO,
    }
}

/// The memory after its next note is written.
fn after(memory: &Memory, now: &StoreTime) -> Memory {
    let note = memory.next_note(now, version).unwrap();
    but(memory.clone(), |memory| memory.note = Some(note))
}

fn observed(memory: &Memory, now: &StoreTime) -> Served {
    memory.observed(now).0
}

#[test]
fn the_same_incarnation_is_observed_for_the_longer_of_its_age_and_its_served_time() {
    let memory = noted(Served::For(s(20)));
    assert_eq!(memory.next_note(&at("d", 110), version), None);
    assert_eq!(observed(&memory, &at("d", 110)), Served::For(s(20)));
    assert_eq!(observed(&memory, &at("d", 130)), Served::For(s(30)));
    assert_eq!(
        observed(&memory, &at("d", 99)),
        Served::For(s(20)),
        "the future"
    );
    let all = noted(Served::Everything);
    assert_eq!(observed(&all, &at("d", 110)), Served::Everything);
}

#[test]
fn a_durable_restart_keeps_the_served_time_and_restarts_the_age() {
    let memory = after(&noted(Served::For(s(20))), &at("e", 5));
    assert_eq!(observed(&memory, &at("e", 6)), Served::For(s(20)));
    assert_eq!(observed(&memory, &at("e", 35)), Served::For(s(30)));
    let young = after(&noted(Served::NOTHING), &at("e", 5));
    assert_eq!(observed(&young, &at("e", 6)), Served::For(s(1)));
}

#[test]
fn a_restart_that_may_have_lost_commits_resets_the_served_time() {
    for (then, now) in [(false, true), (true, false)] {
        let memory = but(noted(Served::Everything), |memory| {
            memory.durable = now;
            memory.note.as_mut().unwrap().durable_then = then;
        });
        let memory = after(&memory, &at("e", 5));
        let found = memory.observed(&at("e", 5));
        assert_eq!(found, (Served::NOTHING, Doubt::Restarted));
    }
}

#[test]
fn another_incarnation_has_served_nothing_nor_has_one_that_comes_back() {
    let of =
        |memory: &Memory, name: &str| but(memory.clone(), |m| m.incarnation = Some(named(name)));
    let first = noted(Served::Everything);
    let other = of(&first, "j");
    assert_eq!(
        observed(&other, &at("d", 500)),
        Served::NOTHING,
        "not written"
    );
    let other = after(&other, &at("e", 5));
    assert_eq!(
        other.observed(&at("e", 5)),
        (Served::NOTHING, Doubt::Another)
    );
    let back = after(&of(&other, "i"), &at("f", 5));
    assert_eq!(
        back.observed(&at("f", 5)),
        (Served::NOTHING, Doubt::Another)
    );
}

#[test]
fn without_a_note_only_a_store_without_a_past_is_trusted() {
    let memory = |unnoted| Memory {
        note: None,
        unnoted,
        lag: Duration::ZERO,
        ..noted(Served::NOTHING)
    };
    let past = memory(Served::NOTHING);
    assert_eq!(
        past.observed(&at("d", 5)),
        (Served::NOTHING, Doubt::Unnoted)
    );
    assert_eq!(
        observed(&after(&past, &at("d", 5)), &at("d", 6)),
        Served::For(s(1))
    );
    let none = memory(Served::Everything);
    assert_eq!(observed(&none, &at("d", 5)), Served::Everything);
    assert_eq!(
        observed(&after(&none, &at("d", 5)), &at("d", 5)),
        Served::Everything
    );
}

#[test]
fn a_store_without_an_incarnation_is_observed_and_not_noted() {
    let memory = but(noted(Served::Everything), |memory| {
        memory.incarnation = None
    });
    assert_eq!(
        memory.observed(&at("d", 5)),
        (Served::NOTHING, Doubt::Unknown)
    );
    assert_eq!(memory.next_note(&at("d", 5), version), None);
}

#[test]
fn a_grant_raises_the_served_time_to_what_it_verified_and_never_lowers_it() {
    let memory = noted(Served::For(s(20)));
    let raised = |at: &StoreTime, length| memory.raised(at, length, version);
    assert_eq!(raised(&at("d", 110), s(20)), None, "it says so");
    assert_eq!(raised(&at("d", 140), s(41)), None, "not verified");
    let note = raised(&at("d", 140), s(40)).unwrap();
    assert_eq!(note.served, Served::For(s(40)));
    assert_eq!(note.first_seen, at("d", 100).stamp);
    assert_eq!(raised(&at("e", 140), s(40)), None, "of another start");
    assert_eq!(
        noted(Served::Everything).raised(&at("d", 900), s(40), version),
        None
    );
}

#[test]
fn an_operator_settles_and_distrusts() {
    let now = at("d", 110);
    let judged = |trusted| {
        let memory = noted(Served::For(s(20)));
        let note = memory.judged(&named("i"), trusted, &now, version());
        but(memory, |memory| memory.note = Some(note))
    };
    assert_eq!(
        judged(true).observed(&now),
        (Served::Everything, Doubt::Settled)
    );
    assert_eq!(
        judged(false).observed(&now),
        (Served::NOTHING, Doubt::Distrusted)
    );
}

/// The note says what protects the commits from now on, not what did before.
#[test]
fn a_judgement_takes_the_durability_of_now() {
    let now = at("d", 110);
    for (then, durable) in [(true, false), (false, true)] {
        for trusted in [true, false] {
            let memory = but(noted(Served::For(s(20))), |memory| {
                memory.durable = durable;
                memory.note.as_mut().unwrap().durable_then = then;
            });
            let note = memory.judged(&named("i"), trusted, &now, version());
            assert_eq!(note.durable_then, durable);
        }
    }
}

#[test]
fn a_note_is_read_as_written_with_the_fields_of_a_newer_program() {
    for served in [Served::Everything, Served::NOTHING, Served::For(MS * 1_234)] {
        let note = noted(served).note.unwrap();
        let read = IncarnationNote::from_json(&note.to_json(), note.version);
        assert_eq!(read, note);
        let newer = note.to_json().replacen('{', "{\"newer\":[1],", 1);
        let read = IncarnationNote::from_json(&newer, note.version);
        assert!(read.to_json().contains("\"newer\":[1]"));
    }
}

#[test]
fn an_unreadable_note_is_observed_and_replaced() {
    let sound = noted(Served::Everything);
    for text in ["", "{}", "nothing", "{\"version\":\"x\"}"] {
        let note = IncarnationNote::from_json(text, Version::from_stored(7));
        let memory = Memory {
            note: Some(note),
            ..sound.clone()
        };
        let now = at("a", 1);
        assert_eq!(
            memory.observed(&now),
            (Served::NOTHING, Doubt::Unreadable),
            "{text}"
        );
        let next = memory.next_note(&now, || Version::from_stored(8)).unwrap();
        assert_eq!((next.served, next.first_seen), (Served::NOTHING, now.stamp));
        let swap = memory.swap(next, &now, MS);
        assert_eq!(swap.from, Some(Version::from_stored(7)));
    }
}

#[test]
fn after_a_grant_that_is_older_than_the_note_the_next_fence_leaps() {
    let row = running("a");
    let granted = row.acquired_at().unwrap();
    let of_epoch = row.document.granted_epoch.clone().unwrap();
    let noted_at = |by: i64, epoch: &ClockEpoch| {
        let mut memory = noted(Served::NOTHING);
        let note = memory.note.as_mut().unwrap();
        note.epoch = epoch.clone();
        note.first_seen.tick_ms = granted.tick_ms + by;
        memory
    };
    assert!(noted_at(1, &of_epoch).is_newer_than_grant(&row));
    // In the same millisecond either may have come first.
    assert!(noted_at(0, &of_epoch).is_newer_than_grant(&row));
    assert!(!noted_at(-1, &of_epoch).is_newer_than_grant(&row));
    // There the clock epoch itself shows it.
    assert!(!noted_at(1, &ClockEpoch("other".into())).is_newer_than_grant(&row));
    let now = StoreTime {
        epoch: of_epoch,
        stamp: granted,
    };
    let claim = crate::token::rule::tests::fixture::claim("b");
    let mut grant = crate::token::swap::grant(
        &claim,
        crate::token::GrantKind::Takeover,
        Some(&row),
        &now,
        version(),
    );
    grant.leap(&now);
    assert_eq!(grant.to.fence.0, granted.wall.0 + 60_000);
}

#[test]
fn an_unknown_doubt_of_a_newer_program_is_read() {
    let note = noted(Served::Everything).note.unwrap();
    let newer = note.to_json().replacen("\"new\"", "\"cloned\"", 1);
    let read = IncarnationNote::from_json(&newer, note.version);
    assert_eq!(read.why, Doubt::Newer, "{newer}");
    assert_eq!(read.incarnation, note.incarnation);
}

/// A store without a past that it could tell, which has existed for some time, goes on to exist.
#[test]
fn a_store_that_reports_its_age_is_observed_from_its_start_on() {
    let memory = Memory {
        note: None,
        unnoted: Served::For(s(30)),
        lag: Duration::ZERO,
        ..noted(Served::NOTHING)
    };
    let noted = after(&memory, &at("d", 100));
    assert_eq!(observed(&noted, &at("d", 100)), Served::For(s(30)));
    assert_eq!(observed(&noted, &at("d", 120)), Served::For(s(50)));
    let without = Memory {
        unnoted: Served::NOTHING,
        lag: Duration::ZERO,
        ..memory
    };
    let noted = after(&without, &at("d", 100));
    assert_eq!(observed(&noted, &at("d", 120)), Served::For(s(20)));
}

/// The settings of a server may change while it runs.
#[test]
fn a_note_never_promises_more_than_the_settings_keep() {
    let memory = but(noted(Served::For(s(20))), |memory| memory.durable = false);
    let now = at("d", 110);
    let before = memory.note.clone().unwrap();
    let noted = memory.next_note(&now, || Version::from_random(9)).unwrap();
    let lowered = IncarnationNote {
        version: Version::from_random(9),
        durable_then: false,
        ..before
    };
    assert_eq!(noted, lowered);
    let lowered = but(memory, |memory| memory.note = Some(lowered));
    assert_eq!(observed(&lowered, &now), Served::For(s(20)));
    // What was written meanwhile is not durable by the settings that come later.
    for durable in [false, true] {
        let later = but(lowered.clone(), |memory| memory.durable = durable);
        assert_eq!(later.next_note(&now, version), None);
        assert_eq!(observed(&later, &at("e", 5)), Served::NOTHING);
    }
}

/// After a clock was set back the age would be unknown until it is where it was.
#[test]
fn a_note_of_the_future_is_written_anew_and_what_was_served_stays() {
    let memory = noted(Served::For(s(20)));
    assert_eq!(memory.next_note(&at("d", 100), version), None);
    let back = after(&memory, &at("d", 40));
    assert_eq!(observed(&back, &at("d", 40)), Served::For(s(20)));
    assert_eq!(observed(&back, &at("d", 70)), Served::For(s(30)));
    assert_eq!(back.note.unwrap().why, Doubt::New);
    // What was not durable does not become so.
    let forgetful = but(memory, |memory| {
        memory.note.as_mut().unwrap().durable_then = false;
    });
    let back = after(&forgetful, &at("d", 40));
    assert!(!back.note.unwrap().durable_then);
}

/// An old master goes on for so long after another took its place.
#[test]
fn the_time_in_which_another_server_accepts_heartbeats_counts_on_top() {
    let lagging = but(noted(Served::NOTHING), |memory| memory.lag = s(12));
    let wait = |seconds| {
        let observation = lagging.observation(s(30), &at("d", seconds));
        observation.map(|it| it.wait)
    };
    assert_eq!(wait(100), Some(s(42)));
    assert_eq!(wait(141), Some(s(1)));
    assert_eq!(wait(142), None);
    let settled = but(noted(Served::Everything), |memory| memory.lag = s(12));
    assert_eq!(settled.observation(s(30), &at("d", 100)), None);
}

/// Notes as they are stored, with the numbers at their limits.
const NOTES: [&str; 4] = [
    r#"{"version":7,"incarnation":"i","epoch":"d","first_seen":{"tick_ms":100000,"wall_ms":0},"durable_then":true,"served":20000,"why":"another"}"#,
    r#"{"version":9223372036854775807,"incarnation":"i","epoch":"d","first_seen":{"tick_ms":-9223372036854775808,"wall_ms":9223372036854775807},"durable_then":true,"served":18446744073709551615,"why":"new"}"#,
    r#"{"version":7,"incarnation":"i","epoch":"d","first_seen":{"tick_ms":9223372036854775807,"wall_ms":-9223372036854775808},"durable_then":false,"served":"everything","why":"settled"}"#,
    r#"{"version":7,"incarnation":"i","epoch":"e","first_seen":{"tick_ms":0,"wall_ms":0},"durable_then":true,"served":0,"why":"restarted","paused_clients":{"a":{"by":"x","reason":"","until_ms":-9223372036854775808},"b":{"by":"","reason":"r"}},"more":[1]}"#,
];

#[test]
fn the_notes_that_are_mutated_are_readable() {
    for text in NOTES {
        let note = IncarnationNote::from_json(text, version());
        assert_eq!(note.incarnation, named("i"), "{text}");
    }
}

proptest! {
    #[test]
    fn no_note_panics(text in mutated_text(&NOTES), tick_ms: i64, wall: i64, length: u64, lag: u64) {
        let now = StoreTime {
            epoch: ClockEpoch("d".into()),
            stamp: Stamp { tick_ms, wall: WallTime(wall) },
        };
        let length = Duration::from_millis(length);
        let memory = but(noted(Served::NOTHING), |memory| {
            memory.note = Some(IncarnationNote::from_json(&text, version()));
            memory.lag = Duration::from_millis(lag);
        });
        let memory = memory.noted(&now);
        let _ = memory.observation(length, &now);
        let _ = memory.raised(&now, length, version);
        let _ = memory.paused_clients(&now).count();
        let note = memory.note.unwrap();
        // What is written is read again.
        prop_assert_eq!(IncarnationNote::from_json(&note.to_json(), note.version), note);
    }
}
