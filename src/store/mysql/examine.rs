//! Examining a store of MySQL or MariaDB for `doctor`: each server of it, step by step, over the kind of
//! connection that a run makes. Every step has the time of a store's call, and nothing is written.

mod connecting;
mod durability;
mod rights;
mod server;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::cells::Cells;
use super::connection::Connection;
use super::settings::{Host, Settings};
use super::statements::{Statements, sql};
use super::tokens;
use crate::store::Trouble;
use crate::store::checkup::advice::precise;
use crate::store::checkup::{Check, Tell, advice};
use crate::store::sql::cell::Cell;
use crate::token::{GroupName, Timing};

use self::durability::Facts;
use self::server::Server;

/// How many round trips are measured.
const SAMPLES: usize = 20;

/// Nothing compares two clocks, but people do, and so do keys of `--once` that are dates.
const APART_US: i64 = 10_000_000;

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
    let several = settings.hosts.len() > 1;
    let mut writable = Vec::new();
    let mut fails_over = several;
    for host in &settings.hosts {
        let name = host.to_string();
        let mut on_host = |check: Check| tell(if several { check.on(&name) } else { check });
        match examine_host(settings, host, timing, group, &mut on_host) {
            Met::Writable { has_replicas } => {
                writable.push(name);
                fails_over |= has_replicas;
            }
            Met::ReadOnly | Met::Not => {}
        }
    }
    if several {
        tell(primary(&writable));
    }
    tell(advice::timing(timing, fails_over));
}

/// A server, as far as it was met.
enum Met {
    Writable { has_replicas: bool },
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
    let only = Settings {
        hosts: vec![host.clone()],
        ..settings.clone()
    };
    let mut connection = Connection::new(only, timing.store_timeout);
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
    let several = settings.hosts.len() > 1;
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
            Err(failed) if failed.is_read_only => {
                let check = read_only(several);
                self.tell(check);
                return Some(Met::ReadOnly);
            }
            Err(_) => Facts::of(&self.ask("server", sql!("doctor_facts"))?),
            Ok(answer) => Facts::of(&answer),
        };
        self.tell(durability::release(&facts));
        self.clock()?;
        let trips = self.round_trips()?;
        let servers = settings.hosts.len();
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
            self.group(timing, group)?;
        }
        Some(Met::Writable {
            has_replicas: facts.number("slaves_connected") > 0,
        })
    }

    /// The server's clock: whether statements can read it, and how far it is from this host's.
    fn clock(&mut self) -> Option<()> {
        const STEP: &str = "clock";
        let sent = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let begun = Instant::now();
        let answer = self.ask(STEP, sql!("doctor_clock"))?;
        let took = begun.elapsed();
        let mut cells = Cells::first(&answer)?;
        let began = cells.needed_number().ok()?;
        cells.text().ok()?;
        let now = cells.needed_number().ok()?;
        if now.saturating_sub(began) < 5_000 {
            self.tell(Check::fail(
                STEP,
                Trouble::Misconfigured,
                "the server gives statements the time of their start (sysdate-is-now): a swap that \
                 waited would not notice that it is late",
                "start the server without sysdate-is-now",
            ));
            return Some(());
        }
        let here = i64::try_from((sent + took).as_micros()).unwrap_or(i64::MAX);
        let apart = now.saturating_sub(here);
        let length = precise(Duration::from_micros(apart.unsigned_abs()));
        let give = precise(took);
        let found = match apart < 0 {
            true => format!("the server's is {length} behind this host's, give or take {give}"),
            false => format!("the server's is {length} ahead of this host's, give or take {give}"),
        };
        self.tell(match apart.abs() > APART_US {
            true => Check::warn(
                STEP,
                format!("{found}; no age depends on that, but dates and the fence do"),
                "have chrony or another NTP client on both hosts",
            ),
            false => Check::fine(STEP, found),
        });
        Some(())
    }

    fn round_trips(&mut self) -> Option<Vec<Duration>> {
        let mut trips = Vec::with_capacity(SAMPLES);
        for _ in 0..SAMPLES {
            let begun = Instant::now();
            self.ask("round_trip", "SELECT 1")?;
            trips.push(begun.elapsed());
        }
        Some(trips)
    }

    fn group(&mut self, timing: &Timing, group: Option<&GroupName>) -> Option<()> {
        let Some(group) = group else {
            return Some(());
        };
        let statement = Statements::default().of(sql!("read"), &[Cell::text(group)]);
        let answer = self.ask("group", &statement)?;
        let row = answer.rows.first()?;
        let check = match tokens::from_row(&answer, row) {
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
