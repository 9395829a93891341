//! Whether the tables exist, and whether this user has the rights on them. The server is asked how it
//! would carry a statement out, which it tells only those who may.

use super::super::MysqlStore;
use super::super::cells::Cells;
use super::super::fault::code;
use super::super::link::Missing as _;
use super::super::schema::{self, Found};
use super::super::statements::sql;
use super::server::Server;
use crate::store::Trouble;
use crate::store::checkup::Check;
use crate::store::sql::server::check;

const STEP: &str = "rights";

/// Each table, a column of it, and whether rows are deleted from it.
const TABLES: [(&str, &str, bool); 11] = [
    ("meta", "one", false),
    ("tokens", "token_group", false),
    ("fences", "token_group", false),
    ("runs", "token_group", true),
    ("waiters", "token_group", true),
    ("acts", "token_group", true),
    ("refusals", "token_group", true),
    ("refusal_totals", "token_group", false),
    ("outputs", "token_group", true),
    ("done_keys", "token_group", true),
    ("resources", "resource", false),
];

/// The procedures that tokenrun itself calls.
const PROCEDURES: [&str; 6] = [
    "tokenrun_swap",
    "tokenrun_swap_unusual",
    "tokenrun_write_act",
    "tokenrun_write_run_unusual",
    "tokenrun_note",
    "tokenrun_refuse",
];

/// Whether the store can be read; `None` if the connection is gone.
pub(super) fn examine(server: &mut Server<'_, '_>, database: &str) -> Option<bool> {
    let found = schema::look(&mut server.connection, server.limit);
    let oldest = match found {
        Ok(Found::Complete(oldest) | Found::NoProcedures(oldest)) => oldest,
        Ok(Found::Missing) => {
            server.tell(Check::unknown(
                STEP,
                format!("the database {database:?} has no tables of tokenrun's yet"),
                "nothing, if its user may make them: the first run does (or tokenrun init, now); else \
                 have an administrator run what tokenrun init --print-sql prints",
            ));
            return Some(false);
        }
        Err(failed) => {
            let trouble = failed.error.trouble;
            let remedy = "give the user what tokenrun init --print-sql prints";
            server.tell(Check::fail(STEP, trouble, failed.error.what, remedy));
            return Some(false);
        }
    };
    if let Err(error) = check::<MysqlStore>(database, oldest.as_deref()) {
        let remedy = error.remedy.unwrap_or_default();
        server.tell(Check::fail(STEP, error.trouble, error.what, remedy));
        return Some(false);
    }
    let mut missing = Vec::new();
    for (table, column, deletes) in TABLES {
        let table = format!("tokenrun_{table}");
        let mut statements = vec![
            ("SELECT", format!("EXPLAIN SELECT {column} FROM {table}")),
            (
                "UPDATE",
                format!("EXPLAIN UPDATE {table} SET {column} = {column}"),
            ),
        ];
        if table != "tokenrun_meta" {
            let insert = format!("EXPLAIN INSERT INTO {table} SELECT * FROM {table}");
            statements.push(("INSERT", insert));
        }
        if deletes {
            statements.push(("DELETE", format!("EXPLAIN DELETE FROM {table}")));
        }
        for (right, statement) in statements {
            match server.connection.ask(server.limit, &statement) {
                Err(failed) if failed.code().is_some_and(|it| code::DENIED.contains(&it)) => {
                    missing.push(format!("{right} on {table}"));
                }
                Err(failed) if failed.has_no_tables() => missing.push(format!("the table {table}")),
                _ => {}
            }
        }
    }
    let answer = server.ask(STEP, sql!("doctor_routines"))?;
    let callable: Vec<&str> = (answer.rows.iter())
        .filter_map(|row| Cells::new(&answer, row, 0).text().ok().flatten())
        .collect();
    let absent = PROCEDURES.iter().filter(|name| !callable.contains(name));
    missing.extend(absent.map(|name| format!("EXECUTE on {name}")));
    server.tell(match missing.as_slice() {
        [] => Check::fine(STEP, "the user has all that tokenrun needs"),
        missing => Check::fail(
            STEP,
            Trouble::Denied,
            format!("the user lacks, or the database does: {}", missing.join(", ")),
            "have a database administrator run what tokenrun init --print-sql prints: it makes what is \
             missing, and names the rights to GRANT",
        ),
    });
    Some(missing.is_empty())
}
