//! Examining an etcd store for `doctor`: what a server is asked, and which facts its answers are.

mod questions;
mod rules;

use super::fault::Said;
use super::link::Link;
use super::settings::Settings;
use crate::store::checkup::Tell;
use crate::store::checkup::rules::{Facts, Rule};
use crate::store::checkup::walk::{self, Ended, Examined};
use crate::store::net::dial::{Ends, ends};
use crate::token::{GroupName, Timing};

type Server<'a, 'b> = walk::Server<'a, 'b, Link>;

/// Examines every server that the settings name.
pub fn examine(
    settings: &Settings,
    timing: &Timing,
    group: Option<&GroupName>,
    tell: &mut Tell<'_>,
) {
    walk::examine::<Link>(settings, timing, group, tell);
}

impl Examined for Link {
    const RULES: &'static [Rule] = rules::RULES;

    fn facts(settings: &Settings) -> Facts {
        let mut facts = Facts::default();
        facts.extend(rules::WORDS);
        let user = settings.user.as_deref().unwrap_or("any user");
        facts.set("user", user);
        facts.set("database", format!("the keys {}/", settings.prefix));
        facts.set("prefix", &settings.prefix);
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
        let status = server.ask(async |link| link.status().await);
        let status = server.told("server", status)?;
        let facts = &mut server.facts;
        facts.set("release", &status.version);
        facts.flag("led", status.leader != 0);
        let header = status.header.unwrap_or_default();
        let place = match status.leader == header.member_id {
            true => "the leader",
            false => "a follower",
        };
        facts.set("place", place);
        // Servers of one cluster are one store.
        facts.set("id", format!("{:016x}", header.cluster_id));
        facts.flag("writable", status.leader != 0);
        facts.flag("fails_over", true);
        facts.set("megabytes", status.db_size / 1_000_000);
        server.judge("server");
        Ok(())
    }

    fn time(server: &mut Server<'_, '_>) -> Result<Option<i64>, Ended> {
        let clock = server.ask(async |link| link.passed().await);
        let micros = |seconds: Option<i64>| seconds.unwrap_or(0).saturating_mul(1_000_000);
        Ok(clock.ok().map(micros))
    }

    fn inspect(server: &mut Server<'_, '_>, group: Option<&GroupName>) -> Result<(), Ended> {
        if !server.facts.has("writable") {
            return Ok(());
        }
        let members = server.ask(async |link| link.members().await);
        let members = server.told("quorum", members)?;
        server.facts.set("members", members);
        server.judge("quorum");
        let alarms = server.ask(async |link| link.alarms().await);
        // Where users are checked, only root may read the alarms.
        server.facts.set("alarms", alarms.unwrap_or_default());
        server.judge("alarms");
        let kept = server.ask(async |link| link.keeps_all().await);
        server.facts.flag("keeps_all", kept.unwrap_or(false));
        server.judge("space");
        let allowed = server.ask(async |link| link.may_write().await);
        server.told("rights", allowed)?;
        server.judge("rights");
        let mut store = super::store(server.session.settings().clone(), server.limit);
        server.reads(&mut store, group);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
