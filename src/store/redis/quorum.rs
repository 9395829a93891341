//! A majority of independent Redis or Valkey servers as one store, for as long as a majority of them keeps what it has
//! promised.
//!
//! A token, a note and a mark are *registers*: each changes by two rounds among the members (`register.rs`). What goes with
//! a token (a run, an act, a key that is done) is written in the same round, and a token that a majority does not have yet
//! is completed together with it. All else (places in a queue, outputs) is kept by its ballot alone. The members' lists are
//! united.
//!
//! Each member stamps by its own clock, and reports how old an entry is. The store's time is the majority's last of the
//! members' clocks; its epoch is the incarnation. A member that has started anew counts for nothing until it has joined
//! again (`rejoin.rs`). No URL names this store yet: it has not met faults.

mod attempt;
mod commit;
mod kinds;
mod look;
mod register;
mod rejoin;
mod round;
mod shown;
mod wish;

#[cfg(test)]
mod failure_tests;
#[cfg(test)]
mod member_tests;

use std::sync::Arc;
use std::time::Duration;

use self::round::Members;
use super::link::Link;
use super::settings::Settings;
use crate::store::kv::flights::Turned;
use crate::store::kv::{Ask, Commit, Committed, Found, Kv};
use crate::store::net::deadline::Deadline;
use crate::store::net::host::Settings as _;
use crate::store::{Notifier, StoreError};
use crate::sys::random;

/// A subscription takes at most this part of a call's time: regular looks go on without it.
const SUBSCRIBING: u32 = 2;

/// Keys and values of a majority of servers.
pub(in crate::store) struct QuorumKv {
    name: String,
    members: Members,
    subscription: Option<Subscription>,
    timeout: Duration,
    turned: Option<Turned>,
}

/// A subscription to a group's releases: a connection of its own, to one member.
struct Subscription {
    link: Link,
    channel: String,
}

impl QuorumKv {
    /// Keys and values of servers that are connected to at the first request. A call takes at most `timeout`.
    ///
    /// # Errors
    /// If the operating system gives no random number.
    pub(in crate::store) fn new(
        settings: Settings,
        timeout: Duration,
        application: &str,
    ) -> Result<Self, StoreError> {
        let drawn = random::bits64().map_err(|error| {
            StoreError::refused(format!(
                "the operating system gave no random number: {error}"
            ))
        })?;
        Ok(Self {
            name: settings.name(),
            members: Members::new(settings.named(application), drawn),
            subscription: None,
            timeout,
            turned: None,
        })
    }

    /// Replaces the servers' clocks.
    #[cfg(test)]
    pub(in crate::store) fn with_clock(self, clock: Turned) -> Self {
        Self {
            turned: Some(clock),
            ..self
        }
    }

    fn call<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Members, Deadline, Option<&Turned>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let turned = self.turned.as_ref();
        let work = async |members: &mut Members, deadline| work(members, deadline, turned).await;
        self.members.run(self.timeout, work)
    }

    /// Drops what has been announced. A connection that is over would notify for ever.
    fn clear_notification(&mut self) {
        if let Some(mut it) = self.subscription.take() {
            let kept = self.members.run(self.timeout, async |_, _| {
                Ok(it.link.drain().await.then_some(it))
            });
            self.subscription = kept.ok().flatten();
        }
    }
}

impl Kv for QuorumKv {
    fn name(&self) -> &str {
        &self.name
    }

    fn has_ticks(&self) -> bool {
        false
    }

    fn get(&mut self, asked: &[Ask]) -> Result<Found, StoreError> {
        // Before the read: a release in between is announced.
        self.clear_notification();
        self.call(async |members, deadline, turned| {
            look::look(members, deadline, turned, asked).await
        })
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, StoreError> {
        self.call(async |members, deadline, turned| {
            commit::commit(members, deadline, turned, commit).await
        })
    }

    fn subscribe(&mut self, channel: &str) {
        self.clear_notification();
        let subscribed = self.subscription.as_ref();
        if subscribed.is_some_and(|it| it.channel == channel) {
            return;
        }
        let limit = self.timeout / SUBSCRIBING;
        let link = self.members.run(limit, async |members, deadline| {
            members.subscribed(deadline, channel).await
        });
        // Without a subscription, regular looks are what is left.
        self.subscription = link.ok().map(|link| Subscription {
            link,
            channel: channel.to_owned(),
        });
    }

    fn notifier(&mut self) -> Option<Notifier> {
        let subscription = self.subscription.as_ref()?;
        Some(Notifier(Arc::clone(&subscription.link.socket)))
    }
}
