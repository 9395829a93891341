use proptest::prelude::*;

use super::*;
use crate::mutated::mutated;

#[test]
fn a_request_is_framed() {
    let get = Request::Get { path: "/a".into() };
    let expected = [
        &[0, 0, 0, 15, 0, 0, 0, 7, 0, 0, 0, 4][..],
        &[0, 0, 0, 2, b'/', b'a', 0],
    ];
    assert_eq!(get.frame(7, false), expected.concat());
    assert_eq!(greeting(4_000).len(), 4 + 45);
}

fn int(number: i32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn text(text: &str) -> Vec<u8> {
    [int(text.len().try_into().unwrap()), text.into()].concat()
}

#[test]
fn each_request_is_written_as_its_record() {
    let (path, data) = (|| "/a".to_owned(), || b"x".to_vec());
    let created = |data: &str, [scheme, id]: [&str; 2], kind| {
        [
            text("/a"),
            text(data),
            int(1),
            int(31),
            text(scheme),
            text(id),
            int(kind),
        ]
        .concat()
    };
    let create = || Request::Create {
        path: path(),
        data: data(),
    };
    let delete = |version| Request::Delete {
        path: path(),
        version,
    };
    let set = |version| Request::Set {
        path: path(),
        data: data(),
        version,
    };
    let check = || Request::Check {
        path: path(),
        version: 7,
    };
    let multi = [
        [
            int(1),
            vec![0],
            int(-1),
            created("x", ["world", "anyone"], 0),
        ]
        .concat(),
        [int(13), vec![0], int(-1), text("/a"), int(7)].concat(),
        [int(-1), vec![1], int(-1)].concat(),
    ];
    let login = Request::LogIn {
        secret: "u:p".into(),
    };
    for (request, kind, record) in [
        (create(), 1, created("x", ["world", "anyone"], 0)),
        (
            Request::CreateContainer { path: path() },
            19,
            created("", ["world", "anyone"], 4),
        ),
        (delete(Some(7)), 2, [text("/a"), int(7)].concat()),
        (delete(None), 2, [text("/a"), int(-1)].concat()),
        (
            Request::Get { path: path() },
            4,
            [text("/a"), vec![0]].concat(),
        ),
        (set(Some(7)), 5, [text("/a"), text("x"), int(7)].concat()),
        (set(None), 5, [text("/a"), text("x"), int(-1)].concat()),
        (Request::Rights { path: path() }, 6, text("/a")),
        (
            Request::Children { path: path() },
            8,
            [text("/a"), vec![0]].concat(),
        ),
        (check(), 13, [text("/a"), int(7)].concat()),
        (Request::Multi(vec![create(), check()]), 14, multi.concat()),
        (
            Request::Watch { path: path() },
            106,
            [text("/a"), int(0)].concat(),
        ),
        (login, 100, [int(0), text("digest"), text("u:p")].concat()),
        (Request::Ping, 11, Vec::new()),
        (Request::Close, -11, Vec::new()),
    ] {
        let record = [int(9), int(kind), record].concat();
        let length = int(record.len().try_into().unwrap());
        assert_eq!(
            request.frame(9, false),
            [length, record].concat(),
            "{request:?}"
        );
    }
    let owned = create().frame(9, true);
    assert!(owned.ends_with(&created("x", ["auth", ""], 0)));
}

#[test]
fn each_part_of_a_reply_is_read_to_its_end() {
    let all = [
        // A header, a session, data and none.
        [int(9), int(0), int(5), int(code::NO_NODE)].concat(),
        [int(0), int(4_000)].concat(),
        [text("x"), int(-1)].concat(),
        // The names of children, and the rights of a node.
        [int(2), text("a"), text("b")].concat(),
        [int(1), int(31), text("world"), text("anyone")].concat(),
        // The answer to a transaction that makes a node.
        [
            int(1),
            vec![0],
            int(0),
            text("/a"),
            int(-1),
            vec![1],
            int(-1),
        ]
        .concat(),
    ];
    let all = all.concat();
    let mut bytes = In(&all);
    let header = Header {
        number: 9,
        error: code::NO_NODE,
    };
    assert_eq!(bytes.header(), Some(header));
    assert_eq!(bytes.session(), Some(4_000));
    assert_eq!(bytes.buffer(), Some(&b"x"[..]));
    assert_eq!(bytes.buffer(), Some(&b""[..]));
    assert_eq!(bytes.names(), Some(vec!["a", "b"]));
    assert_eq!(bytes.rights(), Some(vec![(31, "world", "anyone")]));
    assert_eq!(bytes.parts(), Some(vec![Part::Done]));
    assert_eq!(bytes.0, b"");
}

/// The answers to three operations of a transaction, and their end.
fn answers() -> Vec<u8> {
    let stat = [
        &3_i64.to_be_bytes()[..],
        &4_i64.to_be_bytes(),
        &5_i64.to_be_bytes(),
        &6_i64.to_be_bytes(),
        &7_i32.to_be_bytes(),
        &[0; 32],
    ]
    .concat();
    let header = |kind: i32, last: u8| [&kind.to_be_bytes()[..], &[last], &[0; 4]].concat();
    [
        header(5, 0),
        stat,
        header(13, 0),
        header(-1, 0),
        (-103_i32).to_be_bytes().to_vec(),
        header(-1, 1),
    ]
    .concat()
}

#[test]
fn the_answers_of_a_transaction_are_read() {
    let stat = Stat {
        created: 3,
        changed: 4,
        at_ms: 6,
        version: 7,
    };
    let parts = [Part::Set(stat), Part::Done, Part::Failed(code::BAD_VERSION)];
    assert_eq!(In(&answers()).parts().unwrap(), parts);
}

proptest! {
    /// No count or length makes a reply fill more memory than it has.
    #[test]
    fn no_bytes_panic(
        bytes in mutated(&answers()),
        any in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        for bytes in [bytes, any] {
            let all = In(&bytes);
            let _ = { all }.header();
            let _ = { all }.session();
            let _ = { all }.stat();
            let _ = { all }.names();
            let _ = { all }.rights();
            let _ = { all }.parts();
        }
    }
}
