//! Swaps, and how others wait for them, at a server whose answers are given.

use super::MysqlStore;
use super::fault::code;
use super::played::{Played, Says, TIMEOUT, flag, now, read, swapped};
use crate::store::{Queue as _, Tokens as _, Trouble};
use crate::token::record::fixture::{SUCCESS, run_of};
use crate::token::rule::tests::fixture::{claim, idle, running};
use crate::token::swap::{grant, heartbeat, release};
use crate::token::{GrantKind, Incarnation, IncarnationNote, Row, Swap, Swapped, Version, Waiter};

fn version(number: i64) -> Version {
    Version::from_stored(number)
}

/// What a look finds.
fn found(token: &Row) -> Says {
    let incarnation = Incarnation("server_made".into());
    let note = IncarnationNote::of_new(incarnation, true, &now(), version(7));
    read(Some(token), &note, true)
}

/// A grant of the token that is idle.
fn granted() -> Swap {
    let kind = GrantKind::Bind;
    grant(&claim("a"), kind, Some(&idle("a")), &now(), version(2))
}

/// A store that waits for a token that is held, and that has looked.
fn waiting(server: &Played) -> MysqlStore {
    server.says("read", found(&running("b")));
    server.says("used", flag(true));
    let mut store = server.store();
    let waits = Waiter::of(&claim("a"));
    let until = now().until(TIMEOUT);
    store.join(&claim("a").group, &waits, &until, None).unwrap();
    store
}

/// What is asked by the look after a notification: the holder has given its lock up, or still has it.
fn asked_when_notified(server: &Played, store: &mut MysqlStore, is_given_up: bool) -> String {
    server.says_once("listen", flag(is_given_up));
    assert!(store.notifier().unwrap().signals_within(TIMEOUT));
    store.look(&claim("a").group, None).unwrap();
    server.asked()
}

#[test]
fn a_waiter_looks_as_soon_as_the_lock_is_given_up_and_listens_again_if_another_was_quicker() {
    let server = Played::start();
    server.says("read", found(&running("b")));
    let group = claim("a").group;
    server.store().look(&group, None).unwrap();
    assert_eq!(server.asked(), "open read", "one that does not wait");
    let mut store = waiting(&server);
    assert_eq!(server.asked(), "open join prepare used open read");
    store.look(&group, None).unwrap();
    assert_eq!(server.asked(), "read", "it listens");
    let asked = asked_when_notified(&server, &mut store, false);
    assert_eq!(asked, "used read", "the holder lives");
    let asked = asked_when_notified(&server, &mut store, true);
    assert_eq!(asked, "read used read", "another was quicker");
    server.says("read", found(&idle("b")));
    let asked = asked_when_notified(&server, &mut store, true);
    assert_eq!(asked, "read", "the token is free");
    store.look(&group, None).unwrap();
    assert_eq!(server.asked(), "used read");
}

/// A job for whose token no run waits keeps no connection.
#[test]
fn a_waiter_that_gets_the_token_listens_no_longer() {
    let server = Played::start();
    let mut store = waiting(&server);
    server.says("read", found(&idle("b")));
    asked_when_notified(&server, &mut store, true);
    server.says("swap", swapped("conflict", 0));
    store.swap(&granted()).unwrap();
    assert_eq!(server.asked(), "swap");
    // It goes on to wait.
    store.look(&claim("a").group, None).unwrap();
    assert_eq!(server.asked(), "used read");
    asked_when_notified(&server, &mut store, true);
    server.says("swap", swapped("done", 0));
    store.swap(&granted()).unwrap();
    server.until_left(1);
}

#[test]
fn a_holder_has_the_lock_while_others_wait_and_gives_it_up_with_the_token() {
    let server = Played::start();
    server.says("lock", flag(true));
    let mut store = server.store();
    let mut asked_by = |swap: &Swap, what, waits| {
        server.says("swap", swapped(what, waits));
        let swapped = store.swap(swap).unwrap();
        assert_eq!(matches!(swapped, Swapped::Done(_)), what == "done");
        server.asked()
    };
    let held = granted().to;
    let beat = heartbeat(&held, version(3), now().until(TIMEOUT));
    assert_eq!(asked_by(&granted(), "done", 0), "open swap");
    assert_eq!(asked_by(&beat, "conflict", 1), "swap");
    assert_eq!(asked_by(&beat, "done", 1), "swap lock");
    // The session may be another one by now.
    assert_eq!(asked_by(&beat, "done", 1), "swap lock");
    assert_eq!(asked_by(&beat, "done", 0), "swap");
    assert_eq!(
        asked_by(&beat, "done", 2),
        "open swap lock",
        "a new session"
    );
    let run = run_of(&held).ended(SUCCESS);
    let end = release(&held, run, version(4), now().until(TIMEOUT));
    assert_eq!(asked_by(&end, "done", 0), "swap give-up");
    assert_eq!(asked_by(&granted(), "done", 1), "swap lock");
}

#[test]
fn a_swap_whose_answer_is_lost_or_none_is_unclear_and_sent_once() {
    for says in [Says::Nothing, Says::Rows(Vec::new())] {
        let server = Played::start();
        server.says("swap", says.clone());
        let unclear = server.store().swap(&granted()).unwrap_err();
        assert_eq!(unclear.trouble, Trouble::Unavailable, "{says:?}: {unclear}");
        assert_eq!(server.asked(), "open swap", "{says:?}");
    }
}

/// MySQL has no procedure for a moment when an administrator's script makes it anew.
#[test]
fn a_swap_waits_a_moment_for_a_procedure_that_is_made_anew_and_for_nothing_else() {
    let server = Played::start();
    let mut store = server.store();
    server.says("swap", swapped("done", 0));
    server.says_once("swap", Says::Error(code::NO_PROCEDURE));
    let done = store.swap(&granted()).unwrap();
    assert!(matches!(done, Swapped::Done(_)), "{done:?}");
    assert_eq!(server.asked(), "open swap swap");
    server.says_once("swap", Says::Error(code::NO_TABLE));
    store.swap(&granted()).unwrap_err();
    assert_eq!(server.asked(), "swap");
    server.says("swap", Says::Error(code::NO_PROCEDURE));
    let missing = store.swap(&granted()).unwrap_err();
    assert!(missing.what.contains("error 1305"), "{missing}");
}
