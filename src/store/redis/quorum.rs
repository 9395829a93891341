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
//! again (`rejoin.rs`).

mod answers;
mod attempt;
mod commit;
mod gather;
mod kinds;
mod look;
mod plan;
mod register;
mod rejoin;
mod round;
mod shown;
mod wish;

#[cfg(test)]
mod failure_tests;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod interrupted_tests;
#[cfg(test)]
mod member_tests;
#[cfg(test)]
mod subscription_tests;

use std::os::fd::{AsFd, OwnedFd};
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
use crate::sys::events::any_of;
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

/// A subscription to a group's releases: connections of its own, to a majority of the members. One of them has accepted
/// each release.
struct Subscription {
    links: Vec<Link>,
    channel: String,
    /// Readable while one of them is.
    any: Arc<OwnedFd>,
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
        let drawn = random::bits64().map_err(StoreError::without_random)?;
        Ok(Self {
            name: settings.name(),
            members: Members::new(settings.named(application), drawn),
            subscription: None,
            timeout,
            turned: None,
        })
    }

    /// Looks only, and changes nothing at the members: what needs a change is an error.
    pub(in crate::store) fn that_changes_nothing(mut self) -> Self {
        self.members.changes_nothing = true;
        self
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
        let Some(it) = self.subscription.take() else {
            return;
        };
        let (links, channel, any) = (it.links, it.channel, it.any);
        let drained = self.members.run(self.timeout, async |members, _| {
            let mut kept = Vec::new();
            for mut link in links {
                if link.drain().await {
                    kept.push(link);
                }
            }
            Ok((kept.len() >= members.majority()).then_some(kept))
        });
        self.subscription = drained.ok().flatten().map(|links| Subscription {
            links,
            channel,
            any,
        });
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
            let committed = commit::commit(members, deadline, turned, commit).await;
            if members.has_unsure() {
                // Lets them join: a holder may be the only client for days.
                let _ = look::look(members, deadline, turned, &[]).await;
            }
            committed
        })
    }

    fn condition(&self) -> Option<String> {
        let (answering, all) = self.members.answering();
        Some(format!("{answering} of {all} servers answer"))
    }

    fn subscribe(&mut self, channel: &str) {
        self.clear_notification();
        let subscribed = self.subscription.as_ref();
        if subscribed.is_some_and(|it| it.channel == channel) {
            return;
        }
        let limit = self.timeout / SUBSCRIBING;
        let links = self.members.run(limit, async |members, deadline| {
            Ok(members.subscribed(deadline, channel).await)
        });
        let links = links.ok().filter(|it| it.len() >= self.members.majority());
        // Without a subscription, regular looks are what is left.
        self.subscription = links.and_then(|links| {
            let any = any_of(links.iter().map(|link| link.socket.as_fd())).ok()?;
            Some(Subscription {
                links,
                channel: channel.to_owned(),
                any: Arc::new(any),
            })
        });
    }

    fn notifier(&mut self) -> Option<Notifier> {
        let subscription = self.subscription.as_ref()?;
        Some(Notifier(Arc::clone(&subscription.any)))
    }
}
