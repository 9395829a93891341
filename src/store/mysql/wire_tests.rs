use proptest::prelude::*;

use super::*;
use crate::mutated::mutated;
use crate::store::mysql::played::column;
use crate::store::net::session::event_loop;

#[test]
fn numbers_of_each_length_are_read() {
    for (bytes, number) in [
        (&[7][..], Some(7)),
        (&[0xfb], None),
        (&[0xfc, 1, 1], Some(257)),
        (&[0xfd, 0, 0, 1], Some(65_536)),
        (&[0xfe, 0, 0, 0, 0, 1, 0, 0, 0], Some(1 << 32)),
    ] {
        let bytes = [bytes, &[9]].concat();
        let mut rest = &*bytes;
        assert_eq!(length(&mut rest), Some(number), "{bytes:?}");
        assert_eq!(rest, [9], "what follows {bytes:?}");
    }
    assert_eq!(length(&mut &[0xfc, 1][..]), None);
    assert_eq!(length(&mut &[][..]), None);
}

#[test]
fn an_error_is_read_with_a_state_and_without() {
    for (packet, state) in [
        (&b"\xff\x6a\x04#HY000not allowed"[..], Some("HY000")),
        (&b"\xff\x6a\x04not allowed"[..], None),
    ] {
        let Fault::Said(said) = refusal(packet) else {
            panic!("{packet:?}");
        };
        let expected = Said::Server {
            code: 1130,
            state: state.map(str::to_owned),
            message: "not allowed".into(),
        };
        assert_eq!(said, expected);
    }
    for packet in [&b"\xff"[..], b"\xff\x01", b"\xff\x01\x02#", b""] {
        let _ = refusal(packet);
    }
}

#[test]
fn a_row_has_texts_and_nulls() {
    let packet = [2, b'a', b'b', 0xfb, 0];
    let row = vec![Some(b"ab".to_vec()), None, Some(Vec::new())];
    assert_eq!(cells(&packet, 3), Some(row));
    assert_eq!(cells(&packet, 4), None);
    assert_eq!(cells(&[5, b'a'], 1), None);
}

/// A packet with this number.
fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[length, 0, 0, number], payload].concat()
}

/// Two ends of a connection that takes in long packets.
fn ends() -> (Wire, Wire) {
    let (near, far) = tokio::io::duplex(4 * LONGEST);
    (Wire::new(Box::new(near)), Wire::new(Box::new(far)))
}

#[test]
fn a_long_payload_goes_in_several_packets() {
    event_loop().unwrap().block_on(async {
        let (mut near, mut far) = ends();
        far.allowance.set(LONGEST_ANSWER);
        for size in [0, 5, LONGEST - 1, LONGEST, LONGEST + 1] {
            near.write(&vec![b'x'; size]).await.unwrap();
            assert_eq!(far.read().await.unwrap().len(), size);
        }
        let kept = far.buffer.len();
        assert!(kept < 2 * LONGEST, "{kept} bytes that were taken are kept");
    });
}

/// A server that sends these bytes, and then these others again and again.
struct Endless {
    first: Vec<u8>,
    again: Vec<u8>,
    sent: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

impl tokio::io::AsyncRead for Endless {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        let this = self.get_mut();
        let sent = std::mem::take(&mut this.first);
        buffer.put_slice(&sent);
        let times = buffer.remaining() / this.again.len();
        for _ in 0..times {
            buffer.put_slice(&this.again);
        }
        let count = sent.len() + times * this.again.len();
        this.sent
            .fetch_add(count, std::sync::atomic::Ordering::Relaxed);
        std::task::Poll::Ready(Ok(()))
    }
}

/// How many bytes a call takes in from such a server until it fails.
fn taken_of(first: &[u8], again: &[u8], logged_in: bool) -> usize {
    let sent = std::sync::Arc::default();
    let endless = Endless {
        first: first.to_vec(),
        again: again.to_vec(),
        sent: std::sync::Arc::clone(&sent),
    };
    let stream = tokio::io::join(endless, tokio::io::sink());
    let mut wire = Wire::new(Box::new(stream));
    let fault = event_loop().unwrap().block_on(async {
        match logged_in {
            false => Fault::Io(Activity::LoggingIn, wire.read().await.unwrap_err()),
            true => wire.ask("", &mut Vec::new()).await.unwrap_err(),
        }
    });
    assert!(fault.words().contains("more than an answer"), "{fault:?}");
    assert!(!fault.is_refusal(), "{fault:?}");
    assert_eq!(fault.trouble(), crate::store::Trouble::Unavailable);
    sent.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn a_server_that_sends_without_an_end_takes_no_memory_without_an_end() {
    // Packets that each go on in the next.
    let joined = [0xff; 4];
    assert!(taken_of(&[], &joined, false) <= 2 * LONGEST_LOGIN);
    assert!(taken_of(&[], &joined, true) <= LONGEST_ANSWER + 2 * LONGEST);
    // Rows without bytes: a cell takes more memory than its one byte.
    let head = [
        packet(1, &[1]),
        packet(2, &column("a")),
        packet(3, &[0xfe, 0, 0, 0, 0]),
    ];
    let (head, row) = (head.concat(), packet(4, &[0xfb]));
    assert!(taken_of(&head, &row, true) <= LONGEST_ANSWER / 8);
    // Answers without columns, each with another behind it.
    let empty = packet(1, &[0, 0, 0, 8, 0, 0, 0]);
    assert!(taken_of(&[], &empty, true) <= LONGEST_ANSWER / 4);
}

#[test]
fn an_answer_below_the_limit_is_read() {
    event_loop().unwrap().block_on(async {
        let (mut near, mut far) = ends();
        near.send("").await.unwrap();
        far.read().await.unwrap();
        let long = 2 * LONGEST + 7;
        far.write(&vec![b'x'; long]).await.unwrap();
        assert_eq!(near.read().await.unwrap().len(), long);
    });
}

/// An answer of three rows, and what an update answers. Two of the rows begin with the byte of an end: their
/// lengths have eight bytes.
fn answers() -> Vec<u8> {
    [
        packet(1, &[1]),
        packet(2, &column("a")),
        packet(3, &[0xfe, 0, 0, 2, 0]),
        packet(4, b"\x03row"),
        packet(5, b"\xfe\x04\0\0\0\0\0\0\0long"),
        packet(6, b"\xfe\0\0\0\0\0\0\0\0"),
        packet(7, &[0xfe, 0, 0, 10, 0]),
        packet(8, &[0, 1, 0, 2, 0, 0, 0]),
    ]
    .concat()
}

fn received(bytes: &[u8]) -> Result<Vec<Answer>, Fault> {
    event_loop().unwrap().block_on(async {
        let (mut server, client) = tokio::io::duplex(bytes.len() + 1);
        server.write_all(bytes).await.unwrap();
        drop(server);
        let mut answers = Vec::new();
        let received = Wire::new(Box::new(client)).receive(&mut answers).await;
        received.map(|()| answers)
    })
}

#[test]
fn an_answer_with_rows_is_read() {
    let [rows, update] = &received(&answers()).unwrap()[..] else {
        panic!("two answers");
    };
    assert_eq!(rows.names, ["a"]);
    let texts: [&[u8]; 3] = [b"row", b"long", b""];
    assert_eq!(rows.rows, texts.map(|text| [Some(text.to_vec())]));
    assert!(update.rows.is_empty());
}

#[test]
fn the_packets_of_both_ends_are_numbered_together_until_the_next_command() {
    event_loop().unwrap().block_on(async {
        let (mut server, client) = tokio::io::duplex(1 << 16);
        let mut wire = Wire::new(Box::new(client));
        wire.write(b"a").await.unwrap();
        wire.write(b"b").await.unwrap();
        server.write_all(&packet(6, b"c")).await.unwrap();
        wire.read().await.unwrap();
        wire.write(b"d").await.unwrap();
        server.write_all(&answers()).await.unwrap();
        wire.ask("SELECT 1", &mut Vec::new()).await.unwrap();
        wire.quit().await;
        drop(wire);
        let mut sent = Vec::new();
        server.read_to_end(&mut sent).await.unwrap();
        let packets = [
            packet(0, b"a"),
            packet(1, b"b"),
            packet(7, b"d"),
            packet(0, b"\x03SELECT 1"),
            packet(0, b"\x01"),
        ];
        assert_eq!(sent, packets.concat());
    });
}

#[test]
fn a_column_takes_more_memory_than_its_bytes() {
    let columns = LONGEST_LOGIN / (column("a").len() + PER_CELL) + 1;
    let mut bytes = packet(1, b"\xfd\xff\xff\0");
    bytes.extend(packet(2, &column("a")).repeat(columns));
    let words = received(&bytes).unwrap_err().words();
    assert!(words.contains("more than an answer"), "{words}");
}

proptest! {
    #[test]
    fn no_bytes_panic(
        bytes in mutated(&answers()),
        any in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        for bytes in [bytes, any] {
            let _ = received(&bytes);
            let _ = refusal(&bytes);
            let _ = cells(&bytes, 3);
            let _ = status_of_ok(&bytes);
        }
    }
}
