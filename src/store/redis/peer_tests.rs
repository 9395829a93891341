//! Peers that do not answer as a server should.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use super::RedisKv;
use super::settings::Settings;
use crate::store::conformance::{claim, version};
use crate::store::kv::KvStore;
use crate::store::kv::{Ask, Commit, Kv as _};
use crate::store::{Tokens as _, Trouble};
use crate::token::swap::creation;
use crate::token::{ClockEpoch, Stamp, StoreTime, WallTime};

/// Far longer than any of these calls takes.
const TIMEOUT: Duration = Duration::from_secs(20);

/// What a peer has done.
#[derive(Default)]
struct Seen {
    scripts: AtomicUsize,
    /// How many bytes it could send.
    sent: AtomicUsize,
}

/// A peer that lets everybody log in, if `answers`, and then sends this again and again.
fn peer(answers: bool, head: &'static [u8], again: &'static [u8]) -> (String, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let seen = Arc::new(Seen::default());
    let shared = Arc::clone(&seen);
    thread::spawn(move || {
        for client in listener.incoming() {
            serve(client.unwrap(), answers, head, again, &shared);
        }
    });
    (place, seen)
}

fn serve(mut client: TcpStream, answers: bool, head: &[u8], again: &[u8], seen: &Seen) {
    let mut asked = Vec::new();
    let mut buffer = [0; 65_536];
    let mut is_known = false;
    let is_script = |asked: &[u8]| asked.windows(4).any(|word| word == b"EVAL");
    while !is_script(&asked) && (answers || asked.is_empty()) {
        let Ok(count @ 1..) = client.read(&mut buffer) else {
            return;
        };
        asked.extend_from_slice(&buffer[..count]);
        if answers && !is_known {
            is_known = true;
            client.write_all(b"+OK\r\n").unwrap();
        }
    }
    seen.scripts
        .fetch_add(usize::from(is_script(&asked)), SeqCst);
    let mut next = head;
    while !next.is_empty() && client.write_all(next).is_ok() {
        seen.sent.fetch_add(next.len(), SeqCst);
        next = again;
    }
}

fn kv(places: &[&str]) -> RedisKv {
    let url = format!("redis://{}", places.join(","));
    RedisKv::new(Settings::read(&url, |_| None).unwrap(), TIMEOUT, "test")
}

/// Before and after the log-in.
#[test]
fn a_reply_without_an_end_is_an_unclear_answer() {
    const LINE: &[u8] = &[b'x'; 65_536];
    const ENDLESS: [(&[u8], &[u8]); 5] = [
        (b"+", LINE),
        (b"$4000000000\r\n", LINE),
        (
            b"*1000000000\r\n",
            b":1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n",
        ),
        (b"*1999999\r\n", MEGABYTE),
        (
            b"*1\r\n",
            b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
        ),
    ];
    for (head, again) in ENDLESS {
        for answers in [false, true] {
            let (place, seen) = peer(answers, head, again);
            let mut kv = kv(&[&place]);
            let read = kv.get(&[Ask::One("x".into())]).unwrap_err();
            let written = kv.commit(&Commit::default()).unwrap_err();
            let words = read.what.contains("does not answer as Redis");
            assert!(words, "{answers} {head:?}: {read}");
            // A write before the log-in was not sent; afterwards it may have happened.
            let unclear = match answers {
                true => Trouble::Unavailable,
                false => Trouble::Refused,
            };
            assert_eq!(written.trouble, unclear, "{answers} {head:?}: {written}");
            // Two calls, with what fits into the sockets' buffers.
            let sent = seen.sent.load(SeqCst);
            assert!(sent < 200 << 20, "{answers} {head:?}: {sent}");
        }
    }
}

/// A text of a million bytes.
const MEGABYTE: &[u8] = &{
    let mut text = [b'x'; 1_000_012];
    let (head, mut at) = (b"$1000000\r\n", 0);
    while at < head.len() {
        text[at] = head[at];
        at += 1;
    }
    text[1_000_010] = b'\r';
    text[1_000_011] = b'\n';
    text
};

/// The connection ends after the command was received: it may have been carried out.
#[test]
fn a_swap_without_an_answer_is_sent_once() {
    let (one, seen) = peer(true, b"", b"");
    let (other, seen_there) = peer(true, b"", b"");
    let mut store = KvStore::new(kv(&[&one, &other]));
    let now = StoreTime {
        epoch: ClockEpoch("e".into()),
        stamp: Stamp {
            tick_ms: 1,
            wall: WallTime(1),
        },
    };
    let swap = creation(&claim("g", "a", "s"), &now, version(1));
    let unclear = store.swap(&swap).unwrap_err();
    assert_eq!(unclear.trouble, Trouble::Unavailable, "{unclear}");
    let scripts = [&seen, &seen_there].map(|seen| seen.scripts.load(SeqCst));
    assert_eq!(scripts, [1, 0]);
}
