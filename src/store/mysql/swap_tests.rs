//! Swaps, and how others wait for them, at a server whose answers are given.

use super::MysqlStore;
use super::fault::code;
use super::link::LEAST;
use super::played::{Played, Says, TIMEOUT, flag, now, read, row, swapped};
use super::queue::name;
use super::statements::WHICH_SERVER;
use crate::store::net::lookout::Identify as _;
use crate::store::{Queue as _, Tokens as _, Trouble};
use crate::token::record::fixture::{SUCCESS, run_of};
use crate::token::rule::tests::fixture::{claim, idle, running};
use crate::token::swap::{grant, heartbeat, release};
use crate::token::{GrantKind, Incarnation, IncarnationNote, Row, Swap, Swapped, Version, Waiter};

/// An error of the server without a meaning of its own.
const NO_SYNTAX: u16 = 1064;

fn version(number: i64) -> Version {
    Version::from_stored(number)
}

fn note() -> IncarnationNote {
    let incarnation = Incarnation("server_made".into());
    IncarnationNote::of_new(incarnation, true, &now(), version(7))
}

/// What a look finds.
fn found(token: &Row) -> Says {
    read(Some(token), &note(), [true, false])
}

/// The lock that all sessions of the group know.
fn lock() -> String {
    name("d", &claim("a").group)
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

/// Notifies a waiter: the holder has given its lock up, or still has it.
fn notify(server: &Played, store: &mut MysqlStore, is_given_up: bool) {
    server.says_once("listen", flag(is_given_up));
    assert!(store.notifier().unwrap().signals_within(TIMEOUT));
}

/// What is asked by the look after that.
fn asked_when_notified(server: &Played, store: &mut MysqlStore, is_given_up: bool) -> String {
    notify(server, store, is_given_up);
    store.look(&claim("a").group, None).unwrap();
    server.asked()
}

#[test]
fn a_waiter_looks_as_soon_as_the_lock_is_given_up_and_listens_again_if_another_was_quicker() {
    let server = Played::start();
    server.says("read", found(&running("b")));
    let group = claim("a").group;
    server.store().look(&group, None).unwrap();
    assert_eq!(server.asked(), "open set-up read", "one that does not wait");
    let mut store = waiting(&server);
    assert_eq!(server.asked(), "open set-up join prepare used open read");
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
    assert_eq!(server.locks(), [lock()]);
}

#[test]
fn a_waiter_that_finds_the_lock_free_looks_ever_less_often_until_it_is_used() {
    let server = Played::start();
    let mut store = waiting(&server);
    notify(&server, &mut store, false);
    for (used, pauses) in [
        (false, "0.02"),
        (false, "0.04"),
        (false, "0.08"),
        (false, "0.16"),
        (false, "0.25"),
        (false, "0.25"),
        (true, ""),
        (false, "0.02"),
    ] {
        server.says("used", flag(used));
        store.look(&claim("a").group, None).unwrap();
        notify(&server, &mut store, false);
        assert_eq!(server.pauses(), pauses);
    }
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
    assert_eq!(asked_by(&granted(), "done", 0), "open set-up swap");
    assert_eq!(asked_by(&beat, "conflict", 1), "swap");
    assert_eq!(asked_by(&beat, "done", 1), "swap lock");
    // The session may be another one by now.
    assert_eq!(asked_by(&beat, "done", 1), "swap lock");
    assert_eq!(asked_by(&beat, "done", 0), "swap");
    server.until_left(1);
    let run = run_of(&held).ended(SUCCESS);
    let end = release(&held, run, version(4), now().until(TIMEOUT));
    assert_eq!(asked_by(&end, "done", 0), "open set-up swap");
    assert_eq!(asked_by(&granted(), "done", 1), "swap lock");
    assert_eq!(asked_by(&end, "done", 1), "swap give-up");
    assert_eq!(server.locks(), [lock()]);
}

#[test]
fn a_swap_whose_answer_is_lost_or_none_is_unclear_and_sent_once() {
    for says in [Says::Nothing, Says::NoRow] {
        let server = Played::start();
        server.says("swap", says.clone());
        let unclear = server.store().swap(&granted()).unwrap_err();
        assert_eq!(unclear.trouble, Trouble::Unavailable, "{says:?}: {unclear}");
        assert_eq!(server.asked(), "open set-up swap", "{says:?}");
    }
}

/// MySQL has no procedure for a moment when an administrator's script makes it anew.
#[test]
fn a_swap_waits_a_moment_for_what_is_in_its_way_and_for_nothing_else() {
    let server = Played::start();
    let mut store = server.store();
    store.connection.connect(TIMEOUT).unwrap();
    server.asked();
    let missing = Says::Error(code::NO_PROCEDURE);
    let refused = Says::Error(code::LOCK_TIMEOUT);
    let (locked, held) = (swapped("locked", 0), swapped("held", 0));
    server.says("swap", swapped("done", 0));
    for (in_the_way, asked) in [
        (&missing, "set-up swap swap"),
        (&refused, "swap swap"),
        (&locked, "swap swap"),
        (&held, "swap swap"),
    ] {
        server.says_once("swap", in_the_way.clone());
        let done = store.swap(&granted()).unwrap();
        assert!(matches!(done, Swapped::Done(_)), "{done:?}");
        assert_eq!(server.asked(), asked, "{in_the_way:?}");
    }
    server.says_once("swap", Says::Error(code::NO_TABLE));
    store.swap(&granted()).unwrap_err();
    assert_eq!(server.asked(), "swap");
    for (in_the_way, words) in [
        (missing, "error 1305"),
        (locked, "locked by another session"),
        (held, "held by a transaction"),
    ] {
        server.says("swap", in_the_way);
        let gave_up = store.swap(&granted()).unwrap_err();
        assert!(gave_up.what.contains(words), "{gave_up}");
    }
}

#[test]
fn what_a_lock_has_refused_is_asked_no_more_without_time() {
    let server = Played::start();
    server.says("which", Says::Error(code::LOCK_TIMEOUT));
    let mut connection = server.store().connection;
    connection.connect(TIMEOUT).unwrap();
    connection.ask(LEAST, WHICH_SERVER).unwrap_err();
    let asked = server.asked();
    assert!(asked.matches("which").count() <= 1, "{asked}");
}

/// Statements in a session that is not set up would mean what the server's defaults make of them.
#[test]
fn a_session_is_set_up_until_that_has_been_done() {
    let server = Played::start();
    let mut store = server.store();
    server.says("swap", swapped("done", 0));
    server.says_once("set-up", Says::Error(NO_SYNTAX));
    store.swap(&granted()).unwrap_err();
    assert_eq!(server.asked(), "open set-up");
    server.says_once("swap", Says::Error(NO_SYNTAX));
    store.swap(&granted()).unwrap_err();
    assert_eq!(server.asked(), "set-up swap");
    store.swap(&granted()).unwrap();
    assert_eq!(server.asked(), "swap");
}

/// A server closes connections that are idle for long. Nothing is sent over such a one.
#[test]
fn a_swap_over_a_connection_that_was_closed_meanwhile_has_a_clear_answer() {
    let server = Played::start();
    let mut store = server.store();
    server.says("swap", swapped("done", 0));
    for _ in 0..3 {
        store.swap(&granted()).unwrap();
        assert_eq!(server.asked(), "open set-up swap");
        server.hang_up();
    }
}

#[test]
fn what_a_server_says_that_accepts_no_writes_is_no_answer() {
    let server = Played::start();
    let mut store = server.store();
    server.says("read", read(None, &note(), [true, true]));
    let group = claim("a").group;
    let refused = store.look(&group, None).unwrap_err();
    assert_eq!(refused.trouble, Trouble::Refused, "{refused}");
    // Tables are made where there are none, and for no other reason.
    server.asked();
    server.says("read", Says::Error(NO_SYNTAX));
    store.look(&group, None).unwrap_err();
    assert_eq!(server.asked().matches("read").count(), 1);
}

#[test]
fn the_lookout_learns_which_server_accepts_writes() {
    let server = Played::start();
    let which = |says| {
        server.says("which", says);
        server.settings().writable(TIMEOUT)
    };
    assert_eq!(which(row(["id"])).as_deref(), Some("id"));
    let read_only = Says::Error(code::READ_ONLY[0]);
    assert_eq!(which(read_only).as_deref(), Some(""));
    assert_eq!(which(Says::Error(NO_SYNTAX)), None);
    assert_eq!(which(Says::Nothing), None);
}
