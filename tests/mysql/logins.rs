//! Logging in: by each plugin of a real MySQL server beside its own client, and a server that asks for the
//! password itself.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use super::connecting::{Case, compare, words};
use super::server::{Database, Kind, Server};
use super::site::Site;

/// A user of MySQL's with a password, whom caching_sha2_password lets in.
const PASSWORD: &str = "p@ss/w?rd";
const ENCODED: &str = "p%40ss%2Fw%3Frd";

fn server() -> Server {
    Server::start_of(Kind::Mysql, &["plugin_load_add = auth_socket.so"])
}

fn user(database: &Database<'_>, name: &str, identified: &str) -> String {
    let user = format!("{name}_{}", database.name);
    database.sql(&format!(
        "CREATE USER {user} IDENTIFIED {identified}; GRANT ALL ON {}.* TO {user}",
        database.name
    ));
    user
}

/// By TCP with these options of TLS, for both.
fn by_tcp(
    database: &Database<'_>,
    user: &str,
    (password, encoded): (&str, &str),
    (options, theirs): (&str, &[&str]),
    connects: bool,
) -> Case {
    let port = database.server.port();
    let all = [
        format!("-P{port}"),
        format!("-u{user}"),
        format!("-p{password}"),
    ];
    let mut all: Vec<&str> = all.iter().map(String::as_str).collect();
    all.push("-h127.0.0.1");
    all.extend(theirs);
    Case {
        url: format!(
            "mysql://{user}:{encoded}@127.0.0.1:{port}/{}{options}",
            database.name
        ),
        words: words(&all),
        connects: Some(connects),
    }
}

/// The cache of the server knows a password after its first login with it, until it is flushed.
#[test]
fn needs_root_mysql_the_same_strings_connect_or_fail_as_in_its_client() {
    let server = server();
    let database = server.database();
    let user = &user(&database, "u", &format!("BY '{PASSWORD}'"));
    let right = (PASSWORD, ENCODED);
    let own_ca = server.socket().with_file_name("data").join("ca.pem");
    let ca = own_ca.display();
    let seen_ca = Kind::Mysql.seen(&own_ca);
    let their_ca = &*format!("--ssl-ca={seen_ca}");
    let plain = ("?ssl-mode=DISABLED", &["--ssl-mode=DISABLED"][..]);
    let one =
        |options: (&str, &[&str]), connects| by_tcp(&database, user, right, options, connects);

    let flush = || database.sql("FLUSH PRIVILEGES");
    // Not with the password, nor with the server's own key for it.
    compare(&database, &[one(plain, false)], &[], "");
    compare(&database, &[one(("", &[]), true)], &[], "");
    // It is known now, and proven without being sent.
    compare(&database, &[one(plain, true)], &[], "");
    flush();
    compare(&database, &[one(plain, false)], &[], "");

    let required = ("?ssl-mode=REQUIRED", &["--ssl-mode=REQUIRED"][..]);
    let authority = format!("?ssl-mode=VERIFY_CA&ssl-ca={ca}");
    let authority = (&*authority, &["--ssl-mode=VERIFY_CA", their_ca][..]);
    let implied = format!("?ssl-ca={ca}");
    let implied = (&*implied, &[their_ca][..]);
    let identity = format!("?ssl-mode=VERIFY_IDENTITY&ssl-ca={ca}");
    let identity = (&*identity, &["--ssl-mode=VERIFY_IDENTITY", their_ca][..]);
    let no_authority = ("?ssl-mode=VERIFY_CA", &["--ssl-mode=VERIFY_CA"][..]);
    let preferred = ("?ssl-mode=preferred", &["--ssl-mode=preferred"][..]);
    let nonsense = ("?ssl-mode=SOMETIMES", &["--ssl-mode=SOMETIMES"][..]);
    let nowhere = ("?ssl-ca=/nowhere", &["--ssl-ca=/nowhere"][..]);
    let cases = [
        one(required, true),
        one(authority, true),
        one(implied, true),
        // The certificate that the server has made for itself names no host.
        one(identity, false),
        one(no_authority, false),
        one(preferred, true),
        one(nonsense, false),
        one(nowhere, false),
        by_tcp(&database, user, ("wrong", "wrong"), ("", &[]), false),
        by_tcp(&database, user, ("wrong", "wrong"), plain, false),
        by_tcp(&database, "nobody", right, ("", &[]), false),
    ];
    compare(&database, &cases, &[], "");
}

#[test]
fn needs_root_mysql_sockets_files_and_variables_mean_the_same_as_for_its_client() {
    let server = server();
    let database = server.database();
    let name = &database.name;
    let user = &user(&database, "u", &format!("BY '{PASSWORD}'"));
    let (port, socket) = (server.port(), server.socket().display().to_string());
    let by_socket = format!("-S{}", Kind::Mysql.seen(&server.socket()));
    let by_user = format!("-u{user}");
    let by_password = format!("-p{PASSWORD}");
    let over_socket = |password: &str, connects| Case {
        url: format!("mysql://{user}:{password}@localhost/{name}?socket={socket}"),
        words: words(&[
            &by_socket,
            &by_user,
            if connects { &by_password } else { "-pwrong" },
        ]),
        connects: Some(connects),
    };
    let cases = [over_socket("wrong", false), over_socket(ENCODED, true)];
    compare(&database, &cases, &[], "");

    let tcp = |words_of: &[&str], connects| {
        let mut all = vec!["-h127.0.0.1"];
        all.extend(words_of);
        Case {
            url: format!("mysql://127.0.0.1:{port}/{name}"),
            words: words(&all),
            connects: Some(connects),
        }
    };
    let by_port = format!("-P{port}");
    let of_file = format!("[client]\nuser = {user}\npassword = '{PASSWORD}' # it\n");
    compare(&database, &[tcp(&[&by_port], true)], &[], &of_file);
    let plain = format!("{of_file}ssl-mode = DISABLED\n");
    compare(&database, &[tcp(&[&by_port], true)], &[], &plain);
    database.sql("FLUSH PRIVILEGES");
    compare(&database, &[tcp(&[&by_port], false)], &[], &plain);
    let loose = format!(
        "[client]\nloose-nonsense = 1\nuser={user}\npassword=\"{PASSWORD}\"\nssl_mode=REQUIRED\n"
    );
    compare(&database, &[tcp(&[&by_port], true)], &[], &loose);
    let other = format!("[other]\npassword = '{PASSWORD}'\n");
    let of_user = Case {
        url: format!("mysql://{user}@127.0.0.1:{port}/{name}"),
        ..tcp(&[&by_port, &by_user], false)
    };
    compare(&database, &[of_user], &[], &other);

    let port = port.to_string();
    let variables = [("MYSQL_PWD", PASSWORD), ("MYSQL_TCP_PORT", &*port)];
    let by_variables = [Case {
        url: format!("mysql://{user}@127.0.0.1/{name}"),
        words: words(&["-h127.0.0.1", &by_user]),
        connects: Some(true),
    }];
    compare(&database, &by_variables, &variables, "");
    let variables = [
        ("MYSQL_PWD", PASSWORD),
        ("MYSQL_HOST", "127.0.0.1"),
        ("MYSQL_TCP_PORT", &*port),
    ];
    let by_host = [Case {
        url: format!("mysql://{user}@/{name}"),
        words: words(&[&by_user]),
        connects: Some(true),
    }];
    compare(&database, &by_host, &variables, "");
}

#[test]
fn needs_root_mysql_each_plugin_lets_in_or_says_what_it_needs() {
    let server = server();
    let database = server.database();
    let clear = user(&database, "s", "WITH sha256_password BY 's3cr3t'");
    let cached = user(&database, "c", "WITH caching_sha2_password BY 's3cr3t'");
    let nothing = user(&database, "n", "WITH caching_sha2_password BY ''");
    // Whom the operating system names, over the socket.
    let own = user(&database, "o", "WITH auth_socket AS 'root'");
    let socket = server.socket().display().to_string();
    for (user, password, options, code, words) in [
        (&clear, ":s3cr3t", "", 0, ""),
        (&clear, ":wrong", "", 77, "Access denied"),
        (&clear, ":s3cr3t", "?ssl-mode=DISABLED", 77, "over TLS only"),
        (
            &cached,
            ":s3cr3t",
            "?ssl-mode=DISABLED",
            77,
            "TLS or a Unix socket",
        ),
        (&cached, ":s3cr3t", "", 0, ""),
        (&cached, ":s3cr3t", "?ssl-mode=DISABLED", 0, ""),
        (
            &cached,
            ":wrong",
            "?ssl-mode=DISABLED",
            77,
            "TLS or a Unix socket",
        ),
        (&cached, "", "", 77, "Access denied"),
        (&nothing, "", "?ssl-mode=DISABLED", 0, ""),
    ] {
        let url = database
            .tcp_url()
            .replace("root@", &format!("{user}{password}@"));
        let ended = Site::new(format!("{url}{options}")).short("a").end();
        assert_eq!(
            ended.code,
            Some(code),
            "{user} {password} {options}: {ended:?}"
        );
        assert!(
            ended.stderr.contains(words),
            "{user} {password} {options}: {ended:?}"
        );
        assert!(!ended.stderr.contains("s3cr3t"), "{ended:?}");
    }
    for (login, code, words) in [
        (format!("{clear}:s3cr3t"), 77, "over TLS only"),
        (format!("{cached}:s3cr3t"), 0, ""),
        (own, 0, ""),
    ] {
        let url = format!(
            "mysql://{login}@localhost/{}?socket={socket}",
            database.name
        );
        let ended = Site::new(url).short("a").end();
        assert_eq!(ended.code, Some(code), "{login}: {ended:?}");
        assert!(ended.stderr.contains(words), "{login}: {ended:?}");
    }
}

/// Writes a packet.
fn send(stream: &mut TcpStream, number: u8, payload: &[u8]) {
    let length = u8::try_from(payload.len()).unwrap();
    stream.write_all(&[length, 0, 0, number]).unwrap();
    stream.write_all(payload).unwrap();
}

/// A server without TLS that answers the login with this packet: what the client sent before and after.
fn asked(question: &[u8]) -> (crate::support::Ended, Vec<u8>, Vec<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let question = question.to_vec();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut hello = vec![10];
        hello.extend_from_slice(b"8.4.0\0");
        hello.extend_from_slice(&1_u32.to_le_bytes());
        hello.extend_from_slice(b"abcdefgh\0");
        // What it can do: all but TLS.
        hello.extend_from_slice(&[0xff, 0xf7, 45, 2, 0, 0xff, 0x80, 21]);
        hello.extend_from_slice(&[0; 10]);
        hello.extend_from_slice(b"ijklmnopqrst\0caching_sha2_password\0");
        send(&mut stream, 0, &hello);
        let mut answer = vec![0; 4096];
        let count = stream.read(&mut answer).unwrap();
        answer.truncate(count);
        send(&mut stream, 2, &question);
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        (answer, rest)
    });
    let site = Site::new(format!("mysql://u:s3cr3t@127.0.0.1:{port}/d"));
    let ended = site.short("a").end();
    let (answer, rest) = server.join().unwrap();
    (ended, answer, rest)
}

/// A server that asks for another plugin.
fn switch(to: &str) -> Vec<u8> {
    let mut question = vec![0xfe];
    question.extend_from_slice(to.as_bytes());
    question.push(0);
    question.extend_from_slice(&[b'x'; 32]);
    question.push(0);
    question
}

/// A server that wants the password itself over a plain connection, or by a plugin that tokenrun does not
/// know.
#[test]
fn a_password_never_goes_over_a_plain_connection() {
    const OPEN: &str = "TLS or a Unix socket";
    for (question, words) in [
        (vec![1, 4], OPEN),
        (switch("mysql_clear_password"), OPEN),
        (switch("sha256_password"), "over TLS only"),
        (switch("parsec"), "\"parsec\", which tokenrun does not know"),
        (switch("dialog"), "\"dialog\", which tokenrun does not know"),
        (
            switch("mysql_old_password"),
            "\"mysql_old_password\", which tokenrun does not know",
        ),
        // The same, as servers before 5.5.7 ask for it.
        (vec![0xfe], "does not know"),
    ] {
        let (ended, answer, rest) = asked(&question);
        assert_eq!(ended.code, Some(77), "{words}: {ended:?}");
        assert!(ended.stderr.contains(words), "{words}: {ended:?}");
        assert!(
            rest.is_empty(),
            "it asked for a key, or sent something: {rest:?}"
        );
        let has_it = |sent: &[u8]| sent.windows(6).any(|part| part == b"s3cr3t");
        assert!(!has_it(&answer), "{words}");
    }
}
