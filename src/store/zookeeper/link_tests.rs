//! What a connection asks, and what it makes of the answers of a server in this process.

use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::session::Link as _;
use super::*;
use crate::store::net::session::event_loop;

/// What a server was asked: kinds with paths, in the order in which they came. `|` ends what came together.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<String>>>);

impl Asked {
    fn all(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> String {
        std::mem::take(&mut *self.all()).join(" ")
    }
}

/// The answer of a server: an error, and what follows the header.
type Answer = (i32, Vec<u8>);

fn int(number: i32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn text(text: &str) -> Vec<u8> {
    [int(text.len().try_into().unwrap()), text.into()].concat()
}

fn texts(texts: &[String]) -> Vec<u8> {
    let all = texts.iter().flat_map(|it| text(it));
    let count = int(texts.len().try_into().unwrap());
    count.into_iter().chain(all).collect()
}

/// A node's times: 1 made it, 7 changed it at 9000 ms.
fn stat() -> Vec<u8> {
    let longs = [1_i64, 7, 0, 9_000].map(i64::to_be_bytes).concat();
    [longs, int(3), vec![0; 32]].concat()
}

fn frame(parts: &[&[u8]]) -> Vec<u8> {
    let record = parts.concat();
    [int(record.len().try_into().unwrap()), record].concat()
}

/// Serves one client with a session of this length.
async fn serve(
    mut client: DuplexStream,
    lives_ms: i32,
    asked: Asked,
    answer: impl Fn(&str) -> Answer,
) {
    // A flight is read at once.
    let mut bytes = Vec::with_capacity(1 << 20);
    let mut is_greeted = false;
    while client.read_buf(&mut bytes).await.is_ok_and(|it| it > 0) {
        let mut out = Vec::new();
        let mut rest = In(&bytes);
        while let Some(record) = rest.buffer() {
            if !is_greeted {
                is_greeted = true;
                out.extend(frame(&[&int(0), &int(lives_ms), &[0; 8], &int(0)]));
                continue;
            }
            let mut record = In(record);
            let (number, kind) = (record.int().unwrap(), record.int().unwrap());
            let path = match kind {
                // The kinds of its requests, of which only removals have no data.
                14 => multi(record),
                _ => String::from_utf8_lossy(record.buffer().unwrap_or_default()).into_owned(),
            };
            let what = format!("{kind}{path}");
            let (error, body) = answer(&what);
            asked.all().push(what);
            out.extend(frame(&[&int(number), &[0; 8], &int(error), &body]));
        }
        bytes.clear();
        asked.all().push("|".into());
        client.write_all(&out).await.unwrap();
    }
}

/// How many removals a transaction has before the write of its time.
fn multi(mut record: In<'_>) -> String {
    let mut count = 0;
    while record.int() == Some(2) {
        record.0 = &record.0[5..];
        record.buffer();
        record.int();
        count += 1;
    }
    format!(":{count}")
}

/// The answer to a transaction with so many removals.
fn removed(count: usize) -> Vec<u8> {
    let part = |kind, is_last: bool| [int(kind), vec![is_last.into()], int(0)].concat();
    let removals = part(2, false).repeat(count);
    [removals, part(5, false), stat(), part(-1, true)].concat()
}

/// Carries out `work` on a connection to a server that answers so; returns its result and what the server was asked.
fn over<T>(
    lives_ms: i32,
    answer: impl Fn(&str) -> Answer + Send + 'static,
    work: impl AsyncFnOnce(&mut Link, &Asked) -> T,
) -> T {
    event_loop().unwrap().block_on(async {
        let (near, far) = duplex(1 << 20);
        let asked = Asked::default();
        tokio::spawn(serve(far, lives_ms, asked.clone(), answer));
        let mut link = Link {
            channel: Channel::new(Box::new(near), 4_000, None),
            tree: Tree::new("/a/b"),
            socket: Arc::new(UnixStream::pair().unwrap().0.into()),
            secured: false,
            known: Known::default(),
        };
        link.channel.greet().await.unwrap();
        asked.take();
        work(&mut link, &asked).await
    })
}

fn code_of(fault: &Fault) -> i32 {
    match fault {
        Fault::Said(Said::Failed { code, .. }) => *code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_servers_of_an_ensemble_are_those_of_its_configuration() {
    let members = |answer: Answer| {
        let answered = move |_: &str| answer.clone();
        over(4_000, answered, async |link, _| {
            link.members().await.unwrap()
        })
    };
    let configuration = "server.1=a:1:2\nserver.2=b:1:2\nversion=0";
    assert_eq!(members((0, text(configuration))), 2);
    assert_eq!(members((code::NO_RIGHT, text(configuration))), 0);
}

#[test]
fn nodes_are_open_to_all_if_any_client_may_write_them() {
    let is_open = |rights: &[(i32, &str)]| {
        let count = int(rights.len().try_into().unwrap());
        let all = rights
            .iter()
            .flat_map(|(bits, scheme)| [int(*bits), text(scheme), text("x")].concat());
        let body: Vec<u8> = count.into_iter().chain(all).collect();
        let answered = move |_: &str| (0, body.clone());
        over(4_000, answered, async |link, _| {
            link.is_open_to_all().await.unwrap()
        })
    };
    assert!(is_open(&[(31, "digest"), (31, "world")]));
    assert!(!is_open(&[(31, "digest"), (1, "world")]));
    assert!(!is_open(&[]));
}

/// A session that has been silent for longer may end on the way to the server.
#[test]
fn a_connection_is_used_for_half_of_the_time_that_its_session_lives() {
    let answered = |_: &str| (0, Vec::new());
    over(60_000, answered, async |link, asked| {
        assert!(link.is_alive().await);
        link.stay().await.unwrap();
        assert_eq!(asked.take(), "");
        let half = Duration::from_secs(30);
        link.channel.heard_at = Instant::now().checked_sub(half).unwrap();
        assert!(!link.is_alive().await);
        link.stay().await.unwrap();
        assert_eq!(asked.take(), "11 |");
        assert!(link.is_alive().await, "it was heard again");
        link.quit().await;
        tokio::task::yield_now().await;
        assert_eq!(asked.take(), "-11 |");
    });
}

/// A user may see no more than the part of the tree that is its own, and another client may make it at the same time.
#[test]
fn a_store_is_made_unless_a_node_of_its_own_is_refused() {
    let make = |refused: &'static str, why, version| {
        let answered = move |what: &str| (if what == refused { why } else { 0 }, Vec::new());
        over(4_000, answered, async |link, asked| {
            let made = link.make(version).await;
            (made.map_err(|fault| code_of(&fault)), asked.take())
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
        over(4_000, answered, async |link, asked| {
            let found = link.part(&part, &buckets).await.unwrap();
            let asked = asked.take();
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

fn steps() -> Vec<Step> {
    let path = || "/a/b/e/k".to_owned();
    let place = || Some(("x".to_owned(), 0));
    let create = || Request::Create {
        path: path(),
        data: Vec::new(),
    };
    let delete = || Request::Delete {
        path: path(),
        version: None,
    };
    let all = [(create(), None), (create(), place()), (delete(), place())];
    let step = |(request, place)| Step { request, place };
    all.into_iter().map(step).collect()
}

#[test]
fn a_transaction_is_mended_where_places_come_and_go() {
    let mend = |at, why, of_lists| {
        let answered = move |_: &str| (of_lists, Vec::new());
        over(4_000, answered, async |link, asked| {
            let (mut steps, mut parts) = (steps(), vec![Answered::Failed(0); 3]);
            parts[at] = Answered::Failed(why);
            let mended = link.mend(&mut steps, at, &parts).await;
            let mended = mended.map_err(|fault| code_of(&fault));
            (mended, steps.len(), asked.take())
        })
    };
    let nothing = String::new;
    for why in [code::BAD_VERSION, code::NODE_EXISTS, code::NO_NODE] {
        assert_eq!(mend(0, why, 0), (Ok(false), 3, nothing()), "an entry");
    }
    assert_eq!(mend(1, code::NODE_EXISTS, 0), (Ok(true), 2, nothing()));
    assert_eq!(mend(2, code::NO_NODE, 0), (Ok(true), 2, nothing()));
    let bucket = Tree::new("/a/b").bucket("x", 0);
    let lists = format!("19/a/b/l/x 19{bucket} |");
    for there in [0, code::NODE_EXISTS] {
        let mended = (Ok(true), 3, lists.clone());
        assert_eq!(mend(1, code::NO_NODE, there), mended);
    }
    let denied = code::NO_RIGHT;
    assert_eq!(mend(1, code::NO_NODE, denied).0, Err(denied));
    for at in 0..3 {
        assert_eq!(mend(at, denied, 0), (Err(denied), 3, nothing()));
    }
}

/// A server refuses a transaction that is too long. Old records go ahead: they are of no use to each other.
#[test]
fn many_records_are_removed_in_parts() {
    let answered = |what: &str| {
        let count = what.strip_prefix("14:").unwrap().parse().unwrap();
        (0, removed(count))
    };
    let key = |n| format!("k{n}");
    let commit = Commit {
        deletes: (0..250)
            .map(|n| Delete {
                key: key(n),
                lists: Vec::new(),
            })
            .collect(),
        ..Commit::default()
    };
    over(4_000, answered, async |link, asked| {
        let now = Now::new(&tests::stat((7 << 32) + 5, 9_000), "id", None);
        let read = now.read(br#"{"version":"1","fields":{}}"#, &tests::stat(1, 1));
        let seen = Seen {
            asked_at: Instant::now(),
            now: now.time.clone(),
            entries: (0..250).map(|n| (key(n), read.clone())).collect(),
            more: now,
        };
        let found = link.write(&commit, seen, None).await.unwrap().unwrap();
        assert_eq!(found.now.stamp.tick_ms, 9_000);
        assert_eq!(asked.take(), "14:100 | 14:50 | 14:100 |");
    });
}
