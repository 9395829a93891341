//! What operators write, and what they must not change.

use super::*;
use crate::store::model::ModelData;
use crate::token::mutant::with_mutant;
use crate::token::rule::tests::fixture::*;
use crate::token::{StampOf, Swapped, swap};

fn effect(act: &Act, seen: &Seen) -> Effect {
    perform(act, &seen.row, &seen.now, s(4), Version::from_stored(9))
}

fn swapped(act: &Act, seen: &Seen) -> Swap {
    match effect(act, seen) {
        Effect::Swap { swap, .. } => *swap,
        other => panic!("{other:?}"),
    }
}

fn acts() -> Vec<Act> {
    vec![
        Act::Pause(pause(None)),
        Act::Resume(None),
        Act::Handoff(client("b")),
        Act::Away,
        Act::Expect(Some(client("b"))),
        Act::Revoke,
        Act::Release { force: true },
    ]
}

#[test]
fn operators_draw_a_version_and_stamp_nothing() {
    for act in acts() {
        let swap = swapped(&act, &seen(running("a")).after(s(30)));
        assert_eq!(swap.from, Some(running("a").version));
        assert_eq!(swap.version(), Version::from_stored(9));
        assert_eq!((swap.stamp, &swap.act), (None, &None));
        let takes = matches!(act, Act::Release { .. });
        let vanished = RunRecord::vanished(&running("a")).map(Box::new);
        assert_eq!(swap.ended, vanished.filter(|_| takes), "{act:?}");
        let now = seen(running("a")).after(s(34)).now;
        assert_eq!(swap.expiry, now.until(Duration::ZERO));
        assert_eq!(
            swap.written(&now),
            swap.to,
            "{act:?} vouches for no session"
        );
    }
}

#[test]
fn a_fence_is_raised_while_no_session_runs_and_never_falls() {
    let running = seen(running("a")).after(s(30));
    assert!(matches!(
        effect(&Act::Raise(None), &running),
        Effect::Running
    ));
    let seen = seen(idle("a"));
    let had = seen.row.fence;
    let raised = |to| swapped(&Act::Raise(to), &seen).to.fence;
    let by_itself = raised(None);
    assert!(by_itself.0 >= seen.now.stamp.wall.0 + 60_000);
    assert!(by_itself > had);
    assert_eq!(raised(Some(Fence(had.0 + 7))), Fence(had.0 + 7));
    assert_eq!(raised(Some(Fence(1))), had);
}

#[test]
fn operators_keep_the_sessions_version_and_its_heartbeat() {
    let row = running("a");
    for act in acts() {
        let to = swapped(&act, &seen(row.clone()).after(s(30))).to;
        assert_eq!(to.fence, row.fence);
        if act != (Act::Release { force: true }) {
            assert_eq!(
                to.document.session_version, row.document.session_version,
                "{act:?}"
            );
            assert_eq!(to.state, row.state, "{act:?}");
        }
    }
}

#[test]
fn each_act_changes_its_own_field() {
    let row = running("a");
    let changed = |act: &Act| {
        but(swapped(act, &seen(row.clone())).to, |to| {
            to.version = row.version;
        })
    };
    let stopped = but(row.clone(), |row| row.document.paused = Some(pause(None)));
    assert_eq!(changed(&Act::Pause(pause(None))), stopped);
    let resumed = swapped(&Act::Resume(None), &seen(stopped)).to;
    assert_eq!(resumed.document.paused, None);
    let handed = handed_to(row.clone(), "b");
    assert_eq!(changed(&Act::Handoff(client("b"))), handed);
    let expected = expecting(row.clone(), "b");
    assert_eq!(changed(&Act::Expect(Some(client("b")))), expected);
    assert_eq!(changed(&Act::Expect(None)).expected_client, None);
    let revoked = but(row.clone(), |row| row.document.revoke_requested = true);
    assert_eq!(changed(&Act::Revoke), revoked);
}

#[test]
fn a_pause_gives_way_to_a_longer_one_alone() {
    let free = seen(free());
    let at = |seconds| free.now.plus(s(seconds)).stamp.wall;
    let by_eve = |until| Pause {
        by: "eve".into(),
        ..pause(until)
    };
    // The end of the pause that is there and of the new one, in seconds, and which one counts.
    for (old, new, is_replaced) in [
        (Some(60), Some(61), true),
        (Some(60), Some(60), false),
        (Some(60), Some(59), false),
        (Some(60), None, true),
        (None, None, false),
        (None, Some(60), false),
        // One that is over is none.
        (Some(0), Some(60), true),
    ] {
        let old = by_eve(old.map(at));
        let new = Act::Pause(pause(new.map(at)));
        let paused = but(free.row.clone(), |row| {
            row.document.paused = Some(old.clone());
        });
        match effect(&new, &seen(paused)) {
            Effect::Swap { swap, .. } => {
                assert!(is_replaced, "{old:?} {new:?}");
                assert_eq!(Act::Pause(swap.to.document.paused.unwrap()), new);
            }
            other => {
                assert_eq!(other, Effect::StaysPaused(old), "{new:?}");
                assert!(!is_replaced, "{new:?}");
            }
        }
    }
}

#[test]
fn a_resumption_of_own_pauses_leaves_those_of_others() {
    let own = pause(None);
    let paused = seen(but(free(), |row| row.document.paused = Some(own.clone())));
    let of = |by: Option<&str>| effect(&Act::Resume(by.map(str::to_owned)), &paused);
    assert_eq!(of(Some("eve")), Effect::StaysPaused(own.clone()));
    for by in [None, Some(own.by.as_str())] {
        let Effect::Swap { swap, .. } = of(by) else {
            panic!("{by:?}");
        };
        assert_eq!(swap.to.document.paused, None);
    }
}

#[test]
fn an_idle_token_cannot_be_revoked() {
    for row in [created(), free(), idle("a")] {
        assert_eq!(effect(&Act::Revoke, &seen(row)), Effect::NotRunning);
    }
}

#[test]
fn a_running_token_is_not_released_without_force() {
    let release = Act::Release { force: false };
    assert_eq!(effect(&release, &seen(running("a"))), Effect::Running);
    // A holder that has long been silent is not released either.
    let silent = seen(running("a")).after(s(9_999));
    assert_eq!(effect(&release, &silent), Effect::Running);
    assert_eq!(swapped(&release, &seen(idle("a"))).to.state, State::Free);
}

#[test]
fn a_release_ends_the_time_of_at_least() {
    let soon = but(idle("a"), |row| row.document.not_before = s(900));
    let release = Act::Release { force: false };
    let swap = swapped(&release, &seen(soon.clone()).after(s(1)));
    assert_eq!(swap.to.document.not_before, s(0));
    assert_eq!(swap.to.acquired_at(), soon.acquired_at());
    // What is over is no change.
    let over = swapped(&release, &seen(soon.clone()).after(s(1_000)));
    assert_eq!(over.to.document.not_before, s(900));
    let running = but(running("a"), |row| row.document.not_before = s(900));
    let forced = swapped(&Act::Release { force: true }, &seen(running));
    assert_eq!(forced.to.document.not_before, s(0));
}

#[test]
fn a_forced_release_frees_the_token_and_forgets_the_session() {
    let row = but(running("a"), |row| *lock_file(row) = Some("lock".into()));
    let to = swapped(&Act::Release { force: true }, &seen(row)).to;
    assert_eq!((to.state, to.document.session_version), (State::Free, None));
}

#[test]
fn a_forced_release_says_how_long_the_old_job_may_run() {
    let for_how_long = |seen: &Seen| match effect(&Act::Release { force: true }, seen) {
        Effect::Swap { old_job_for, .. } => old_job_for,
        other => panic!("{other:?}"),
    };
    let after = |by| seen(running("a")).after(by);
    assert_eq!(for_how_long(&after(s(0))), TAKEOVER_AFTER);
    assert_eq!(for_how_long(&after(s(30))), TAKEOVER_AFTER - s(30));
    assert_eq!(for_how_long(&after(s(999))), s(0));
    assert_eq!(for_how_long(&seen(idle("a"))), s(0));
    // An unknown age counts as zero: the stamp may be a moment old.
    assert_eq!(for_how_long(&after(s(999)).elsewhere()), TAKEOVER_AFTER);
    assert_eq!(
        for_how_long(&seen(running("a")).before(s(5))),
        TAKEOVER_AFTER
    );
    let mutant = Mutant::ForceClaimsNoOverlap;
    let trusted = with_mutant(mutant, || for_how_long(&after(s(0))));
    assert_eq!(trusted, s(0), "caught: it is not what the holder may trust");
}

#[test]
fn a_heartbeat_on_its_way_conflicts_with_any_act() {
    for act in acts() {
        let now = seen(running("a")).now;
        let mut store = ModelData::default();
        store.rows.insert(running("a").group, running("a"));
        let beat = swap::heartbeat(&running("a"), Version::from_stored(8), now.until(s(4)));
        let act = swapped(&act, &seen(running("a")));
        assert!(matches!(store.swap(&act, &now), Swapped::Done(_)));
        assert_eq!(store.swap(&beat, &now), Swapped::Conflict);
    }
}

#[test]
fn the_holders_heartbeat_and_release_keep_what_operators_wrote() {
    let asked = swapped(&Act::Handoff(client("b")), &seen(running("a"))).to;
    let expiry = seen(running("a")).now.until(s(0));
    let beat = swap::heartbeat(&asked, Version::from_stored(10), expiry);
    assert_eq!(beat.to.document.handoff, asked.document.handoff);
}

#[test]
fn a_token_moves_away_from_its_client_and_its_at_least_goes_on() {
    let row = but(idle("a"), |row| row.document.not_before = s(3_600));
    let to = swapped(&Act::Away, &seen(row.clone())).to;
    assert_eq!(to.state, State::Free);
    assert_eq!(to.document.gives_way, Some(client("a")));
    assert_eq!(to.document.not_before, s(3_600));
    assert_eq!(to.acquired_at(), row.acquired_at());
    let to = swapped(&Act::Away, &seen(running("a"))).to;
    assert_eq!(to.state, running("a").state);
    assert!(to.document.revoke_requested);
    assert_eq!(to.document.gives_way, Some(client("a")));
    // The release of the revoked run keeps it, and the next grant ends it.
    let run = RunRecord::of(&to).unwrap();
    let now = seen(running("a")).now;
    let released = swap::release(&to, run, Version::from_stored(10), now.until(s(1))).to;
    assert_eq!(released.state, State::Free);
    assert_eq!(released.document.gives_way, Some(client("a")));
    let kind = crate::token::GrantKind::Bind;
    let version = Version::from_stored(11);
    let granted = swap::grant(&claim("b"), kind, Some(&released), &now, version);
    assert_eq!(granted.to.document.gives_way, None);
    let freed = effect(&Act::Away, &seen(free()));
    assert_eq!(freed, Effect::NotRunning);
}

fn on_client(act: &ClientAct, name: &str, seen: &Seen) -> ClientEffect {
    let note = seen.memory.note.clone().unwrap();
    let actor = Actor {
        by: "root".into(),
        host: None,
        reason: None,
    };
    act.perform(
        &client(name),
        &note,
        &seen.now,
        Version::from_stored(2),
        actor,
    )
}

#[test]
fn a_pause_of_a_client_stands_in_the_note_until_it_is_ended() {
    let seen = seen(free()).pausing(&client("a"), Some(WallTime(THEN.wall.0 + 60_000)));
    let longer = ClientAct::Pause(pause(None));
    let ClientEffect::Note(note, record) = on_client(&longer, "a", &seen) else {
        panic!("the pause is longer");
    };
    assert_eq!(note.version, Version::from_stored(2));
    assert_eq!(note.paused_clients.len(), 1);
    assert_eq!(note.paused_clients[&client("a")], pause(None));
    let record = record.unwrap();
    assert_eq!(
        (record.act.as_str(), record.client),
        ("pause_client", Some(client("a")))
    );
    let shorter = ClientAct::Pause(pause(Some(WallTime(THEN.wall.0 + 1_000))));
    let stays = on_client(&shorter, "a", &seen);
    assert!(matches!(stays, ClientEffect::StaysPaused(_)), "{stays:?}");
    let others = on_client(&ClientAct::Resume(Some("root".into())), "a", &seen);
    assert!(matches!(others, ClientEffect::StaysPaused(_)), "{others:?}");
    for by in [None, Some("admin".to_owned())] {
        let ClientEffect::Note(note, _) = on_client(&ClientAct::Resume(by), "a", &seen) else {
            panic!("the pause ends");
        };
        assert!(note.paused_clients.is_empty());
    }
    assert_eq!(
        on_client(&ClientAct::Resume(None), "b", &seen),
        ClientEffect::Nothing
    );
    // One that is over is no pause, and is left out of the next note.
    let over = seen.clone().after(s(60));
    assert_eq!(
        on_client(&ClientAct::Resume(None), "a", &over),
        ClientEffect::Nothing
    );
    let ClientEffect::Note(note, _) = on_client(&longer, "b", &over) else {
        panic!("another is paused");
    };
    assert!(!note.paused_clients.contains_key(&client("a")));
    // The note of the next incarnation has it, and so has a judgement.
    let memory = crate::token::Memory {
        incarnation: Some(Incarnation("restored".into())),
        ..seen.memory.clone()
    };
    assert!(
        memory
            .noted(&seen.now)
            .pause_of(&client("a"), &seen.now)
            .is_some()
    );
    let judged = memory.judged(&Incarnation("x".into()), true, &seen.now, note.version);
    assert!(judged.paused_clients.contains_key(&client("a")));
    let read = IncarnationNote::from_json(&judged.to_json(), judged.version);
    assert_eq!(read, judged);
}

#[test]
fn only_so_many_clients_are_paused() {
    let mut seen = seen(free()).pausing(&client("a"), None);
    let note = seen.memory.note.as_mut().unwrap();
    for n in 1..MOST_PAUSED_CLIENTS {
        note.paused_clients
            .insert(client(&format!("c{n}")), pause(None));
    }
    let act = ClientAct::Pause(pause(None));
    assert_eq!(on_client(&act, "b", &seen), ClientEffect::TooMany);
    assert_eq!(on_client(&act, "a", &seen), ClientEffect::Nothing);
    // One that is paused may be paused for another reason.
    let other = ClientAct::Pause(Pause {
        by: "eve".into(),
        reason: "a longer one".into(),
        ..pause(None)
    });
    for n in 1..MOST_PAUSED_CLIENTS {
        let soon = seen.now.plus(s(60)).stamp.wall;
        let note = seen.memory.note.as_mut().unwrap();
        let name = client(&format!("c{n}"));
        note.paused_clients.insert(name, pause(Some(soon)));
    }
    let changed = on_client(&other, "c1", &seen);
    assert!(matches!(changed, ClientEffect::Note(..)), "{changed:?}");
}

#[test]
fn to_send_a_holder_away_ends_a_handoff_and_asks_a_run_to_end() {
    let held = handed_to(running("a"), "b");
    let to = swapped(&Act::Away, &seen(held).after(s(30))).to;
    assert_eq!(to.document.handoff, None);
    assert_eq!(to.document.gives_way, Some(client("a")));
    assert!(to.document.revoke_requested);
    let bound = handed_to(idle("a"), "b");
    let to = swapped(&Act::Away, &seen(bound).after(s(30))).to;
    assert_eq!((to.state, to.document.handoff), (State::Free, None));
}

/// The state no longer shows then what the stamp records.
#[test]
fn what_frees_a_token_keeps_the_time_of_its_grant() {
    let granted = but(idle("a"), |row| {
        row.document.stamp_of = StampOf::Granted;
        (row.document.created, row.document.acquired) = (None, None);
    });
    let stamp = granted.stamped.stamp;
    for act in [Act::Away, Act::Release { force: false }] {
        let to = swapped(&act, &seen(granted.clone()).after(s(30))).to;
        let document = to.document;
        assert_eq!(document.acquired, Some(stamp), "{act:?}");
        assert_eq!(document.created, Some(stamp), "{act:?}");
    }
}

#[test]
fn a_forced_release_ends_what_was_asked_of_the_run() {
    let asked = but(running("a"), |row| {
        row.document.revoke_requested = true;
        row.document.gives_way = Some(client("a"));
    });
    let to = swapped(&Act::Release { force: true }, &seen(asked).after(s(30))).to;
    assert!(!to.document.revoke_requested);
    assert_eq!(to.document.gives_way, None);
}
