//! `serve`: what it refuses, its limits, and its end.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::{Run, Store};

struct Server {
    store: Store,
    run: Run,
    address: String,
}

impl Server {
    fn start() -> Self {
        let store = Store::new();
        store.free_run("a").job(&["true"]).end().with_code(0);
        let database = store.database();
        let words = ["serve", "--listen", "127.0.0.1:0", "--store"];
        let line = store.bare(&words).with(&[database.to_str().unwrap()]);
        let run = line.start();
        let said = run.until_says("on http://");
        let (_, address) = said.split_once("on http://").unwrap();
        let address = address.split('/').next().unwrap().to_owned();
        Self {
            store,
            run,
            address,
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        let patience = Some(Duration::from_secs(30));
        stream.set_read_timeout(patience).unwrap();
        stream
    }

    /// What comes back for these bytes until the connection is closed.
    fn send(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // It may be closed before all of it is sent.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    fn request(&self, method: &str, path: &str) -> String {
        self.send(format!("{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())
    }

    #[track_caller]
    fn answers(&self, method: &str, path: &str, code: u16) -> String {
        let answer = self.request(method, path);
        let begin = format!("HTTP/1.1 {code} ");
        assert!(answer.starts_with(&begin), "{method} {path}: {answer}");
        answer
    }
}

#[test]
fn nothing_but_reads_of_a_few_paths_is_answered() {
    let server = Server::start();
    for path in [
        "/etc/passwd",
        "/../../etc/passwd",
        "/%2e%2e/etc/passwd",
        "/metrics/x",
        "/x",
    ] {
        let answer = server.answers("GET", path, 404);
        assert!(!answer.contains("root:"), "{answer}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "BREW"] {
        let answer = server.answers(method, "/", 405);
        assert!(answer.contains("allow: GET, HEAD\r\n"), "{answer}");
    }
    let head = server.answers("HEAD", "/metrics", 200);
    assert!(head.ends_with("\r\n\r\n"), "{head}");
    let page = server.answers("GET", "/?x=1", 200);
    for header in [
        "cache-control: no-store",
        "content-security-policy: default-src 'none'",
    ] {
        assert!(page.contains(header), "{page}");
    }
    assert!(
        server
            .send(b"nonsense\r\n\r\n")
            .starts_with("HTTP/1.1 400 ")
    );
    server.answers("GET", "/livez", 200);
}

#[test]
fn a_request_is_bounded_in_size_and_time() {
    let server = Server::start();
    let long = format!(
        "GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n",
        "a".repeat(100_000)
    );
    let answer = server.send(long.as_bytes());
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431 "),
        "{answer}"
    );
    // Clients that say nothing, one more than there may be, hold the others up for a while only.
    let silent: Vec<TcpStream> = (0..65).map(|_| server.connect()).collect();
    server.answers("GET", "/livez", 200);
    drop(silent);
}

#[test]
fn a_store_that_is_away_is_said_and_never_replaced_by_an_old_answer() {
    let server = Server::start();
    server.answers("GET", "/status.json", 200);
    let database = server.store.database();
    let away: PathBuf = database.with_extension("away");
    std::fs::rename(&database, &away).unwrap();
    for path in ["/", "/metrics", "/status.json", "/history.json", "/healthz"] {
        let answer = server.answers("GET", path, 503);
        assert!(answer.contains("tokens.db"), "{answer}");
    }
    // The process itself is well.
    server.answers("GET", "/livez", 200);
    std::fs::rename(&away, &database).unwrap();
    server.answers("GET", "/healthz", 200);
    server.answers("GET", "/", 200);
}

#[test]
fn it_ends_by_a_signal_and_says_why_it_can_not_begin() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let server = Server::start();
        // A client that says nothing does not hold up the end.
        let silent = server.connect();
        server.run.signal(signal);
        server.run.end().with_code(0);
        drop(silent);
    }
    let store = Store::new();
    let listen = |address: &str| store.bare(&["serve", "--listen", address]).end();
    for address in ["9187", "localhost:9187", "127.0.0.1", "127.0.0.1:99999", ""] {
        listen(address)
            .with_code(64)
            .says(&["--listen", "127.0.0.1:9187"]);
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = listen(&address).with_code(71);
    refused.says(&["cannot listen on", &address, "give another --listen"]);
}

#[test]
fn an_address_that_others_reach_is_warned_of() {
    let store = Store::new();
    let run = store.bare(&["serve", "--listen", "0.0.0.0:0"]).start();
    run.until_says("can be reached from other hosts, without TLS and without a log-in");
    run.signal(Signal::SIGTERM);
    run.end().with_code(0);
}
