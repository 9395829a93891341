//! Looks: a write of one node, whose time is the store's and which makes the reads behind it current.

use std::collections::BTreeMap;
use std::time::Instant;

use super::channel::{Reply, failed};
use super::fault::{Fault, Said};
use super::link::Link;
use super::seen::{Now, Seen};
use super::tree::{buckets, keys};
use super::wire::{In, Request, Stat, code};
use crate::store::kv::flights::{Gathered, Read, Turned};
use crate::store::kv::{Ask, Part};
use crate::store::net::deadline::Activity;
use crate::sys::random;

/// How many buckets of a list are read at first, and by how much more each time.
const BUCKETS: usize = 8;

pub(super) fn get(path: String) -> Request {
    Request::Get { path }
}

/// A node's data and its times.
fn node<'a>(reply: &'a Reply, request: &Request) -> Result<Option<(&'a [u8], Stat)>, Fault> {
    reply.found(request, |it| Some((it.buffer()?, it.stat()?)))
}

impl Link {
    /// `None`: the store was made, and the look starts over.
    pub(super) async fn look_once(
        &mut self,
        asked: &[Ask],
        turned: Option<&Turned>,
    ) -> Result<Option<Seen>, Fault> {
        let asked_at = Instant::now();
        let mut requests = vec![self.write_now(), get(self.tree.root().to_owned())];
        requests.extend(self.reads(asked));
        let guessed = self.known.guess(asked).to_vec();
        requests.extend(guessed.iter().map(|key| get(self.tree.entry(key))));
        let replies = self.channel.flight(&requests).await?;
        let mut both = requests.iter().zip(&replies);
        let mut next = || {
            both.next()
                .ok_or_else(|| Said::nonsense("a reply is missing"))
        };
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

    pub(super) fn write_now(&self) -> Request {
        Request::Set {
            path: self.tree.now(),
            data: Vec::new(),
            version: None,
        }
    }

    /// The requests for what is asked for, one each.
    pub(super) fn reads(&self, asked: &[Ask]) -> Vec<Request> {
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
    pub(super) async fn entries(
        &mut self,
        asked: &[Ask],
        first: &[(&Request, &Reply)],
        known: BTreeMap<String, Read>,
        now: &Now,
    ) -> Result<BTreeMap<String, Read>, Fault> {
        let mut gathered = Gathered::default();
        for (ask, (request, reply)) in asked.iter().zip(first) {
            match ask {
                Ask::One(key) => {
                    if let Some((data, stat)) = node(reply, request)? {
                        gathered.entries.insert(key.clone(), now.read(data, &stat));
                    }
                }
                Ask::Part(part) => {
                    let names = reply.found(request, In::names)?.unwrap_or_default();
                    gathered
                        .listed
                        .extend(self.part(part, &buckets(part, &names)).await?);
                }
            }
        }
        let unread = gathered.add_guessed(known);
        let requests: Vec<Request> = unread.iter().map(|key| get(self.tree.entry(key))).collect();
        if !requests.is_empty() {
            let replies = self.channel.flight(&requests).await?;
            for ((key, request), reply) in unread.into_iter().zip(&requests).zip(&replies) {
                if let Some((data, stat)) = node(reply, request)? {
                    gathered.entries.insert(key, now.read(data, &stat));
                }
            }
        }
        self.known.list(gathered.listed);
        Ok(gathered.entries)
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
}

#[cfg(test)]
#[path = "look_tests.rs"]
mod tests;
