//! Examining a store of MySQL or MariaDB for `doctor`: each server of it, step by step, over the kind of
//! connection that a run makes. Every step has the time of a store's call, and nothing is written.

mod clock;
mod connecting;
mod durability;
mod rights;
mod server;
mod tables;

use std::time::Duration;

use super::cells::{Cells, cells};
use super::link::Session;
use super::settings::Settings;
use super::statements::{Statements, WHICH_SERVER, sql};
use crate::store::Trouble;
use crate::store::checkup::clock::{Sample, judge};
use crate::store::checkup::{Check, Tell, advice};
use crate::store::net::host::{Host, Settings as _};
use crate::store::sql::cell::Cell;
use crate::store::sql::server::tables::token_in;
use crate::token::{GroupName, Timing};

use self::durability::Facts;
use self::server::Server;

/// Examines every server that the settings name.
pub fn examine(
    settings: &Settings,
    timing: &Timing,
    group: Option<&GroupName>,
    tell: &mut Tell<'_>,
) {
    for warning in &settings.warnings {
        tell(Check::warn("settings", warning, "see to that file"));
    }
    let several = settings.servers.hosts.len() > 1;
    let mut writable = Vec::new();
    let mut fails_over = several;
    for host in &settings.servers.hosts {
        let name = host.to_string();
        let mut on_host = |check: Check| tell(if several { check.on(&name) } else { check });
        match examine_host(settings, host, timing, group, &mut on_host) {
            Met::Writable { id, has_replicas } => {
                // Two names of one server are one.
                if writable.iter().all(|(known, _)| *known != id) {
                    writable.push((id, name));
                }
                fails_over |= has_replicas;
            }
            Met::ReadOnly | Met::Not => {}
        }
    }
    if several {
        let names: Vec<String> = writable.into_iter().map(|(_, name)| name).collect();
        tell(primary(&names));
    }
    tell(advice::timing(timing, fails_over));
}

/// A server, as far as it was met.
enum Met {
    Writable { id: String, has_replicas: bool },
    ReadOnly,
    Not,
}

/// Whether one server of several accepts writes.
fn primary(writable: &[String]) -> Check {
    const STEP: &str = "primary";
    match writable {
        [] => Check::fail(
            STEP,
            Trouble::Unavailable,
            "no server accepts writes",
            "have one server without read_only",
        ),
        [one] => Check::fine(STEP, format!("{one} accepts writes, and no other")),
        several => Check::fail(
            STEP,
            Trouble::Misconfigured,
            format!(
                "several servers accept writes: {}; each can grant the token",
                several.join(", ")
            ),
            "set read_only = ON on all but one",
        ),
    }
}

fn examine_host(
    settings: &Settings,
    host: &Host,
    timing: &Timing,
    group: Option<&GroupName>,
    tell: &mut Tell<'_>,
) -> Met {
    let mut only = settings.only(host);
    only.timeout = timing.store_timeout;
    let mut connection = Session::new(only);
    let mut addresses = Vec::new();
    let looked = connection.look_up(timing.store_timeout);
    let connected = looked.and_then(|found| {
        addresses = found;
        connection.connect(timing.store_timeout)
    });
    if let Some(check) = connecting::name(host, &addresses) {
        tell(check);
    }
    if let Err(fault) = connected {
        let checks = connecting::failed(settings, host, &fault);
        checks.into_iter().for_each(&mut *tell);
        return Met::Not;
    }
    tell(connecting::connected(host, &connection));
    tell(connecting::tls(settings, host, &connection));
    let found = format!("as {} to {}", settings.user, settings.database);
    tell(Check::fine("login", found));
    let mut server = Server {
        connection,
        limit: timing.store_timeout,
        tell,
    };
    let several = settings.servers.hosts.len() > 1;
    server
        .examine(timing, settings, group, several)
        .unwrap_or(Met::Not)
}

impl Server<'_, '_> {
    fn examine(
        &mut self,
        timing: &Timing,
        settings: &Settings,
        group: Option<&GroupName>,
        several: bool,
    ) -> Option<Met> {
        let facts = match self.connection.ask(self.limit, sql!("doctor_facts")) {
            Err(failed) if failed.is_elsewhere => {
                let check = read_only(several);
                self.tell(check);
                return Some(Met::ReadOnly);
            }
            Err(_) => Facts::of(&self.ask("server", sql!("doctor_facts"))?),
            Ok(answer) => Facts::of(&answer),
        };
        self.tell(durability::release(&facts));
        self.proxy()?;
        let samples = clock::samples(self)?;
        let stands_still = clock::stands_still(self)?;
        self.tell(stands_still.unwrap_or_else(|| judge(&samples)));
        let trips: Vec<Duration> = samples.iter().map(Sample::round_trip).collect();
        let servers = settings.servers.hosts.len();
        self.tell(advice::round_trip(
            "an answer takes",
            &trips,
            timing,
            servers,
        ));
        let readable = rights::examine(self, &settings.database)?;
        for check in durability::judge(&facts, several) {
            self.tell(check);
        }
        if readable {
            tables::engines(self)?;
            tables::fence(self);
            clock::stamps(self)?;
            self.group(timing, group)?;
        }
        let answer = self.ask("server", WHICH_SERVER)?;
        let id = Cells::first(&answer)?.needed_text().ok()?.to_owned();
        Some(Met::Writable {
            id,
            has_replicas: facts.number("slaves_connected") > 0,
        })
    }

    /// Whether a program that speaks the protocol is between this process and the server: the number of the
    /// session is then not the one that the login named, whose low 32 bits are on the wire.
    fn proxy(&mut self) -> Option<()> {
        const STEP: &str = "proxy";
        let answer = self.ask(STEP, sql!("doctor_session"))?;
        let id = Cells::first(&answer)?.needed_number().ok()?;
        let greeted = self.connection.link()?.session;
        if i64::from(greeted) == id & 0xffff_ffff {
            return Some(());
        }
        self.tell(Check::warn(
            STEP,
            format!(
                "a proxy answers in the place of the server: its session is {greeted}, the server's is {id}"
            ),
            "let the proxy send all statements of tokenrun's user to the server that accepts writes, reads \
             too, and keep each session on one connection (ProxySQL: transaction_persistent, no rules for \
             SELECT); or name the servers themselves in the store",
        ));
        Some(())
    }

    fn group(&mut self, timing: &Timing, group: Option<&GroupName>) -> Option<()> {
        let Some(group) = group else {
            return Some(());
        };
        let values = [Cell::text(group), Cell::Text(None)];
        let statement = Statements::default().of(sql!("read"), &values);
        let answer = self.ask("group", &statement)?;
        let row = answer.rows.first()?;
        let check = match token_in(|columns| cells(&answer, row, columns)) {
            Ok(row) => advice::group(group, row.as_ref(), timing),
            Err(bad) => Check::fail(
                "group",
                Trouble::Misconfigured,
                format!("the row's {} {}", bad.column, bad.what),
                "correct it in the table tokenrun_tokens, or put a backup back",
            ),
        };
        self.tell(check);
        Some(())
    }
}

fn read_only(several: bool) -> Check {
    const STEP: &str = "server";
    let found = "read_only is on";
    if several {
        return Check::fine(STEP, found);
    }
    Check::fail(
        STEP,
        Trouble::Unavailable,
        format!("{found}, and no token can be written here"),
        "name the server that accepts writes, or all servers that may become it \
         (mysql://user@db1,db2/database)",
    )
}
