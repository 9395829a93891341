//! A server whose answers are given: the driver makes its rows and errors of them.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_postgres::{Config, Error, NoTls, Row};

use super::cells::parameter;
use super::link::Session;
use super::settings;
use crate::store::net::session::event_loop;
use crate::store::sql::cell::Cell;

/// `AuthenticationOk`, and `ReadyForQuery`.
pub(super) const LOGGED_IN: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

/// A message with its kind and its length.
pub(super) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[kind], &length.to_be_bytes()[..], body].concat()
}

/// A server's error as it is sent: its severity, its code, and the routine that it comes from. A pooler may omit
/// the severity that is not translated.
pub(super) fn error(of: &str) -> Vec<u8> {
    let parts: Vec<&str> = of.split(' ').collect();
    let [severity, code, routine] = parts[..] else {
        panic!("{of}");
    };
    let severity = match severity {
        "-" => String::new(),
        severity => format!("V{severity}\0"),
    };
    let fields = format!("SFEHLER\0{severity}C{code}\0Mso\nlong\0R{routine}\0\0");
    message(b'E', fields.as_bytes())
}

/// The end of an answer.
pub(super) fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

/// The answer to a statement without rows.
pub(super) fn done() -> Vec<u8> {
    [message(b'C', b"DONE\0"), ready()].concat()
}

/// The answer of a server that refuses a request with this error.
pub(super) fn refused(of: &str) -> Vec<u8> {
    [error(of), ready()].concat()
}

/// What the driver makes of these answers: the first is to its login, the second to a query with these values. Then the
/// server closes the connection.
pub(super) fn queried(answers: &[&[u8]], values: &[Cell]) -> Result<Vec<Row>, Error> {
    event_loop().unwrap().block_on(async {
        let (near, mut far) = tokio::io::duplex(1 << 16);
        let answers: Vec<Vec<u8>> = answers.iter().map(|answer| answer.to_vec()).collect();
        tokio::spawn(async move {
            for answer in answers {
                let asked = far.read(&mut [0; 4096]).await.unwrap();
                assert!(asked > 0, "the driver has gone");
                far.write_all(&answer).await.unwrap();
            }
        });
        let (client, connection) = Config::new().user("u").connect_raw(near, NoTls).await?;
        tokio::spawn(connection);
        let values: Vec<_> = values.iter().map(parameter).collect();
        client.query_typed("", &values).await
    })
}

/// Reads a message at the beginning, whose length comes first, and sends an answer.
pub(super) fn answer_first(stream: &mut TcpStream, answer: &[u8]) -> io::Result<()> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let rest = u32::from_be_bytes(length) - 4;
    let mut message = vec![0; usize::try_from(rest).unwrap()];
    stream.read_exact(&mut message)?;
    stream.write_all(answer)
}

/// A session with a server that answers its calls.
pub(super) struct Called {
    pub(super) session: Session,
    calls: Arc<AtomicUsize>,
}

impl Called {
    /// One whose server answers with these, one after the other, and then with the last one again and again. Each is of three
    /// requests.
    pub(super) fn with(answers: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        thread::spawn(move || {
            let (client, _) = listener.accept().unwrap();
            // The client may go at any time.
            answer_calls(client, &answers, &counted).ok();
        });
        let url = format!("postgres://u@127.0.0.1:{port}/d?sslmode=disable");
        Self {
            session: Session::new(settings(&url, "test").unwrap()),
            calls,
        }
    }

    /// How often it was called.
    pub(super) fn calls(&self) -> usize {
        self.calls.load(SeqCst)
    }
}

fn answer_calls(mut client: TcpStream, answers: &[Vec<u8>], calls: &AtomicUsize) -> io::Result<()> {
    /// The last request of a call.
    const LAST: &[u8] = b"COMMIT\0";
    answer_first(&mut client, LOGGED_IN)?;
    let mut buffer = [0; 4096];
    loop {
        let mut asked = Vec::new();
        while !asked.ends_with(LAST) {
            match client.read(&mut buffer)? {
                0 => return Ok(()),
                count => asked.extend_from_slice(&buffer[..count]),
            }
        }
        let call = calls.fetch_add(1, SeqCst);
        client.write_all(&answers[call.min(answers.len() - 1)])?;
    }
}
