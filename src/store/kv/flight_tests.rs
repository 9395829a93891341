//! Commits in two flights, with a server in this process.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::*;
use crate::store::Trouble;
use crate::store::kv::Server;
use crate::store::kv::keys::whole;
use crate::store::kv::test_entries::{self, delete, put, read};
use crate::store::kv::tokens::tests::time;
use crate::store::net::dial::Target;
use crate::store::net::fault::Said;
use crate::store::net::host::{self, Host, Servers};
use crate::store::net::tls::Remedies;
use crate::token::Served;

const TIMEOUT: Duration = Duration::from_secs(10);

/// What the servers keep, how they behave, and what they were asked.
#[derive(Default)]
struct Inner {
    tick_ms: i64,
    versions: BTreeMap<String, String>,
    /// How long ago a look was asked for when its answer comes.
    slow_by: Duration,
    /// So many transactions find that something has changed.
    busy: usize,
    /// So many looks find that the time is not certain.
    uncertain: usize,
    /// How long connecting may take.
    connects_within: Duration,
    clock_stands_still: bool,
    /// The server whose answers are lost.
    silent: Option<&'static str>,
    loses_answers_to_writes: bool,
    connections_are_over: bool,
    refuses_watches: bool,
    asked: Vec<String>,
}

/// Two servers with the same contents.
#[derive(Clone)]
struct Peers(Servers, Arc<Mutex<Inner>>);

impl Peers {
    fn new() -> Self {
        let hosts = vec![Host::unix("one"), Host::unix("two")];
        let peers = Self(Servers::new(hosts), Arc::default());
        peers.inner().versions.insert("a".into(), "1".into());
        peers
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.1.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kv(&self) -> FlightKv<Fake> {
        FlightKv::over(self.clone(), TIMEOUT)
    }

    /// What was asked since the last call of this function.
    fn asked(&self) -> String {
        std::mem::take(&mut self.inner().asked).join(" ")
    }
}

impl host::Settings for Peers {
    fn servers(&self) -> &Servers {
        &self.0
    }

    fn servers_mut(&mut self) -> &mut Servers {
        &mut self.0
    }

    fn name(&self) -> String {
        "fake".into()
    }
}

/// A fault before a write was sent.
#[derive(Debug)]
struct Unread(String);

impl Said for Unread {
    const TLS: Remedies = Remedies {
        not_offered: "",
        untrusted: "",
        other: "",
    };

    fn trouble(&self) -> Trouble {
        Trouble::Refused
    }

    fn words(&self) -> String {
        self.0.clone()
    }

    fn remedy(&self) -> Option<&'static str> {
        None
    }

    fn is_elsewhere(&self) -> bool {
        false
    }

    fn is_refusal(&self) -> bool {
        true
    }
}

/// A connection to one of the servers.
struct Fake {
    peers: Peers,
    host: String,
    known: Known<()>,
    socket: Arc<OwnedFd>,
}

impl Fake {
    /// Notes what is asked; the answer may be lost.
    fn note(&self, what: &str) -> Result<(), Fault<Unread>> {
        let mut inner = self.peers.inner();
        inner.asked.push(what.to_owned());
        match inner.silent {
            Some(host) if host == self.host => Err(Fault::nonsense("silence")),
            _ => Ok(()),
        }
    }
}

impl Link for Fake {
    type Settings = Peers;
    type Said = Unread;
    type Answer = Committed;

    async fn open(
        settings: &Peers,
        host: &Host,
        _: &Target,
        deadline: Deadline,
        _: bool,
    ) -> Result<Self, Fault<Unread>> {
        settings.inner().connects_within = deadline.whole;
        settings.inner().asked.push(format!("open-{host}"));
        Ok(Self {
            peers: settings.clone(),
            host: host.to_string(),
            known: Known::default(),
            socket: Arc::new(UnixStream::pair().unwrap().0.into()),
        })
    }

    async fn is_alive(&mut self) -> bool {
        !self.peers.inner().connections_are_over
    }

    async fn quit(&mut self) {
        self.peers.inner().asked.push("quit".into());
    }
}

impl Flights for Fake {
    type More = ();

    const HAS_TICKS: bool = true;

    const STEP: Duration = Duration::from_secs(7);

    const RESTS: bool = true;

    fn known(&mut self) -> &mut Known<()> {
        &mut self.known
    }

    fn socket(&self) -> &Arc<OwnedFd> {
        &self.socket
    }

    fn unread(fault: Fault<Unread>) -> Fault<Unread> {
        Fault::Said(Unread(fault.words()))
    }

    fn found(seen: Seen<()>) -> Found {
        Found {
            entries: BTreeMap::new(),
            now: seen.now,
            server: Server {
                incarnation: None,
                durable: true,
                unnoted: Served::NOTHING,
                lag: Duration::ZERO,
            },
            refuses: None,
        }
    }

    async fn try_look(
        &mut self,
        asked: &[Ask],
        turned: Option<&Turned>,
    ) -> Result<Option<Seen<()>>, Fault<Unread>> {
        self.note("look")?;
        let mut inner = self.peers.inner();
        if inner.uncertain > 0 {
            inner.uncertain -= 1;
            return Ok(None);
        }
        let read = |ask: &Ask| {
            let Ask::One(key) = ask else {
                return None;
            };
            Some((key.clone(), test_entries::read(inner.versions.get(key)?, 0)))
        };
        Ok(Some(Seen {
            asked_at: Instant::now().checked_sub(inner.slow_by).unwrap(),
            now: turned.map_or_else(|| time(inner.tick_ms), |turned| turned()),
            entries: asked.iter().filter_map(read).collect(),
            more: (),
        }))
    }

    fn unsteady() -> Fault<Unread> {
        Fault::Said(Unread("it is unsteady".into()))
    }

    fn goes_on(&mut self, _: &Seen<()>) -> bool {
        let mut inner = self.peers.inner();
        inner.asked.push("clock".into());
        !inner.clock_stands_still
    }

    fn refresh(now: &mut StoreTime, passed: Duration) {
        *now = now.plus(passed);
    }

    async fn write(
        &mut self,
        commit: &Commit,
        seen: Seen<()>,
        _: Option<&Turned>,
    ) -> Result<Option<Found>, Fault<Unread>> {
        self.note("write")?;
        let mut inner = self.peers.inner();
        if inner.loses_answers_to_writes {
            return Err(Fault::nonsense("silence"));
        }
        let is_as_read = |key: &String| {
            let version = seen.entries.get(key).map(|read| &read.written.version);
            version == inner.versions.get(key)
        };
        if inner.busy > 0 || !commit.touched().into_iter().all(is_as_read) {
            inner.busy = inner.busy.saturating_sub(1);
            return Ok(None);
        }
        let puts = commit.puts.iter();
        let puts = puts.map(|put| (put.key.clone(), put.version.clone()));
        inner.versions.extend(puts);
        Ok(Some(Self::found(seen)))
    }

    async fn watch(&mut self, channel: &str) -> Result<(), Fault<Unread>> {
        self.note(&format!("watch-{channel}"))?;
        match self.peers.inner().refuses_watches {
            true => Err(Fault::nonsense("no watches")),
            false => Ok(()),
        }
    }

    async fn drain(&mut self) -> bool {
        let mut inner = self.peers.inner();
        inner.asked.push("drain".into());
        !inner.connections_are_over
    }

    async fn stay(&mut self) -> Result<(), Fault<Unread>> {
        self.note("stay")
    }
}

/// Raises the version of `a` from this one.
fn raise(from: &str) -> Commit {
    Commit {
        compare: vec![("a".into(), Some(from.to_owned()))],
        puts: vec![put("a", &format!("{from}1"))],
        ..Commit::default()
    }
}

fn look(kv: &mut FlightKv<Fake>) {
    kv.get(&[Ask::One("a".into())]).unwrap();
}

#[test]
fn a_commit_after_a_look_is_one_transaction() {
    let peers = Peers::new();
    let mut kv = peers.kv();
    look(&mut kv);
    assert_eq!(peers.asked(), "open-one look clock");
    assert_eq!(kv.commit(&raise("1")).unwrap().outcome, Outcome::Done);
    assert_eq!(peers.asked(), "write");
    // What is known serves one commit.
    assert_eq!(kv.commit(&raise("11")).unwrap().outcome, Outcome::Done);
    assert_eq!(peers.asked(), "look clock write");
    // Another client has written: the server compares.
    look(&mut kv);
    peers.inner().versions.insert("a".into(), "2".into());
    peers.asked();
    let late = kv.commit(&raise("111")).unwrap();
    assert_eq!(late.outcome, Outcome::Conflict);
    assert_eq!(peers.asked(), "write look clock look");
}

/// A look is no reason to refuse what a new look may allow.
#[test]
fn a_commit_that_what_is_known_does_not_allow_looks_again() {
    let peers = Peers::new();
    let mut kv = peers.kv();
    let commits_after = |kv: &mut FlightKv<Fake>, commit: &Commit, change: fn(&mut Inner)| {
        look(kv);
        change(&mut peers.inner());
        peers.asked();
        assert_eq!(kv.commit(commit).unwrap().outcome, Outcome::Done);
        peers.asked()
    };
    let other_version = |inner: &mut Inner| {
        inner.versions.insert("a".into(), "2".into());
    };
    let asked = commits_after(&mut kv, &raise("2"), other_version);
    assert_eq!(asked, "look clock write", "another version");
    // What was asked for that long ago counts for nothing.
    peers.inner().slow_by = FRESH;
    let asked = commits_after(&mut kv, &raise("21"), |_| {});
    assert_eq!(asked, "look clock write", "an old look");
    // By the time that has passed since the look it has expired.
    peers.inner().slow_by = FRESH / 2;
    let mut brief = raise("211");
    brief.until = Some(time(0).until(FRESH / 4));
    let asked = commits_after(&mut kv, &brief, |inner| inner.slow_by = Duration::ZERO);
    assert_eq!(asked, "look clock write", "an expiry");
    let until = time(0).until(FRESH * 8);
    let long = Commit {
        until: Some(until),
        ..raise("2111")
    };
    assert_eq!(commits_after(&mut kv, &long, |_| {}), "write");
    let mut removal = raise("21111");
    removal.deletes.push(delete("b"));
    let asked = commits_after(&mut kv, &removal, |_| {});
    assert_eq!(asked, "look clock write", "what was not read");
}

#[test]
fn a_look_starts_over_until_the_time_is_certain() {
    let peers = Peers::new();
    let mut kv = peers.kv();
    peers.inner().uncertain = TRIES - 1;
    look(&mut kv);
    assert_eq!(peers.asked().matches("look").count(), TRIES);
    peers.inner().uncertain = TRIES;
    let error = kv.get(&[]).unwrap_err();
    assert!(error.what.contains("unsteady"), "{error}");
}

#[test]
fn a_commit_starts_over_while_others_write_and_gives_up_without_effect() {
    let peers = Peers::new();
    let mut kv = peers.kv();
    peers.inner().busy = TRIES - 1;
    assert_eq!(kv.commit(&raise("1")).unwrap().outcome, Outcome::Done);
    assert_eq!(peers.asked().matches("write").count(), TRIES);
    peers.inner().busy = TRIES;
    let error = kv.commit(&raise("11")).unwrap_err();
    assert_eq!(error.trouble, Trouble::Refused, "{error}");
    assert!(error.what.contains("kept changing"), "{error}");
    assert_eq!(peers.inner().versions["a"], "11");
}

/// Then it can't be known how much time is left.
#[test]
fn a_commit_by_a_clock_that_stands_still_has_expired() {
    let peers = Peers::new();
    let mut kv = peers.kv();
    peers.inner().clock_stands_still = true;
    assert_eq!(kv.commit(&raise("1")).unwrap().outcome, Outcome::Expired);
    assert_eq!(kv.commit(&raise("9")).unwrap().outcome, Outcome::Conflict);
    assert_eq!(peers.inner().versions["a"], "1");
}

#[test]
fn a_clock_that_is_set_is_the_time_of_looks_and_of_what_is_known() {
    let peers = Peers::new();
    let now = Arc::new(Mutex::new(time(5)));
    let shared = Arc::clone(&now);
    let mut kv = peers
        .kv()
        .with_clock(Arc::new(move || shared.lock().unwrap().clone()));
    assert_eq!(kv.step(), Duration::ZERO);
    assert_eq!(peers.kv().step(), Fake::STEP);
    assert!(kv.has_ticks());
    look(&mut kv);
    *now.lock().unwrap() = time(9);
    assert_eq!(kv.commit(&raise("1")).unwrap().found.now, time(9));
}

#[test]
fn what_is_known_is_few_entries_and_the_last_names_of_a_list() {
    let peers = Peers::new();
    let names = |count| (0..count).map(|n| format!("k{n}"));
    let all = names(FEW + 1).map(|key| (key, "1".to_owned()));
    peers.inner().versions.extend(all);
    let mut kv = peers.kv();
    for (count, asked) in [(FEW - 1, "write"), (FEW, "look clock write")] {
        let keys = names(count).chain(["a".into()]).map(Ask::One);
        kv.get(&keys.collect::<Vec<_>>()).unwrap();
        peers.asked();
        let version = peers.inner().versions["a"].clone();
        kv.commit(&raise(&version)).unwrap();
        assert_eq!(peers.asked(), asked, "{count}");
    }
    let mut known = Known::<()>::default();
    known.list(names(FEW + 5));
    assert_eq!(known.listed, names(FEW).collect::<Vec<_>>());
    known.list([]);
    assert_eq!(known.listed.len(), FEW);
}

#[test]
fn what_a_commit_has_made_of_the_entries_is_known() {
    let entries = ["changed", "removed", "other"].map(|key| (key.to_owned(), read("1", 5)));
    let mut seen = Seen {
        asked_at: Instant::now(),
        now: time(9),
        entries: BTreeMap::from(entries),
        more: (),
    };
    let commit = Commit {
        deletes: vec![delete("removed")],
        ..Commit::default()
    };
    let stamped = Written {
        stamp: Some((&time(4)).into()),
        ..read("2", 0).written
    };
    let after = [("changed", stamped), ("new", read("2", 0).written)];
    let after = after.map(|(key, written)| (key.to_owned(), written)).into();
    let then = BTreeMap::from([("behind".to_owned(), read("7", 2))]);
    seen.wrote(
        &commit,
        after,
        &then,
        8,
        |key| if key == "new" { 0 } else { 6 },
    );
    let shown = |(key, read): (&String, &Read)| {
        let stamp = read.written.stamp.clone().map(StoreTime::from);
        let version = read.written.version.clone();
        let tick_ms = stamp.map(|it| it.stamp.tick_ms);
        format!(
            "{key} {version} {tick_ms:?} {} {}",
            read.number, read.revision
        )
    };
    let known: Vec<String> = seen.entries.iter().map(shown).collect();
    assert_eq!(
        known,
        [
            "behind 7 None 1 2",
            "changed 2 Some(4) 1 6",
            // The server has stamped it, at the time of the commit.
            "new 2 Some(9) 8 0",
            "other 1 None 1 5",
        ]
    );
}

/// The entries of a list are asked for before their names are read. Some are in the list no more, others are new.
#[test]
fn an_entry_that_was_guessed_counts_if_it_is_listed() {
    let mut known = Known::<()>::default();
    known.list(["a", "b"].map(str::to_owned));
    let list = whole("l".into());
    assert_eq!(known.guess(&[Ask::One("x".into()), list]), ["a", "b"]);
    assert_eq!(known.guess(&[Ask::One("x".into())]), [""; 0]);
    let mut gathered = Gathered::default();
    gathered.entries.insert("one".into(), read("1", 0));
    gathered.listed.extend(["b", "c"].map(str::to_owned));
    let guessed = ["a", "b"].map(|key| (key.to_owned(), read("1", 0)));
    assert_eq!(gathered.add_guessed(guessed.into()), ["c"]);
    assert_eq!(gathered.entries.keys().collect::<Vec<_>>(), ["b", "one"]);
}

/// A commit whose answer is lost may have happened.
#[test]
fn a_read_without_an_answer_is_asked_of_another_server_and_a_commit_is_not() {
    let peers = Peers::new();
    let mut kv = peers.kv();
    peers.inner().silent = Some("one");
    look(&mut kv);
    assert_eq!(peers.asked(), "open-one look open-two look clock");
    peers.inner().silent = Some("two");
    let unclear = kv.commit(&raise("1")).unwrap_err();
    assert_eq!(unclear.trouble, Trouble::Unavailable, "{unclear}");
    assert_eq!(peers.asked(), "write");
    // Over a new connection too.
    peers.inner().silent = None;
    peers.inner().loses_answers_to_writes = true;
    let mut other = peers.kv();
    let unclear = other.commit(&raise("1")).unwrap_err();
    assert_eq!(unclear.trouble, Trouble::Unavailable, "{unclear}");
    assert_eq!(peers.asked(), "open-one look clock write");
    // One that nothing was written for has not.
    peers.inner().silent = Some("one");
    let unread = kv.commit(&raise("1")).unwrap_err();
    assert_eq!(unread.trouble, Trouble::Refused, "{unread}");
}

#[test]
fn a_subscription_is_a_connection_of_its_own_until_that_is_over() {
    let peers = Peers::new();
    let mut kv = peers.kv();
    assert!(kv.notifier().is_none());
    kv.subscribe("x");
    assert_eq!(peers.asked(), "open-one watch-x");
    // A look must fit into what is left of the call's time.
    let within = peers.inner().connects_within;
    assert_eq!(within, TIMEOUT / SUBSCRIBING);
    let first = kv.notifier().unwrap();
    kv.subscribe("x");
    assert_eq!(peers.asked(), "drain stay");
    assert!(Arc::ptr_eq(&kv.notifier().unwrap().0, &first.0));
    // A read drops what has come.
    look(&mut kv);
    assert_eq!(peers.asked(), "drain open-one look clock");
    kv.subscribe("y");
    assert_eq!(peers.asked(), "drain stay open-one watch-y");
    assert!(!Arc::ptr_eq(&kv.notifier().unwrap().0, &first.0));
    // A connection that is over would notify for ever.
    peers.inner().connections_are_over = true;
    look(&mut kv);
    assert!(kv.notifier().is_none());
    peers.inner().refuses_watches = true;
    kv.subscribe("y");
    assert!(kv.notifier().is_none());
}

#[test]
fn a_connection_that_rests_is_closed() {
    let peers = Peers::new();
    let mut kv = peers.kv();
    look(&mut kv);
    peers.asked();
    kv.rest();
    assert_eq!(peers.asked(), "quit");
    look(&mut kv);
    assert_eq!(peers.asked(), "open-one look clock");
}
