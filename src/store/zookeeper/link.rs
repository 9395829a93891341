//! A connection to one server, and its session.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use super::channel::Channel;
use super::fault::{Fault, Said};
use super::seen::Now;
use super::settings::Settings;
use super::tree::Tree;
use crate::store::kv::Committed;
use crate::store::kv::flights::Known;
use crate::store::net::deadline::{Activity, Deadline};
use crate::store::net::dial::{Target, connect};
use crate::store::net::host::{Host, Place};
use crate::store::net::session::{self, bound};
use crate::store::net::verified_tls::secure;

/// A session is used for this part of the time that it lives without a word; then it ends by itself.
const PART_OF_SESSION: u32 = 2;

/// An open connection.
pub(in crate::store) struct Link {
    pub(super) channel: Channel,
    pub(super) tree: Tree,
    /// The socket, to be polled; closed with the link.
    pub(super) socket: Arc<OwnedFd>,
    pub(super) secured: bool,
    pub(super) known: Known<Now>,
}

impl Link {
    /// True while the session is used so often that it lives.
    pub(super) fn lives(&self) -> bool {
        let lives_ms = self.channel.lives_ms.unwrap_or_default();
        let lives = Duration::from_millis(u64::try_from(lives_ms).unwrap_or_default());
        self.channel.heard_at.elapsed() < lives / PART_OF_SESSION
    }
}

impl session::Link for Link {
    type Settings = Settings;
    type Said = Said;
    type Answer = Committed;

    async fn open(
        settings: &Settings,
        host: &Host,
        target: &Target,
        deadline: Deadline,
        may_defer: bool,
    ) -> Result<Self, Fault> {
        let dialled = connect(&settings.servers, target, deadline).await?;
        let wire = match (&settings.tls, &host.place) {
            (Some(files), Place::Tcp { to, .. }) => {
                let secured = secure(files, to, None, dialled.stream);
                bound(deadline, Activity::Securing, secured).await?
            }
            _ => dialled.stream,
        };
        let password = host.password.as_ref().map_or("", |it| it.0.as_str());
        let user = settings.user.as_ref();
        let secret = user.map(|user| format!("{user}:{password}"));
        let mut link = Self {
            channel: Channel::new(wire, settings.session_ms, secret),
            tree: Tree::new(&settings.path),
            socket: dialled.socket,
            secured: settings.tls.is_some(),
            known: Known::default(),
        };
        if !may_defer {
            bound(deadline, Activity::LoggingIn, link.channel.greet()).await?;
        }
        Ok(link)
    }

    async fn is_alive(&mut self) -> bool {
        self.lives() && self.channel.is_silent().await
    }

    async fn quit(&mut self) {
        self.channel.close().await;
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
