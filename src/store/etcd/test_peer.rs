//! A server in this process: it answers as a test wants, and notes what it was asked.

use std::collections::BTreeMap;
use std::future::ready;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::http::{HeaderMap, HeaderValue, Response as Head};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite, duplex};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, yield_now};

use super::clock::{Epoch, Kept, Mark};
use super::entry::{Keys, STEP_MS};
use super::grpc::Channel;
use super::link::Link;
use super::look::wall;
use super::messages::{
    Header, RangeResponse, Response, ResponseOp, TimeToLiveResponse, TxnResponse,
};
use super::seen::{Clocked, Seen};
use super::settings::Settings;
use crate::store::kv::flights::Known;
use crate::store::net::deadline::Deadline;
use crate::store::net::dial::Target;
use crate::store::net::session::{Link as _, event_loop};
use crate::token::{ClockEpoch, Incarnation, Stamp, StoreTime};

/// What a server answers: a message, or an error's number and text.
pub(super) type Answer = Result<Vec<u8>, (u32, &'static str)>;

/// A request as it came.
struct Call {
    method: String,
    message: Vec<u8>,
    /// What a log-in gave; else empty.
    token: String,
}

type Calls = Arc<Mutex<Vec<Call>>>;

/// The server.
pub(super) struct Peer {
    calls: Calls,
    task: JoinHandle<()>,
}

impl Peer {
    /// Serves one client, and answers so.
    fn begin<C: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        client: impl Future<Output = C> + Send + 'static,
        answer: impl Fn(&str, &[u8]) -> Answer + Send + 'static,
    ) -> Self {
        let calls = Calls::default();
        let noted = Arc::clone(&calls);
        let task = tokio::spawn(async move { serve(client.await, noted, answer).await });
        Self { calls, task }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The messages of one method that it got, in their order.
    pub(super) fn of<M: Message + Default>(&self, method: &str) -> Vec<M> {
        let all = self.all();
        let those = all.iter().filter(|call| call.method == method);
        let read = |call: &Call| M::decode(&call.message[..]).unwrap();
        those.map(read).collect()
    }

    /// The methods that it was asked, each with the log-in.
    pub(super) fn logged_in(&self) -> Vec<String> {
        let all = self.all();
        let calls = all.iter().map(|it| format!("{} {}", it.method, it.token));
        calls.collect()
    }

    /// Ends it, and with it the connection.
    pub(super) async fn end(&self) {
        self.task.abort();
        while !self.task.is_finished() {
            yield_now().await;
        }
    }
}

async fn serve(
    client: impl AsyncRead + AsyncWrite + Unpin,
    calls: Calls,
    answer: impl Fn(&str, &[u8]) -> Answer,
) {
    let mut connection = h2::server::handshake(client).await.unwrap();
    let mut streams = Vec::new();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let (request, mut body) = request.into_parts();
        let mut message = Vec::new();
        // The connection moves while the next request is waited for: a message comes with its head.
        while message.len() < 5 || message.len() - 5 < length_of(&message) {
            message.extend_from_slice(&body.data().await.unwrap().unwrap());
        }
        let method = request.uri.path().rsplit('/').next().unwrap().to_owned();
        let answered = answer(&method, &message[5..]);
        let is_stream = method == "Watch";
        let token = request.headers.get("token");
        let token = token.map_or("", |it| it.to_str().unwrap()).to_owned();
        let message = message.split_off(5);
        let call = Call {
            method,
            message,
            token,
        };
        let all = || calls.lock().unwrap_or_else(PoisonError::into_inner);
        all().push(call);
        let mut stream = respond.send_response(Head::new(()), false).unwrap();
        let mut trailers = HeaderMap::new();
        match answered {
            Ok(message) => {
                let length = u32::try_from(message.len()).unwrap().to_be_bytes();
                let framed = [&[0][..], &length, &message].concat();
                stream.send_data(Bytes::from(framed), false).unwrap();
                trailers.insert("grpc-status", HeaderValue::from_static("0"));
            }
            Err((code, text)) => {
                trailers.insert("grpc-status", code.into());
                trailers.insert("grpc-message", HeaderValue::from_static(text));
            }
        }
        if is_stream {
            streams.push(stream);
        } else {
            stream.send_trailers(trailers).unwrap();
        }
    }
}

/// The length of a message, from the head before it.
fn length_of(message: &[u8]) -> usize {
    u32::from_be_bytes(message[1..5].try_into().unwrap()) as usize
}

/// Carries out `work` on a connection to a server that answers so.
pub(super) fn over<T>(
    answer: impl Fn(&str, &[u8]) -> Answer + Send + 'static,
    work: impl AsyncFnOnce(&mut Link, &Peer) -> T,
) -> T {
    event_loop().unwrap().block_on(async {
        let (near, far) = duplex(1 << 20);
        let peer = Peer::begin(ready(far), answer);
        let channel = Channel::open(Box::new(near), "http://h".into()).await;
        let mut link = Link {
            channel: channel.unwrap(),
            keys: Keys::new("p"),
            socket: Arc::new(UnixStream::pair().unwrap().0.into()),
            secured: false,
            last: None,
            known: Known::default(),
            incoming: None,
        };
        work(&mut link, &peer).await
    })
}

/// As [`over`], on a connection that is opened as this user, whose name ends with `@`.
pub(super) fn opened<T>(
    user: &str,
    answer: impl Fn(&str, &[u8]) -> Answer + Send + 'static,
    work: impl AsyncFnOnce(&mut Link, &Peer) -> T,
) -> T {
    event_loop().unwrap().block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = async move { listener.accept().await.unwrap().0 };
        let peer = Peer::begin(client, answer);
        let settings = Settings::read(&format!("etcd://{user}{address}/p"), |_| None).unwrap();
        let host = &settings.servers.hosts[0];
        let deadline = Deadline::after(Duration::from_secs(60));
        let target = Target::Tcp(address);
        let opening = Link::open(&settings, host, &target, deadline, false);
        work(&mut opening.await.unwrap(), &peer).await
    })
}

pub(super) fn message(of: &impl Message) -> Answer {
    Ok(of.encode_to_vec())
}

pub(super) fn header(revision: i64) -> Option<Header> {
    Some(Header {
        revision,
        raft_term: 4,
        ..Header::default()
    })
}

/// The answer to a transaction with these reads.
pub(super) fn done(revision: i64, reads: Vec<RangeResponse>) -> Answer {
    let response = |read| ResponseOp {
        response: Some(Response::Range(read)),
    };
    message(&TxnResponse {
        header: header(revision),
        succeeded: true,
        responses: reads.into_iter().map(response).collect(),
    })
}

pub(super) fn lease(granted: i64, ttl: i64) -> Answer {
    message(&TimeToLiveResponse {
        header: header(1),
        ttl,
        granted,
    })
}

pub(super) fn epoch(term: u64) -> Epoch {
    Epoch {
        generation: 1,
        term,
    }
}

/// A look in this term, that many seconds after its beginning.
pub(super) fn seen(term: u64, seconds: i64) -> Seen {
    let (epoch, mark) = (epoch(term), Mark { seconds, index: 9 });
    Seen {
        asked_at: Instant::now(),
        now: StoreTime {
            epoch: ClockEpoch(epoch.text()),
            stamp: Stamp {
                tick_ms: seconds * 1_000,
                wall: wall(),
            },
        },
        entries: BTreeMap::new(),
        more: Clocked {
            epoch,
            kept: Kept { epoch, mark },
            revision: 3,
            mark,
            step_ms: STEP_MS,
            incarnation: Incarnation("i".into()),
        },
    }
}
