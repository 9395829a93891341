//! What a look makes of the answers of a server in this process.

use std::sync::atomic::{AtomicBool, Ordering};

use super::super::test_peer::{code_of, node, over, stat, texts};
use super::super::tree::Tree;
use super::*;
use crate::store::kv::flights::Flights as _;
use crate::store::kv::keys::whole;

/// A user may see no more than the part of the tree that is its own, and another client may make it at the same time.
#[test]
fn a_store_is_made_unless_a_node_of_its_own_is_refused() {
    let make = |refused: &'static str, why, version| {
        let answered = move |what: &str| (if what == refused { why } else { 0 }, Vec::new());
        over(4_000, answered, async |link, peer| {
            let made = link.make(version).await;
            (made.map_err(|fault| code_of(&fault)), peer.take())
        })
    };
    let all = "1/a 1/a/b 1/a/b/e 1/a/b/l 1/a/b/rel 1/a/b/now |";
    assert_eq!(make("", 0, None), (Ok(()), all.to_owned()));
    assert_eq!(make("1/a", code::NO_RIGHT, None).0, Ok(()));
    for own in ["1/a/b", "1/a/b/e", "1/a/b/now"] {
        let refused = make(own, code::NO_RIGHT, None);
        assert_eq!(refused.0, Err(code::NO_RIGHT), "{own}");
        assert_eq!(make(own, code::NODE_EXISTS, None).0, Ok(()), "{own}");
    }
    assert_eq!(make("5/a/b", code::BAD_VERSION, Some(3)).0, Ok(()));
    assert_eq!(
        make("5/a/b", code::NO_RIGHT, Some(3)).0,
        Err(code::NO_RIGHT)
    );
}

/// A list of 80 buckets, with one place in each.
#[test]
fn a_part_of_a_list_is_read_from_as_few_buckets_as_have_enough() {
    let place = |n: i64| {
        let path = Tree::new("/a/b").place("x", n << 23, &format!("k{n}"));
        let (bucket, name) = path.rsplit_once('/').unwrap();
        let bucket = bucket.rsplit_once('/').unwrap().1;
        (bucket.to_owned(), name.to_owned())
    };
    let places: Vec<(String, String)> = (0..80).map(place).collect();
    let read = |skip, limit| {
        let all = places.clone();
        let answered = move |what: &str| {
            let in_bucket = all.iter().filter(|(bucket, _)| what.ends_with(bucket));
            let names: Vec<String> = in_bucket.map(|(_, name)| name.clone()).collect();
            (0, texts(&names))
        };
        let part = Part {
            list: "x".into(),
            ranks: (i64::MIN, i64::MAX),
            newest_first: true,
            skip,
            limit,
        };
        let buckets: Vec<&str> = places.iter().rev().map(|(it, _)| it.as_str()).collect();
        over(4_000, answered, async |link, peer| {
            let found = link.part(&part, &buckets).await.unwrap();
            let asked = peer.take();
            let flights = asked.split('|').map(|it| it.split_whitespace().count());
            let flights: Vec<usize> = flights.filter(|count| *count > 0).collect();
            (found, flights)
        })
    };
    let keys = |numbers: std::ops::RangeInclusive<u32>| {
        let keys = numbers.rev().map(|n| format!("k{n}"));
        keys.collect::<Vec<String>>()
    };
    assert_eq!(read(0, 8), (keys(72..=79), vec![8]));
    assert_eq!(read(4, 4), (keys(72..=75), vec![8]));
    assert_eq!(read(4, 5), (keys(71..=75), vec![8, 64]));
    assert_eq!(read(0, u32::MAX), (keys(0..=79), vec![8, 64, 8]));
}

#[test]
fn a_store_that_is_new_is_made_before_a_look_is_certain() {
    let is_made = AtomicBool::new(false);
    let answered = move |what: &str| {
        is_made.fetch_or(what == "1/a/b", Ordering::Relaxed);
        match what {
            _ if !is_made.load(Ordering::Relaxed) => (code::NO_NODE, Vec::new()),
            "5/a/b/now" => (0, stat(1)),
            "4/a/b" => (0, node("id")),
            _ => (0, Vec::new()),
        }
    };
    over(4_000, answered, async |link, peer| {
        let seen = link.look(&[], None).await.unwrap();
        assert_eq!(seen.more.id, "id");
        let look = "5/a/b/now 4/a/b |";
        let made = "1/a 1/a/b 1/a/b/e 1/a/b/l 1/a/b/rel 1/a/b/now |";
        assert_eq!(peer.take(), format!("{look} {made} {look}"));
    });
}

#[test]
fn entries_of_a_list_are_guessed_from_the_last_look() {
    let tree = Tree::new("/a/b");
    let bucket = tree.bucket("x", 0);
    let of_bucket = format!("8{bucket}");
    let names = ["k", "m"].map(|key| {
        let place = tree.place("x", 0, key);
        place.rsplit_once('/').unwrap().1.to_owned()
    });
    let buckets = [bucket.rsplit_once('/').unwrap().1.to_owned()];
    let answered = move |what: &str| match what {
        "5/a/b/now" => (0, stat(1)),
        "4/a/b" => (0, node("id")),
        "8/a/b/l/x" => (0, texts(&buckets)),
        "4/a/b/e/k" | "4/a/b/e/m" => (0, node(r#"{"version":"1","fields":{}}"#)),
        what if what == of_bucket => (0, texts(&names)),
        other => panic!("{other}"),
    };
    over(4_000, answered, async |link, peer| {
        let mut look = async || {
            let seen = link.look(&[whole("x".into())], None).await.unwrap();
            assert!(seen.entries.keys().eq(["k", "m"]));
            peer.take()
        };
        let head = "5/a/b/now 4/a/b 8/a/b/l/x";
        let entries = "4/a/b/e/k 4/a/b/e/m";
        let first = format!("{head} | 8{bucket} | {entries} |");
        assert_eq!(look().await, first);
        assert_eq!(look().await, format!("{head} {entries} | 8{bucket} |"));
    });
}
