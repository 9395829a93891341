//! Examining a PostgreSQL store for `doctor`: each server of it, step by step, over the kind of
//! connection that a run makes. Every step has the time of a store's call, and nothing is written.

pub(in crate::store) mod clock;
mod connecting;
mod failover;
mod limits;
mod met;
mod rights;
mod server;

use std::net::IpAddr;
use std::time::{Duration, Instant};

use tokio_postgres::Row;

use self::limits::Between;
use self::met::Met;
use self::server::{Over, Server, flag, number, text};
use super::cells::cells;
use super::conninfo::settings::Settings;
use super::link::Session;
use super::statements::Statements;
use super::statements::sql;
use crate::store::Trouble;
use crate::store::checkup::clock::{Sample, judge, offset};
use crate::store::checkup::{Check, Tell, advice};
use crate::store::net::host::{Host, Settings as _};
use crate::store::net::lookout::Identify;
use crate::store::sql::cell::Cell;
use crate::store::sql::server::tables::token_in;
use crate::token::{GroupName, Timing};

/// The oldest supported release, as `server_version_num`.
const OLDEST: i32 = 150_000;

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
    let mut met = Vec::new();
    for host in &settings.servers.hosts {
        let name = host.to_string();
        let mut on_host = |check: Check| tell(if several { check.on(&name) } else { check });
        met.extend(examine_host(settings, host, timing, group, &mut on_host));
    }
    if several {
        tell(failover::primary(&met));
        if let Some(check) = failover::clocks(&met) {
            tell(check);
        }
    }
    let fails_over = several || met.iter().any(|met| met.has_standbys);
    tell(advice::timing(timing, fails_over));
}

impl Identify for Settings {
    fn writable(self, limit: Duration) -> Option<String> {
        let host = self.servers.hosts.first()?.clone();
        let statement = Statements::new(&self.schema).doctor_server();
        let rows = Session::new(self).query(limit, &statement, &[]).ok()?;
        let met = Met::of(&host, rows.first()?);
        Some(match met.is_writable {
            true => met.started,
            false => String::new(),
        })
    }
}

fn examine_host(
    settings: &Settings,
    host: &Host,
    timing: &Timing,
    group: Option<&GroupName>,
    tell: &mut Tell<'_>,
) -> Option<Met> {
    let mut connection = Session::new(settings.only(host));
    let begun = Instant::now();
    let mut addresses = Vec::new();
    let looked = connection.look_up(timing.store_timeout);
    let connected = looked.and_then(|found| {
        addresses = found;
        connection.connect(timing.store_timeout)
    });
    connecting::name(host, &addresses)
        .into_iter()
        .for_each(&mut *tell);
    if let Err(fault) = connected {
        let checks = connecting::failed(settings, host, &addresses, &fault);
        checks.into_iter().for_each(&mut *tell);
        return None;
    }
    let to = connection.ends().map(|ends| ends.peer.to_string());
    let to = to.unwrap_or_else(|| connecting::peer(host, &addresses));
    tell(connecting::connected(&to));
    let (user, database) = (&settings.user, &settings.dbname);
    tell(Check::fine("login", format!("as {user} to {database}")));
    let mut server = Server {
        connection,
        statements: Statements::new(&settings.schema),
        host: host.clone(),
        limit: timing.store_timeout,
        begun,
        tell,
    };
    let mut met = None;
    // The check that ended it has been reported.
    let _ = server.examine(settings, timing, group, &mut met);
    met
}

impl Server<'_, '_> {
    fn examine(
        &mut self,
        settings: &Settings,
        timing: &Timing,
        group: Option<&GroupName>,
        met: &mut Option<Met>,
    ) -> Result<(), Over> {
        let Some(row) = self.ask("server", &self.statements.doctor_server())? else {
            return Ok(());
        };
        let is_standby = flag(&row, "standby");
        let several = settings.servers.hosts.len() > 1;
        self.tell(release(&row, is_standby, several));
        *met = Some(Met::of(&self.host, &row));
        let between = self.between()?;
        let peer = self.connection.ends().map(|ends| ends.peer);
        let made = connecting::Made::new(peer, self.connection.is_secured(), between);
        connecting::examine(self, settings, &made, row.try_get("number").unwrap_or(0))?;
        let samples = clock::samples(self)?;
        let offset = offset(&samples);
        if let Some(met) = met {
            met.clock = offset;
        }
        self.tell(judge(&samples));
        let trips: Vec<Duration> = samples.iter().map(Sample::round_trip).collect();
        let servers = settings.servers.hosts.len();
        self.tell(advice::round_trip(
            "an answer takes",
            &trips,
            timing,
            servers,
        ));
        if is_standby {
            return Ok(());
        }
        let readable = rights::examine(self, settings)?;
        if let (Some(true), Some(met)) = (failover::examine(self, several)?, met) {
            met.has_standbys = true;
        }
        limits::examine(self, timing, between)?;
        if readable {
            clock::stamps(self)?;
            self.group(timing, group)?;
        }
        Ok(())
    }

    /// What is between this process and the server.
    fn between(&mut self) -> Result<Between, Over> {
        let Some(row) = self.ask_aside("pooler", &self.statements.doctor_pooler())? else {
            return Ok(Between::Unknown);
        };
        let lasted = self.begun.elapsed();
        let age = Duration::from_millis(number(&row, "age_ms").unsigned_abs());
        let own = self.connection.ends().map(|ends| ends.own);
        let between = limits::between(own, client(&row), age, lasted);
        self.tell(limits::pooler(between, own));
        Ok(between)
    }

    fn group(&mut self, timing: &Timing, group: Option<&GroupName>) -> Result<(), Over> {
        let Some(group) = group else { return Ok(()) };
        let statement = sql!("read");
        let rows = self.ask_with(
            "group",
            statement,
            &[Cell::text(group), Cell::Text(None)],
            Check::fail,
        )?;
        let Some(row) = rows.as_ref().and_then(|rows| rows.first()) else {
            return Ok(());
        };
        let check = match token_in(|columns| cells(row, columns)) {
            Ok(row) => advice::group(group, row.as_ref(), timing),
            Err(bad) => Check::fail(
                "group",
                Trouble::Misconfigured,
                format!("the row's {} {}", bad.column, bad.what),
                "correct it in the table tokens, or put a backup back",
            ),
        };
        self.tell(check);
        Ok(())
    }
}

/// The address of this connection as the server sees it.
fn client(row: &Row) -> limits::Client {
    let address = row.try_get::<_, Option<String>>("client_address");
    let port = row.try_get::<_, Option<i32>>("client_port");
    let address: IpAddr = address.ok()??.parse().ok()?;
    Some((address.to_canonical(), u16::try_from(port.ok()??).ok()?))
}

fn release(row: &Row, is_standby: bool, several: bool) -> Check {
    const STEP: &str = "server";
    let number = row.try_get("number").unwrap_or(0);
    let version = text(row, "version");
    let kind = if is_standby { "a standby" } else { "a primary" };
    let found = format!("PostgreSQL {version}, {kind}");
    let misconfigured = Trouble::Misconfigured;
    if number < OLDEST {
        return Check::fail(STEP, misconfigured, found, "use PostgreSQL 15 or newer");
    }
    if is_standby && !several {
        return Check::fail(
            STEP,
            Trouble::Unavailable,
            format!("{found}, where no token can be written"),
            "name the primary, or all servers that may become it (host=db1,db2)",
        );
    }
    if !is_standby && flag(row, "read_only") {
        return Check::fail(
            STEP,
            misconfigured,
            format!("{found}, where transactions are read-only by default"),
            "set default_transaction_read_only = off, for the role at least",
        );
    }
    Check::fine(STEP, found)
}
