//! The store's commits and announcements over a connection.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::commit::Plan;
use super::entry::{Now, STEP_MS, entry};
use super::fault::{Fault, Said};
use super::link::Link;
use super::look::wall;
use super::messages::{RangeResponse, Watch, WatchCreateRequest, WatchRequest, ranges};
use super::seen::{Clocked, Seen};
use crate::store::kv::flights::{Flights, Known, Read, Turned};
use crate::store::kv::{Ask, Commit, Entry, Found, Server};
use crate::token::StoreTime;

/// How far two readings may differ besides the time between them.
const SLACK: i64 = 2;

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
            server: Server::of_cluster(seen.more.incarnation),
            now: seen.now,
            refuses: None,
        }
    }

    async fn try_look(
        &mut self,
        asked: &[Ask],
        turned: Option<&Turned>,
    ) -> Result<Option<Seen>, Fault> {
        self.look_once(asked, turned).await
    }

    fn unsteady() -> Fault {
        Said::nonsense("its leaders change all the time")
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
        let plan = Plan::of(&self.keys, commit, &seen);
        for txn in &plan.ahead {
            self.txn(txn).await?;
        }
        let answer = self.txn(&plan.last).await?;
        if !answer.succeeded {
            return Ok(None);
        }
        let revision = answer.header.as_ref().map_or(0, |header| header.revision);
        let found: Vec<RangeResponse> = ranges(answer).skip(plan.before).collect();
        let entries = self.entries(&commit.then, found, revision).await?;
        let entries = entries.ok_or_else(|| Said::nonsense("what was written is compacted"))?;
        seen.wrote(commit, plan.after, &entries, revision, |_| revision);
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
#[path = "flight_tests.rs"]
mod tests;
