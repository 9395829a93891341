//! Examining an etcd store for `doctor`: what a server is asked, and which facts its answers are.

mod rules;

use super::fault::{Fault, Said};
use super::link::Link;
use super::settings::Settings;
use super::{EtcdKv, EtcdStore};
use crate::store::Tokens as _;
use crate::store::checkup::rules::{Facts, Rule};
use crate::store::checkup::walk::{self, Ended, Examined};
use crate::store::checkup::{Check, Tell, advice};
use crate::store::net::deadline::Activity;
use crate::store::net::dial::{Ends, ends};
use crate::store::net::session::bound;
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
        let status = ask(server, async |link| link.status().await);
        let status = told(server, "server", status)?;
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
        let clock = ask(server, async |link| link.passed().await);
        let micros = |seconds: Option<i64>| seconds.unwrap_or(0).saturating_mul(1_000_000);
        Ok(clock.ok().map(micros))
    }

    fn inspect(server: &mut Server<'_, '_>, group: Option<&GroupName>) -> Result<(), Ended> {
        if !server.facts.has("writable") {
            return Ok(());
        }
        let members = ask(server, async |link| link.members().await);
        let members = told(server, "quorum", members)?;
        server.facts.set("members", members);
        server.judge("quorum");
        let alarms = ask(server, async |link| link.alarms().await);
        // Where users are checked, only root may read the alarms.
        server.facts.set("alarms", alarms.unwrap_or_default());
        server.judge("alarms");
        let kept = ask(server, async |link| link.keeps_all().await);
        server.facts.flag("keeps_all", kept.unwrap_or(false));
        server.judge("space");
        let allowed = ask(server, async |link| link.may_write().await);
        told(server, "rights", allowed)?;
        server.judge("rights");
        read(server, group);
        Ok(())
    }
}

/// Asks over the connection to this server.
fn ask<T>(
    server: &mut Server<'_, '_>,
    question: impl AsyncFnOnce(&mut Link) -> Result<T, Fault>,
) -> Result<T, Fault> {
    server.session.run(server.limit, async |session, deadline| {
        let mut link = session.first_link(deadline).await?;
        let answer = bound(deadline, Activity::Asking, question(&mut link)).await;
        session.keep(link);
        answer
    })
}

/// The answer; a fault is told, and ends the examination of this server.
fn told<T>(
    server: &mut Server<'_, '_>,
    step: &'static str,
    answer: Result<T, Fault>,
) -> Result<T, Ended> {
    answer.map_err(|fault| {
        let remedy = fault.remedy().unwrap_or("see the server's log");
        server.tell(Check::fail(step, fault.trouble(), fault.words(), remedy));
        Ended
    })
}

/// Reads a token as a run does: this group's, or any.
fn read(server: &mut Server<'_, '_>, group: Option<&GroupName>) {
    let Ok(any) = GroupName::new("doctor") else {
        return;
    };
    let kv = EtcdKv::new(server.session.settings().clone(), server.limit);
    let check = match (EtcdStore::new(kv).read(group.unwrap_or(&any)), group) {
        (Ok(_), None) => return,
        (Ok(reading), Some(group)) => advice::group(group, reading.row.as_ref(), server.timing),
        (Err(error), group) => Check::fail(
            if group.is_some() { "group" } else { "read" },
            error.trouble,
            error.what.clone(),
            error
                .remedy
                .unwrap_or_else(|| "see the server's log".into()),
        ),
    };
    server.tell(check);
}

#[cfg(test)]
mod tests;
