//! Members that are killed, emptied and frozen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::QuorumKv;
use super::attempt::{Tried, attempt};
use super::fixtures::{TOKEN, put, swapping};
use super::plan::Plan;
use super::register::Ballot;
use super::wish::{Did, To, Wish};
use crate::store::kv::{Ask, Commit, Committed, Found, Kv as _, Outcome};
use crate::store::redis::settings::Settings;
use crate::store::redis::test_server::{Quorum, Server};
use crate::store::{StoreError, Trouble};

const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) const PREFIX: &str = "q";

fn quorum() -> Quorum {
    Quorum::start(3)
}

pub(super) fn client_of(quorum: &Quorum) -> QuorumKv {
    let settings = Settings::read(&quorum.url(PREFIX), |_| None).unwrap();
    QuorumKv::new(settings, TIMEOUT, "test").unwrap()
}

/// Looks until all members have joined. A look does not wait for one that is late.
pub(super) fn until_joined(quorum: &Quorum) {
    let mut kv = client_of(quorum);
    quorum.0[0].wait_until("members that join", || {
        look(&mut kv);
        quorum.joined(PREFIX) == 3
    });
}

fn swap(kv: &mut QuorumKv, from: Option<&str>, to: &str) -> Result<Committed, StoreError> {
    kv.commit(&swapping(from, to))
}

fn done(committed: Result<Committed, StoreError>) {
    assert_eq!(committed.unwrap().outcome, Outcome::Done);
}

/// The ballot of what this server holds of a key; empty, if it holds nothing.
pub(super) fn accepted(server: &Server, key: &str) -> String {
    held(server, key, "accepted")
}

/// What this server holds in a field of a key; empty, if it holds nothing.
pub(super) fn held(server: &Server, key: &str, field: &str) -> String {
    let register = format!("{{{PREFIX}}}:register:{key}");
    let value = server.cli(&["HGET", &register, field]);
    value.trim().to_owned()
}

/// The server keeps what it has, and has started anew.
pub(super) fn starts_anew(server: &Server) {
    server.cli(&[
        "HSET",
        &format!("{{{PREFIX}}}:member"),
        "process",
        "another",
    ]);
}

pub(super) fn look(kv: &mut QuorumKv) -> Found {
    kv.get(&[Ask::One(TOKEN.into())]).unwrap()
}

fn version(kv: &mut QuorumKv) -> Option<String> {
    look(kv)
        .entries
        .get(TOKEN)
        .map(|entry| entry.version.clone())
}

#[test]
fn a_member_that_is_killed_and_emptied_joins_again_with_what_the_others_hold() {
    let quorum = quorum();
    let mut kv = client_of(&quorum);
    done(swap(&mut kv, None, "1"));
    let before = look(&mut kv).server.incarnation;
    // Without persistence a server that starts anew is empty.
    quorum.0[0].kill();
    done(swap(&mut kv, Some("1"), "2"));
    let last = accepted(&quorum.0[1], TOKEN);
    quorum.0[0].launch();
    assert_eq!(quorum.joined(PREFIX), 2);
    assert_eq!(version(&mut client_of(&quorum)).as_deref(), Some("2"));
    until_joined(&quorum);
    assert!(accepted(&quorum.0[0], TOKEN) >= last);
    // Now another one may go.
    quorum.0[1].kill();
    assert_eq!(version(&mut kv).as_deref(), Some("2"));
    done(swap(&mut kv, Some("2"), "3"));
    assert_eq!(look(&mut kv).server.incarnation, before);
}

/// More than the first parts that are copied.
#[test]
fn a_member_that_was_emptied_gets_each_of_many_entries() {
    const ENTRIES: usize = 200;
    let quorum = quorum();
    let mut kv = client_of(&quorum);
    let puts = (0..ENTRIES).map(|number| put(&format!("waiter:g:{number}"), "1"));
    done(kv.commit(&Commit {
        puts: puts.collect(),
        ..Commit::default()
    }));
    until_joined(&quorum);
    quorum.0[2].cli(&["FLUSHALL"]);
    until_joined(&quorum);
    let all = quorum.0[2].cli(&["ZCARD", &format!("{{{PREFIX}}}:registers")]);
    assert_eq!(all.trim(), ENTRIES.to_string());
}

#[test]
fn a_member_whose_data_are_removed_counts_for_nothing_until_it_has_joined() {
    let quorum = quorum();
    let mut kv = client_of(&quorum);
    done(swap(&mut kv, None, "1"));
    quorum.0[2].cli(&["FLUSHALL"]);
    quorum.0[0].freeze();
    // One that knows and one that has forgotten are no majority.
    let url_of_two = swap(&mut kv, Some("1"), "2");
    assert!(url_of_two.is_err(), "{url_of_two:?}");
    quorum.0[0].thaw();
    assert_eq!(version(&mut client_of(&quorum)).as_deref(), Some("1"));
    until_joined(&quorum);
}

#[test]
fn a_majority_that_is_emptied_at_once_is_another_incarnation() {
    let quorum = quorum();
    let mut kv = client_of(&quorum);
    done(swap(&mut kv, None, "1"));
    let before = look(&mut kv);
    for server in &quorum.0[..2] {
        server.kill();
        server.launch();
    }
    let after = look(&mut client_of(&quorum));
    assert_ne!(after.server.incarnation, before.server.incarnation);
    assert_ne!(after.now.epoch, before.now.epoch);
    // What the third member still has is the store's.
    assert_eq!(after.entries[TOKEN].version, "1");
    assert_eq!(after.entries[TOKEN].stamp.epoch, before.now.epoch);
    until_joined(&quorum);
}

/// Makes a hundred swaps, the first of which finds this version, and returns how long they took.
fn hundred(kv: &mut QuorumKv, first: u32) -> Duration {
    let began = Instant::now();
    for number in first..first + 100 {
        let from = number.to_string();
        done(swap(kv, Some(&from), &(number + 1).to_string()));
    }
    began.elapsed()
}

#[test]
fn a_frozen_member_slows_nothing_and_a_second_one_ends_grants() {
    let quorum = quorum();
    let mut kv = client_of(&quorum);
    done(swap(&mut kv, None, "0"));
    let with_all = hundred(&mut kv, 0);
    quorum.0[1].freeze();
    let with_two = hundred(&mut kv, 100);
    // Each call that waited for it would take ten seconds.
    assert!(
        with_two < with_all + TIMEOUT,
        "{with_two:?} and {with_all:?}"
    );
    quorum.0[2].kill();
    let error = swap(&mut kv, Some("200"), "201").unwrap_err();
    assert_eq!(error.trouble, Trouble::Refused, "nothing was sent: {error}");
    assert!(
        error.what.contains("fewer than 2 of its 3 servers answer"),
        "{error}"
    );
    quorum.0[1].thaw();
    assert_eq!(version(&mut kv).as_deref(), Some("200"));
}

/// A member that was late, and is well again, is left out for two seconds.
#[test]
fn a_member_that_was_late_makes_up_for_one_that_is_frozen() {
    let quorum = quorum();
    let mut kv = client_of(&quorum);
    done(swap(&mut kv, None, "0"));
    for (number, (late, frozen)) in [(0, 1), (1, 2), (2, 0)].into_iter().enumerate() {
        let [late, frozen] = [late, frozen].map(|index: usize| &quorum.0[index]);
        let next = |step: usize| (2 * number + step).to_string();
        late.freeze();
        done(swap(&mut kv, Some(&next(0)), &next(1)));
        late.thaw();
        frozen.freeze();
        done(swap(&mut kv, Some(&next(1)), &next(2)));
        frozen.thaw();
        look(&mut kv);
    }
}

/// The members that a look asks, within a time that is over soon.
fn asked(kv: &mut QuorumKv) -> [bool; 3] {
    let limit = Duration::from_millis(500);
    let asked = kv.members.run(limit, async |members, deadline| {
        let answers = members.ask(deadline, &Wish::Show(Vec::new())).await;
        Ok(std::array::from_fn(|index| answers.0[index].is_some()))
    });
    asked.unwrap()
}

#[test]
fn a_member_that_is_late_is_left_out_while_the_others_are_enough() {
    let quorum = quorum();
    let mut kv = client_of(&quorum);
    done(swap(&mut kv, None, "0"));
    assert_eq!(asked(&mut kv), [true; 3]);
    quorum.0[2].freeze();
    // On a busy machine the next look may come after more than two seconds.
    quorum.0[0].wait_until("it is left out", || {
        look(&mut kv);
        asked(&mut kv) == [true, true, false]
    });
    quorum.0[1].freeze();
    assert_eq!(asked(&mut kv), [true; 3]);
    assert_eq!(asked(&mut kv), [true; 3]);
    for server in &quorum.0[1..] {
        server.thaw();
    }
    look(&mut kv);
}

/// One of the two others has promised another client a higher ballot.
#[test]
fn a_frozen_member_slows_no_client_that_was_overtaken() {
    let quorum = quorum();
    let mut kv = client_of(&quorum);
    done(swap(&mut kv, None, "0"));
    let overtaking = Wish::Prepare {
        ballot: Ballot {
            number: 1_000,
            client: 0,
        },
        registers: BTreeSet::from([TOKEN.to_owned()]),
        asked: Vec::new(),
    };
    let to = vec![Some(To::default()), None, None];
    let promised = client_of(&quorum).call(async |members, deadline, _| {
        let answers = members.round(deadline, &overtaking, to, |_| false).await;
        Ok(answers.count(Did::Done))
    });
    assert_eq!(promised.unwrap(), 1);
    quorum.0[2].freeze();
    done(swap(&mut kv, Some("0"), "1"));
    quorum.0[2].thaw();
}

#[test]
fn a_server_of_two_names_is_no_majority() {
    let quorum = quorum();
    let [one, other] = [0, 1].map(|index: usize| quorum.0[index].port());
    quorum.0[1].kill();
    let url = format!("redis://127.0.0.1:{one},localhost:{one},127.0.0.1:{other}/0?quorum");
    let settings = Settings::read(&url, |_| None).unwrap();
    let mut kv = QuorumKv::new(settings, TIMEOUT, "test").unwrap();
    let error = swap(&mut kv, None, "0").unwrap_err();
    let same = "it is the same server as another one of the list";
    assert!(error.what.contains(same), "{error}");
}

/// Nodes with that server's address alone exclude none of these.
#[test]
fn a_server_that_has_tokens_of_its_own_ends_grants() {
    let quorum = quorum();
    let mut kv = client_of(&quorum);
    done(swap(&mut kv, None, "0"));
    quorum.0[2].cli(&["ZADD", &format!("{{{PREFIX}}}:tokens"), "0", "g"]);
    let error = swap(&mut kv, Some("0"), "1").unwrap_err();
    assert_eq!(error.trouble, Trouble::Misconfigured, "{error}");
    assert!(error.what.contains("do not exclude each other"), "{error}");
}

/// The answers of the first try are lost, and its time is over when the second one learns that it has happened.
#[test]
fn a_commit_that_has_happened_is_in_time_however_late_that_is_known() {
    let quorum = quorum();
    let mut kv = client_of(&quorum);
    done(swap(&mut kv, None, "1"));
    let mut before = look(&mut kv).now;
    before.stamp.tick_ms -= 1;
    done(swap(&mut kv, Some("1"), "2"));
    let late = Commit {
        until: Some(before.until(Duration::ZERO)),
        ..swapping(Some("1"), "2")
    };
    let tried = kv.call(async |members, deadline, turned| {
        let mut plan = Plan::of(&late);
        plan.sent.push(members.highest());
        attempt(members, deadline, turned, &mut plan).await
    });
    assert!(matches!(tried, Ok(Tried::Happened(_))));
}

#[test]
fn a_commit_of_many_clients_happens_once() {
    let quorum = quorum();
    done(swap(&mut client_of(&quorum), None, "0"));
    let won = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|client| {
                let mut kv = client_of(&quorum);
                scope.spawn(move || {
                    let mut won = Vec::new();
                    for _ in 0..25 {
                        let from: u32 = version(&mut kv).unwrap().parse().unwrap();
                        // No two clients write the same version.
                        let to = from - from % 4 + 4 + client;
                        let swapped = swap(&mut kv, Some(&from.to_string()), &to.to_string());
                        if swapped.is_ok_and(|it| it.outcome == Outcome::Done) {
                            won.push(from);
                        }
                    }
                    won
                })
            })
            .collect();
        let won = clients.into_iter().flat_map(|it| it.join().unwrap());
        won.collect::<Vec<u32>>()
    });
    let mut once = won.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), won.len(), "a version has two successors");
    assert!(won.len() > 10, "{won:?}");
}

/// Swaps of several clients, whose versions are numbers that only they write.
fn swap_until(over: &AtomicBool, mut kv: QuorumKv, client: u64, won: &Mutex<BTreeMap<u64, u64>>) {
    let mut number = 0;
    while !over.load(Ordering::Relaxed) {
        let Ok(found) = kv.get(&[Ask::One(TOKEN.into())]) else {
            continue;
        };
        let Some(entry) = found.entries.get(TOKEN) else {
            continue;
        };
        number += 1;
        let to = number * 8 + client;
        let swapped = swap(&mut kv, Some(&entry.version), &to.to_string());
        if swapped.is_ok_and(|it| it.outcome == Outcome::Done) {
            let from = entry.version.parse().unwrap();
            let other = won.lock().unwrap().insert(from, to);
            assert_eq!(other, None, "{from} has two successors: {other:?} and {to}");
        }
    }
}

/// Each fault comes when all members have joined again.
#[test]
fn no_swap_is_lost_while_members_are_emptied_and_frozen() {
    const FAULTS: usize = 12;
    let quorum = quorum();
    done(swap(&mut client_of(&quorum), None, "0"));
    let (over, won) = (AtomicBool::new(false), Mutex::default());
    std::thread::scope(|scope| {
        for client in 1..4 {
            let kv = client_of(&quorum);
            let (over, won) = (&over, &won);
            scope.spawn(move || swap_until(over, kv, client, won));
        }
        for fault in 0..FAULTS {
            let server = &quorum.0[fault % 3];
            let before = won.lock().unwrap().len();
            match fault % 2 {
                0 => server.kill(),
                _ => server.freeze(),
            }
            server.wait_until("swaps without it", || {
                won.lock().unwrap().len() > before + 20
            });
            match fault % 2 {
                0 => server.launch(),
                _ => server.thaw(),
            }
            server.wait_until("a member that joins", || quorum.joined(PREFIX) == 3);
        }
        over.store(true, Ordering::Relaxed);
    });
    let won = won.into_inner().unwrap();
    assert!(won.len() > FAULTS * 20, "{}", won.len());
    // The last version comes after all of them.
    let last: u64 = version(&mut client_of(&quorum)).unwrap().parse().unwrap();
    assert!(!won.contains_key(&last), "{last} was succeeded");
}
