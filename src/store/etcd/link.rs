//! A connection to one server: log-in, looks and commits. A look is one flight of questions, judged by the rules of
//! the clock; a commit is a look at everything that it touches, and one transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::clock::{Epoch, Judged, Kept, Mark, Rules, Sight};
use super::entry::{Keys, Now, STEP_MS, Writes, entry};
use super::fault::{Fault, Said};
use super::grpc::{Channel, Incoming};
use super::messages::{
    Alarm, AlarmMember, AlarmRequest, AlarmResponse, AuthenticateRequest, AuthenticateResponse,
    Compare, Compared, Comparison, DeleteRangeRequest, Empty, LeaseGrantRequest, LeaseRequest,
    LeaseResponse, MemberListRequest, MemberListResponse, PutRequest, RangeRequest, RangeResponse,
    Request, RequestOp, Response, ResponseOp, StatusResponse, TimeToLiveResponse, TxnRequest,
    TxnResponse, Watch, WatchCreateRequest, WatchRequest, With,
};
use super::settings::Settings;
use crate::store::kv::flights::{Flights, Known, Read, TRIES, Turned};
use crate::store::kv::written::Written;
use crate::store::kv::{Ask, Commit, Committed, Entry, Found, Part, Server, flights};
use crate::store::net::deadline::{Activity, Deadline};
use crate::store::net::dial::{Target, connect};
use crate::store::net::host::{Host, Place};
use crate::store::net::limit::LONGEST_ANSWER;
use crate::store::net::session::{self, bound};
use crate::store::net::verified_tls::secure;
use crate::sys::random;
use crate::token::{
    ClockEpoch, Fence, GroupName, Incarnation, Served, Stamp, StoreTime, Until, WallTime,
};

/// The longest answer without entries, in bytes.
const SHORT: usize = 64 * 1024;

/// How many operations a transaction may have: etcd takes 128 comparisons, and as many operations.
const OPERATIONS: usize = 100;

/// How many entries the first flight of a look reads. Others follow at its revision.
const AT_ONCE: usize = 60;

/// The length of the lease that is the clock, in seconds: it never ends.
const EVER: i64 = 8_000_000_000;

/// A server that does not lead counts up to so much more than was granted.
const NOT_LED: i64 = 60;

/// A store with fewer revisions may be new.
const MANY: i64 = 10_000;

/// How far two readings may differ besides the time between them.
const SLACK: i64 = 2;

/// What a look has found.
type Seen = flights::Seen<Clocked>;

/// An open connection.
pub(in crate::store) struct Link {
    channel: Channel,
    keys: Keys,
    /// The socket, to be polled; closed with the link.
    pub(super) socket: Arc<OwnedFd>,
    pub(super) secured: bool,
    /// The last reading of the clock, and when it came.
    last: Option<(Epoch, i64, Instant)>,
    known: Known<Clocked>,
    /// The announcements of a watch.
    incoming: Option<Incoming>,
}

/// The clock of a look.
#[derive(Clone)]
pub(in crate::store) struct Clocked {
    epoch: Epoch,
    kept: Kept,
    /// The revision of the kept epoch, which a commit compares.
    revision: i64,
    mark: Mark,
    step_ms: i64,
    incarnation: Incarnation,
}

fn nonsense(what: &str) -> Fault {
    Fault::Said(Said::Nonsense(what.to_owned()))
}

fn range(key: Vec<u8>) -> RangeRequest {
    RangeRequest {
        key,
        ..RangeRequest::default()
    }
}

fn operation(request: Request) -> RequestOp {
    RequestOp {
        request: Some(request),
    }
}

fn put(key: Vec<u8>, value: Vec<u8>) -> RequestOp {
    operation(Request::Put(PutRequest { key, value }))
}

fn is_at(key: Vec<u8>, revision: i64) -> Compare {
    Compare {
        result: Comparison::Equal.into(),
        target: Compared::Mod.into(),
        key,
        with: Some(With::ModRevision(revision)),
    }
}

fn ranges(answer: TxnResponse) -> impl Iterator<Item = RangeResponse> {
    answer.responses.into_iter().map(|it| match it.response {
        Some(Response::Range(range)) => range,
        _ => RangeResponse::default(),
    })
}

/// Two numbers of fixed width, so that they are compared as texts.
fn mark_text(mark: Mark) -> Vec<u8> {
    format!("{:020} {:020}", mark.seconds, mark.index).into_bytes()
}

fn mark_of(text: &[u8]) -> Option<Mark> {
    let (seconds, index) = std::str::from_utf8(text).ok()?.split_once(' ')?;
    Some(Mark {
        seconds: seconds.parse().ok()?,
        index: index.parse().ok()?,
    })
}

fn epoch_text(epoch: Epoch) -> String {
    format!("{:016x}/{}", epoch.generation, epoch.term)
}

fn epoch_of(text: &[u8]) -> Option<Epoch> {
    let (generation, term) = std::str::from_utf8(text).ok()?.split_once('/')?;
    Some(Epoch {
        generation: u64::from_str_radix(generation, 16).ok()?,
        term: term.parse().ok()?,
    })
}

/// The host's wall clock: etcd has none.
fn wall() -> WallTime {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let ms = now.unwrap_or_default().as_millis();
    WallTime(i64::try_from(ms).unwrap_or(i64::MAX))
}

/// What the first flight of a look asks for, and the keys of the entries that follow.
fn in_flights(asked: &[Ask]) -> (Vec<&Ask>, Vec<&String>) {
    let (mut first, mut ones, mut later) = (Vec::new(), 0, Vec::new());
    for ask in asked {
        match ask {
            Ask::One(key) if ones == AT_ONCE => later.push(key),
            Ask::One(_) => {
                ones += 1;
                first.push(ask);
            }
            Ask::Part(_) => first.push(ask),
        }
    }
    (first, later)
}

/// One entry of a part of a list for each place that was found.
fn keys_in(keys: &Keys, part: &Part, range: &RangeResponse) -> Vec<String> {
    let placed = range
        .kvs
        .iter()
        .filter_map(|kv| keys.placed(&part.list, &kv.key));
    let mut placed: Vec<String> = placed.map(str::to_owned).collect();
    if !part.newest_first {
        placed.reverse();
    }
    let skipped = placed.into_iter().skip(part.skip as usize);
    skipped.take(part.limit as usize).collect()
}

impl Link {
    async fn txn(&mut self, request: &TxnRequest) -> Result<TxnResponse, Fault> {
        self.channel
            .call("/etcdserverpb.KV/Txn", request, LONGEST_ANSWER)
            .await
    }

    /// The reads of a transaction, all at the revision of the first: some versions of etcd refuse every transaction
    /// when the database is full.
    async fn one_by_one(&mut self, txn: TxnRequest) -> Result<TxnResponse, Fault> {
        let mut all = TxnResponse::default();
        for it in txn.success {
            let Some(Request::Range(mut range)) = it.request else {
                continue;
            };
            if let Some(first) = all.header.as_ref().filter(|_| range.revision == 0) {
                range.revision = first.revision;
            }
            let path = "/etcdserverpb.KV/Range";
            let mut found: RangeResponse = self.channel.call(path, &range, LONGEST_ANSWER).await?;
            all.header = all.header.or(found.header.take());
            let response = Some(Response::Range(found));
            all.responses.push(ResponseOp { response });
        }
        Ok(all)
    }

    /// The places and keys that are asked for, in the order of the questions.
    fn reads(&self, asked: &[Ask]) -> Vec<RequestOp> {
        let read = |ask: &Ask| match ask {
            Ask::One(key) => range(self.keys.of_entry(key)),
            Ask::Part(part) => {
                let (key, range_end) = self.keys.range(part);
                // The newest come first; without them all are read.
                let limit = i64::from(part.skip).saturating_add(part.limit.into());
                RangeRequest {
                    key,
                    range_end,
                    limit: if part.newest_first { limit } else { 0 },
                    keys_only: true,
                    ..RangeRequest::default()
                }
            }
        };
        in_flights(asked)
            .0
            .into_iter()
            .map(read)
            .map(Request::Range)
            .map(operation)
            .collect()
    }

    /// `None`: the look starts over.
    async fn try_look(
        &mut self,
        asked: &[Ask],
        turned: Option<&Turned>,
    ) -> Result<Option<Seen>, Fault> {
        let asked_at = Instant::now();
        let own =
            ["epoch", "last"].map(|name| operation(Request::Range(range(self.keys.own(name)))));
        let mut success: Vec<RequestOp> = own.into_iter().chain(self.reads(asked)).collect();
        if asked.iter().any(|ask| matches!(ask, Ask::Part(_))) {
            success.extend(self.read_keys(&self.known.listed, 0));
        }
        let txn = TxnRequest {
            success,
            ..TxnRequest::default()
        };
        let read = self
            .channel
            .start("/etcdserverpb.KV/Txn", &txn, LONGEST_ANSWER)
            .await?;
        let members = MemberListRequest { linearizable: true };
        let members = self
            .channel
            .start("/etcdserverpb.Cluster/MemberList", &members, SHORT)
            .await?;
        let early = self.clock().await;
        let members: MemberListResponse = self.channel.answer(members).await?;
        let read: TxnResponse = match self.channel.answer(read).await {
            Err(Fault::Said(said)) if said.is_out_of_space() => self.one_by_one(txn).await?,
            read => read?,
        };
        let header = read
            .header
            .clone()
            .ok_or_else(|| nonsense("its answer has no header"))?;
        let (term, mut clock) = (header.raft_term, early?);
        let mut found = ranges(read);
        let (epoch, last) = (
            found.next().unwrap_or_default(),
            found.next().unwrap_or_default(),
        );
        let revision = epoch.kvs.first().map_or(0, |kv| kv.mod_revision);
        let epoch = epoch.kvs.first().and_then(|kv| epoch_of(&kv.value));
        let mark = last.kvs.first().and_then(|kv| mark_of(&kv.value));
        let kept = epoch.zip(mark).map(|(epoch, mark)| Kept { epoch, mark });
        let drawn = random::bits64().map_err(Fault::io(Activity::Asking))?;
        let mut is_late = false;
        let epoch = loop {
            let Some((term_of_clock, mark)) = clock else {
                return Ok(None);
            };
            let sight = Sight {
                term,
                term_of_clock,
                mark,
                is_late,
            };
            match Rules::default().judge(kept, &sight, drawn) {
                Judged::Certain(epoch) => break epoch,
                Judged::StartOver => return Ok(None),
                Judged::AskLater => (clock, is_late) = (self.clock().await?, true),
                Judged::Begins(epoch) => {
                    let kept = Rules::default().begun(kept, epoch, mark);
                    self.begin(kept, revision).await?;
                    return Ok(None);
                }
            }
        };
        let (Some(kept), Some((_, mark))) = (kept, clock) else {
            return Ok(None);
        };
        let found: Vec<RangeResponse> = found.collect();
        let Some(entries) = self.entries(asked, found, header.revision).await? else {
            return Ok(None);
        };
        let mut ids: Vec<u64> = members.members.iter().map(|member| member.id).collect();
        ids.sort_unstable();
        let ids = ids.iter().fold(0_u64, |all, id| all.rotate_left(7) ^ id);
        let cluster = header.cluster_id;
        let incarnation = Incarnation(format!(
            "{cluster:016x}-{ids:016x}-{:016x}",
            epoch.generation
        ));
        let (now, step_ms) = match turned {
            Some(turned) => (turned(), 0),
            None => (
                StoreTime {
                    epoch: ClockEpoch(epoch_text(epoch)),
                    stamp: Stamp {
                        tick_ms: mark.seconds.saturating_mul(1_000),
                        wall: wall(),
                    },
                },
                STEP_MS,
            ),
        };
        Ok(Some(Seen {
            asked_at,
            now,
            entries,
            more: Clocked {
                epoch,
                kept,
                revision,
                mark,
                step_ms,
                incarnation,
            },
        }))
    }

    /// The term of the answer with the clock, the clock, and the length of the log. `None`: the clock has begun.
    async fn clock(&mut self) -> Result<Option<(u64, Mark)>, Fault> {
        let id = self.keys.clock();
        let lease = LeaseRequest { id };
        let lease = self
            .channel
            .start("/etcdserverpb.Lease/LeaseTimeToLive", &lease, SHORT)
            .await?;
        let status = self
            .channel
            .start("/etcdserverpb.Maintenance/Status", &Empty {}, SHORT)
            .await?;
        let lease: TimeToLiveResponse = self.channel.answer(lease).await?;
        let status = self.channel.answer(status).await;
        let status: StatusResponse = status.map_err(Said::of_status)?;
        if lease.ttl < 0 {
            let grant = LeaseGrantRequest { ttl: EVER, id };
            let granted: Result<LeaseResponse, Fault> = self
                .channel
                .call("/etcdserverpb.Lease/LeaseGrant", &grant, SHORT)
                .await;
            // Another client may have begun it.
            return match granted {
                Ok(_) => Ok(None),
                Err(Fault::Said(Said::Answer { text, .. })) if text.contains("already exists") => {
                    Ok(None)
                }
                Err(fault) => Err(fault),
            };
        }
        let seconds = lease.granted.saturating_sub(lease.ttl);
        if seconds < -NOT_LED {
            return Err(Fault::Said(Said::answer(
                14,
                "it does not lead, and its clock does not count",
            )));
        }
        let header = lease
            .header
            .ok_or_else(|| nonsense("its answer has no header"))?;
        let (seconds, index) = (seconds.max(0), status.raft_index);
        Ok(Some((header.raft_term, Mark { seconds, index })))
    }

    /// Writes the epoch that begins, unless another client has.
    async fn begin(&mut self, kept: Kept, revision: i64) -> Result<(), Fault> {
        let epoch = self.keys.own("epoch");
        let txn = TxnRequest {
            compare: vec![is_at(epoch.clone(), revision)],
            success: vec![
                put(epoch, epoch_text(kept.epoch).into_bytes()),
                put(self.keys.own("last"), mark_text(kept.mark)),
            ],
            failure: Vec::new(),
        };
        self.txn(&txn).await.map(drop)
    }

    /// The entries that were asked for, at the revision of the look. `None`: it is compacted.
    async fn entries(
        &mut self,
        asked: &[Ask],
        found: Vec<RangeResponse>,
        revision: i64,
    ) -> Result<Option<BTreeMap<String, Read>>, Fault> {
        let mut entries = BTreeMap::new();
        let mut listed: BTreeSet<String> = BTreeSet::new();
        let mut found = found.into_iter();
        let (first, later) = in_flights(asked);
        for (ask, range) in first.into_iter().zip(&mut found) {
            match ask {
                Ask::One(_) => self.read(range, &mut entries),
                Ask::Part(part) => listed.extend(keys_in(&self.keys, part, &range)),
            }
        }
        let mut guessed = BTreeMap::new();
        found.for_each(|range| self.read(range, &mut guessed));
        guessed.retain(|key, _| listed.contains(key));
        entries.append(&mut guessed);
        let unread: Vec<&String> = listed
            .iter()
            .filter(|key| !entries.contains_key(*key))
            .chain(later)
            .collect();
        for some in unread.chunks(OPERATIONS) {
            let txn = TxnRequest {
                success: self.read_keys(some.iter().copied(), revision).collect(),
                ..TxnRequest::default()
            };
            let read = match self.txn(&txn).await {
                Err(Fault::Said(said)) if said.is_out_of_space() => self.one_by_one(txn).await,
                read => read,
            };
            match read {
                Err(Fault::Said(said)) if said.is_compacted() => return Ok(None),
                answer => {
                    for range in ranges(answer?) {
                        self.read(range, &mut entries);
                    }
                }
            }
        }
        self.known.list(listed);
        Ok(Some(entries))
    }

    /// Questions for entries as they were at a revision; 0: as they are.
    fn read_keys<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a String>,
        revision: i64,
    ) -> impl Iterator<Item = RequestOp> {
        let read = move |key: &String| RangeRequest {
            revision,
            ..range(self.keys.of_entry(key))
        };
        let reads = keys.into_iter().map(read);
        reads.map(Request::Range).map(operation)
    }

    fn read(&self, range: RangeResponse, entries: &mut BTreeMap<String, Read>) {
        for kv in range.kvs {
            let Some(key) = self.keys.entry_of(&kv.key) else {
                continue;
            };
            let written = Written::read(&kv.value);
            let read = Read {
                written,
                number: kv.create_revision,
                revision: kv.mod_revision,
            };
            entries.insert(key.to_owned(), read);
        }
    }

    /// Refuses a write that arrives so late that another client has noted a later time than it may have.
    fn not_after(&self, until: &Until) -> Compare {
        let later = Mark {
            seconds: until.tick_ms().div_euclid(1_000).saturating_add(1),
            index: 0,
        };
        Compare {
            result: Comparison::Less.into(),
            target: Compared::Value.into(),
            key: self.keys.own("last"),
            with: Some(With::Value(mark_text(later))),
        }
    }

    /// Raises the mark, unless it is higher already.
    fn raise(&self, mark: Mark) -> RequestOp {
        let key = self.keys.own("last");
        operation(Request::Txn(TxnRequest {
            compare: vec![Compare {
                result: Comparison::Less.into(),
                target: Compared::Value.into(),
                key: key.clone(),
                with: Some(With::Value(mark_text(mark))),
            }],
            success: vec![put(key, mark_text(mark))],
            failure: Vec::new(),
        }))
    }

    /// Writes a group's fence where a job's own transaction can compare it, unless it stands there.
    fn publish(&self, group: &GroupName, fence: Fence) -> RequestOp {
        let key = self.keys.own(&format!("fence/{group}"));
        let text = fence.0.to_string().into_bytes();
        operation(Request::Txn(TxnRequest {
            compare: vec![Compare {
                result: Comparison::Equal.into(),
                target: Compared::Value.into(),
                key: key.clone(),
                with: Some(With::Value(text.clone())),
            }],
            success: Vec::new(),
            failure: vec![put(key, text)],
        }))
    }
}

fn remove(key: Vec<u8>) -> RequestOp {
    operation(Request::Delete(DeleteRangeRequest { key }))
}

/// What `doctor` asks.
impl Link {
    pub(super) async fn status(&mut self) -> Result<StatusResponse, Fault> {
        let path = "/etcdserverpb.Maintenance/Status";
        let status = self.channel.call(path, &Empty {}, SHORT).await;
        status.map_err(Said::of_status)
    }

    /// How many seconds the clock has counted; `None` if it has not begun.
    pub(super) async fn passed(&mut self) -> Result<Option<i64>, Fault> {
        let lease = LeaseRequest {
            id: self.keys.clock(),
        };
        let path = "/etcdserverpb.Lease/LeaseTimeToLive";
        let lease: TimeToLiveResponse = self.channel.call(path, &lease, SHORT).await?;
        Ok((lease.ttl >= 0).then(|| lease.granted.saturating_sub(lease.ttl)))
    }

    /// The number of servers.
    pub(super) async fn members(&mut self) -> Result<usize, Fault> {
        let request = MemberListRequest { linearizable: true };
        let path = "/etcdserverpb.Cluster/MemberList";
        let list: MemberListResponse = self.channel.call(path, &request, SHORT).await?;
        Ok(list.members.len())
    }

    /// The names of the alarms.
    pub(super) async fn alarms(&mut self) -> Result<String, Fault> {
        let path = "/etcdserverpb.Maintenance/Alarm";
        let list: AlarmResponse = self.channel.call(path, &AlarmRequest {}, SHORT).await?;
        let name = |it: &AlarmMember| match it.alarm() {
            Alarm::None => "",
            Alarm::NoSpace => "NOSPACE",
            Alarm::Corrupt => "CORRUPT",
        };
        Ok(list.alarms.iter().map(name).collect::<Vec<_>>().join(" "))
    }

    /// True if old revisions are never removed: the first one of many can still be read.
    pub(super) async fn keeps_all(&mut self) -> Result<bool, Fault> {
        let read = |revision| TxnRequest {
            success: vec![operation(Request::Range(RangeRequest {
                revision,
                ..range(self.keys.own("epoch"))
            }))],
            ..TxnRequest::default()
        };
        let (now, first) = (read(0), read(1));
        let now = self.txn(&now).await?.header.unwrap_or_default();
        match self.txn(&first).await {
            Ok(_) => Ok(now.revision >= MANY),
            Err(Fault::Said(said)) if said.is_compacted() => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// Asks for writes that never happen: a user without the right is refused nevertheless.
    pub(super) async fn may_write(&mut self) -> Result<(), Fault> {
        let key = self.keys.own("epoch");
        for write in [put(key.clone(), Vec::new()), remove(key.clone())] {
            let txn = TxnRequest {
                compare: vec![is_at(key.clone(), -1)],
                success: vec![write],
                failure: Vec::new(),
            };
            self.txn(&txn).await?;
        }
        Ok(())
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
        _may_defer: bool,
    ) -> Result<Self, Fault> {
        let dialled = connect(&settings.servers, target, deadline).await?;
        let (wire, scheme) = match (&settings.tls, &host.place) {
            (Some(files), Place::Tcp { to, .. }) => {
                let secured = secure(files, to, Some("h2"), dialled.stream);
                (bound(deadline, Activity::Securing, secured).await?, "https")
            }
            _ => (dialled.stream, "http"),
        };
        let opening = Channel::open(wire, format!("{scheme}://{host}"));
        let channel = bound(deadline, Activity::LoggingIn, opening).await?;
        let mut link = Self {
            channel,
            keys: Keys::new(&settings.prefix),
            socket: dialled.socket,
            secured: settings.tls.is_some(),
            last: None,
            known: Known::default(),
            incoming: None,
        };
        if let Some(user) = &settings.user {
            let request = AuthenticateRequest {
                name: user.clone(),
                password: host
                    .password
                    .as_ref()
                    .map_or_else(String::new, |it| it.0.clone()),
            };
            let path = "/etcdserverpb.Auth/Authenticate";
            let asking = link.channel.call(path, &request, SHORT);
            let answer: AuthenticateResponse = bound(deadline, Activity::LoggingIn, asking).await?;
            link.channel.set_token(&answer.token);
        }
        Ok(link)
    }

    async fn is_alive(&mut self) -> bool {
        self.channel.is_open().await
    }
}

impl Flights for Link {
    type More = Clocked;

    const HAS_TICKS: bool = true;

    const RESTS: bool = false;

    const STEP: Duration = Duration::from_millis(STEP_MS.unsigned_abs());

    fn known(&mut self) -> &mut Known<Clocked> {
        &mut self.known
    }

    fn socket(&self) -> &Arc<OwnedFd> {
        &self.socket
    }

    fn unread(fault: Fault) -> Fault {
        Fault::Said(Said::Unread(Box::new(fault)))
    }

    fn found(seen: Seen) -> Found {
        let now = Now {
            time: &seen.now,
            step_ms: seen.more.step_ms,
        };
        let shown = |(key, read): (String, Read)| -> (String, Entry) {
            (key, entry(read.written, read.number, &now))
        };
        Found {
            entries: seen.entries.into_iter().map(shown).collect(),
            server: Server {
                incarnation: Some(seen.more.incarnation),
                durable: true,
                unnoted: Served::NOTHING,
                lag: Duration::ZERO,
            },
            now: seen.now,
            refuses: None,
        }
    }

    async fn look(&mut self, asked: &[Ask], turned: Option<&Turned>) -> Result<Seen, Fault> {
        for _ in 0..TRIES {
            if let Some(seen) = self.try_look(asked, turned).await? {
                return Ok(seen);
            }
        }
        Err(nonsense("its leaders change all the time"))
    }

    fn goes_on(&mut self, seen: &Seen) -> bool {
        let Clocked { epoch, mark, .. } = seen.more;
        let goes_on = self.last.is_none_or(|(last, seconds, at)| {
            let passed = i64::try_from(at.elapsed().as_secs()).unwrap_or(i64::MAX);
            let latest = seconds.saturating_add(passed).saturating_add(SLACK);
            last != epoch || (seconds..=latest).contains(&mark.seconds)
        });
        self.last = Some((epoch, mark.seconds, Instant::now()));
        goes_on
    }

    /// A stamp is a reading, in whole seconds: [`STEP_MS`] makes up for the time that has passed.
    fn refresh(now: &mut StoreTime, _passed: Duration) {
        now.stamp.wall = wall();
    }

    async fn write(
        &mut self,
        commit: &Commit,
        mut seen: Seen,
        _turned: Option<&Turned>,
    ) -> Result<Option<Found>, Fault> {
        let mut writes = Writes::default();
        for it in &commit.puts {
            let before = seen.entries.get(&it.key).map(|read| &read.written);
            writes.put(&self.keys, it, before, &seen.now);
        }
        for it in &commit.deletes {
            if let Some(read) = seen.entries.get(&it.key) {
                writes.delete(&self.keys, it, &read.written);
            }
        }
        writes.removes.retain(|key| !writes.sets.contains_key(key));
        let mut removes = writes.removes;
        let room = OPERATIONS.saturating_sub(writes.sets.len() + 5 + commit.then.len());
        // Old records go ahead: they are of no use to each other.
        while removes.len() > room {
            let some = removes.split_off(removes.len() - removes.len().min(OPERATIONS));
            let txn = TxnRequest {
                success: some.into_iter().map(remove).collect(),
                ..TxnRequest::default()
            };
            self.txn(&txn).await?;
        }
        let revision = |key: &String| seen.entries.get(key).map_or(0, |read| read.revision);
        // An entry that is gone, or was removed ahead, is as it should be.
        let mut touched = commit.touched();
        let last: BTreeSet<&Vec<u8>> = removes.iter().collect();
        let stays = |key: &String| {
            commit.compare.iter().any(|(it, _)| it == key)
                || commit.puts.iter().any(|it| it.key == *key)
        };
        touched.retain(|key| stays(key) || last.contains(&self.keys.of_entry(key)));
        let mut compare: Vec<Compare> = touched
            .into_iter()
            .map(|key| is_at(self.keys.of_entry(key), revision(key)))
            .collect();
        compare.push(is_at(self.keys.own("epoch"), seen.more.revision));
        // A clock that a test sets does not count in seconds since an election.
        let until = commit.until.as_ref().filter(|_| seen.more.step_ms > 0);
        compare.extend(until.map(|until| self.not_after(until)));
        let mut success: Vec<RequestOp> = writes
            .sets
            .into_iter()
            .map(|(key, value)| put(key, value))
            .collect();
        success.extend(removes.into_iter().map(remove));
        success.push(self.raise(Rules::default().marked(seen.more.kept.mark, seen.more.mark)));
        let fence = commit.fence.iter();
        success.extend(fence.map(|(group, fence)| self.publish(group, *fence)));
        // Without a look at the queue: that would cost more.
        let announced = commit.announces.iter();
        success.extend(announced.map(|it| {
            let channel = self.keys.own(&format!("rel/{}", it.channel));
            put(channel, Vec::new())
        }));
        let reads = self.reads(&commit.then);
        let before = success.len();
        success.extend(reads);
        let txn = TxnRequest {
            compare,
            success,
            failure: Vec::new(),
        };
        let answer = self.txn(&txn).await?;
        if !answer.succeeded {
            return Ok(None);
        }
        let revision = answer.header.as_ref().map_or(0, |header| header.revision);
        let found: Vec<RangeResponse> = ranges(answer).skip(before).collect();
        let entries = self.entries(&commit.then, found, revision).await?;
        let entries = entries.ok_or_else(|| nonsense("what was written is compacted"))?;
        for it in &commit.deletes {
            seen.entries.remove(&it.key);
        }
        for (key, written) in writes.entries {
            let number = seen.entries.get(&key).map_or(revision, |read| read.number);
            let read = Read {
                written,
                number,
                revision,
            };
            seen.entries.insert(key, read);
        }
        seen.entries.extend(entries.clone());
        self.known.keep(&seen);
        Ok(Some(Self::found(Seen { entries, ..seen })))
    }

    async fn watch(&mut self, channel: &str) -> Result<(), Fault> {
        let key = self.keys.own(&format!("rel/{channel}"));
        let create = Watch::Create(WatchCreateRequest { key });
        let request = WatchRequest {
            request: Some(create),
        };
        let path = "/etcdserverpb.Watch/Watch";
        self.incoming = Some(self.channel.stream(path, &request).await?);
        Ok(())
    }

    async fn drain(&mut self) -> bool {
        let Some(incoming) = &mut self.incoming else {
            return true;
        };
        for _ in 0..2 {
            if !self.channel.is_open().await {
                return false;
            }
            let body = &mut incoming.body;
            loop {
                let polled =
                    std::future::poll_fn(|cx| std::task::Poll::Ready(body.poll_data(cx))).await;
                match polled {
                    std::task::Poll::Pending => break,
                    std::task::Poll::Ready(Some(Ok(data))) => {
                        let _ = body.flow_control().release_capacity(data.len());
                    }
                    std::task::Poll::Ready(_) => return false,
                }
            }
        }
        true
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod link_tests;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_kept_is_read_as_written(generation: u64, term: u64, seconds in 0..i64::MAX, index: u64) {
            let epoch = Epoch { generation, term };
            prop_assert_eq!(epoch_of(epoch_text(epoch).as_bytes()), Some(epoch));
            let mark = Mark { seconds, index };
            prop_assert_eq!(mark_of(&mark_text(mark)), Some(mark));
        }

        /// etcd compares marks as texts.
        #[test]
        fn a_later_mark_is_a_greater_text(one in 0..i64::MAX, other in 0..i64::MAX, index: u64) {
            let text = |seconds| mark_text(Mark { seconds, index });
            prop_assert_eq!(text(one).cmp(&text(other)), one.cmp(&other));
        }

        #[test]
        fn no_bytes_that_are_kept_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = (epoch_of(&bytes), mark_of(&bytes), Written::read(&bytes));
        }
    }
}
