//! A server in this process: it answers as a test wants, and notes what it was asked.

use std::collections::BTreeMap;
use std::future::ready;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, duplex};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, yield_now};

use super::channel::Channel;
use super::fault::{Fault, Said};
use super::link::Link;
use super::seen::{Now, Seen};
use super::settings::Settings;
use super::tree::Tree;
use super::wire::{In, Stat};
use crate::store::kv::flights::Known;
use crate::store::net::deadline::Deadline;
use crate::store::net::dial::Target;
use crate::store::net::session::{Link as _, event_loop};

/// The server.
pub(super) struct Peer {
    /// What it was asked: kinds with paths, in the order in which they came. `|` ends what came together.
    asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Peer {
    /// Serves one client with a session of this length, and answers so.
    fn begin<C: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        client: impl Future<Output = C> + Send + 'static,
        lives_ms: i32,
        answer: impl Fn(&str) -> Answer + Send + 'static,
    ) -> Self {
        let asked = Arc::default();
        let noted = Arc::clone(&asked);
        let serving = async move { serve(client.await, lives_ms, &noted, answer).await };
        Self {
            asked,
            task: tokio::spawn(serving),
        }
    }

    /// What it was asked since the last call of this function.
    pub(super) fn take(&self) -> String {
        std::mem::take(&mut *locked(&self.asked)).join(" ")
    }

    /// Ends it, and with it the connection.
    pub(super) async fn end(&self) {
        self.task.abort();
        while !self.task.is_finished() {
            yield_now().await;
        }
    }
}

fn locked(asked: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    asked.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The answer of a server: an error, and what follows the header.
pub(super) type Answer = (i32, Vec<u8>);

pub(super) fn int(number: i32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

pub(super) fn text(text: &str) -> Vec<u8> {
    [int(text.len().try_into().unwrap()), text.into()].concat()
}

pub(super) fn texts(texts: &[String]) -> Vec<u8> {
    let all = texts.iter().flat_map(|it| text(it));
    let count = int(texts.len().try_into().unwrap());
    count.into_iter().chain(all).collect()
}

/// The times of a node with this version: 1 made it, 7 changed it at 9000 ms.
pub(super) fn stat(version: i32) -> Vec<u8> {
    let longs = [1_i64, 7, 0, 9_000].map(i64::to_be_bytes).concat();
    [longs, int(version), vec![0; 32]].concat()
}

/// A node with these data.
pub(super) fn node(data: &str) -> Vec<u8> {
    [text(data), stat(0)].concat()
}

fn frame(parts: &[&[u8]]) -> Vec<u8> {
    let record = parts.concat();
    [int(record.len().try_into().unwrap()), record].concat()
}

async fn serve(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    lives_ms: i32,
    asked: &Mutex<Vec<String>>,
    answer: impl Fn(&str) -> Answer,
) {
    // A flight is read at once.
    let mut bytes = Vec::with_capacity(1 << 20);
    let mut is_greeted = false;
    while client.read_buf(&mut bytes).await.is_ok_and(|it| it > 0) {
        let mut out = Vec::new();
        let mut rest = In(&bytes);
        while let Some(record) = rest.buffer() {
            if !is_greeted {
                is_greeted = true;
                locked(asked).push("hello".into());
                out.extend(frame(&[&int(0), &int(lives_ms), &[0; 8], &int(0)]));
                continue;
            }
            let mut record = In(record);
            let (number, kind) = (record.int().unwrap(), record.int().unwrap());
            let path = match kind {
                14 => multi(record),
                _ => String::from_utf8_lossy(record.buffer().unwrap_or_default()).into_owned(),
            };
            let what = format!("{kind}{path}");
            let (error, body) = answer(&what);
            locked(asked).push(what);
            out.extend(frame(&[&int(number), &[0; 8], &int(error), &body]));
        }
        bytes.clear();
        locked(asked).push("|".into());
        client.write_all(&out).await.unwrap();
    }
}

/// How many requests a transaction has before the write of its time.
fn multi(mut record: In<'_>) -> String {
    let mut count = 0;
    loop {
        let kind = record.int().unwrap();
        record.0 = &record.0[5..];
        if kind == -1 {
            return format!(":{}", count - 1);
        }
        count += 1;
        let _path = record.buffer();
        if matches!(kind, 1 | 5) {
            let _data = record.buffer();
        }
        if kind == 1 {
            record.rights().unwrap();
        }
        // The version, or the kind of a new node.
        record.int();
    }
}

fn header_in_multi(kind: i32, is_last: bool) -> Vec<u8> {
    [int(kind), vec![is_last.into()], int(0)].concat()
}

/// The answer to a transaction whose requests gave nodes these versions; `None`: they were of another kind.
pub(super) fn carried_out(versions: &[Option<i32>]) -> Vec<u8> {
    let time = Some(3);
    let part = |version: &Option<i32>| match version {
        Some(version) => [header_in_multi(5, false), stat(*version)].concat(),
        None => header_in_multi(2, false),
    };
    let parts = versions.iter().chain([&time]).flat_map(part);
    parts.chain(header_in_multi(-1, true)).collect()
}

/// The answer to a transaction of so many requests, one of which failed.
pub(super) fn failed_at(at: usize, code: i32, count: usize) -> Vec<u8> {
    let part = |n| {
        let code = if n == at { code } else { 0 };
        [header_in_multi(-1, false), int(code)].concat()
    };
    let parts = (0..=count).flat_map(part);
    parts.chain(header_in_multi(-1, true)).collect()
}

/// Carries out `work` on a connection to a server that answers so.
pub(super) fn over<T>(
    lives_ms: i32,
    answer: impl Fn(&str) -> Answer + Send + 'static,
    work: impl AsyncFnOnce(&mut Link, &Peer) -> T,
) -> T {
    event_loop().unwrap().block_on(async {
        let (near, far) = duplex(1 << 20);
        let peer = Peer::begin(ready(far), lives_ms, answer);
        let mut link = Link {
            channel: Channel::new(Box::new(near), 4_000, None),
            tree: Tree::new("/a/b"),
            socket: Arc::new(UnixStream::pair().unwrap().0.into()),
            secured: false,
            known: Known::default(),
        };
        link.channel.greet().await.unwrap();
        peer.take();
        work(&mut link, &peer).await
    })
}

/// As [`over`], on a connection that is opened; `may_defer`: for a question that only reads.
pub(super) fn opened<T>(
    may_defer: bool,
    answer: impl Fn(&str) -> Answer + Send + 'static,
    work: impl AsyncFnOnce(&mut Link, &Peer) -> T,
) -> T {
    event_loop().unwrap().block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = async move { listener.accept().await.unwrap().0 };
        let peer = Peer::begin(client, 4_000, answer);
        let settings = Settings::read(&format!("zk://{address}/a/b")).unwrap();
        let host = &settings.servers.hosts[0];
        let deadline = Deadline::after(Duration::from_secs(60));
        let target = Target::Tcp(address);
        let opening = Link::open(&settings, host, &target, deadline, may_defer);
        work(&mut opening.await.unwrap(), &peer).await
    })
}

/// A look at this time, which has found nothing.
pub(super) fn seen(at_ms: i64) -> Seen {
    let stat = Stat {
        created: 1,
        changed: (7 << 32) + 5,
        at_ms,
        version: 0,
    };
    let now = Now::new(&stat, "id", None);
    Seen {
        asked_at: Instant::now(),
        now: now.time.clone(),
        entries: BTreeMap::new(),
        more: now,
    }
}

pub(super) fn code_of(fault: &Fault) -> i32 {
    match fault {
        Fault::Said(Said::Failed { code, .. }) => *code,
        other => panic!("{other:?}"),
    }
}
