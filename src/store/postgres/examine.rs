//! Examining a PostgreSQL store for `doctor`: what a server is asked, and which facts its answers are.

mod rules;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio_postgres::Row;

use super::call::Question;
use super::cells::cells;
use super::conninfo::Settings;
use super::fault::Said;
use super::link::{Link, Session};
use super::statements::{Statements, sql};
use crate::duration::rounded;
use crate::store::checkup::rules::{Facts, Rule};
use crate::store::checkup::walk::{self, Ended, Examined, For};
use crate::store::checkup::{Tell, clock};
use crate::store::net::dial::Ends;
use crate::store::net::lookout::Identify;
use crate::store::net::tls::SslMode;
use crate::store::sql::cell::Cell;
use crate::store::sql::server::VERSION;
use crate::store::sql::server::tables::token_in;
use crate::token::{GroupName, Timing};

type Server<'a, 'b> = walk::Server<'a, 'b, Link>;

/// The first release that reports the authentication method, as `server_version_num`.
const TELLS_METHOD: i64 = 160_000;

/// How much older than the connection its server process may be, for the time of connecting.
const YOUNG: Duration = Duration::from_secs(1);

/// Examines every server that the settings name.
pub fn examine(
    settings: &Settings,
    timing: &Timing,
    group: Option<&GroupName>,
    tell: &mut Tell<'_>,
) {
    walk::examine::<Link>(settings, timing, group, tell);
}

impl Identify for Settings {
    fn writable(self, limit: Duration) -> Option<String> {
        let rows = Session::new(self).ask(limit, &Question::Typed(sql!("doctor_server"), &[]));
        let mut facts = Facts::default();
        facts.extend(facts_of(rows.ok()?.first()?));
        Some(match facts.has("writable") {
            true => facts.text("id").to_owned(),
            false => String::new(),
        })
    }
}

impl Examined for Link {
    const RULES: &'static [Rule] = rules::RULES;

    fn facts(settings: &Settings) -> Facts {
        let mut facts = Facts::default();
        facts.extend(rules::WORDS);
        facts.set("user", &settings.user);
        facts.set("grantee", quoted(&settings.user));
        facts.set("database", &settings.dbname);
        facts.set("schema", &settings.schema);
        facts.set("knows", VERSION);
        let mode = settings.tls.mode;
        facts.flag("named", mode == SslMode::VerifyFull);
        facts.flag("insists", mode >= SslMode::Require);
        facts.flag("roots", settings.tls.roots.is_some());
        facts
    }

    fn wire(&self) -> (Option<Ends>, bool) {
        (self.ends(), self.secured)
    }

    fn refused(said: &Said) -> (&'static str, &'static str) {
        rules::refused(
            said.code().map_or("", |code| code.code()),
            matches!(said, Said::Unable(_)),
        )
    }

    fn identify(server: &mut Server<'_, '_>) -> Result<(), Ended> {
        if !learn(server, "server", For::Runs, sql!("doctor_server"))? {
            return Err(Ended);
        }
        let is_standby = server.facts.has("standby");
        let kind = if is_standby { "a standby" } else { "a primary" };
        server.facts.set("kind", kind);
        server.judge("server");
        between(server)?;
        // Behind a pooler the server knows only the pooler's own connection.
        if server.facts.has("secured") && server.facts.is("pooler", "none") {
            learn(server, "tls", For::Advice, sql!("doctor_tls"))?;
        }
        server.judge("tls");
        let tells =
            server.facts.number("number") >= TELLS_METHOD && !server.facts.is("pooler", "one");
        let statement = sql!("doctor_authentication");
        if !tells || learn(server, "authentication", For::Advice, statement)? {
            server.judge("authentication");
        }
        Ok(())
    }

    fn time(server: &mut Server<'_, '_>) -> Result<Option<i64>, Ended> {
        learn(server, "clock", For::Runs, sql!("doctor_clock"))?;
        Ok(server.facts.take("micros").and_then(|it| it.parse().ok()))
    }

    fn inspect(server: &mut Server<'_, '_>, group: Option<&GroupName>) -> Result<(), Ended> {
        if server.facts.has("standby") {
            return Ok(());
        }
        let readable = rights(server)?;
        failover(server)?;
        limits(server)?;
        if !readable {
            return Ok(());
        }
        if learn(server, "stamps", For::Advice, sql!("doctor_stamps"))? {
            server.tell(clock::stamps(server.facts.number("ahead_ms")));
        }
        let Some(group) = group else { return Ok(()) };
        let values = [Cell::text(group), Cell::Text(None)];
        if let Some(row) = ask(server, "group", For::Runs, sql!("read"), &values)? {
            server.group(group, token_in(|columns| cells(&row, columns)), "tokens");
        }
        Ok(())
    }
}

/// The first row of a statement's answer, if there is one.
fn ask(
    server: &mut Server<'_, '_>,
    step: &'static str,
    purpose: For,
    statement: &str,
    values: &[Cell],
) -> Result<Option<Row>, Ended> {
    let rows = server
        .session
        .ask(server.limit, &Question::Typed(statement, values));
    let rows = rows.map_err(|failed| (failed.error.trouble, failed.words));
    let rows = server.answered(step, purpose, rows)?;
    Ok(rows.and_then(|rows| rows.into_iter().next()))
}

/// Adds the columns of a statement's answer to the facts. `false`: there is no answer.
fn learn(
    server: &mut Server<'_, '_>,
    step: &'static str,
    purpose: For,
    statement: &str,
) -> Result<bool, Ended> {
    let row = ask(server, step, purpose, statement, &[])?;
    server.facts.extend(row.iter().flat_map(facts_of));
    Ok(row.is_some())
}

/// The columns of a row that are not NULL, each as a text; those of a list with commas in between.
fn facts_of(row: &Row) -> impl Iterator<Item = (String, String)> {
    let text = |at: usize| -> Option<String> {
        if let Ok(found) = row.try_get::<_, Option<String>>(at) {
            return found;
        }
        if let Ok(found) = row.try_get::<_, Option<bool>>(at) {
            return Some(found?.to_string());
        }
        if let Ok(found) = row.try_get::<_, Option<i64>>(at) {
            return Some(found?.to_string());
        }
        Some(row.try_get::<_, Option<Vec<String>>>(at).ok()??.join(", "))
    };
    let columns = row.columns().iter().enumerate();
    columns.filter_map(move |(at, column)| Some((column.name().to_owned(), text(at)?)))
}

/// Finds out what is between this process and the server.
fn between(server: &mut Server<'_, '_>) -> Result<(), Ended> {
    if !learn(server, "pooler", For::Advice, sql!("doctor_pooler"))? {
        return Ok(());
    }
    let facts = &server.facts;
    let address = facts.text("client_address").parse::<IpAddr>().ok();
    let port = facts.text("client_port").parse().ok();
    let seen = address
        .zip(port)
        .map(|(ip, port)| SocketAddr::new(ip, port));
    let age = Duration::from_millis(facts.number("age_ms").unsigned_abs());
    let is_old = age > server.begun.elapsed() + YOUNG;
    let own = server.session.ends().map(|ends| ends.own);
    server.facts.set("pooler", pooler(own, seen, is_old));
    server.judge("pooler");
    Ok(())
}

/// Compares the `own` end of a connection, if it has one, with what the server sees of it. A server process
/// that is older than the connection is shared through a pooler.
fn pooler(own: Option<SocketAddr>, seen: Option<SocketAddr>, is_old: bool) -> &'static str {
    let end = |it: SocketAddr| (it.ip().to_canonical(), it.port());
    match (own.map(end), seen.map(end)) {
        _ if is_old => "one",
        (Some(own), Some(seen)) if own == seen => "none",
        (Some(_), None) | (None, Some(_)) => "one",
        // A translation of addresses, or a pooler with a Unix socket on both sides, or none.
        (Some(_), Some(_)) | (None, None) => "",
    }
}

/// Checks rights and schema. `true`: tokens can be read.
fn rights(server: &mut Server<'_, '_>) -> Result<bool, Ended> {
    let statement = Statements::new(&server.session.settings().schema).fill(sql!("doctor_rights"));
    if !learn(server, "rights", For::Runs, &statement)? {
        return Ok(false);
    }
    server.judge("rights");
    let can_read = |facts: &Facts, table: &str| {
        let right = format!("SELECT on {table}");
        !facts.lists("absent", table) && !facts.lists("missing", &right)
    };
    let facts = &server.facts;
    let readable = facts.has("there") && facts.has("usage") && can_read(facts, "meta");
    if readable && !learn(server, "schema", For::Runs, sql!("schema_version"))? {
        return Ok(false);
    }
    server.facts.flag("readable", readable);
    let serves = server.judge("schema");
    let facts = &server.facts;
    Ok(readable && serves && can_read(facts, "tokens") && can_read(facts, "waiters"))
}

/// Checks what a crash and a failover would lose.
fn failover(server: &mut Server<'_, '_>) -> Result<(), Ended> {
    let statement = sql!("doctor_replication");
    if learn(server, "replication", For::Advice, statement)? {
        count_standbys(&mut server.facts);
        server.judge("durability");
        server.judge("replication");
    }
    Ok(())
}

fn count_standbys(facts: &mut Facts) {
    let standbys = facts.number("standbys");
    let counted = match standbys {
        1 => "1 standby follows".to_owned(),
        n => format!("{n} standbys follow"),
    };
    facts.set("counted", counted);
    facts.set(
        "asynchronous",
        standbys.saturating_sub(facts.number("synchronous")),
    );
    facts.flag("fails_over", standbys > 0 || facts.has("slots"));
}

/// Checks how long the server keeps the remains of a dead client.
fn limits(server: &mut Server<'_, '_>) -> Result<(), Ended> {
    if learn(server, "keepalives", For::Advice, sql!("doctor_limits"))? {
        compare_limits(&mut server.facts, server.timing.takeover_after);
        server.judge("keepalives");
        server.judge("idle_in_transaction");
    }
    Ok(())
}

/// Compares a session's limits with the `longest` time that they should have.
fn compare_limits(facts: &mut Facts, longest: Duration) {
    let number = |name| facts.number(name).unsigned_abs();
    let probing = number("interval_s").saturating_mul(number("count"));
    let noticed = Duration::from_secs(number("idle_s").saturating_add(probing));
    let idle = Duration::from_millis(number("idle_in_transaction_ms"));
    facts.set("noticed", rounded(noticed));
    facts.flag("late", noticed > longest);
    facts.set("idle", rounded(idle));
    facts.flag("idles", idle > longest);
    let is_pooled = facts.is("pooler", "one");
    facts.set("of", if is_pooled { " of the pooler" } else { "" });
}

/// A name as an SQL identifier.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = !name.starts_with(|c: char| c.is_ascii_digit());
    match !name.is_empty() && begins && name.chars().all(plain) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

#[cfg(test)]
mod tests;
