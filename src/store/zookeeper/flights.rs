//! The store's commits and announcements over a connection.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use super::channel::{Reply, failed};
use super::fault::{Fault, Said};
use super::link::Link;
use super::seen::{Now, Seen};
use super::steps::{Step, steps, version_of};
use super::wire::{In, Part as Answered, Request, code};
use crate::store::kv::flights::{Flights, Known, Read, Turned};
use crate::store::kv::{Ask, Commit, Delete, Entry, Found, Server};
use crate::token::{Incarnation, StoreTime};

/// How many old entries one transaction removes.
const MOST_REMOVED: usize = 100;

/// What is said of nodes that each try finds otherwise.
const UNSTEADY: &str = "its nodes come and go";

impl Link {
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
                return Err(Said::nonsense("a reply is missing"));
            };
            let parts = reply.found(request, In::parts)?;
            let parts = parts.ok_or_else(|| Said::nonsense("a transaction without a node"))?;
            let is_cause = |part: &Answered| matches!(part, Answered::Failed(code) if *code != 0);
            match parts.iter().position(is_cause) {
                None => return Ok(Some((parts, replies.collect()))),
                Some(at) if self.mend(steps, at, &parts).await? => {}
                Some(_) => return Ok(None),
            }
        }
        Err(Said::nonsense(UNSTEADY))
    }

    /// Mends the requests for a transaction that failed at this one. `false`: an entry has changed.
    async fn mend(
        &mut self,
        steps: &mut Vec<Step>,
        at: usize,
        parts: &[Answered],
    ) -> Result<bool, Fault> {
        let (Some(step), Some(Answered::Failed(why))) = (steps.get(at), parts.get(at)) else {
            return Err(Said::nonsense("a transaction failed by itself"));
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
}

impl Flights for Link {
    type More = Now;

    const HAS_TICKS: bool = false;

    /// An idle session would end before the next heartbeat, and by default a server allows a host 60 connections.
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
            server: Server::of_cluster(Incarnation(seen.more.id)),
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
        Said::nonsense(UNSTEADY)
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
            let (mut steps, _) = steps(&self.tree, &part(some, &Commit::default()), &seen);
            if self.transact(&mut steps, &[]).await?.is_none() {
                return Ok(None);
            }
        }
        let commit = &part(last, commit);
        let (mut steps, after) = steps(&self.tree, commit, &seen);
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
            return Err(Said::nonsense("a transaction without its time"));
        };
        let now = Now::new(stat, &seen.more.id, turned);
        let both: Vec<_> = more.iter().zip(&replies).skip(before).collect();
        let known = BTreeMap::new();
        let entries = self.entries(&commit.then, &both, known, &now).await?;
        seen = Seen {
            now: now.time.clone(),
            more: now,
            ..seen
        };
        let version = |key: &str| version_of(&self.tree.entry(key), &steps, &parts);
        // The number of a new node is not told.
        seen.wrote(commit, after, &entries, 0, version);
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
#[path = "flight_tests.rs"]
mod tests;
