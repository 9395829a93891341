//! What is met on the way to a server, noted while a connection is made as any run makes
//! it: its addresses, its certificate, and how it asks who comes. The driver tells none of
//! this, so that the first messages of the server are read along.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use super::fault::Fault;

/// More than a server says before it is ready.
const MOST_HEARD: usize = 64 * 1024;

/// How a server asks who comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// For the password as it is.
    Password,
    /// For an MD5 sum of it.
    Md5,
    /// By SCRAM, which can be bound to the TLS connection.
    Scram { bindable: bool },
    /// Something that tokenrun does not know: the number of its message.
    Other(u32),
}

/// A certificate that a server has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) subject: String,
    pub(super) issuer: String,
    pub(super) until: String,
    /// The same, since 1970.
    pub(super) until_unix: std::time::Duration,
}

/// Everything that was noted.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// What the name came to.
    pub(super) addresses: Vec<SocketAddr>,
    /// What failed, address by address, before the one that is told.
    pub(super) failed: Vec<(SocketAddr, String)>,
    /// Where a connection was made to.
    pub(super) connected: Option<String>,
    /// The last certificate.
    pub(super) certificate: Option<Shown>,
    /// The protocol, if the last connection is secured.
    pub(super) protocol: Option<&'static str>,
    /// Whether the server let in without asking, or was satisfied.
    pub(super) let_in: bool,
    /// How it asked.
    pub(super) asked: Option<Asked>,
    /// The process of the server that it says this connection has.
    pub(super) pid: Option<i32>,
    /// Whether it has said anything at all.
    pub(super) spoke: bool,
}

/// Notes what is met. Copies note to the same place.
#[derive(Debug, Clone, Default)]
pub(super) struct Witness(Arc<Mutex<Seen>>);

impl Witness {
    fn note(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was noted until now.
    pub(super) fn seen(&self) -> Seen {
        self.note().clone()
    }

    pub(super) fn found(&self, addresses: &[SocketAddr]) {
        self.note().addresses = addresses.to_vec();
    }

    pub(super) fn failed(&self, address: SocketAddr, fault: &Fault) {
        self.note().failed.push((address, fault.words()));
    }

    /// A connection was made: what is noted from now on is of this one.
    pub(super) fn connected(&self, to: &str) {
        let mut seen = self.note();
        seen.connected = Some(to.to_owned());
        seen.protocol = None;
        seen.asked = None;
        seen.let_in = false;
        seen.spoke = false;
        seen.pid = None;
    }

    pub(super) fn shown(&self, certificate: &CertificateDer<'_>) {
        let Ok(read) = Certificate::from_der(certificate) else {
            return;
        };
        let of = &read.tbs_certificate;
        self.note().certificate = Some(Shown {
            subject: of.subject.to_string(),
            issuer: of.issuer.to_string(),
            until: of.validity.not_after.to_string(),
            until_unix: of.validity.not_after.to_unix_duration(),
        });
    }

    pub(super) fn speaks(&self, protocol: &'static str) {
        self.note().protocol = Some(protocol);
    }
}

/// Reads along what comes, until the server is ready.
pub(super) struct Tap<S> {
    stream: S,
    witness: Witness,
    heard: Vec<u8>,
    /// Whether one byte comes first that says if there will be TLS.
    answers_first: bool,
    is_over: bool,
}

impl<S> Tap<S> {
    /// On the connection itself; `answers_first` if it was asked for TLS.
    pub(super) const fn on_wire(stream: S, witness: Witness, answers_first: bool) -> Self {
        Self {
            stream,
            witness,
            heard: Vec::new(),
            answers_first,
            is_over: false,
        }
    }

    fn hear(&mut self, bytes: &[u8]) {
        if self.is_over || bytes.is_empty() {
            return;
        }
        self.witness.note().spoke = true;
        self.heard.extend_from_slice(bytes);
        if self.answers_first {
            match self.heard.first() {
                // What follows can't be read here.
                Some(b'S') => self.is_over = true,
                Some(b'N') => drop(self.heard.remove(0)),
                _ => {}
            }
            self.answers_first = false;
        }
        while !self.is_over {
            match message(&self.heard) {
                Next::Message(tag, body, whole) => {
                    self.is_over = heed(&mut self.witness.note(), tag, body);
                    self.heard.drain(..whole);
                }
                Next::More if self.heard.len() < MOST_HEARD => break,
                Next::More | Next::Nonsense => self.is_over = true,
            }
        }
        if self.is_over {
            self.heard = Vec::new();
        }
    }
}

enum Next<'a> {
    /// Its tag, its body, and its length as a whole.
    Message(u8, &'a [u8], usize),
    More,
    Nonsense,
}

/// The first message of what a server has said: a byte, a length that counts itself, and
/// the rest. See "Message Formats" in PostgreSQL's manual.
fn message(heard: &[u8]) -> Next<'_> {
    let Some((&tag, rest)) = heard.split_first() else {
        return Next::More;
    };
    let Some(length) = rest.first_chunk::<4>() else {
        return Next::More;
    };
    let length = u32::from_be_bytes(*length) as usize;
    if !(4..MOST_HEARD).contains(&length) {
        return Next::Nonsense;
    }
    match rest.get(4..length) {
        Some(body) => Next::Message(tag, body, length + 1),
        None => Next::More,
    }
}

/// Notes what a message says of how one is let in. Whether nothing more of that can come.
fn heed(seen: &mut Seen, tag: u8, body: &[u8]) -> bool {
    let number = |at: usize| {
        let bytes = body.get(at..)?.first_chunk::<4>()?;
        Some(u32::from_be_bytes(*bytes))
    };
    match (tag, number(0)) {
        (b'R', Some(0)) => seen.let_in = true,
        (b'R', Some(3)) => seen.asked = Some(Asked::Password),
        (b'R', Some(5)) => seen.asked = Some(Asked::Md5),
        (b'R', Some(10)) => {
            let bindable = body.windows(5).any(|part| part == b"-PLUS");
            seen.asked = Some(Asked::Scram { bindable });
        }
        // What follows such a request.
        (b'R', Some(11 | 12)) => {}
        (b'R', Some(other)) => seen.asked = Some(Asked::Other(other)),
        // A pooler's is any number, a negative one too.
        (b'K', Some(pid)) => seen.pid = Some(pid.cast_signed()),
        _ => {}
    }
    matches!(tag, b'Z' | b'E')
}

impl<S: AsyncRead + Unpin> AsyncRead for Tap<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if let Some(new) = buffer.filled().get(before..) {
            self.hear(new);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Tap<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S: TlsStream + Unpin> TlsStream for Tap<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.stream.channel_binding()
    }
}

/// Makes a TLS connection that is read along.
pub(super) struct Watching<T> {
    connect: T,
    witness: Witness,
}

impl<T> Watching<T> {
    pub(super) const fn new(connect: T, witness: Witness) -> Self {
        Self { connect, witness }
    }
}

impl<S, T> TlsConnect<S> for Watching<T>
where
    T: TlsConnect<S>,
    T::Future: Send + 'static,
    T::Error: 'static,
{
    type Stream = Tap<T::Stream>;
    type Error = T::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Stream, Self::Error>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let made = self.connect.connect(stream);
        let witness = self.witness;
        Box::pin(async move { Ok(Tap::on_wire(made.await?, witness, false)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told(pieces: &[&[u8]], answers_first: bool) -> Seen {
        let witness = Witness::default();
        let mut tap = Tap::on_wire((), witness.clone(), answers_first);
        for piece in pieces {
            tap.hear(piece);
        }
        witness.seen()
    }

    const OK: &[u8] = b"R\0\0\0\x08\0\0\0\0";
    const KEY: &[u8] = b"K\0\0\0\x0c\0\0\x12\x34\0\0\0\x09";

    #[test]
    fn who_lets_in_without_asking_is_noted() {
        let seen = told(&[OK, KEY], false);
        assert!(seen.let_in && seen.asked.is_none());
        assert_eq!(seen.pid, Some(0x1234));
        let made_up = b"K\0\0\0\x0c\xff\xff\xff\xfe\0\0\0\x09";
        assert_eq!(told(&[OK, made_up], false).pid, Some(-2));
    }

    #[test]
    fn each_way_to_ask_is_told_apart() {
        for (body, asked) in [
            (&b"\0\0\0\x03"[..], Asked::Password),
            (b"\0\0\0\x05salt", Asked::Md5),
            (
                b"\0\0\0\x0aSCRAM-SHA-256\0\0",
                Asked::Scram { bindable: false },
            ),
            (
                b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0",
                Asked::Scram { bindable: true },
            ),
            (b"\0\0\0\x07", Asked::Other(7)),
        ] {
            let mut message = vec![b'R'];
            message.extend_from_slice(&u32::try_from(body.len() + 4).unwrap().to_be_bytes());
            message.extend_from_slice(body);
            assert_eq!(told(&[&message], false).asked, Some(asked));
            // Byte by byte.
            let bytes: Vec<&[u8]> = message.chunks(1).collect();
            assert_eq!(told(&bytes, false).asked, Some(asked));
        }
    }

    #[test]
    fn the_answer_to_a_wish_for_tls_is_no_message() {
        assert!(told(&[b"N", OK], true).let_in);
        assert!(!told(&[b"S", OK], true).let_in);
    }

    proptest! {
        #[test]
        fn nothing_that_a_server_says_is_a_panic(pieces: Vec<Vec<u8>>, first: bool) {
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            told(&pieces, first);
        }
    }
}
