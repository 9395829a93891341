//! Replies that a network or a server has garbled: no panic, no hang, no memory without bound, and a job that ran is
//! never called one that did not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::proxy::Proxy;
use crate::redis_server::{Quorum, Server as RedisServer};
use crate::server::Server;
use crate::site::Site;
use crate::support::Line;
use crate::{etcd_server, mysql_server, zookeeper_server};

/// How many replies of each store are garbled.
const CHANGES: usize = 24;
/// How many runs go at once: most wait for bytes that do not come.
const AT_ONCE: usize = 6;

#[test]
fn postgres() {
    story(&Server::shared().database().tcp_url());
}

#[test]
fn mariadb() {
    story(&mysql_server::Server::shared().database().tcp_url());
}

#[test]
fn redis() {
    let prefix = RedisServer::prefix();
    story(&format!(
        "{}?prefix={prefix}",
        RedisServer::shared().tcp_url()
    ));
}

#[test]
fn quorum() {
    story(&Quorum::shared().url(&RedisServer::prefix()));
}

#[test]
fn etcd() {
    story(&etcd_server::Cluster::shared().url());
}

#[test]
fn zookeeper() {
    story(&zookeeper_server::Cluster::shared().url());
}

/// What happens to one byte of the replies.
#[derive(Debug, Clone, Copy)]
struct Change {
    /// Its number, among all bytes that come through.
    at: usize,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Becomes(u8),
    IsLeftOut,
    ComesTwice,
    IsTheLast,
}

impl Change {
    /// One of many, by a random number.
    const fn drawn(number: u64, replies: usize) -> Self {
        let at = (number >> 16) as usize % replies;
        let kind = match number % 8 {
            0 => Kind::IsLeftOut,
            1 => Kind::ComesTwice,
            2 => Kind::IsTheLast,
            // The limits of lengths and numbers are among them more often than others.
            3 => Kind::Becomes(0xff),
            4 => Kind::Becomes(0),
            5 => Kind::Becomes(0x80),
            _ => Kind::Becomes((number >> 8) as u8),
        };
        Self { at, kind }
    }

    /// Changes a part of the replies, of which the first byte has this number. Returns false if the part is the last.
    fn apply(self, part: &mut Vec<u8>, first: usize) -> bool {
        let Some(at) = self.at.checked_sub(first).filter(|at| *at < part.len()) else {
            return true;
        };
        match self.kind {
            Kind::Becomes(byte) => part[at] = byte,
            Kind::IsLeftOut => drop(part.remove(at)),
            Kind::ComesTwice => part.insert(at, part[at]),
            Kind::IsTheLast => part.truncate(at + 1),
        }
        !matches!(self.kind, Kind::IsTheLast)
    }
}

/// A store whose replies are changed once, and how many bytes of them came through.
struct Garbled {
    url: String,
    passed: Arc<AtomicUsize>,
}

impl Garbled {
    /// With a proxy in front of each server that the URL names.
    fn new(url: &str, change: Option<Change>) -> Self {
        let passed = Arc::new(AtomicUsize::new(0));
        let mut parts = url.split("127.0.0.1:");
        let mut url = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_digit());
            let (port, rest) = part.split_at(end.unwrap_or(part.len()));
            let passed = Arc::clone(&passed);
            let proxy = Proxy::changing(port.parse().unwrap(), move |part| {
                let first = passed.fetch_add(part.len(), SeqCst);
                change.is_none_or(|change| change.apply(part, first))
            });
            url.push_str(&format!("127.0.0.1:{}{rest}", proxy.port));
        }
        Self { url, passed }
    }
}

/// A job that leaves a file, and then what operators ask. Memory is bounded.
fn calls(site: &Site, url: &str, file: &str) -> [Line; 2] {
    let run = site.store.bare(&["-s", url, "-g", file]);
    let run = run.with(&["--client-id=a", "--keep=0"]).hasty();
    let list = site.store.bare(&["status", "-s", url, "--json"]);
    [run.job(&["touch", file]), list].map(|line| line.under(&["prlimit", "--as=536870912"]))
}

fn story(url: &str) {
    let site = Site::new(url);
    // A store that an operator has called new grants at once.
    let init = site.verb(&["init"]).end();
    assert!(matches!(init.code, Some(0 | 64)), "{init:?}");
    let clean = Garbled::new(url, None);
    for line in calls(&site, &clean.url, "clean") {
        line.end().with_code(0);
    }
    let replies = clean.passed.load(SeqCst);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = now.as_nanos() as u64;
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, SeqCst);
                    if number >= CHANGES {
                        return;
                    }
                    let random = mixed(seed.wrapping_add(number as u64));
                    try_one(&site, number, Change::drawn(random, replies));
                }
            });
        }
    });
}

/// Spreads the bits of a number (the finalizer of SplitMix64).
const fn mixed(number: u64) -> u64 {
    let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number ^ (number >> 27)
}

fn try_one(site: &Site, number: usize, change: Change) {
    let garbled = Garbled::new(&site.url, Some(change));
    let file = format!("garbled-{number}");
    let [run, list] = calls(site, &garbled.url, &file);
    let end = |line: Line| {
        let ended = line.end();
        let told = format!("{change:?}: {ended:?}");
        let Some(code @ (0 | 64 | 69 | 71 | 74..=78)) = ended.code else {
            panic!("{told}");
        };
        assert!(code == 0 || !ended.stderr.is_empty(), "{told}");
        (code, told)
    };
    let (code, told) = end(run);
    let ran = site.file(&file).exists();
    assert!(
        ran == (code == 0) || ran && matches!(code, 74 | 76),
        "{told}"
    );
    end(list);
}
