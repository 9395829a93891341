//! ZooKeeper: tokens for many hosts, in an ensemble that loses no commit.
//!
//! All nodes are under one path. A look writes one node, in the same flight as its reads: the server's answer has the
//! leader's time, and makes the reads current. A commit is a look at all that it touches, and one transaction that compares
//! the nodes' versions. The clock is the leader's wall clock, and a clock epoch is a leader's term of office.

pub mod examine;
pub mod settings;

mod channel;
mod fault;
mod link;
mod tree;
mod wire;

#[cfg(test)]
// Shared with the integration tests, which use more of it.
#[allow(dead_code)]
pub(crate) mod test_server;

use std::sync::Arc;
use std::time::Duration;

use self::link::{Link, Question, Session, Turned, What};
use self::settings::Settings;
use self::wire::Request;
use super::kv::{Ask, Commit, Committed, Found, Kv, KvStore};
use super::net::deadline::Activity;
use super::net::session::bound;
use super::{Notifier, StoreError};

/// A token store in a ZooKeeper ensemble.
pub type ZkStore = KvStore<ZkKv>;

/// Keys and values in a ZooKeeper ensemble.
pub struct ZkKv {
    session: Session,
    subscription: Option<Subscription>,
    timeout: Duration,
    /// A clock that a test sets.
    turned: Option<Turned>,
}

/// A watch of a group's releases: a connection of its own.
struct Subscription {
    link: Link,
    channel: String,
}

/// A subscription takes at most this part of a call's time: regular looks go on without it.
const SUBSCRIBING: u32 = 2;

/// How long dropping what has come may take; it waits for nothing.
const DRAINING: Duration = Duration::from_secs(1);

impl ZkKv {
    /// Keys and values of an ensemble that is connected to at the first request. A call takes at most `timeout`, and so
    /// long the servers may carry a request out: then its session has ended.
    pub fn new(settings: Settings, timeout: Duration) -> Self {
        let session_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        Self {
            session: Session::new(Settings {
                session_ms,
                ..settings
            }),
            subscription: None,
            timeout,
            turned: None,
        }
    }

    /// Replaces the ensemble's clock.
    #[cfg(test)]
    pub(crate) fn with_clock(self, clock: Turned) -> Self {
        Self {
            turned: Some(clock),
            ..self
        }
    }

    fn ask(&mut self, what: What<'_>) -> Result<Committed, StoreError> {
        let question = Question {
            what,
            turned: self.turned.as_ref(),
        };
        let answer = self.session.ask(self.timeout, &question);
        answer.map_err(|failed| failed.error)
    }

    fn clear_notification(&mut self) {
        // A connection that is over would notify for ever.
        if let Some(it) = &mut self.subscription {
            let channel = &mut it.link.channel;
            let drained = self.session.run(DRAINING, async |_, deadline| {
                bound(deadline, Activity::Asking, async {
                    Ok(channel.drain().await)
                })
                .await
            });
            if !drained.unwrap_or(false) {
                self.subscription = None;
            }
        }
    }

    /// Says a word for a subscription whose session would end.
    fn keep_subscription(&mut self) {
        let Some(it) = self.subscription.as_mut().filter(|it| !it.link.lives()) else {
            return;
        };
        let channel = &mut it.link.channel;
        let kept = self.session.run(DRAINING, async |_, deadline| {
            bound(deadline, Activity::Asking, channel.flight(&[Request::Ping])).await
        });
        if kept.is_err() {
            self.subscription = None;
        }
    }
}

impl Kv for ZkKv {
    fn name(&self) -> &str {
        self.session.store_name()
    }

    fn has_ticks(&self) -> bool {
        false
    }

    fn get(&mut self, asked: &[Ask]) -> Result<Found, StoreError> {
        // Before the read: a release in between is announced.
        self.clear_notification();
        self.ask(What::Get(asked)).map(|answer| answer.found)
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, StoreError> {
        self.ask(What::Commit(commit))
    }

    fn subscribe(&mut self, channel: &str) {
        self.clear_notification();
        self.keep_subscription();
        let is_kept = self
            .subscription
            .as_ref()
            .is_some_and(|it| it.channel == channel);
        if is_kept {
            return;
        }
        let limit = self.timeout / SUBSCRIBING;
        let opened = self.session.run(limit, async |session, deadline| {
            let mut link = session.another(deadline).await?;
            bound(deadline, Activity::Asking, link.watch(channel)).await?;
            Ok(link)
        });
        // Without a watch, regular looks are what is left.
        self.subscription = opened.ok().map(|link| Subscription {
            link,
            channel: channel.to_owned(),
        });
    }

    fn notifier(&mut self) -> Option<Notifier> {
        // Readable when an event has come, and when the connection is over.
        let subscription = self.subscription.as_ref()?;
        Some(Notifier(Arc::clone(&subscription.link.socket)))
    }
}

#[cfg(test)]
mod server_tests;
