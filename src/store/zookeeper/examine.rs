//! Examining a ZooKeeper store for `doctor`: what a server is asked, and which facts its answers are.

mod questions;
mod rules;

use super::fault::Said;
use super::link::Link;
use super::settings::Settings;
use crate::store::checkup::Tell;
use crate::store::checkup::rules::{Facts, Rule};
use crate::store::checkup::walk::{self, Ended, Examined};
use crate::store::net::deadline::Activity;
use crate::store::net::dial::{Ends, ends, targets};
use crate::store::net::fault::Fault;
use crate::store::net::session::{Link as _, bound};
use crate::token::{GroupName, Timing};

type Server<'a, 'b> = walk::Server<'a, 'b, Link>;

/// Examines every server that the settings name.
pub fn examine(
    settings: &Settings,
    timing: &Timing,
    group: Option<&GroupName>,
    tell: &mut Tell<'_>,
) {
    let settings = settings.clone().with_session(timing.store_timeout);
    walk::examine::<Link>(&settings, timing, group, tell);
}

impl Examined for Link {
    const RULES: &'static [Rule] = rules::RULES;

    fn facts(settings: &Settings) -> Facts {
        let mut facts = Facts::default();
        facts.extend(rules::WORDS);
        let user = settings.user.as_deref().unwrap_or("any user");
        facts.set("user", user);
        facts.set("database", format!("the nodes under {}", settings.path));
        facts.set("path", &settings.path);
        facts
    }

    fn wire(&self) -> (Option<Ends>, bool) {
        (ends(&self.socket), self.secured)
    }

    fn refused(said: &Said) -> (&'static str, &'static str) {
        rules::refused(said)
    }

    fn identify(server: &mut Server<'_, '_>) -> Result<(), Ended> {
        server.judge("tls");
        // An administrator may have switched this question off.
        let words = words(server).unwrap_or_default();
        let line = |name: &str| words.lines().find_map(|line| line.strip_prefix(name));
        let release = line("Zookeeper version: ").and_then(|it| it.split(['-', ',']).next());
        let facts = &mut server.facts;
        facts.set("release", release.unwrap_or("of unknown version"));
        facts.set("place", line("Mode: ").unwrap_or("unknown role"));
        let now = server.ask(async |link| link.now().await);
        let (id, _) = server.told("server", now)?;
        // Servers of one ensemble are one store.
        server.facts.set("id", id);
        server.facts.flag("writable", true);
        server.facts.flag("fails_over", true);
        server.judge("server");
        Ok(())
    }

    fn time(server: &mut Server<'_, '_>) -> Result<Option<i64>, Ended> {
        let now = server.ask(async |link| link.now().await);
        Ok(now.ok().map(|(_, ms)| ms.saturating_mul(1_000)))
    }

    fn inspect(server: &mut Server<'_, '_>, group: Option<&GroupName>) -> Result<(), Ended> {
        let members = server.ask(async |link| link.members().await);
        server.facts.set("members", members.unwrap_or_default());
        server.judge("quorum");
        let open = server.ask(async |link| link.is_open_to_all().await);
        let open = server.told("rights", open)?;
        server.facts.flag("open", open);
        server.judge("rights");
        let mut store = super::store(server.session.settings().clone(), server.limit);
        server.reads(&mut store, group);
        Ok(())
    }
}

/// What the server says of itself, over a connection of its own.
fn words(server: &mut Server<'_, '_>) -> Result<String, super::fault::Fault> {
    server.session.run(server.limit, async |session, deadline| {
        let host = session.settings().servers.hosts.first();
        let host = host.ok_or_else(Fault::no_server)?.clone();
        let places = targets(&host, deadline).await?;
        let place = places.first().ok_or_else(Fault::no_server)?;
        let link = Link::open(session.settings(), &host, place, deadline, true).await?;
        bound(deadline, Activity::Asking, link.channel.words()).await
    })
}

#[cfg(test)]
mod tests;
