//! A subscription to a group's releases: a connection of its own, which only the server writes to.

use std::sync::Arc;
use std::time::Duration;

use super::link::{Link, Session};
use crate::store::Notifier;

/// A subscription takes at most this part of a call's time: regular looks go on without it.
const PART: u32 = 2;

/// A connection that receives a channel's messages.
pub(super) struct Subscription {
    link: Link,
    channel: String,
}

impl Subscription {
    /// A new one. `None`: regular looks are what is left.
    pub(super) fn to(channel: &str, connection: &mut Session, timeout: Duration) -> Option<Self> {
        let link = connection.subscribe(timeout / PART, channel).ok()?;
        Some(Self {
            link,
            channel: channel.to_owned(),
        })
    }

    pub(super) fn is_to(&self, channel: &str) -> bool {
        self.channel == channel
    }

    /// The same one without what it has received. `None`: it is over, which would notify for ever.
    pub(super) fn cleared(mut self, connection: &mut Session) -> Option<Self> {
        connection.drain(&mut self.link).then_some(self)
    }

    /// Readable when a message has come, and when the connection is over.
    pub(super) fn notifier(&self) -> Notifier {
        Notifier(Arc::clone(&self.link.socket))
    }
}
