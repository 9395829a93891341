//! A store as values: the simulation and the search go through millions of its states. The
//! conformance suite runs on it too, so that it behaves like a real store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::pruning::{Note, Seen};
use super::{
    ActQuery, Advanced, Listing, Marks, OUTPUT_BATCH, PRUNE_BATCH, Queue, Reading, Records,
    RefusalQuery, Retention, RunQuery, Store, StoreError, Tokens,
};
use crate::token::WallTime;
use crate::token::queue::FORGOTTEN;
use crate::token::{
    ActRecord, ClockEpoch, Fence, GroupName, Incarnation, IncarnationNote, Memory, NoteSwap,
    OnceMark, Outcome, OutputLimits, OutputRecord, QueueEntry, Recorded, RefusalRecord,
    RefusalTotal, ResourceName, Row, RunRecord, Served, SessionId, Stamp, StoreTime, Swap, Swapped,
    Until, Version, Waiter,
};

/// The contents of a store, to be copied and restored, as a lossy failover does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct ModelData {
    pub(crate) rows: BTreeMap<GroupName, Row>,
    /// The history, oldest first.
    pub(crate) runs: Vec<RunRecord>,
    /// The waiters, by arrival.
    pub(crate) queue: Vec<(GroupName, QueueEntry)>,
    /// The acts of operators, oldest first.
    pub(crate) acts: Vec<ActRecord>,
    /// The refusals, by their last, oldest first.
    pub(crate) refusals: Vec<RefusalRecord>,
    /// The number of refusals of each group for each reason.
    pub(crate) refusal_totals: BTreeMap<(GroupName, String), u64>,
    /// The kept outputs, oldest first.
    pub(crate) outputs: Vec<OutputRecord>,
    /// The keys that are done, oldest first.
    pub(crate) marks: Vec<OnceMark>,
    /// The highest fence that has used each resource.
    pub(crate) resources: BTreeMap<ResourceName, Fence>,
    /// The pruning note of each group.
    pub(crate) notes: BTreeMap<GroupName, Note>,
    /// The note of the incarnation that was seen last.
    pub(crate) incarnation: Option<IncarnationNote>,
    /// The earlier notes, which no decision may use.
    earlier: Vec<IncarnationNote>,
}

/// The identity of a store, besides its contents.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    pub(crate) incarnation: Incarnation,
    /// True if commits survive a crash.
    pub(crate) durable: bool,
}

impl Server {
    /// A durable server of this name.
    pub(crate) fn named(name: &str) -> Self {
        Self {
            incarnation: Incarnation(name.to_owned()),
            durable: true,
        }
    }
}

#[derive(Debug)]
struct Inner {
    contents: ModelData,
    server: Server,
    clock: StoreTime,
}

/// A store whose contents are values. Clones share their contents and their clock.
#[derive(Debug, Clone)]
pub(crate) struct ModelStore {
    inner: Arc<Mutex<Inner>>,
}

impl Default for ModelStore {
    fn default() -> Self {
        Self::new()
    }
}

impl ModelStore {
    /// An empty store, in the clock epoch `memory-0`, in the autumn of 2026.
    pub(crate) fn new() -> Self {
        let clock = StoreTime {
            epoch: ClockEpoch("memory-0".into()),
            stamp: Stamp {
                tick_ms: 1_000_000,
                wall: WallTime(1_790_000_000_000),
            },
        };
        let server = Server::named("model");
        Self {
            inner: Arc::new(Mutex::new(Inner {
                contents: ModelData::made(&server, &clock),
                server,
                clock,
            })),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No call is answered before `act` returns, which must not use the store.
    pub(crate) fn while_it_hangs(&self, act: impl FnOnce()) {
        let _locked = self.inner();
        act();
    }

    /// The store's time.
    pub(crate) fn now(&self) -> StoreTime {
        self.inner().clock.clone()
    }

    /// Lets time pass.
    pub(crate) fn advance(&self, by: Duration) {
        let mut inner = self.inner();
        inner.clock = inner.clock.plus(by);
    }

    /// Sets the clock: another clock epoch, a stepped wall clock.
    pub(crate) fn set_clock(&self, to: StoreTime) {
        self.inner().clock = to;
    }

    /// Makes it another store, with the same contents.
    pub(crate) fn become_another(&self, server: Server) {
        self.inner().server = server;
    }

    /// A copy of everything in it.
    pub(crate) fn contents(&self) -> ModelData {
        self.inner().contents.clone()
    }

    /// Replaces everything in it.
    pub(crate) fn restore(&self, contents: ModelData) {
        self.inner().contents = contents;
    }
}

impl ModelData {
    /// The contents of a newly made store.
    pub(crate) fn made(server: &Server, now: &StoreTime) -> Self {
        let (incarnation, version) = (server.incarnation.clone(), Version::from_random(0));
        let note = IncarnationNote::of_new(incarnation, server.durable, now, version);
        Self {
            incarnation: Some(note),
            ..Self::default()
        }
    }

    /// What a read reports of the memory of a server with these contents.
    pub(crate) fn memory(&self, server: &Server) -> Memory {
        use crate::token::mutant::{Mutant, is_mutant};
        let mut notes = self.earlier.iter().chain(&self.incarnation).rev();
        let note = if is_mutant(Mutant::NoteByIncarnation) {
            notes.find(|note| note.incarnation == server.incarnation)
        } else {
            self.incarnation.as_ref()
        };
        Memory {
            incarnation: Some(server.incarnation.clone()),
            durable: server.durable,
            note: note.cloned(),
            unnoted: Served::NOTHING,
            lag: Duration::ZERO,
        }
    }

    /// Keeps the notes of contents that are otherwise lost.
    pub(crate) fn keep_notes(&mut self, lost: &Self) {
        self.incarnation.clone_from(&lost.incarnation);
        self.earlier.clone_from(&lost.earlier);
    }

    /// Carries out [`Tokens::note`] at `now`.
    pub(crate) fn note(&mut self, swap: &NoteSwap, now: &StoreTime) -> Swapped {
        use crate::token::mutant::{Mutant, is_mutant};
        let found = self.incarnation.as_ref().map(|note| note.version);
        if is_mutant(Mutant::NoteByIncarnation) {
            self.earlier.extend(self.incarnation.take());
        } else if found != swap.from {
            return Swapped::Conflict;
        }
        if now.is_past(&swap.expiry) {
            return Swapped::Expired(now.clone());
        }
        self.incarnation = Some(swap.to.clone());
        self.acts.extend(swap.act.as_ref().map(|act| ActRecord {
            at: now.stamp.wall,
            ..act.as_ref().clone()
        }));
        Swapped::Done(now.clone())
    }

    /// Carries out a swap at `now`.
    pub(crate) fn swap(&mut self, swap: &Swap, now: &StoreTime) -> Swapped {
        use crate::token::mutant::{Mutant, is_mutant};
        let found = self.rows.get(swap.group()).map(|row| row.version);
        let note = self.incarnation.as_ref().map(|note| note.version);
        let judged = swap.note.as_ref().map(|note| note.version);
        let is_judged_by = judged.is_none_or(|judged| Some(judged) == note);
        if found != swap.from || !(is_judged_by || is_mutant(Mutant::NoteByIncarnation)) {
            return Swapped::Conflict;
        }
        if now.is_past(&swap.expiry) && !is_mutant(Mutant::AbandonedSwapHappens) {
            return Swapped::Expired(now.clone());
        }
        let row = swap.written(now);
        self.rows.insert(row.group.clone(), row);
        if let Some(session) = &swap.leaves {
            self.leave(swap.group(), session);
        }
        if let Some(run) = &swap.ended {
            self.record(run, now);
        }
        if let Some(act) = &swap.act {
            self.marks
                .retain(|mark| mark.group != act.group || Some(&mark.key) != act.once_key.as_ref());
            self.acts.push(ActRecord {
                at: now.stamp.wall,
                ..act.as_ref().clone()
            });
        }
        Swapped::Done(now.clone())
    }

    /// Carries out [`Queue::join`] at `now`.
    pub(crate) fn join(
        &mut self,
        group: &GroupName,
        waiter: &Waiter,
        expiry: &Until,
        now: &StoreTime,
    ) {
        if now.is_past(expiry) {
            return;
        }
        self.queue.retain(|(_, entry)| {
            let age = now.calendar_age_of(entry.seen_at, Some(&entry.epoch));
            age < FORGOTTEN || entry.waiter == *waiter
        });
        let in_queue = |(other, entry): &&mut (GroupName, QueueEntry)| {
            other == group && entry.waiter.session == waiter.session
        };
        if let Some((_, entry)) = self.queue.iter_mut().find(in_queue) {
            entry.seen_at = now.stamp;
            entry.epoch = now.epoch.clone();
            return;
        }
        let last = self.queue_of(group).last().map_or(0, |entry| entry.number);
        let entry = QueueEntry {
            waiter: waiter.clone(),
            number: last + 1,
            seen_at: now.stamp,
            epoch: now.epoch.clone(),
        };
        self.queue.push((group.clone(), entry));
    }

    /// Carries out [`Queue::leave`].
    pub(crate) fn leave(&mut self, group: &GroupName, session: &SessionId) {
        self.queue
            .retain(|(other, entry)| other != group || entry.waiter.session != *session);
    }

    /// Carries out [`Tokens::look`] at `now`.
    pub(crate) fn look(
        &self,
        group: &GroupName,
        key: Option<&str>,
        server: &Server,
        now: &StoreTime,
    ) -> Reading {
        Reading {
            row: self.rows.get(group).cloned(),
            now: now.clone(),
            queue: self.queue_of(group).cloned().collect(),
            refuses: None,
            memory: self.memory(server),
            done: key.and_then(|key| self.key(group, key)).map(Box::new),
        }
    }

    /// The run that has made a key done, if one has.
    pub(crate) fn key(&self, group: &GroupName, key: &str) -> Option<OnceMark> {
        let is_it = |mark: &&OnceMark| mark.group == *group && mark.key == key;
        self.marks.iter().find(is_it).cloned()
    }

    /// The waiters of a group.
    pub(crate) fn queue_of(&self, group: &GroupName) -> impl Iterator<Item = &QueueEntry> {
        let of_group = self.queue.iter().filter(move |(other, _)| other == group);
        of_group.map(|(_, entry)| entry)
    }

    /// Carries out [`Records::record`] at `now`.
    pub(crate) fn record(&mut self, run: &RunRecord, now: &StoreTime) -> Recorded {
        let same = |it: &&mut RunRecord| {
            it.group == run.group && it.fence == run.fence && it.session == run.session
        };
        let written = run.clone().written(now);
        match self.runs.iter_mut().find(same) {
            Some(old) if old.is_final() || !run.is_final() => return Recorded::Already,
            Some(old) => *old = written,
            None => self.runs.push(written),
        }
        let mark = run.once_mark(now.stamp.wall);
        let is_new = |mark: &OnceMark| {
            let same = |it: &OnceMark| it.group == mark.group && it.key == mark.key;
            !self.marks.iter().any(same)
        };
        self.marks.extend(mark.filter(is_new));
        Recorded::Written
    }

    /// Carries out [`Records::refuse`] at `now`.
    pub(crate) fn refuse(&mut self, refusal: &RefusalRecord, now: WallTime) {
        let of_client = |it: &RefusalRecord| {
            it.group == refusal.group && it.client == refusal.client && it.cause == refusal.cause
        };
        let earlier = |it: &&RefusalRecord| of_client(it) && it.last_at <= now;
        let before = self.refusals.iter().rfind(earlier);
        let Some(next) = refusal.after(before.map(RefusalRecord::repeats), now) else {
            return;
        };
        self.refusals
            .retain(|it| !of_client(it) || it.first_at != next.first_at);
        self.refusals.push(next);
        let of = (refusal.group.clone(), refusal.reason.clone());
        *self.refusal_totals.entry(of).or_default() += 1;
    }

    /// Carries out [`Records::keep_output`] at `now`.
    pub(crate) fn keep_output(&mut self, output: &OutputRecord, now: WallTime) {
        let same = |it: &OutputRecord| {
            it.group == output.group && it.fence == output.fence && it.session == output.session
        };
        self.outputs.retain(|it| !same(it));
        self.outputs.push(OutputRecord {
            written_at: now,
            ..output.clone()
        });
    }

    /// Carries out [`Records::prune`] at `now`.
    pub(crate) fn prune(&mut self, group: &GroupName, retention: Retention, now: &StoreTime) {
        let runs = self.runs.iter().filter(|run| run.group == *group);
        let mut newest: Vec<Seen> = runs.map(Seen::of).collect();
        let last = self.notes.remove(group);
        let note = Note::next(last, now, true, &mut newest, retention);
        let outlived = note.outlived(retention);
        self.notes.insert(group.clone(), note);
        let (history, once) = (
            now.wall_before(retention.history),
            now.wall_before(retention.once),
        );
        let stays = newest.last().map(|run| run.fence);
        let succeeded = self
            .runs
            .iter()
            .filter(|run| run.group == *group && run.outcome == Outcome::Succeeded);
        let success = succeeded.map(|run| run.fence).max();
        let mut left = PRUNE_BATCH;
        self.runs.retain(|run| {
            let is_old = run.started_at < history && Some(run.fence) <= outlived.history;
            let is_last = Some(run.fence) == stays || Some(run.fence) == success;
            let goes = run.group == *group && is_old && !is_last && left > 0;
            left -= u32::from(goes);
            !goes
        });
        self.acts.retain(|act| {
            let is_old = act.at < history && Some(act.fence) <= outlived.history;
            act.group != *group || !is_old
        });
        self.refusals.retain(|refusal| {
            let is_old = refusal.last_at < history && Some(refusal.fence) <= outlived.history;
            refusal.group != *group || !is_old
        });
        let OutputLimits { retain, count } = retention.outputs;
        let before = now.wall_before(retain);
        let own = self.outputs.iter().filter(|it| it.group == *group);
        let mut fences: Vec<Fence> = own.map(|it| it.fence).collect();
        fences.sort_unstable_by(|one, other| other.cmp(one));
        let excess = fences.get(count as usize).copied();
        let mut left = OUTPUT_BATCH;
        self.outputs.retain(|output| {
            let is_old = output.written_at < before && Some(output.fence) <= outlived.outputs;
            let is_excess = Some(output.fence) <= excess;
            let goes = output.group == *group && (is_old || is_excess) && left > 0;
            left -= u32::from(goes);
            !goes
        });
        self.marks.retain(|mark| {
            let is_old = mark.done_at < once && Some(mark.fence) <= outlived.once;
            mark.group != *group || !is_old
        });
    }
}

impl Tokens for ModelStore {
    fn look(&mut self, group: &GroupName, key: Option<&str>) -> Result<Reading, StoreError> {
        let inner = self.inner();
        Ok(inner.contents.look(group, key, &inner.server, &inner.clock))
    }

    fn swap(&mut self, swap: &Swap) -> Result<Swapped, StoreError> {
        let mut inner = self.inner();
        let now = inner.clock.clone();
        Ok(inner.contents.swap(swap, &now))
    }

    fn note(&mut self, swap: &NoteSwap) -> Result<Swapped, StoreError> {
        let mut inner = self.inner();
        let now = inner.clock.clone();
        Ok(inner.contents.note(swap, &now))
    }

    fn list(&mut self) -> Result<Listing, StoreError> {
        let inner = self.inner();
        Ok(Listing {
            rows: inner.contents.rows.values().cloned().collect(),
            queues: inner.contents.queue.clone(),
            unreadable: Vec::new(),
            now: inner.clock.clone(),
        })
    }
}

impl Queue for ModelStore {
    fn join(
        &mut self,
        group: &GroupName,
        waiter: &Waiter,
        expiry: &Until,
        key: Option<&str>,
    ) -> Result<Reading, StoreError> {
        {
            let mut inner = self.inner();
            let now = inner.clock.clone();
            inner.contents.join(group, waiter, expiry, &now);
        }
        self.look(group, key)
    }

    fn leave(&mut self, group: &GroupName, session: &SessionId) -> Result<(), StoreError> {
        self.inner().contents.leave(group, session);
        Ok(())
    }
}

impl Records for ModelStore {
    fn record(&mut self, run: &RunRecord) -> Result<Recorded, StoreError> {
        let mut inner = self.inner();
        let now = inner.clock.clone();
        Ok(inner.contents.record(run, &now))
    }

    fn runs(&mut self, query: &RunQuery) -> Result<Vec<RunRecord>, StoreError> {
        let inner = self.inner();
        let limit = query.limit.map_or(usize::MAX, |n| n as usize);
        let runs = inner.contents.runs.iter();
        let mut runs: Vec<_> = runs.filter(|run| query.wants(run)).cloned().collect();
        match query.group {
            Some(_) => runs.sort_by_key(|run| std::cmp::Reverse(run.fence)),
            None => runs.sort_by_key(|run| std::cmp::Reverse((run.started_at, run.fence))),
        }
        runs.truncate(limit);
        Ok(runs)
    }

    fn acts(&mut self, query: &ActQuery) -> Result<Vec<ActRecord>, StoreError> {
        let inner = self.inner();
        let limit = query.limit.map_or(usize::MAX, |n| n as usize);
        let acts = inner
            .contents
            .acts
            .iter()
            .rev()
            .filter(|act| query.wants(act));
        Ok(acts.take(limit).cloned().collect())
    }

    fn refuse(&mut self, refusal: &RefusalRecord) -> Result<(), StoreError> {
        let mut inner = self.inner();
        let now = inner.clock.stamp.wall;
        inner.contents.refuse(refusal, now);
        Ok(())
    }

    fn refusals(&mut self, query: &RefusalQuery) -> Result<Vec<RefusalRecord>, StoreError> {
        let inner = self.inner();
        let limit = query.limit.map_or(usize::MAX, |n| n as usize);
        let newest = inner.contents.refusals.iter().rev();
        let wanted = newest.filter(|refusal| query.wants(refusal));
        Ok(wanted.take(limit).cloned().collect())
    }

    fn refusal_totals(&mut self) -> Result<Vec<RefusalTotal>, StoreError> {
        let inner = self.inner();
        let totals = inner.contents.refusal_totals.iter();
        let totals = totals.map(|((group, reason), total)| RefusalTotal {
            group: group.clone(),
            reason: reason.clone(),
            total: *total,
        });
        Ok(totals.collect())
    }

    fn keep_output(&mut self, output: &OutputRecord) -> Result<(), StoreError> {
        let mut inner = self.inner();
        let now = inner.clock.stamp.wall;
        inner.contents.keep_output(output, now);
        Ok(())
    }

    fn output(
        &mut self,
        group: &GroupName,
        fence: Option<Fence>,
    ) -> Result<Option<OutputRecord>, StoreError> {
        let inner = self.inner();
        let of_run =
            |it: &&OutputRecord| it.group == *group && fence.is_none_or(|fence| it.fence == fence);
        let found = inner.contents.outputs.iter().filter(of_run);
        Ok(found.max_by_key(|it| (it.fence, it.written_at)).cloned())
    }

    fn once(&mut self, group: &GroupName, key: &str) -> Result<Option<OnceMark>, StoreError> {
        Ok(self.inner().contents.key(group, key))
    }

    fn once_marks(&mut self, group: Option<&GroupName>) -> Result<Vec<OnceMark>, StoreError> {
        let inner = self.inner();
        let marks = inner.contents.marks.iter().rev();
        let wanted = |mark: &&OnceMark| group.is_none_or(|group| *group == mark.group);
        Ok(marks.filter(wanted).cloned().collect())
    }

    fn prune(&mut self, group: &GroupName, retention: Retention) -> Result<(), StoreError> {
        let mut inner = self.inner();
        let now = inner.clock.clone();
        inner.contents.prune(group, retention, &now);
        Ok(())
    }
}

impl Marks for ModelStore {
    fn advance(&mut self, resource: &ResourceName, fence: Fence) -> Result<Advanced, StoreError> {
        let mut inner = self.inner();
        let mark = inner.contents.resources.entry(resource.clone());
        let mark = mark.or_insert(fence);
        if *mark > fence {
            return Ok(Advanced::Behind(*mark));
        }
        *mark = fence;
        Ok(Advanced::Stored)
    }
}

impl Store for ModelStore {
    fn name(&self) -> &'static str {
        "model"
    }
}
