//! Examining a store of MySQL or MariaDB for `doctor`: what a server is asked, and which facts its answers are.

mod rules;

use super::MysqlStore;
use super::cells::{cells, text_at};
use super::conninfo::Settings;
use super::fault::{Said, code};
use super::link::{Link, code_of, has_no_tables};
use super::schema::{self, Found};
use super::statements::{PROCEDURES, Statements, WHICH_SERVER, sql};
use super::wire::Answer;
use crate::store::checkup::rules::{Facts, Rule};
use crate::store::checkup::walk::{self, Ended, Examined, For};
use crate::store::checkup::{Check, Tell, clock};
use crate::store::net::dial::{Ends, ends};
use crate::store::net::tls::SslMode;
use crate::store::sql::cell::Cell;
use crate::store::sql::server::check;
use crate::store::sql::server::tables::token_in;
use crate::token::{GroupName, Timing};

type Server<'a, 'b> = walk::Server<'a, 'b, Link>;

/// The rights on tables, each with a statement that needs it.
const RIGHTS: [(&str, &str); 4] = [
    ("SELECT", "EXPLAIN SELECT {column} FROM {table}"),
    ("UPDATE", "EXPLAIN UPDATE {table} SET {column} = {column}"),
    (
        "INSERT",
        "EXPLAIN INSERT INTO {table} SELECT * FROM {table}",
    ),
    ("DELETE", "EXPLAIN DELETE FROM {table}"),
];

/// Each table, a column of it, and how many of the rights it needs.
const TABLES: [(&str, &str, usize); 11] = [
    ("tokenrun_meta", "one", 2),
    ("tokenrun_tokens", "token_group", 3),
    ("tokenrun_fences", "token_group", 3),
    ("tokenrun_runs", "token_group", 4),
    ("tokenrun_waiters", "token_group", 4),
    ("tokenrun_acts", "token_group", 4),
    ("tokenrun_refusals", "token_group", 4),
    ("tokenrun_refusal_totals", "token_group", 3),
    ("tokenrun_outputs", "token_group", 4),
    ("tokenrun_done_keys", "token_group", 4),
    ("tokenrun_resources", "resource", 3),
];

/// A call without effect: no token has this name or this fence.
const CALL: &str = "CALL tokenrun_fence('', -1)";

/// The error by which the procedure refuses a fence that is stale.
const STALE: u16 = 1644;

/// Examines every server that the settings name.
pub fn examine(
    settings: &Settings,
    timing: &Timing,
    group: Option<&GroupName>,
    tell: &mut Tell<'_>,
) {
    let mut settings = settings.clone();
    settings.timeout = timing.store_timeout;
    walk::examine::<Link>(&settings, timing, group, tell);
}

impl Examined for Link {
    const RULES: &'static [Rule] = rules::RULES;

    fn facts(settings: &Settings) -> Facts {
        let mut facts = Facts::default();
        facts.extend(rules::WORDS);
        facts.set("user", &settings.user);
        facts.set("database", &settings.database);
        facts.flag("verified", settings.tls.mode >= SslMode::VerifyCa);
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
        let answer = server.session.ask(server.limit, sql!("doctor_facts"));
        if matches!(&answer, Err(failed) if failed.is_elsewhere) {
            server.facts.flag("elsewhere", true);
            server.judge("server");
            return Err(Ended);
        }
        let answer = answer.map_err(|failed| (failed.error.trouble, failed.error.what));
        let answer = server.answered("server", For::Runs, answer)?.ok_or(Ended)?;
        server.facts.extend(pairs(&answer));
        derive(&mut server.facts);
        server.judge("server");
        if let Some(session) = server.session.link().map(|link| link.session)
            && learn(server, "proxy", sql!("doctor_session"))?
        {
            server.facts.set("greeted", session);
            server.judge("proxy");
        }
        learn(server, "server", WHICH_SERVER)?;
        server.facts.flag("writable", true);
        learn(server, "clock", sql!("doctor_clock")).map(drop)
    }

    fn time(server: &mut Server<'_, '_>) -> Result<Option<i64>, Ended> {
        learn(server, "clock", sql!("doctor_time"))?;
        Ok(server.facts.take("now_us").and_then(|it| it.parse().ok()))
    }

    fn inspect(server: &mut Server<'_, '_>, group: Option<&GroupName>) -> Result<(), Ended> {
        let readable = rights(server)?;
        server.judge("durability");
        match server.judged("cluster") {
            Some(check) => server.tell(check),
            None => drop(server.judge("replication")),
        }
        if !readable {
            return Ok(());
        }
        engines(server)?;
        fence(server);
        if learn(server, "stamps", sql!("doctor_stamps"))? {
            server.tell(clock::stamps(server.facts.number("ahead_ms")));
        }
        let Some(group) = group else { return Ok(()) };
        let values = [Cell::text(group), Cell::Text(None)];
        let statement = Statements::default().of(sql!("read"), &values);
        let answer = ask(server, "group", &statement)?.unwrap_or_default();
        if let Some(row) = answer.rows.first() {
            server.group(
                group,
                token_in(|columns| cells(row, columns)),
                "tokenrun_tokens",
            );
        }
        Ok(())
    }
}

fn ask(
    server: &mut Server<'_, '_>,
    step: &'static str,
    statement: &str,
) -> Result<Option<Answer>, Ended> {
    let answer = server.session.ask(server.limit, statement);
    let answer = answer.map_err(|failed| (failed.error.trouble, failed.error.what));
    server.answered(step, For::Runs, answer)
}

/// Adds the columns of an answer's first row to the facts. `false`: there is no answer.
fn learn(server: &mut Server<'_, '_>, step: &'static str, statement: &str) -> Result<bool, Ended> {
    let answer = ask(server, step, statement)?.unwrap_or_default();
    let Some(row) = answer.rows.first() else {
        return Ok(false);
    };
    for (at, name) in answer.names.iter().enumerate() {
        if let Ok(Some(text)) = text_at(row, at) {
            server.facts.set(name, text);
        }
    }
    Ok(true)
}

/// An answer of two columns, names and values.
fn pairs(answer: &Answer) -> impl Iterator<Item = (&str, &str)> {
    answer.rows.iter().filter_map(|row| {
        let (name, value) = (text_at(row, 0).ok()??, text_at(row, 1).ok()?);
        Some((name, value.unwrap_or_default()))
    })
}

/// Adds what follows from a server's variables.
fn derive(facts: &mut Facts) {
    let is_mariadb = facts.text("version").contains("MariaDB");
    facts.set("kind", if is_mariadb { "MariaDB" } else { "MySQL" });
    let method = facts.text("innodb_flush_method").to_lowercase();
    facts.set("flush_method", method);
    let connected = facts.number("slaves_connected");
    facts.flag("fails_over", connected > 0);
    let replicas = match connected {
        0 => "a binary log".to_owned(),
        1 => "a binary log, and a replica that is connected".to_owned(),
        count => format!("a binary log, and {count} replicas that are connected"),
    };
    facts.set("replicas", replicas);
}

/// Checks whether the tables exist, and the rights on them: the server is asked how it would carry a statement
/// out, which it tells only those who may. `true`: the store can be read.
fn rights(server: &mut Server<'_, '_>) -> Result<bool, Ended> {
    const STEP: &str = "rights";
    let serves = match schema::look(&mut server.session, server.limit) {
        Ok(Found::Complete(oldest) | Found::NoProcedures(oldest)) => {
            check::<MysqlStore>(server.facts.text("database"), oldest.as_deref())
        }
        Ok(Found::Missing) => {
            server.facts.flag("no_tables", true);
            server.judge(STEP);
            return Ok(false);
        }
        Err(failed) => {
            let remedy = "give the user what tokenrun init --print-sql prints";
            Err(failed.error.remedy(remedy))
        }
    };
    if let Err(error) = serves {
        let remedy = error.remedy.unwrap_or_default();
        server.tell(Check::fail(STEP, error.trouble, error.what, remedy));
        return Ok(false);
    }
    let mut missing = Vec::new();
    for (table, column, needed) in TABLES {
        for (right, statement) in RIGHTS.iter().take(needed) {
            let statement = statement
                .replace("{table}", table)
                .replace("{column}", column);
            let Err(failed) = server.session.ask(server.limit, &statement) else {
                continue;
            };
            if code_of(&failed).is_some_and(|it| code::DENIED.contains(&it)) {
                missing.push(format!("{right} on {table}"));
            } else if has_no_tables(&failed) {
                missing.push(format!("the table {table}"));
            }
        }
    }
    let Some(answer) = ask(server, STEP, sql!("doctor_routines"))? else {
        return Ok(false);
    };
    let callable: Vec<&str> = (answer.rows.iter())
        .filter_map(|row| text_at(row, 0).ok().flatten())
        .collect();
    // Jobs call the fence; this user need not.
    let own = PROCEDURES.iter().map(|(name, _)| *name);
    let own = own.filter(|name| *name != "tokenrun_fence");
    let absent = own.filter(|name| !callable.contains(name));
    missing.extend(absent.map(|name| format!("EXECUTE on {name}")));
    server.facts.set("missing", missing.join(", "));
    Ok(server.judge(STEP))
}

/// Tells each table whose engine excludes nothing, because it has no transactions.
fn engines(server: &mut Server<'_, '_>) -> Result<(), Ended> {
    let answer = ask(server, "tables", sql!("doctor_engines"))?.unwrap_or_default();
    for (table, engine) in pairs(&answer) {
        server.facts.set("table", table);
        server.facts.set("engine", engine);
        server.judge("tables");
    }
    Ok(())
}

/// Checks whether a job can call the procedure of the fence: it runs with the rights of the user who made it.
fn fence(server: &mut Server<'_, '_>) {
    let Err(failed) = server.session.ask(server.limit, CALL) else {
        return;
    };
    // It answers; or the right to call it is missing, which the user of runs does not need.
    if ![Some(STALE), Some(code::NO_EXECUTE)].contains(&code_of(&failed)) {
        server.facts.set("uncallable", failed.error.what);
        server.judge("fence");
    }
}

#[cfg(test)]
mod tests;
