//! A server, or a process in its place, that sends without an end takes no memory without an end.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use super::played::{LOGGED_IN, answer_first};
use super::{PostgresStore, settings};
use crate::store::net::limit::{LONGEST_ANSWER, LONGEST_LOGIN};
use crate::store::{StoreError, Tokens as _, Trouble};
use crate::token::GroupName;

/// What the kernels on both ends may keep of what was sent.
const ON_ITS_WAY: usize = 64 * 1024 * 1024;

/// The answer to BEGIN and what is set there; then of the statement, whose rows have no columns.
const ROWS: &[u8] = b"C\0\0\0\x0aBEGIN\0Z\0\0\0\x05T1\0\0\0\x042\0\0\0\x04T\0\0\0\x06\0\0";

/// How a call fails, and how many bytes it takes, with a peer that sends these answers, each to a message, and then one
/// part without an end.
fn failed(mode: &str, answers: &[&[u8]], part: &[u8]) -> (StoreError, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answers: Vec<Vec<u8>> = answers.iter().map(|answer| answer.to_vec()).collect();
    let again = part.repeat(64 * 1024 / part.len());
    let sent = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        answer_first(&mut stream, &answers[0]).unwrap();
        for answer in &answers[1..] {
            stream.read_exact(&mut [0]).unwrap();
            stream.write_all(answer).unwrap();
        }
        // The requests are taken in, so that the other end can send them.
        let mut requests = stream.try_clone().unwrap();
        thread::spawn(move || std::io::copy(&mut requests, &mut std::io::sink()));
        let mut sent = 0;
        while let Ok(count) = stream.write(&again) {
            sent += count;
        }
        sent
    });
    let url = format!("postgres://u@127.0.0.1:{port}/d?sslmode={mode}");
    let limit = Duration::from_secs(120);
    let mut store = PostgresStore::new(settings(&url, "test").unwrap(), limit);
    let error = store.read(&GroupName::new("g").unwrap()).unwrap_err();
    drop(store);
    (error, sent.join().unwrap())
}

/// How many bytes a call takes without TLS.
fn taken(answers: &[&[u8]], part: &[u8]) -> usize {
    let (error, taken) = failed("disable", answers, part);
    // After a login it is unknown what the server has done.
    let trouble = match answers.len() {
        1 => Trouble::Refused,
        _ => Trouble::Unavailable,
    };
    assert_eq!(error.trouble, trouble, "{error}");
    assert!(error.what.contains("more than an answer"), "{error}");
    taken
}

#[test]
fn before_a_login() {
    // A message that is said to be very long.
    let long = taken(&[b"S\x7f\xff\xff\xff"], &[0]);
    // Messages that are kept until the login is over.
    let notice = taken(&[&LOGGED_IN[..9]], b"N\0\0\0\x05\0");
    let setting = taken(&[&LOGGED_IN[..9]], b"S\0\0\0\x08a\0b\0");
    // The first message of a handshake of TLS, in records of one byte.
    let (_, handshake) = failed("require", &[b"S"], &[0x16, 3, 3, 0, 1, 0]);
    for taken in [long, notice, setting, handshake] {
        assert!(taken <= LONGEST_LOGIN + ON_ITS_WAY, "{taken}");
    }
}

#[test]
fn after_a_login() {
    let long = taken(&[LOGGED_IN, b"S\x7f\xff\xff\xff"], &[0]);
    assert!(long <= LONGEST_ANSWER + ON_ITS_WAY, "{long}");
    // A row takes more memory than its bytes.
    let rows = taken(&[LOGGED_IN, ROWS], b"D\0\0\0\x06\0\0");
    assert!(rows <= LONGEST_ANSWER / 16 + ON_ITS_WAY, "{rows}");
}
