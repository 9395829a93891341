//! A connection to one server, and its log-in.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use super::clock::Epoch;
use super::entry::Keys;
use super::fault::{Fault, Said};
use super::grpc::{Channel, Incoming};
use super::messages::{AuthenticateRequest, AuthenticateResponse, TxnRequest, TxnResponse};
use super::seen::Clocked;
use super::settings::Settings;
use crate::store::kv::Committed;
use crate::store::kv::flights::Known;
use crate::store::net::deadline::{Activity, Deadline};
use crate::store::net::dial::{Target, connect};
use crate::store::net::host::{Host, Place};
use crate::store::net::limit::LONGEST_ANSWER;
use crate::store::net::session::{self, bound};
use crate::store::net::verified_tls::secure;

/// The longest answer without entries, in bytes.
pub(super) const SHORT: usize = 64 * 1024;

/// An open connection.
pub(in crate::store) struct Link {
    pub(super) channel: Channel,
    pub(super) keys: Keys,
    /// The socket, to be polled; closed with the link.
    pub(super) socket: Arc<OwnedFd>,
    pub(super) secured: bool,
    /// The last reading of the clock, and when it came.
    pub(super) last: Option<(Epoch, i64, Instant)>,
    pub(super) known: Known<Clocked>,
    /// The announcements of a watch.
    pub(super) incoming: Option<Incoming>,
}

impl Link {
    pub(super) async fn txn(&mut self, request: &TxnRequest) -> Result<TxnResponse, Fault> {
        self.channel
            .call("/etcdserverpb.KV/Txn", request, LONGEST_ANSWER)
            .await
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
        _may_defer: bool,
    ) -> Result<Self, Fault> {
        let dialled = connect(&settings.servers, target, deadline).await?;
        let (wire, scheme) = match (&settings.tls, &host.place) {
            (Some(files), Place::Tcp { to, .. }) => {
                let secured = secure(files, to, Some("h2"), dialled.stream);
                (bound(deadline, Activity::Securing, secured).await?, "https")
            }
            _ => (dialled.stream, "http"),
        };
        let opening = Channel::open(wire, format!("{scheme}://{host}"));
        let channel = bound(deadline, Activity::LoggingIn, opening).await?;
        let mut link = Self {
            channel,
            keys: Keys::new(&settings.prefix),
            socket: dialled.socket,
            secured: settings.tls.is_some(),
            last: None,
            known: Known::default(),
            incoming: None,
        };
        if let Some(user) = &settings.user {
            let request = AuthenticateRequest {
                name: user.clone(),
                password: host
                    .password
                    .as_ref()
                    .map_or_else(String::new, |it| it.0.clone()),
            };
            let path = "/etcdserverpb.Auth/Authenticate";
            let asking = link.channel.call(path, &request, SHORT);
            let answer: AuthenticateResponse = bound(deadline, Activity::LoggingIn, asking).await?;
            link.channel.set_token(&answer.token);
        }
        Ok(link)
    }

    async fn is_alive(&mut self) -> bool {
        self.channel.is_open().await
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
