//! The machine's table: its actions for each event in each state, as text.

use std::fmt::Write as _;

use super::rig::*;
use crate::run::ending::NotStarted;
use crate::run::event::Event;
use crate::run::machine::Limits;
use crate::store::model::ModelStore;
use crate::sys::wait::Status;
use crate::token::operator::Act;
use crate::token::rule::tests::fixture::{but, client, s, session};
use crate::token::{Evidence, Recorded, Swapped};

fn stop() -> Event {
    Event::Signal {
        signal: 15,
        stop: true,
    }
}

/// Every initial state, and how it arises.
fn states() -> Vec<(&'static str, Rig)> {
    let after = |mut rig: Rig, then: fn(&mut Rig)| {
        then(&mut rig);
        rig
    };
    let nested = {
        let outer = Rig::running();
        let inner = but(claim_of("a"), |claim| {
            claim.session = session("inner");
            claim.nested_in = Some(session("a1"));
        });
        after(Rig::of(inner, Limits::default(), outer.store), |rig| {
            rig.answered();
            rig.tell(Event::JobStarted);
        })
    };
    let head_start = {
        let dead = Rig::running();
        dead.store.advance(s(60));
        after(
            Rig::of(claim_of("b"), Limits::default(), dead.store),
            |rig| {
                rig.answered();
            },
        )
    };
    let marking = {
        let first = but(claim_of("b"), |claim| claim.expected = Some(client("a")));
        after(
            Rig::of(first, Limits::default(), ModelStore::new()),
            |rig| {
                rig.answered();
            },
        )
    };
    let ended = |rig: &mut Rig| {
        rig.tell(Event::GuardAnswered);
        rig.job_ends(Status::Exited(0));
    };
    vec![
        ("seeking, a read is out", Rig::looking()),
        ("seeking, within the head start", head_start),
        ("seeking, the creation is out", marking),
        ("seeking, the locks are being taken", Rig::locking()),
        ("seeking, the grant is out", Rig::claiming()),
        (
            "seeking, the grant is out and a stop was asked for",
            after(Rig::claiming(), |rig| drop(rig.tell(stop()))),
        ),
        (
            "seeking, the grant's answer was lost",
            after(Rig::claiming(), |rig| drop(rig.answer_is_lost())),
        ),
        ("holding, the job is being started", Rig::starting()),
        ("holding, the job runs", Rig::running()),
        ("holding, a heartbeat is out", Rig::beating()),
        (
            "holding, a heartbeat conflicted and a read is out",
            after(Rig::beating(), |rig| {
                rig.operates(&Act::Handoff(client("b")));
                rig.answered();
            }),
        ),
        (
            "holding, the job is being ended by a signal",
            after(Rig::running(), |rig| drop(rig.tell(stop()))),
        ),
        (
            "holding, the token is lost and the job being ended",
            after(Rig::beating(), |rig| {
                rig.taken_by_another();
                rig.answered();
                rig.answered();
            }),
        ),
        ("holding, under an outer lease", nested),
        (
            "finishing, the release is out",
            after(Rig::running(), ended),
        ),
        (
            "finishing, a heartbeat from before is out",
            after(Rig::beating(), ended),
        ),
        (
            "finishing, the release failed",
            after(Rig::running(), |rig| {
                rig.job_ends(Status::Exited(3));
                rig.fails();
            }),
        ),
        (
            "finishing, only the record is left",
            after(Rig::beating(), |rig| {
                rig.taken_by_another();
                rig.answered();
                rig.answered();
                rig.job_ends(Status::Exited(0));
            }),
        ),
        (
            "ended",
            after(Rig::running(), |rig| {
                rig.job_ends(Status::Exited(0));
                rig.answered();
            }),
        ),
    ]
}

fn events(rig: &Rig) -> Vec<(&'static str, Event)> {
    let swapped = |swapped| Event::Swapped(Ok(swapped));
    let time = rig.store.now();
    let exited = |forced| Event::JobExited {
        status: Status::Exited(0),
        forced,
    };
    let hup = Event::Signal {
        signal: 10,
        stop: false,
    };
    let answers = [
        ("the swap is done", swapped(Swapped::Done(time.clone()))),
        ("the swap conflicts", swapped(Swapped::Conflict)),
        ("the swap is expired", swapped(Swapped::Expired(time))),
        ("the swap fails", Event::Swapped(Err(unavailable()))),
        ("the locks are taken", Event::LocksTaken(Ok("file".into()))),
        ("there are no locks", Event::LocksTaken(Err("full".into()))),
        ("the read fails", Event::Looked(Err(unavailable()))),
        (
            "the record is closed",
            Event::Recorded(Ok(Recorded::Written)),
        ),
        ("the record fails", Event::Recorded(Err(unavailable()))),
    ];
    let others = [
        ("the job started", Event::JobStarted),
        (
            "it did not: too late",
            Event::JobNotStarted(NotStarted::TooLate),
        ),
        ("the job exits", exited(false)),
        ("the job is made to exit", exited(true)),
        ("the tree is gone", Event::TreeGone),
        ("the guard answers", Event::GuardAnswered),
        ("the guard is gone", Event::GuardGone),
        ("TERM", stop()),
        ("USR1", hup),
    ];
    answers.into_iter().chain(others).collect()
}

/// The store's present contents, as the answer to a read.
fn looked(rig: &mut Rig) -> Event {
    let reading = crate::store::Tokens::read(&mut rig.store, &rig.machine.claim().group.clone());
    Event::Looked(reading.map(|reading| (Box::new(reading), Evidence::None)))
}

fn line(table: &mut String, name: &str, rig: &mut Rig, event: Event) {
    let before = place(rig);
    rig.out = None;
    let did = words(&rig.tell(event), rig.now);
    let after = place(rig);
    if did.is_empty() && before == after {
        return;
    }
    let did = if did.is_empty() { "-".to_owned() } else { did };
    let after = if before == after {
        String::new()
    } else {
        format!(" | {after}")
    };
    let _ = writeln!(table, "  {name}: {did}{after}");
}

#[test]
fn every_event_in_every_state() {
    let mut table = String::new();
    for (name, rig) in states() {
        let _ = writeln!(table, "{name} ({})", place(&rig));
        for (event_name, event) in events(&rig) {
            line(&mut table, event_name, &mut rig.clone(), event);
        }
        let mut seen = rig.clone();
        let event = looked(&mut seen);
        line(&mut table, "the row is read", &mut seen, event);
        if let Some(at) = rig.machine.wake_at() {
            let mut later = rig.clone();
            later.now = at;
            line(&mut table, "it wakes", &mut later, Event::Tick);
        }
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!("machine", table));
}
