//! etcd: tokens for many hosts, in a cluster that loses no commit.
//!
//! All keys begin with one prefix. An entry is one key, and one more for its place in each list. A look reads the
//! entries and the clock in one flight; a commit is a look at all that it touches, and one transaction that compares
//! the server's own revisions. No answer of etcd has a time: the clock is a lease that never ends (`clock.rs`).

pub mod examine;
pub mod settings;

mod clock;
mod entry;
mod fault;
mod grpc;
mod link;
mod messages;

#[cfg(test)]
// Shared with the integration tests, which use more of it.
#[allow(dead_code)]
pub(crate) mod test_server;

use std::sync::Arc;
use std::time::Duration;

use self::entry::STEP_MS;
use self::grpc::Incoming;
use self::link::{Link, Question, Session, Turned, What};
use self::settings::Settings;
use super::kv::{Ask, Commit, Committed, Found, Kv, KvStore};
use super::{Notifier, StoreError};

/// A token store in an etcd cluster.
pub type EtcdStore = KvStore<EtcdKv>;

/// Keys and values in an etcd cluster.
pub struct EtcdKv {
    session: Session,
    subscription: Option<Subscription>,
    timeout: Duration,
    /// A clock that a test sets.
    turned: Option<Turned>,
}

/// A watch of a group's releases: a connection of its own, which only the server writes to.
struct Subscription {
    link: Link,
    incoming: Incoming,
    channel: String,
}

/// A subscription takes at most this part of a call's time: regular looks go on without it.
const SUBSCRIBING: u32 = 2;

/// How long dropping what has come may take; it waits for nothing.
const DRAINING: Duration = Duration::from_secs(1);

impl EtcdKv {
    /// Keys and values of a cluster that is connected to at the first request. A call takes at most `timeout`.
    pub fn new(settings: Settings, timeout: Duration) -> Self {
        Self {
            session: Session::new(settings),
            subscription: None,
            timeout,
            turned: None,
        }
    }

    /// Replaces the cluster's clock.
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
            let (link, incoming) = (&mut it.link, &mut it.incoming);
            let drained = self
                .session
                .run(DRAINING, async |_, _| Ok(link.drain(incoming).await));
            if !drained.unwrap_or(false) {
                self.subscription = None;
            }
        }
    }
}

impl Kv for EtcdKv {
    fn name(&self) -> &str {
        self.session.store_name()
    }

    fn has_ticks(&self) -> bool {
        true
    }

    fn step(&self) -> Duration {
        match self.turned {
            Some(_) => Duration::ZERO,
            None => Duration::from_millis(STEP_MS.unsigned_abs()),
        }
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
        if self
            .subscription
            .as_ref()
            .is_none_or(|it| it.channel != channel)
        {
            let limit = self.timeout / SUBSCRIBING;
            let opened = self.session.run(limit, async |session, deadline| {
                let mut link = session.another(deadline).await?;
                let incoming =
                    deadline.bound(super::net::deadline::Activity::Asking, link.watch(channel));
                let incoming = incoming.await??;
                Ok((link, incoming))
            });
            // Without a watch, regular looks are what is left.
            self.subscription = opened.ok().map(|(link, incoming)| Subscription {
                link,
                incoming,
                channel: channel.to_owned(),
            });
        }
    }

    fn notifier(&mut self) -> Option<Notifier> {
        // Readable when an event has come, and when the connection is over.
        let subscription = self.subscription.as_ref()?;
        Some(Notifier(Arc::clone(&subscription.link.socket)))
    }
}

#[cfg(test)]
mod late_tests;
