//! A server in this process: it answers as a test wants, and notes what it was asked.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use hyper::http::{HeaderMap, HeaderValue, Response as Head};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite, duplex};

use super::clock::{Epoch, Kept, Mark};
use super::entry::{Keys, STEP_MS};
use super::grpc::Channel;
use super::link::Link;
use super::look::wall;
use super::messages::{
    Header, RangeResponse, Response, ResponseOp, TimeToLiveResponse, TxnResponse,
};
use super::seen::{Clocked, Seen};
use crate::store::kv::flights::Known;
use crate::store::net::session::event_loop;
use crate::token::{ClockEpoch, Incarnation, Stamp, StoreTime};

/// What a server answers: a message, or an error's number and text.
pub(super) type Answer = Result<Vec<u8>, (u32, &'static str)>;

/// The method of a request, and its message.
type Call = (String, Vec<u8>);

/// What a server was asked.
#[derive(Clone, Default)]
pub(super) struct Asked(Arc<Mutex<Vec<Call>>>);

impl Asked {
    fn all(&self) -> MutexGuard<'_, Vec<Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The messages of one method, in their order.
    pub(super) fn of<M: Message + Default>(&self, method: &str) -> Vec<M> {
        let all = self.all();
        let those = all.iter().filter(|(name, _)| name == method);
        those.map(|(_, it)| M::decode(&it[..]).unwrap()).collect()
    }
}

async fn serve(
    client: impl AsyncRead + AsyncWrite + Unpin,
    asked: Asked,
    answer: impl Fn(&str, &[u8]) -> Answer,
) {
    let mut connection = h2::server::handshake(client).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let (request, mut body) = request.into_parts();
        let mut message = Vec::new();
        // The connection moves while the next request is waited for: a message comes with its head.
        while let Some(part) = body.data().await {
            message.extend_from_slice(&part.unwrap());
        }
        let method = request.uri.path().rsplit('/').next().unwrap().to_owned();
        let answered = answer(&method, &message[5..]);
        asked.all().push((method, message.split_off(5)));
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
        stream.send_trailers(trailers).unwrap();
    }
}

/// Carries out `work` on a connection to a server that answers so.
pub(super) fn over<T>(
    answer: impl Fn(&str, &[u8]) -> Answer + Send + Sync + 'static,
    work: impl AsyncFnOnce(&mut Link, &Asked) -> T,
) -> T {
    event_loop().unwrap().block_on(async {
        let (near, far) = duplex(1 << 20);
        let asked = Asked::default();
        tokio::spawn(serve(far, asked.clone(), answer));
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
        work(&mut link, &asked).await
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
