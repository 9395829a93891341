//! A server in this process: it answers as a test wants, and notes what it was asked.

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::channel::Channel;
use super::fault::{Fault, Said};
use super::link::Link;
use super::tree::Tree;
use super::wire::In;
use crate::store::kv::flights::Known;
use crate::store::net::session::event_loop;

/// What a server was asked: kinds with paths, in the order in which they came. `|` ends what came together.
#[derive(Clone, Default)]
pub(super) struct Asked(Arc<Mutex<Vec<String>>>);

impl Asked {
    fn all(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self) -> String {
        std::mem::take(&mut *self.all()).join(" ")
    }
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

/// A node's times: 1 made it, 7 changed it at 9000 ms.
pub(super) fn stat() -> Vec<u8> {
    let longs = [1_i64, 7, 0, 9_000].map(i64::to_be_bytes).concat();
    [longs, int(3), vec![0; 32]].concat()
}

fn frame(parts: &[&[u8]]) -> Vec<u8> {
    let record = parts.concat();
    [int(record.len().try_into().unwrap()), record].concat()
}

/// Serves one client with a session of this length.
async fn serve(
    mut client: DuplexStream,
    lives_ms: i32,
    asked: Asked,
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
                out.extend(frame(&[&int(0), &int(lives_ms), &[0; 8], &int(0)]));
                continue;
            }
            let mut record = In(record);
            let (number, kind) = (record.int().unwrap(), record.int().unwrap());
            let path = match kind {
                // The kinds of its requests, of which only removals have no data.
                14 => multi(record),
                _ => String::from_utf8_lossy(record.buffer().unwrap_or_default()).into_owned(),
            };
            let what = format!("{kind}{path}");
            let (error, body) = answer(&what);
            asked.all().push(what);
            out.extend(frame(&[&int(number), &[0; 8], &int(error), &body]));
        }
        bytes.clear();
        asked.all().push("|".into());
        client.write_all(&out).await.unwrap();
    }
}

/// How many removals a transaction has before the write of its time.
fn multi(mut record: In<'_>) -> String {
    let mut count = 0;
    while record.int() == Some(2) {
        record.0 = &record.0[5..];
        record.buffer();
        record.int();
        count += 1;
    }
    format!(":{count}")
}

/// The answer to a transaction with so many removals.
pub(super) fn removed(count: usize) -> Vec<u8> {
    let part = |kind, is_last: bool| [int(kind), vec![is_last.into()], int(0)].concat();
    let removals = part(2, false).repeat(count);
    [removals, part(5, false), stat(), part(-1, true)].concat()
}

/// Carries out `work` on a connection to a server that answers so; returns its result and what the server was asked.
pub(super) fn over<T>(
    lives_ms: i32,
    answer: impl Fn(&str) -> Answer + Send + 'static,
    work: impl AsyncFnOnce(&mut Link, &Asked) -> T,
) -> T {
    event_loop().unwrap().block_on(async {
        let (near, far) = duplex(1 << 20);
        let asked = Asked::default();
        tokio::spawn(serve(far, lives_ms, asked.clone(), answer));
        let mut link = Link {
            channel: Channel::new(Box::new(near), 4_000, None),
            tree: Tree::new("/a/b"),
            socket: Arc::new(UnixStream::pair().unwrap().0.into()),
            secured: false,
            known: Known::default(),
        };
        link.channel.greet().await.unwrap();
        asked.take();
        work(&mut link, &asked).await
    })
}

pub(super) fn code_of(fault: &Fault) -> i32 {
    match fault {
        Fault::Said(Said::Failed { code, .. }) => *code,
        other => panic!("{other:?}"),
    }
}
