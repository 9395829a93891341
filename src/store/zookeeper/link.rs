//! A connection to one server: looks and commits. A look writes a node, whose time is the store's and which makes the
//! reads behind it current; a commit is a look at everything that it touches, and one transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::channel::{Channel, Reply, failed};
use super::fault::{Fault, Said};
use super::settings::Settings;
use super::tree::{Tree, buckets, keys};
use super::wire::{In, Part as Answered, Request, Stat, code};
use crate::store::kv::flights::{Flights, Known, Read, TRIES, Turned};
use crate::store::kv::written::{Place, Written};
use crate::store::kv::{Ask, Commit, Committed, Delete, Entry, Found, Part, Server, flights};
use crate::store::net::deadline::{Activity, Deadline};
use crate::store::net::dial::{Target, connect};
use crate::store::net::host::{Host, Place as HostPlace};
use crate::store::net::session::{self, bound};
use crate::store::net::verified_tls::secure;
use crate::sys::random;
use crate::token::{ClockEpoch, Incarnation, Served, Stamp, StoreTime, WallTime};

/// How many old entries one transaction removes.
const MOST_REMOVED: usize = 100;

/// How many buckets of a list are read at first, and by how much more each time.
const BUCKETS: usize = 8;

/// A session is used for this part of the time that it lives without a word; then it ends by itself.
const PART_OF_SESSION: u32 = 2;

/// The right to change a node's data.
const WRITES: i32 = 2;

/// What a look has found.
type Seen = flights::Seen<Now>;

/// An open connection.
pub(in crate::store) struct Link {
    pub(super) channel: Channel,
    pub(super) tree: Tree,
    /// The socket, to be polled; closed with the link.
    pub(super) socket: Arc<OwnedFd>,
    pub(super) secured: bool,
    known: Known<Now>,
}

/// The time of a look, and the transaction that it was.
#[derive(Debug, Clone)]
pub(in crate::store) struct Now {
    time: StoreTime,
    transaction: i64,
    /// The store's id, which its first client has drawn.
    id: String,
    /// A test sets the clock.
    is_turned: bool,
}

impl Now {
    /// The time of a node's last change: its epoch is the leader's term, in the upper half of a transaction's number.
    fn new(stat: &Stat, id: &str, turned: Option<&Turned>) -> Self {
        let time = match turned {
            Some(turned) => turned(),
            None => time_of(stat, id),
        };
        Self {
            time,
            transaction: stat.changed,
            id: id.to_owned(),
            is_turned: turned.is_some(),
        }
    }

    /// An entry that was read behind this time. One that was written in between has this time.
    fn read(&self, data: &[u8], stat: &Stat) -> Read {
        let mut written = Written::read(data);
        let stamp = match stat.changed > self.transaction {
            true => self.time.clone(),
            false => time_of(stat, &self.id),
        };
        written.stamp.get_or_insert((&stamp).into());
        Read {
            written,
            number: stat.created,
            revision: stat.version.into(),
        }
    }
}

fn time_of(stat: &Stat, id: &str) -> StoreTime {
    StoreTime {
        epoch: ClockEpoch(format!("{id}/{:x}", stat.changed >> 32)),
        stamp: Stamp {
            tick_ms: stat.at_ms,
            wall: WallTime(stat.at_ms),
        },
    }
}

fn nonsense(what: &'static str) -> Fault {
    Fault::Said(Said::Nonsense(what))
}

fn get(path: String) -> Request {
    Request::Get { path }
}

/// A node's data and its times.
fn node<'a>(reply: &'a Reply, request: &Request) -> Result<Option<(&'a [u8], Stat)>, Fault> {
    reply.found(request, |it| Some((it.buffer()?, it.stat()?)))
}

/// A request of a transaction, and what it is about.
struct Step {
    request: Request,
    /// The list and the rank, if it is a place in a list; else it is an entry.
    place: Option<(String, i64)>,
}

impl Link {
    /// `None`: the store was made, and the look starts over.
    async fn try_look(
        &mut self,
        asked: &[Ask],
        turned: Option<&Turned>,
    ) -> Result<Option<Seen>, Fault> {
        let asked_at = Instant::now();
        let mut requests = vec![self.write_now(), get(self.tree.root().to_owned())];
        requests.extend(self.reads(asked));
        let lists = asked.iter().any(|ask| matches!(ask, Ask::Part(_)));
        let guessed = if lists {
            self.known.listed.clone()
        } else {
            Vec::new()
        };
        requests.extend(guessed.iter().map(|key| get(self.tree.entry(key))));
        let replies = self.channel.flight(&requests).await?;
        let mut both = requests.iter().zip(&replies);
        let mut next = || both.next().ok_or_else(|| nonsense("a reply is missing"));
        let (request, reply) = next()?;
        let now = reply.found(request, In::stat)?;
        let (request, reply) = next()?;
        let root = node(reply, request)?;
        let id = root.map(|(data, _)| std::str::from_utf8(data).unwrap_or_default());
        let (Some(now), Some(id)) = (now, id.filter(|id| !id.is_empty())) else {
            self.make(root.map(|(_, stat)| stat.version)).await?;
            return Ok(None);
        };
        let now = Now::new(&now, id, turned);
        let both: Vec<(&Request, &Reply)> = both.collect();
        let (first, rest) = both.split_at(asked.len());
        let mut known = BTreeMap::new();
        for (key, (request, reply)) in guessed.iter().zip(rest) {
            if let Some((data, stat)) = node(reply, request)? {
                known.insert(key.clone(), now.read(data, &stat));
            }
        }
        let entries = self.entries(asked, first, known, &now).await?;
        Ok(Some(Seen {
            asked_at,
            now: now.time.clone(),
            entries,
            more: now,
        }))
    }

    fn write_now(&self) -> Request {
        Request::Set {
            path: self.tree.now(),
            data: Vec::new(),
            version: None,
        }
    }

    /// The requests for what is asked for, one each.
    fn reads(&self, asked: &[Ask]) -> Vec<Request> {
        let read = |ask: &Ask| match ask {
            Ask::One(key) => get(self.tree.entry(key)),
            Ask::Part(part) => Request::Children {
                path: self.tree.list(&part.list),
            },
        };
        asked.iter().map(read).collect()
    }

    /// Makes the nodes of a store. `version`: that of its root, if there is one without an id.
    async fn make(&mut self, version: Option<i32>) -> Result<(), Fault> {
        let drawn = random::bits64().map_err(Fault::io(Activity::Asking))?;
        let id = format!("{drawn:016x}").into_bytes();
        let root = self.tree.root().to_owned();
        let empty = |path: &str| Request::Create {
            path: path.to_owned(),
            data: Vec::new(),
        };
        let mut requests: Vec<Request> = self.tree.above().map(empty).collect();
        requests.push(match version {
            Some(version) => Request::Set {
                path: root,
                data: id,
                version: Some(version),
            },
            None => Request::Create {
                path: root,
                data: id,
            },
        });
        requests.extend(self.tree.holders().iter().map(|path| empty(path)));
        requests.push(empty(&self.tree.now()));
        let replies = self.channel.flight(&requests).await?;
        // Another client may have made it, and a user may see no more than the part of the tree that is its own.
        let may = [0, code::NODE_EXISTS, code::BAD_VERSION];
        let mut own = requests.iter().zip(&replies).rev().take(5);
        match own.find(|(_, reply)| !may.contains(&reply.error)) {
            Some((request, reply)) => Err(failed(reply.error, request)),
            None => Ok(()),
        }
    }

    /// The entries that were asked for. `first`: the replies to [`Self::reads`]; `known`: entries that were read at once.
    async fn entries(
        &mut self,
        asked: &[Ask],
        first: &[(&Request, &Reply)],
        mut known: BTreeMap<String, Read>,
        now: &Now,
    ) -> Result<BTreeMap<String, Read>, Fault> {
        let mut entries = BTreeMap::new();
        let mut listed = BTreeSet::new();
        for (ask, (request, reply)) in asked.iter().zip(first) {
            match ask {
                Ask::One(key) => {
                    if let Some((data, stat)) = node(reply, request)? {
                        entries.insert(key.clone(), now.read(data, &stat));
                    }
                }
                Ask::Part(part) => {
                    let names = reply.found(request, In::names)?.unwrap_or_default();
                    listed.extend(self.part(part, &buckets(part, &names)).await?);
                }
            }
        }
        known.retain(|key, _| listed.contains(key));
        entries.append(&mut known);
        let unread = listed.iter().filter(|key| !entries.contains_key(*key));
        let unread: Vec<String> = unread.cloned().collect();
        let requests: Vec<Request> = unread.iter().map(|key| get(self.tree.entry(key))).collect();
        if !requests.is_empty() {
            let replies = self.channel.flight(&requests).await?;
            for ((key, request), reply) in unread.into_iter().zip(&requests).zip(&replies) {
                if let Some((data, stat)) = node(reply, request)? {
                    entries.insert(key, now.read(data, &stat));
                }
            }
        }
        self.known.list(listed);
        Ok(entries)
    }

    /// The keys in a part of a list, from as few of its buckets as have enough.
    async fn part(&mut self, part: &Part, all: &[&str]) -> Result<Vec<String>, Fault> {
        let list = self.tree.list(&part.list);
        let (mut names, mut rest, mut count) = (Vec::new(), all, BUCKETS);
        let enough = (part.skip as usize).saturating_add(part.limit as usize);
        loop {
            let found = keys(part, &names);
            if rest.is_empty() || found.len() + part.skip as usize >= enough {
                return Ok(found);
            }
            let (some, others) = rest.split_at(count.min(rest.len()));
            let read = |name: &&str| Request::Children {
                path: format!("{list}/{name}"),
            };
            let requests: Vec<Request> = some.iter().map(read).collect();
            let replies = self.channel.flight(&requests).await?;
            for (request, reply) in requests.iter().zip(&replies) {
                let found = reply.found(request, In::names)?.unwrap_or_default();
                names.extend(found.into_iter().map(str::to_owned));
            }
            (rest, count) = (others, count * BUCKETS);
        }
    }

    /// The requests of a commit, and the entries as they are then, without the server's stamps.
    fn steps(&self, commit: &Commit, seen: &Seen) -> (Vec<Step>, BTreeMap<String, Written>) {
        let (mut steps, mut after) = (Vec::new(), BTreeMap::new());
        let mut entry = |request| {
            steps.push(Step {
                request,
                place: None,
            });
        };
        for key in commit.touched() {
            let path = self.tree.entry(key);
            let version = seen
                .entries
                .get(key)
                .map(|read| i32::try_from(read.revision).unwrap_or(-1));
            let put = commit.puts.iter().find(|it| it.key == *key);
            let is_removed = commit.deletes.iter().any(|it| it.key == *key);
            let data = put.map(|put| {
                let before = seen.entries.get(key).map(|read| &read.written);
                let mut written = Written::over(before, put, &seen.now).0;
                // The server stamps it.
                if (put.stamps || before.is_none()) && !seen.more.is_turned {
                    written.stamp = None;
                }
                let data = written.json();
                after.insert(key.clone(), written);
                data
            });
            match (version, data, is_removed) {
                (Some(version), Some(data), _) => entry(Request::Set {
                    path,
                    data,
                    version: Some(version),
                }),
                (None, Some(data), _) => entry(Request::Create { path, data }),
                (Some(version), None, true) => entry(Request::Delete {
                    path,
                    version: Some(version),
                }),
                (Some(version), None, false) => entry(Request::Check { path, version }),
                (None, None, false) => {
                    // What must be absent can be made, and removed.
                    let data = Vec::new();
                    entry(Request::Create {
                        path: path.clone(),
                        data,
                    });
                    let version = None;
                    entry(Request::Delete { path, version });
                }
                (None, None, true) => {}
            }
        }
        let mut place = |is_new, list: &str, rank, key: &str| {
            let path = self.tree.place(list, rank, key);
            let request = match is_new {
                true => Request::Create {
                    path,
                    data: Vec::new(),
                },
                false => Request::Delete {
                    path,
                    version: None,
                },
            };
            let place = Some((list.to_owned(), rank));
            steps.push(Step { request, place });
        };
        for put in &commit.puts {
            let before = seen.entries.get(&put.key).map(|read| &read.written);
            for Place { list, rank, before } in Written::over(before, put, &seen.now).1 {
                if before != Some(rank) {
                    place(true, &list, rank, &put.key);
                    if let Some(old) = before {
                        place(false, &list, old, &put.key);
                    }
                }
            }
        }
        for delete in &commit.deletes {
            let read = seen.entries.get(&delete.key);
            for (list, rank) in read.into_iter().flat_map(|read| &read.written.lists) {
                place(false, list, *rank, &delete.key);
            }
        }
        (steps, after)
    }

    /// One transaction, with the store's time at its end, and more requests behind it. Returns the answers to the steps and
    /// to the other requests. `None`: an entry has changed since the look.
    async fn transact(
        &mut self,
        steps: &mut Vec<Step>,
        more: &[Request],
    ) -> Result<Option<(Vec<Answered>, Vec<Reply>)>, Fault> {
        // Each try mends one step.
        for _ in 0..=3 * MOST_REMOVED {
            let all = steps.iter().map(|step| step.request.clone());
            let mut requests = vec![Request::Multi(all.chain([self.write_now()]).collect())];
            requests.extend(more.iter().cloned());
            let mut replies = self.channel.flight(&requests).await?.into_iter();
            let (Some(request), Some(reply)) = (requests.first(), replies.next()) else {
                return Err(nonsense("a reply is missing"));
            };
            let parts = reply.found(request, In::parts)?;
            let parts = parts.ok_or_else(|| nonsense("a transaction without a node"))?;
            let is_cause = |part: &Answered| matches!(part, Answered::Failed(code) if *code != 0);
            match parts.iter().position(is_cause) {
                None => return Ok(Some((parts, replies.collect()))),
                Some(at) if self.mend(steps, at, &parts).await? => {}
                Some(_) => return Ok(None),
            }
        }
        Err(nonsense("its nodes come and go"))
    }

    /// Notes what a transaction has made of the entries.
    fn learn(
        &self,
        commit: &Commit,
        seen: &mut Seen,
        after: BTreeMap<String, Written>,
        steps: &[Step],
        parts: &[Answered],
    ) {
        for it in &commit.deletes {
            seen.entries.remove(&it.key);
        }
        for (key, mut written) in after {
            written.stamp.get_or_insert((&seen.now).into());
            let path = self.tree.entry(&key);
            let mut both = steps.iter().zip(parts);
            let set = both.find_map(|(step, part)| match part {
                Answered::Set(stat) if step.request.path() == path => Some(*stat),
                _ => None,
            });
            // A new node begins with version 0; its number is not told.
            let number = seen.entries.get(&key).map_or(0, |read| read.number);
            let read = Read {
                written,
                number,
                revision: set.map_or(0, |stat| stat.version.into()),
            };
            seen.entries.insert(key, read);
        }
    }

    /// Mends the requests for a transaction that failed at this one. `false`: an entry has changed.
    async fn mend(
        &mut self,
        steps: &mut Vec<Step>,
        at: usize,
        parts: &[Answered],
    ) -> Result<bool, Fault> {
        let (Some(step), Some(Answered::Failed(why))) = (steps.get(at), parts.get(at)) else {
            return Err(nonsense("a transaction failed by itself"));
        };
        match (&step.request, &step.place, *why) {
            (_, None, code::BAD_VERSION | code::NODE_EXISTS | code::NO_NODE) => Ok(false),
            // An entry that was removed by hand has left its place; one that is there has lost it.
            (Request::Create { .. }, Some(_), code::NODE_EXISTS)
            | (Request::Delete { .. }, Some(_), code::NO_NODE) => {
                steps.remove(at);
                Ok(true)
            }
            (Request::Create { .. }, Some((list, rank)), code::NO_NODE) => {
                let requests = [self.tree.list(list), self.tree.bucket(list, *rank)];
                let requests = requests.map(|path| Request::CreateContainer { path });
                for (request, reply) in requests.iter().zip(&self.channel.flight(&requests).await?)
                {
                    if ![0, code::NODE_EXISTS].contains(&reply.error) {
                        return Err(failed(reply.error, request));
                    }
                }
                Ok(true)
            }
            (request, _, code) => Err(failed(code, request)),
        }
    }

    /// The store's id and time.
    pub(super) async fn now(&mut self) -> Result<(String, i64), Fault> {
        let seen = self.look(&[], None).await?;
        Ok((seen.more.id, seen.now.stamp.tick_ms))
    }

    /// The number of servers; 0: it is not told.
    pub(super) async fn members(&mut self) -> Result<usize, Fault> {
        let requests = [get("/zookeeper/config".to_owned())];
        let replies = self.channel.flight(&requests).await?;
        let data = replies.first().filter(|reply| reply.error == 0);
        let data = data.and_then(|reply| In(&reply.body).buffer());
        let text = String::from_utf8_lossy(data.unwrap_or_default());
        Ok(text
            .lines()
            .filter(|line| line.starts_with("server."))
            .count())
    }

    /// True if any client may change the store's nodes.
    pub(super) async fn is_open_to_all(&mut self) -> Result<bool, Fault> {
        let path = self.tree.now();
        let requests = [Request::Rights { path }];
        let replies = self.channel.flight(&requests).await?;
        let Some((request, reply)) = requests.first().zip(replies.first()) else {
            return Ok(false);
        };
        let rights = reply.found(request, In::rights)?.unwrap_or_default();
        Ok(rights
            .iter()
            .any(|(rights, scheme, _)| *scheme == "world" && rights & WRITES != 0))
    }

    /// True while the session is used so often that it lives.
    fn lives(&self) -> bool {
        let lives_ms = self.channel.lives_ms.unwrap_or_default();
        let lives = Duration::from_millis(u64::try_from(lives_ms).unwrap_or_default());
        self.channel.heard_at.elapsed() < lives / PART_OF_SESSION
    }
}

impl session::Link for Link {
    type Settings = Settings;
    type Said = Said;
    type Answer = Committed;

    async fn open(
        settings: &Settings,
        host: &Host,
        target: &Target,
        deadline: Deadline,
        may_defer: bool,
    ) -> Result<Self, Fault> {
        let dialled = connect(&settings.servers, target, deadline).await?;
        let wire = match (&settings.tls, &host.place) {
            (Some(files), HostPlace::Tcp { to, .. }) => {
                let secured = secure(files, to, None, dialled.stream);
                bound(deadline, Activity::Securing, secured).await?
            }
            _ => dialled.stream,
        };
        let password = host.password.as_ref().map_or("", |it| it.0.as_str());
        let user = settings.user.as_ref();
        let secret = user.map(|user| format!("{user}:{password}"));
        let mut link = Self {
            channel: Channel::new(wire, settings.session_ms, secret),
            tree: Tree::new(&settings.path),
            socket: dialled.socket,
            secured: settings.tls.is_some(),
            known: Known::default(),
        };
        if !may_defer {
            bound(deadline, Activity::LoggingIn, link.channel.greet()).await?;
        }
        Ok(link)
    }

    async fn is_alive(&mut self) -> bool {
        self.lives() && self.channel.is_silent().await
    }

    async fn quit(&mut self) {
        self.channel.close().await;
    }
}

impl Flights for Link {
    type More = Now;

    const HAS_TICKS: bool = false;

    /// Its session would end before the next heartbeat, and by default a server allows a host 60 connections.
    const RESTS: bool = true;

    const STEP: Duration = Duration::ZERO;

    fn known(&mut self) -> &mut Known<Now> {
        &mut self.known
    }

    fn socket(&self) -> &Arc<OwnedFd> {
        &self.socket
    }

    fn unread(fault: Fault) -> Fault {
        Fault::Said(Said::Unread(Box::new(fault)))
    }

    fn found(seen: Seen) -> Found {
        let entry = |(key, read): (String, Read)| -> Option<(String, Entry)> {
            let entry = Entry {
                version: read.written.version,
                stamp: read.written.stamp?.into(),
                number: read.number,
                fields: read.written.fields,
            };
            Some((key, entry))
        };
        Found {
            entries: seen.entries.into_iter().filter_map(entry).collect(),
            now: seen.now,
            server: Server {
                incarnation: Some(Incarnation(seen.more.id)),
                durable: true,
                unnoted: Served::NOTHING,
                lag: Duration::ZERO,
            },
            refuses: None,
        }
    }

    async fn look(&mut self, asked: &[Ask], turned: Option<&Turned>) -> Result<Seen, Fault> {
        for _ in 0..TRIES {
            if let Some(seen) = self.try_look(asked, turned).await? {
                return Ok(seen);
            }
        }
        Err(nonsense("its nodes come and go"))
    }

    fn refresh(now: &mut StoreTime, passed: Duration) {
        *now = now.plus(passed);
    }

    async fn write(
        &mut self,
        commit: &Commit,
        mut seen: Seen,
        turned: Option<&Turned>,
    ) -> Result<Option<Found>, Fault> {
        // Old records go ahead: they are of no use to each other.
        let (last, ahead) = commit
            .deletes
            .split_at(commit.deletes.len().min(MOST_REMOVED));
        let part = |deletes: &[Delete], of: &Commit| Commit {
            deletes: deletes.to_vec(),
            ..of.clone()
        };
        for some in ahead.chunks(MOST_REMOVED) {
            let (mut steps, _) = self.steps(&part(some, &Commit::default()), &seen);
            if self.transact(&mut steps, &[]).await?.is_none() {
                return Ok(None);
            }
        }
        let commit = &part(last, commit);
        let (mut steps, after) = self.steps(commit, &seen);
        // Without a waiter there is no such node, and no harm.
        let announced = commit.announces.iter().map(|it| Request::Set {
            path: self.tree.channel(&it.channel),
            data: Vec::new(),
            version: None,
        });
        let mut more: Vec<Request> = announced.collect();
        let before = more.len();
        more.extend(self.reads(&commit.then));
        let Some((parts, replies)) = self.transact(&mut steps, &more).await? else {
            return Ok(None);
        };
        let Some(Answered::Set(stat)) = parts.last() else {
            return Err(nonsense("a transaction without its time"));
        };
        let now = Now::new(stat, &seen.more.id, turned);
        let both: Vec<_> = more.iter().zip(&replies).skip(before).collect();
        let known = BTreeMap::new();
        let entries = self.entries(&commit.then, &both, known, &now).await?;
        seen.now = now.time.clone();
        seen.more = now;
        self.learn(commit, &mut seen, after, &steps, &parts);
        seen.entries.extend(entries.clone());
        self.known.keep(&seen);
        Ok(Some(Self::found(Seen { entries, ..seen })))
    }

    async fn watch(&mut self, channel: &str) -> Result<(), Fault> {
        let path = self.tree.channel(channel);
        let requests = [
            Request::Create {
                path: path.clone(),
                data: Vec::new(),
            },
            Request::Watch { path },
        ];
        let replies = self.channel.flight(&requests).await?;
        match (replies.last(), requests.last()) {
            (Some(reply), Some(request)) if reply.error != 0 => Err(failed(reply.error, request)),
            _ => Ok(()),
        }
    }

    async fn drain(&mut self) -> bool {
        self.channel.drain().await
    }

    async fn stay(&mut self) -> Result<(), Fault> {
        if !self.lives() {
            self.channel.flight(&[Request::Ping]).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod link_tests;

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn stat(changed: i64, at_ms: i64) -> Stat {
        Stat {
            created: 1,
            changed,
            at_ms,
            version: 0,
        }
    }

    /// The clock epoch and the tick of an entry with this text, which was changed then.
    fn stamp(text: &str, entry: Stat) -> (String, i64) {
        let now = Now::new(&stat((7 << 32) + 5, 9_000), "id", None);
        let read = now.read(text.as_bytes(), &entry);
        let time: StoreTime = read.written.stamp.unwrap().into();
        (time.epoch.0, time.stamp.tick_ms)
    }

    #[test]
    fn an_entry_has_the_stamp_that_it_was_given() {
        let plain = r#"{"version":"1","fields":{}}"#;
        let own = r#"{"version":"1","fields":{},"stamp":{"tick_ms":3,"wall_ms":3,"epoch":"id/6"}}"#;
        assert_eq!(
            stamp(plain, stat((7 << 32) + 4, 8_000)),
            ("id/7".into(), 8_000)
        );
        // Under another leader, whose clock may be another.
        assert_eq!(
            stamp(plain, stat((6 << 32) + 9, 9_500)),
            ("id/6".into(), 9_500)
        );
        // It was written between the look's time and its read.
        assert_eq!(
            stamp(plain, stat((7 << 32) + 6, 9_900)),
            ("id/7".into(), 9_000)
        );
        // An operator's act has kept the stamp of the heartbeat before it.
        assert_eq!(stamp(own, stat((7 << 32) + 4, 8_000)), ("id/6".into(), 3));
    }
}
