//! What `doctor` asks a server.

use super::super::fault::{Fault, Said};
use super::super::link::{Link, SHORT};
use super::super::messages::{
    Alarm, AlarmMember, AlarmRequest, AlarmResponse, Empty, LeaseRequest, MemberListRequest,
    MemberListResponse, RangeRequest, Request, StatusResponse, TimeToLiveResponse, TxnRequest,
    is_at, operation, put, range, remove,
};

/// A store with fewer revisions may be new.
const MANY: i64 = 10_000;

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

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
