//! Redis and Valkey: tokens for many hosts, as keys and values.
//!
//! Each look and each swap is one script, which the server carries out by itself. Every script asks
//! the server which incarnation it is, and whether it is a master; only a master answers. All keys
//! begin with one prefix, whose hash tag keeps them on one node of a cluster. An entry is a hash, a
//! list is a sorted set with the keys of its entries.
//!
//! The clock is the server's wall clock. The clock epoch is the incarnation: the server's process
//! (`run_id`), and after a promotion the history that it took over. A process that has started anew
//! may have forgotten a grant, whatever it is set to now.

pub mod examine;
pub mod settings;

mod fault;
mod link;
mod login;
pub(in crate::store) mod quorum;
mod reply;
mod script;

#[cfg(test)]
mod any_value;
#[cfg(test)]
mod peer_tests;
#[cfg(test)]
mod server_tests;
#[cfg(test)]
// Shared with the integration tests, which use more of it.
#[allow(dead_code)]
pub(crate) mod test_server;

use std::sync::Arc;
use std::time::Duration;

use self::link::{Command, Link, Session};
use self::script::Scripts;
use self::settings::Settings;
use super::kv::{Ask, Commit, Committed, Found, Kv};
use super::net::host::Settings as _;
use super::net::lookout::OtherServers;
use super::{Lookout, Notifier, StoreError};

/// Keys and values in a Redis or Valkey server.
pub struct RedisKv {
    connection: Session,
    scripts: Scripts,
    subscription: Option<Subscription>,
    timeout: Duration,
}

/// A subscription to a group's releases: a connection of its own, which only the server writes to.
struct Subscription {
    link: Link,
    channel: String,
}

/// A subscription takes at most this part of a call's time: regular looks go on without it.
const SUBSCRIBING: u32 = 2;

impl RedisKv {
    /// Keys and values of a server that is connected to at the first request. A call takes at most
    /// `timeout`. `application`: the connection's name on the server.
    pub fn new(settings: Settings, timeout: Duration, application: &str) -> Self {
        Self {
            connection: Session::new(settings.named(application)),
            scripts: Scripts::new(),
            subscription: None,
            timeout,
        }
    }

    fn clear_notification(&mut self) {
        // A connection that is over would notify for ever.
        if let Some(it) = &mut self.subscription
            && !self.connection.drain(&mut it.link)
        {
            self.subscription = None;
        }
    }

    /// Replaces the server's clock by a function `clock` of Lua's.
    #[cfg(test)]
    pub(crate) fn with_clock(self, clock: &str) -> Self {
        Self {
            scripts: Scripts::with_clock(clock),
            ..self
        }
    }
}

impl Kv for RedisKv {
    fn name(&self) -> &str {
        self.connection.store_name()
    }

    fn has_ticks(&self) -> bool {
        false
    }

    fn get(&mut self, asked: &[Ask]) -> Result<Found, StoreError> {
        // Before the read: a release in between is announced.
        self.clear_notification();
        let command = Command {
            bytes: self.scripts.read(self.connection.settings(), asked),
            only_reads: true,
        };
        let answer = self.connection.script(self.timeout, &command)?;
        Ok(*answer.found)
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, StoreError> {
        let command = Command {
            bytes: self.scripts.commit(self.connection.settings(), commit),
            only_reads: false,
        };
        let answer = self.connection.script(self.timeout, &command)?;
        Ok(Committed {
            outcome: answer.outcome,
            found: *answer.found,
        })
    }

    fn limit_of_near(&mut self) -> Option<&mut Duration> {
        let is_near = self.connection.settings().is_near();
        is_near.then_some(&mut self.timeout)
    }

    fn lookout(&self) -> Option<Arc<dyn Lookout>> {
        let settings = self.connection.settings();
        let in_use = self.connection.in_use();
        Some(Arc::new(OtherServers::of(settings, in_use, self.timeout)?))
    }

    fn subscribe(&mut self, channel: &str) {
        self.clear_notification();
        if self
            .subscription
            .as_ref()
            .is_none_or(|it| it.channel != channel)
        {
            let limit = self.timeout / SUBSCRIBING;
            // Without a subscription, regular looks are what is left.
            let link = self.connection.subscribe(limit, channel).ok();
            self.subscription = link.map(|link| Subscription {
                link,
                channel: channel.to_owned(),
            });
        }
    }

    fn notifier(&mut self) -> Option<Notifier> {
        // Readable when a message has come, and when the connection is over.
        let subscription = self.subscription.as_ref()?;
        Some(Notifier(Arc::clone(&subscription.link.socket)))
    }
}
