//! A subscription to a group's releases: a connection of its own, which only the server writes to.

use std::sync::Arc;
use std::time::Duration;

use super::connection::Connection;
use super::dial::Link;
use crate::store::Notifier;

/// A subscription takes at most this part of a call's time: regular looks go on without it.
const PART: u32 = 2;

/// A connection that receives a channel's messages.
pub(super) struct Subscription {
    link: Link,
    channel: String,
}

impl Subscription {
    /// The same one without what it has received, or a new one. `None`: regular looks are what is
    /// left.
    pub(super) fn renewed(
        kept: Option<Self>,
        connection: &mut Connection,
        timeout: Duration,
        channel: &str,
    ) -> Option<Self> {
        if let Some(mut kept) = kept.filter(|it| it.channel == channel)
            && connection.drain(&mut kept.link)
        {
            return Some(kept);
        }
        let link = connection.subscribe(timeout / PART, channel).ok()?;
        Some(Self {
            link,
            channel: channel.to_owned(),
        })
    }

    /// Readable when a message has come, and when the connection is over.
    pub(super) fn notifier(&self) -> Notifier {
        Notifier(Arc::clone(&self.link.socket))
    }
}
