//! Making the tables, and checking whether this program can use the existing ones.

use std::time::{Duration, Instant};

use super::MysqlStore;
use super::cells::text_at;
use super::fault::code;
use super::link::{Session, code_of, has_no_tables};
use super::statements::{self, sql};
use crate::store::StoreError;
use crate::store::net::session::Failed;
use crate::store::sql::server::check;

/// The script that makes the tables, for an administrator.
pub fn creation() -> String {
    let grants = include_str!("../sql/mysql/grants.sql");
    format!("{}\n{grants}", statements::script())
}

/// What the table of the store says about itself.
pub(super) enum Found {
    /// The tables are complete: the oldest program that may use them.
    Complete(Option<String>),
    /// The tables are, and procedures are missing: a dump may have left them out.
    NoProcedures(Option<String>),
    /// They are missing, or not complete.
    Missing,
}

/// Reads what the store says about itself.
pub(super) fn look(connection: &mut Session, limit: Duration) -> Result<Found, Failed> {
    let answer = match connection.ask(limit, sql!("schema_version")) {
        Err(failed) if has_no_tables(&failed) => return Ok(Found::Missing),
        answer => answer?,
    };
    let Some(row) = answer.rows.first() else {
        return Ok(Found::Missing);
    };
    let text = |at| text_at(row, at).ok().flatten();
    let oldest = text(1).map(str::to_owned);
    let there = text(2).and_then(|count| count.parse().ok()).unwrap_or(0);
    Ok(match there >= statements::PROCEDURES.len() {
        true => Found::Complete(oldest),
        false => Found::NoProcedures(oldest),
    })
}

impl MysqlStore {
    /// Makes the tables if they do not exist; else checks that they serve this program.
    pub(super) fn make_tables(&mut self, limit: Duration) -> Result<(), StoreError> {
        let begun = Instant::now();
        let found = look(&mut self.connection, limit);
        match found.map_err(|failed| failed.error)? {
            Found::Complete(oldest) => {
                check::<Self>(self.connection.store_name(), oldest.as_deref())
            }
            Found::Missing | Found::NoProcedures(_) => {
                let made = self.create(limit.saturating_sub(begun.elapsed()));
                made.map_err(|failed| self.not_made(failed, "user"))
            }
        }
    }

    /// Makes the tables. Definitions are no part of a transaction here: so one process at a time makes them,
    /// under a lock of its connection, and the row that says that they are complete comes last.
    fn create(&mut self, limit: Duration) -> Result<(), Failed> {
        let begun = Instant::now();
        let left = || limit.saturating_sub(begun.elapsed());
        match self.connection.ask(left(), "SELECT 1") {
            Err(failed) if code_of(&failed) == Some(code::UNKNOWN_DATABASE) => {
                let name = self.connection.settings().database.replace('`', "``");
                let create = format!("CREATE DATABASE IF NOT EXISTS `{name}`");
                self.connection.ask_without_database(left(), &create)?;
            }
            answer => drop(answer?),
        }
        // The name of a lock is the server's, not the database's, and has 64 characters at most.
        let seconds = left().as_secs().max(1);
        let lock = format!("SELECT GET_LOCK(CONCAT('tokenrun ', LEFT(DATABASE(), 50)), {seconds})");
        self.connection.ask(left(), &*lock)?;
        let made = match look(&mut self.connection, left()) {
            // Another process was quicker.
            Ok(Found::Complete(_)) => Ok(()),
            Ok(Found::Missing | Found::NoProcedures(_)) => {
                let script = self.own.statements.creation().join(";\n");
                self.connection.ask(left(), &*script).map(drop)
            }
            Err(failed) => Err(failed),
        };
        // With an error the lock ends too: at the latest with the connection.
        let _ = self.connection.ask(left(), "DO RELEASE_ALL_LOCKS()");
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Tokens as _;
    use crate::store::mysql::settings;
    use crate::store::mysql::test_server::{Kind, Server};
    use crate::token::GroupName;

    #[test]
    fn a_database_that_is_not_there_is_made_and_used() {
        let database = Server::shared_of(Kind::Mariadb).database();
        let name = format!("{}_made", database.name);
        let mut settings = settings(&database.url(), "test").unwrap();
        settings.database.clone_from(&name);
        let mut store = MysqlStore::new(settings, Duration::from_secs(10));
        let group = GroupName::new("g").unwrap();
        assert_eq!(store.read(&group).unwrap().row, None);
        let tables = format!("SHOW TABLES FROM {name} LIKE 'tokenrun_tokens'");
        assert!(database.sql(&tables).contains("tokenrun_tokens"));
    }
}
