//! What `doctor` asks a server.

use super::super::fault::Fault;
use super::super::link::Link;
use super::super::look::get;
use super::super::wire::{In, Request};
use crate::store::kv::flights::Flights as _;

/// The right to change a node's data.
const WRITES: i32 = 2;

impl Link {
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
}

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
