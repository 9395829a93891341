//! Looks: one flight of questions, judged by the rules of the clock.

use std::collections::BTreeMap;
use std::time::{Instant, SystemTime};

use super::clock::{Epoch, Judged, Kept, Mark, Rules, Sight};
use super::entry::STEP_MS;
use super::fault::{Fault, Said};
use super::link::{Link, SHORT};
use super::messages::{
    Empty, LeaseGrantRequest, LeaseRequest, LeaseResponse, MemberListRequest, MemberListResponse,
    OPERATIONS, RangeResponse, Request, RequestOp, Response, ResponseOp, StatusResponse,
    TimeToLiveResponse, TxnRequest, TxnResponse, is_at, operation, put, range, ranges,
};
use super::seen::{Clocked, Seen, gather, incarnation, read, read_keys, reads};
use crate::store::kv::Ask;
use crate::store::kv::flights::{Read, Turned};
use crate::store::net::deadline::Activity;
use crate::store::net::limit::LONGEST_ANSWER;
use crate::sys::random;
use crate::token::{ClockEpoch, Stamp, StoreTime, WallTime};

/// The length of the lease that is the clock, in seconds: it never ends.
const EVER: i64 = 8_000_000_000;

/// A server that does not lead counts up to so much more than was granted.
const NOT_LED: i64 = 60;

/// The host's wall clock: etcd has none.
pub(super) fn wall() -> WallTime {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let ms = now.unwrap_or_default().as_millis();
    WallTime(i64::try_from(ms).unwrap_or(i64::MAX))
}

impl Link {
    /// `None`: the look starts over.
    pub(super) async fn look_once(
        &mut self,
        asked: &[Ask],
        turned: Option<&Turned>,
    ) -> Result<Option<Seen>, Fault> {
        let asked_at = Instant::now();
        let own =
            ["epoch", "last"].map(|name| operation(Request::Range(range(self.keys.own(name)))));
        let mut success: Vec<RequestOp> = own.into_iter().chain(reads(&self.keys, asked)).collect();
        let guessed = self.known.guess(asked);
        success.extend(read_keys(&self.keys, guessed, 0));
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
        let read = self.channel.answer(read).await;
        let read = self.or_one_by_one(read, txn).await?;
        let header = read
            .header
            .clone()
            .ok_or_else(|| Said::nonsense("its answer has no header"))?;
        let (term, mut clock) = (header.raft_term, early?);
        let mut found = ranges(read);
        let (epoch, last) = (
            found.next().unwrap_or_default(),
            found.next().unwrap_or_default(),
        );
        let revision = epoch.kvs.first().map_or(0, |kv| kv.mod_revision);
        let epoch = epoch.kvs.first().and_then(|kv| Epoch::read(&kv.value));
        let mark = last.kvs.first().and_then(|kv| Mark::read(&kv.value));
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
        let incarnation = incarnation(header.cluster_id, &members.members, epoch.generation);
        let (now, step_ms) = match turned {
            Some(turned) => (turned(), 0),
            None => (
                StoreTime {
                    epoch: ClockEpoch(epoch.text()),
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

    /// The answer to a transaction of reads, which some versions of etcd refuse when the database is full.
    async fn or_one_by_one(
        &mut self,
        answer: Result<TxnResponse, Fault>,
        txn: TxnRequest,
    ) -> Result<TxnResponse, Fault> {
        match answer {
            Err(Fault::Said(said)) if said.is_out_of_space() => self.one_by_one(txn).await,
            answer => answer,
        }
    }

    /// The reads of a transaction, all at the revision of the first.
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
            .ok_or_else(|| Said::nonsense("its answer has no header"))?;
        let (seconds, index) = (seconds.max(0), status.raft_index);
        Ok(Some((header.raft_term, Mark { seconds, index })))
    }

    /// Writes the epoch that begins, unless another client has.
    async fn begin(&mut self, kept: Kept, revision: i64) -> Result<(), Fault> {
        let epoch = self.keys.own("epoch");
        let txn = TxnRequest {
            compare: vec![is_at(epoch.clone(), revision)],
            success: vec![
                put(epoch, kept.epoch.text().into_bytes()),
                put(self.keys.own("last"), kept.mark.text()),
            ],
            failure: Vec::new(),
        };
        self.txn(&txn).await.map(drop)
    }

    /// The entries that were asked for, at the revision of the look. `None`: it is compacted.
    pub(super) async fn entries(
        &mut self,
        asked: &[Ask],
        found: Vec<RangeResponse>,
        revision: i64,
    ) -> Result<Option<BTreeMap<String, Read>>, Fault> {
        let (mut gathered, unread) = gather(&self.keys, asked, found);
        for some in unread.chunks(OPERATIONS) {
            let txn = TxnRequest {
                success: read_keys(&self.keys, some, revision).collect(),
                ..TxnRequest::default()
            };
            let answer = self.txn(&txn).await;
            match self.or_one_by_one(answer, txn).await {
                Err(Fault::Said(said)) if said.is_compacted() => return Ok(None),
                answer => {
                    for range in ranges(answer?) {
                        read(&self.keys, range, &mut gathered.entries);
                    }
                }
            }
        }
        self.known.list(gathered.listed);
        Ok(Some(gathered.entries))
    }
}

#[cfg(test)]
#[path = "look_tests.rs"]
mod tests;
