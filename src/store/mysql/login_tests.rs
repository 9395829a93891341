use std::time::Duration;

use proptest::prelude::*;
use tokio::io::AsyncWriteExt as _;

use super::*;
use crate::mutated::mutated;
use crate::store::mysql::played::{OK, greeting_of_one_that};
use crate::store::net::host::{Secret, Servers};
use crate::store::net::session::event_loop;
use crate::store::net::tls::Tls;

/// The challenge of each greeting.
const NONCE: &[u8] = &[1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2];

const DENIED: &[u8] = b"\xff\x15\x04#28000no";

fn any_greeting() -> Vec<u8> {
    greeting_of_one_that(Can::CLIENT_PROTOCOL_41)
}

#[test]
fn a_greeting_is_read_and_a_length_that_is_none_is_refused() {
    let mut bytes = any_greeting();
    let hello = greeting(&bytes).unwrap();
    assert_eq!((hello.connection_id(), hello.nonce().len()), (7, 20));
    bytes[1 + 15 + 20] = 0x80;
    let refused = greeting(&bytes).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the nonce has no length that the protocol knows"
    );
}

fn settings(mode: SslMode) -> Settings {
    Settings {
        servers: Servers::new(Vec::new()),
        user: "u".into(),
        database: "d".into(),
        takes_database: true,
        application_name: "test".into(),
        timeout: Duration::from_secs(1),
        tls: Tls::new(mode),
    }
}

type Packets = Vec<Vec<u8>>;

/// What `client` makes of a server that sends these packets, and the packets that it sends itself.
fn with_server<T>(
    packets: &[&[u8]],
    client: impl AsyncFnOnce(Box<dyn Stream>) -> T,
) -> (T, Packets) {
    event_loop().unwrap().block_on(async {
        let (near, far) = tokio::io::duplex(1 << 16);
        let mut far = Wire::new(Box::new(far));
        for packet in packets {
            far.write(packet).await.unwrap();
        }
        let (mut stream, number) = far.into_stream();
        stream.shutdown().await.unwrap();
        let mut far = Wire::over(stream, number);
        let found = client(Box::new(near)).await;
        let mut sent = Vec::new();
        while let Ok(packet) = far.read().await {
            sent.push(packet);
        }
        (found, sent)
    })
}

/// How a login at a server that sends these packets ends, and what the client sends.
fn logged_in(
    settings: &Settings,
    host: &Host,
    packets: &[&[u8]],
) -> (Result<(bool, u32), String>, Packets) {
    with_server(packets, async |stream| {
        let done = log_in(settings, host, stream).await;
        done.map(|it| (it.secured, it.session))
            .map_err(|fault| fault.words())
    })
}

#[test]
fn tls_is_begun_where_the_settings_want_it_and_the_server_offers_it() {
    let (tcp, unix) = (Host::tcp("db", 1), Host::unix("/s"));
    for (host, mode, offered, expected) in [
        (&tcp, SslMode::Disable, true, "login"),
        (&tcp, SslMode::Prefer, true, "TLS"),
        (&tcp, SslMode::Require, true, "TLS"),
        (&tcp, SslMode::Disable, false, "login"),
        (&tcp, SslMode::Prefer, false, "login"),
        (&tcp, SslMode::Require, false, "does no TLS"),
        (&unix, SslMode::Require, true, "login"),
        (&unix, SslMode::Require, false, "login"),
    ] {
        let can = match offered {
            true => Can::CLIENT_SSL,
            false => Can::empty(),
        };
        let hello = greeting_of_one_that(can | Can::CLIENT_PROTOCOL_41);
        let (done, sent) = logged_in(&settings(mode), host, &[&hello, OK]);
        let case = format!("{host} {mode:?} {offered}: {done:?}, {sent:?}");
        match (expected, sent.as_slice()) {
            ("login", [login]) => {
                assert_eq!(done, Ok((false, 7)), "{case}");
                HandshakeResponse::deserialize((), &mut ParseBuf(login)).unwrap();
            }
            // The server ends there.
            ("TLS", [request]) => {
                assert!(done.is_err() && request.len() == 32, "{case}");
                let can = Can::CLIENT_SSL | Can::CLIENT_CONNECT_WITH_DB;
                let said = u32::from_le_bytes(request[..4].try_into().unwrap());
                assert_eq!(said & can.bits(), can.bits(), "{case}");
            }
            (words, []) => assert!(done.unwrap_err().contains(words), "{case}"),
            _ => panic!("{case}"),
        }
    }
}

#[test]
fn a_login_says_who_the_client_is_and_ends_as_the_server_says() {
    let hello = greeting_of_one_that(Can::CLIENT_PROTOCOL_41 | Can::CLIENT_CONNECT_ATTRS);
    for (database, password) in [(Some("d"), "pw"), (None, "")] {
        let host = Host {
            password: Some(Secret(password.into())),
            ..Host::tcp("db", 1)
        };
        let settings = Settings {
            takes_database: database.is_some(),
            ..settings(SslMode::Prefer)
        };
        let (done, sent) = logged_in(&settings, &host, &[&hello, DENIED]);
        assert_eq!(done, Err("no (error 1045)".into()));
        let login = HandshakeResponse::deserialize((), &mut ParseBuf(&sent[0])).unwrap();
        assert_eq!(login.user(), b"u");
        assert_eq!(login.db_name(), database.map(str::as_bytes));
        let plugin = AuthPlugin::CachingSha2Password;
        assert_eq!(login.auth_plugin(), Some(&plugin));
        assert_eq!(login.scramble_buf(), proof_of(&plugin, password, NONCE));
        let attributes = login.connect_attributes().unwrap();
        assert_eq!(attributes["program_name"], "test");
    }
    let (done, sent) = logged_in(&settings(SslMode::Prefer), &Host::unix("/s"), &[DENIED]);
    assert_eq!((done, sent.len()), (Err("no (error 1045)".into()), 0));
}

#[test]
fn the_password_itself_is_sent_over_a_socket_and_not_over_an_open_connection() {
    for (host, sent_last) in [
        (Host::unix("/s"), Some(&b"pw\0"[..])),
        (Host::tcp("db", 1), None),
    ] {
        let host = Host {
            password: Some(Secret("pw".into())),
            ..host
        };
        let (done, sent) = logged_in(
            &settings(SslMode::Prefer),
            &host,
            &[&any_greeting(), &[1, 4], OK],
        );
        assert_eq!(done.is_ok(), sent_last.is_some(), "{done:?}");
        assert_eq!(sent.get(1).map(Vec::as_slice), sent_last);
    }
}

fn proof_of(plugin: &AuthPlugin<'_>, password: &str, nonce: &[u8]) -> Vec<u8> {
    let proof = plugin.gen_data(Some(password), nonce);
    proof.map(|proof| proof.to_vec()).unwrap_or_default()
}

/// How a server asks for another plugin.
fn switch(plugin: &[u8], challenge: &[u8]) -> Vec<u8> {
    [b"\xfe", plugin, b"\0", challenge].concat()
}

/// What a connection goes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Tls,
    Socket,
    Open,
}

#[test]
fn each_question_is_answered_by_its_proof_or_ends_the_login() {
    let long = [&[7; 31][..], &[8]].concat();
    let native = &switch(b"mysql_native_password", &[NONCE, &[0]].concat());
    let [native_short, ed25519, ed25519_short, clear, sha256, dialog] = &[
        switch(b"mysql_native_password", &NONCE[1..]),
        switch(b"client_ed25519", &long),
        switch(b"client_ed25519", &long[1..]),
        switch(b"mysql_clear_password", b""),
        switch(b"sha256_password", NONCE),
        switch(b"dialog", NONCE),
    ];
    let by_native = &*proof_of(&AuthPlugin::MysqlNativePassword, "pw", NONCE);
    let by_ed25519 = &*proof_of(&AuthPlugin::Ed25519, "pw", &long);
    let (by_native, by_ed25519) = (Some(by_native), Some(by_ed25519));
    let (known, wanted): (&[u8], &[u8]) = (&[1, 3], &[1, 4]);
    let password = Some(&b"pw\0"[..]);
    for (way, asked, proof, words) in [
        (Way::Open, vec![OK], None, ""),
        (Way::Open, vec![DENIED], None, "error 1045"),
        (Way::Open, vec![native, OK], by_native, ""),
        (Way::Open, vec![ed25519, OK], by_ed25519, ""),
        (Way::Open, vec![native_short, OK], None, "a challenge"),
        (Way::Open, vec![ed25519_short, OK], None, "a challenge"),
        (Way::Open, vec![known, OK], None, ""),
        (Way::Open, vec![known; 6], None, "without an end"),
        (Way::Tls, vec![wanted, OK], password, ""),
        (Way::Socket, vec![wanted, OK], password, ""),
        (Way::Open, vec![wanted, OK], None, "the password itself"),
        (Way::Tls, vec![native, wanted], by_native, "not know"),
        (Way::Socket, vec![clear, OK], password, ""),
        (Way::Open, vec![clear, OK], None, "the password itself"),
        (Way::Tls, vec![sha256, OK], password, ""),
        (Way::Socket, vec![sha256, OK], None, "over TLS only"),
        (Way::Open, vec![sha256, OK], None, "over TLS only"),
        (Way::Socket, vec![dialog, OK], None, "\"dialog\""),
        (Way::Tls, vec![&[0xfe], OK], None, "does not know"),
    ] {
        let (done, sent) = with_server(&asked, async |stream| {
            let mut login = Login {
                settings: &settings(SslMode::Prefer),
                password: Some("pw"),
                wire: Wire::new(stream),
                secured: way == Way::Tls,
                is_socket: way == Way::Socket,
                plugin: AuthPlugin::CachingSha2Password,
                nonce: NONCE.to_vec(),
            };
            login.finish().await.map_err(|fault| fault.words())
        });
        assert_eq!(
            done.is_ok(),
            words.is_empty(),
            "{way:?} {asked:?}: {done:?}"
        );
        let found = done.err().unwrap_or_default();
        assert!(found.contains(words), "{way:?} {asked:?}: {found}");
        let sent: Vec<&[u8]> = sent.iter().map(Vec::as_slice).collect();
        assert_eq!(sent, Vec::from_iter(proof), "{way:?} {asked:?}");
    }
}

proptest! {
    #[test]
    fn no_greeting_panics(bytes in mutated(&any_greeting())) {
        if let Ok(hello) = greeting(&bytes) {
            let _ = (hello.nonce(), hello.auth_plugin(), hello.capabilities());
        }
    }
}
