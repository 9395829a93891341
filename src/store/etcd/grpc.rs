//! gRPC over one HTTP/2 connection: a request of one message, and an answer of one. The connection moves only while
//! a call waits, and ends with its [`Channel`]: nothing is sent after that.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::{BufMut as _, Bytes, BytesMut};
use h2::client::{Connection, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use hyper::http::{HeaderMap, HeaderValue, Request};
use prost::Message;

use super::fault::{Fault, Said};
use crate::store::net::deadline::Activity;
use crate::store::net::dial::Stream;

/// A message is preceded by a byte for its compression and four for its length.
const HEAD: usize = 5;

/// The longest head of an answer.
const LONGEST_HEAD: u32 = 16 * 1024;

/// How much a server may send before it is read: an answer of a look fits.
const WINDOW: u32 = 1 << 20;

/// A connection.
pub(super) struct Channel {
    sender: SendRequest<Bytes>,
    connection: Connection<Box<dyn Stream>, Bytes>,
    is_over: bool,
    /// Scheme and host of each request.
    origin: String,
    /// What a log-in gave.
    token: Option<HeaderValue>,
}

/// A request without its answer.
pub(super) struct Pending {
    response: ResponseFuture,
    /// How long the answer may be, in bytes.
    most: usize,
}

/// A stream of messages from the server.
pub(super) struct Incoming {
    pub(super) body: RecvStream,
    /// The stream ends when this is dropped.
    _request: SendStream<Bytes>,
}

fn broken(error: h2::Error) -> Fault {
    let doing = Activity::Asking;
    match error.into_io() {
        Some(error) => Fault::Io(doing, error),
        None => Fault::nonsense("its HTTP/2 connection broke"),
    }
}

fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(HEAD + length);
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    // The buffer grows as needed.
    let _ = message.encode(&mut bytes);
    bytes.freeze()
}

/// The text of a header.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The status of a call, once its headers or trailers have one.
fn status(headers: &HeaderMap) -> Option<Result<(), Fault>> {
    let code: u32 = text(headers, "grpc-status")?.parse().ok()?;
    if code == 0 {
        return Some(Ok(()));
    }
    let what = text(headers, "grpc-message").unwrap_or_default();
    let what = percent_encoding::percent_decode_str(what).decode_utf8_lossy();
    Some(Err(Fault::Said(Said::answer(code, &what))))
}

impl Channel {
    /// Begins to speak over an open connection. `origin`: scheme and host.
    pub(super) async fn open(stream: Box<dyn Stream>, origin: String) -> Result<Self, Fault> {
        let opening = h2::client::Builder::new()
            .enable_push(false)
            .max_header_list_size(LONGEST_HEAD)
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .handshake(stream);
        let (sender, connection) = opening.await.map_err(broken)?;
        Ok(Self {
            sender,
            connection,
            is_over: false,
            origin,
            token: None,
        })
    }

    /// Sends this with each request from now on.
    pub(super) fn set_token(&mut self, token: &str) {
        self.token = HeaderValue::from_str(token).ok();
    }

    /// Moves the connection until `work` is done.
    pub(super) async fn drive<T>(
        &mut self,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let (connection, is_over) = (&mut self.connection, &mut self.is_over);
        let mut work = pin!(work);
        poll_fn(|cx| {
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(done);
            }
            *is_over = *is_over || Pin::new(&mut *connection).poll(cx).is_ready();
            match work.as_mut().poll(cx) {
                Poll::Pending if *is_over => {
                    Poll::Ready(Err(Fault::nonsense("the server closed the connection")))
                }
                polled => polled,
            }
        })
        .await
    }

    /// True if the connection is open. What the server sends for itself is read.
    pub(super) async fn is_open(&mut self) -> bool {
        for _ in 0..2 {
            let connection = &mut self.connection;
            let look = |cx: &mut std::task::Context<'_>| {
                Poll::Ready(Pin::new(&mut *connection).poll(cx).is_ready())
            };
            self.is_over = self.is_over || poll_fn(look).await;
            if self.is_over {
                return false;
            }
            // In between, the event loop looks at the socket.
            tokio::task::yield_now().await;
        }
        true
    }

    async fn send(
        &mut self,
        path: &str,
        message: &impl Message,
        is_last: bool,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), Fault> {
        let mut request = Request::post(format!("{}{path}", self.origin))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        if let Some(token) = &self.token {
            request = request.header("token", token);
        }
        let request = request.body(());
        let request = request.map_err(|error| Fault::Settings(error.to_string()))?;
        let ready = self.sender.clone().ready();
        let ready = self.drive(async { ready.await.map_err(broken) }).await?;
        self.sender = ready;
        let (response, mut body) = self.sender.send_request(request, false).map_err(broken)?;
        body.send_data(framed(message), is_last).map_err(broken)?;
        Ok((response, body))
    }

    /// Sends a request, whose answer has at most so many bytes. Several can be under way.
    pub(super) async fn start(
        &mut self,
        path: &str,
        message: &impl Message,
        most: usize,
    ) -> Result<Pending, Fault> {
        let (response, _) = self.send(path, message, true).await?;
        Ok(Pending { response, most })
    }

    /// The answer to a request.
    pub(super) async fn answer<A: Message + Default>(
        &mut self,
        pending: Pending,
    ) -> Result<A, Fault> {
        self.drive(pending.answer()).await
    }

    /// Sends a request, and waits for its answer.
    pub(super) async fn call<A: Message + Default>(
        &mut self,
        path: &str,
        message: &impl Message,
        most: usize,
    ) -> Result<A, Fault> {
        let pending = self.start(path, message, most).await?;
        self.answer(pending).await
    }

    /// Sends a request whose answers have no end.
    pub(super) async fn stream(
        &mut self,
        path: &str,
        message: &impl Message,
    ) -> Result<Incoming, Fault> {
        let (response, request) = self.send(path, message, false).await?;
        let opening = async {
            let response = response.await.map_err(broken)?;
            match status(response.headers()) {
                Some(Err(fault)) => Err(fault),
                _ => Ok(response.into_body()),
            }
        };
        Ok(Incoming {
            body: self.drive(opening).await?,
            _request: request,
        })
    }
}

impl Pending {
    async fn answer<A: Message + Default>(self) -> Result<A, Fault> {
        let response = self.response.await.map_err(broken)?;
        if let Some(Err(fault)) = status(response.headers()) {
            return Err(fault);
        }
        if response.status() != 200 {
            let what = format!("it answers with HTTP status {}", response.status());
            return Err(Fault::Said(Said::Nonsense(what)));
        }
        let mut body = response.into_body();
        let mut bytes = BytesMut::new();
        while let Some(chunk) = body.data().await {
            let chunk = chunk.map_err(broken)?;
            if bytes.len() + chunk.len() > self.most {
                let what = "it sends more than an answer can have";
                return Err(Fault::Said(Said::Nonsense(what.into())));
            }
            bytes.extend_from_slice(&chunk);
            let _ = body.flow_control().release_capacity(chunk.len());
        }
        let trailers = body.trailers().await.map_err(broken)?.unwrap_or_default();
        match status(&trailers) {
            Some(Ok(())) => decoded(&bytes),
            Some(Err(fault)) => Err(fault),
            None => Err(Fault::Said(Said::Nonsense(
                "its answer has no status".into(),
            ))),
        }
    }
}

/// The first message in these bytes.
fn decoded<A: Message + Default>(bytes: &[u8]) -> Result<A, Fault> {
    let nonsense = |what: &str| Fault::Said(Said::Nonsense(what.to_owned()));
    let (head, rest) = bytes
        .split_at_checked(HEAD)
        .ok_or_else(|| nonsense("its answer is empty"))?;
    let &[0, a, b, c, d] = head else {
        return Err(nonsense("its answer is compressed"));
    };
    let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    let message = rest.get(..length);
    let message = message.ok_or_else(|| nonsense("its answer is cut off"))?;
    A::decode(message).map_err(|error| nonsense(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use h2::server::SendResponse;
    use hyper::http::{Response, StatusCode};
    use proptest::prelude::*;
    use tokio::io::DuplexStream;
    use tokio::runtime::Builder;
    use tokio::task::JoinHandle;

    use super::super::messages::{
        Header, KeyValue, RangeResponse, Response as OfTxn, ResponseOp, TxnResponse, WatchRequest,
    };
    use super::*;
    use crate::mutated::mutated;

    /// What a transaction that read a key is answered.
    fn answer() -> TxnResponse {
        let read = RangeResponse {
            kvs: vec![KeyValue {
                key: b"tokens/nightly".into(),
                create_revision: 300,
                mod_revision: 301,
                value: b"{}".into(),
            }],
            ..RangeResponse::default()
        };
        TxnResponse {
            header: Some(Header {
                cluster_id: u64::MAX,
                member_id: 1,
                revision: 301,
                raft_term: 2,
            }),
            succeeded: true,
            responses: vec![ResponseOp {
                response: Some(OfTxn::Range(read)),
            }],
        }
    }

    #[test]
    fn a_message_is_read_as_it_was_framed() {
        let sent = answer();
        let bytes = framed(&sent);
        assert_eq!(decoded::<TxnResponse>(&bytes).unwrap(), sent);
        for cut in 0..bytes.len() {
            assert!(decoded::<TxnResponse>(&bytes[..cut]).is_err(), "{cut}");
        }
    }

    /// Answers a request by its path with the message that came, in two parts.
    async fn answered(request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
        let (request, mut body) = request.into_parts();
        let mut message = Vec::new();
        while let Some(part) = body.data().await {
            message.extend_from_slice(&part.unwrap());
        }
        let has_token = request.headers.get("token").is_some_and(|it| it == "t");
        let mut response = Response::new(());
        let mut trailers = HeaderMap::new();
        match request.uri.path() {
            "/denied" => {
                let headers = response.headers_mut();
                headers.insert("grpc-status", HeaderValue::from_static("7"));
                headers.insert("grpc-message", HeaderValue::from_static("no%20right"));
            }
            "/not-found" => *response.status_mut() = StatusCode::NOT_FOUND,
            "/without-status" => {}
            "/login" if !has_token => {
                trailers.insert("grpc-status", HeaderValue::from_static("16"));
            }
            _ => {
                trailers.insert("grpc-status", HeaderValue::from_static("0"));
            }
        }
        let mut stream = respond.send_response(response, false).unwrap();
        let (first, second) = message.split_at(message.len() / 2);
        for part in [first, second] {
            let part = Bytes::copy_from_slice(part);
            stream.send_data(part, false).unwrap();
        }
        stream.send_trailers(trailers).unwrap();
    }

    /// A server that has one request at a time.
    async fn serve(pipe: DuplexStream) {
        let mut builder = h2::server::Builder::new();
        let opening = builder.max_concurrent_streams(1).handshake(pipe);
        let mut connection = opening.await.unwrap();
        while let Some(Ok((request, respond))) = connection.accept().await {
            tokio::spawn(answered(request, respond));
        }
    }

    /// Runs this with a connection and its server.
    fn run(test: impl AsyncFnOnce(Channel, JoinHandle<()>)) {
        let runtime = Builder::new_current_thread().build();
        runtime.unwrap().block_on(async {
            let (near, far) = tokio::io::duplex(1 << 16);
            let server = tokio::spawn(serve(far));
            let opening = Channel::open(Box::new(near), "http://h".into());
            test(opening.await.unwrap(), server).await;
        });
    }

    #[test]
    fn each_answer_comes_with_its_status() {
        run(async |mut channel, _| {
            let sent = answer();
            let most = framed(&sent).len();
            let echo: TxnResponse = channel.call("/echo", &sent, most).await.unwrap();
            assert_eq!(echo, sent);
            assert!(channel.is_open().await);
            let mut pending = Vec::new();
            for _ in 0..3 {
                pending.push(channel.start("/echo", &sent, most).await.unwrap());
            }
            for pending in pending {
                let echo: TxnResponse = channel.answer(pending).await.unwrap();
                assert_eq!(echo, sent);
            }
            for (path, most, says) in [
                ("/denied", most, "no right"),
                ("/not-found", most, "HTTP status 404"),
                ("/without-status", most, "has no status"),
                ("/echo", most - 1, "more than an answer can have"),
                ("/login", most, ""),
            ] {
                let called = channel.call::<TxnResponse>(path, &sent, most).await;
                let words = called.unwrap_err().words();
                assert!(words.contains(says), "{path}: {words}");
            }
            channel.set_token("t");
            let login: TxnResponse = channel.call("/login", &sent, most).await.unwrap();
            assert_eq!(login, sent);
        });
    }

    #[test]
    fn a_connection_that_its_server_ends_is_over() {
        for is_waiting in [false, true] {
            run(async |mut channel, server| {
                assert!(channel.is_open().await);
                server.abort();
                assert!(server.await.unwrap_err().is_cancelled());
                if is_waiting {
                    let never = std::future::pending::<Result<(), Fault>>();
                    let words = channel.drive(never).await.unwrap_err().words();
                    assert!(words.contains("closed the connection"), "{words}");
                }
                assert!(!channel.is_open().await);
                let called = channel.call::<TxnResponse>("/echo", &answer(), 0).await;
                assert!(called.is_err());
            });
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(
            bytes in mutated(&framed(&answer())),
            any in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            for bytes in [bytes, any] {
                let _ = decoded::<TxnResponse>(&bytes);
                let _ = decoded::<WatchRequest>(&bytes);
            }
        }
    }
}
