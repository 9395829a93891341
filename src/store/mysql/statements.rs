//! The statements, from the .sql files. They name no database: the connection has one.

/// A statement, by the name of its file.
macro_rules! sql {
    ($name:literal) => {
        $crate::store::sql::statement!("mysql", $name)
    };
}
pub(super) use sql;

use std::borrow::Cow;
use std::time::Duration;

use super::cells::fill;
use crate::store::sql::cell::Cell;

/// The collation of names: by their characters, and blanks at their ends count.
const BINARY: &str = "/*M! utf8mb4_nopad_bin */ /*!80000 utf8mb4_0900_bin */";

/// How many answers the set-up of a session has.
pub(super) const SET_UP_ANSWERS: usize = 3;

/// The server's id, with its start: two names with the same are one server.
pub(super) const WHICH_SERVER: &str = "SELECT @tokenrun_epoch AS id";

/// The procedures, each with its name.
pub(super) const PROCEDURES: [(&str, &str); 7] = [
    ("tokenrun_swap", sql!("procedure_swap")),
    ("tokenrun_swap_unusual", sql!("procedure_swap_unusual")),
    ("tokenrun_write_act", sql!("procedure_write_act")),
    (
        "tokenrun_write_run_unusual",
        sql!("procedure_write_run_unusual"),
    ),
    ("tokenrun_note", sql!("procedure_note")),
    ("tokenrun_refuse", sql!("procedure_refuse")),
    ("tokenrun_fence", sql!("procedure_fence")),
];

/// The part of the statements that depends on the store.
#[derive(Debug, Clone, Default)]
pub(super) struct Statements {
    /// The table of the test's clock, in the place of the server's.
    #[cfg(test)]
    turned: Option<String>,
}

impl Statements {
    /// These statements, with another clock than the server's.
    #[cfg(test)]
    pub(super) fn with_clock(mut self, table: &str) -> Self {
        self.turned = Some(table.to_owned());
        self
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "tests have clocks of their own")]
    const fn clock<'a>(&self, statement: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(statement)
    }

    /// With the clock that the test sets.
    #[cfg(test)]
    fn clock<'a>(&self, statement: &'a str) -> Cow<'a, str> {
        let Some(table) = &self.turned else {
            return Cow::Borrowed(statement);
        };
        let turned = statement.replace("SYSDATE(6)", &format!("(SELECT now FROM {table})"));
        let epoch = format!("(SELECT now_epoch FROM {table})");
        Cow::Owned(turned.replace("@tokenrun_epoch", &epoch))
    }

    /// A statement as it is sent.
    pub(super) fn of(&self, statement: &str, values: &[Cell]) -> String {
        fill(&self.clock(statement), values)
    }

    /// The statements that make the store, without those that set the session up.
    pub(super) fn creation(&self) -> Vec<String> {
        let tables = sql!("schema").replace("{binary}", BINARY);
        let mut all: Vec<String> = tables.split(";\n").map(str::to_owned).collect();
        for (name, procedure) in PROCEDURES {
            // MariaDB replaces a procedure in place: no call finds it missing, and rights on it stay. A packet
            // must have no empty statement.
            all.push(format!(
                "/*!80000 DROP PROCEDURE IF EXISTS {name} */ /*M! DO 0 */"
            ));
            all.push(
                self.clock(&procedure.replace("{binary}", BINARY))
                    .into_owned(),
            );
        }
        let meta = sql!("meta").replace("{durable}", sql!("incarnation").trim_end());
        all.push(self.clock(&meta).into_owned());
        all
    }
}

/// The set-up of a session whose statements take at most `limit`. It fails on a server that accepts no writes.
pub(super) fn set_up(limit: Duration) -> String {
    // Zero would mean no limit.
    let seconds = limit.as_secs_f64().max(0.1);
    // The limit of an idle transaction is in whole seconds.
    let seconds = seconds.ceil().to_string();
    sql!("session").replace("{seconds}", &seconds)
}

/// The script that makes the store, for an administrator and the `mariadb` or `mysql` client.
pub(super) fn script() -> String {
    let mut script = format!("{};\n", set_up(Duration::from_hours(1)).trim_end());
    for statement in Statements::default().creation() {
        let statement = statement.trim_end();
        if statement.contains("OR REPLACE */ PROCEDURE") {
            script.push_str(&format!("\nDELIMITER //\n{statement} //\nDELIMITER ;\n"));
        } else {
            script.push_str(&format!("\n{statement};\n"));
        }
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_swap_is_bound_to_an_epoch_and_a_time() {
        let procedures = [sql!("procedure_swap"), sql!("procedure_note")];
        for procedure in procedures
            .into_iter()
            .chain([sql!("procedure_swap_unusual")])
        {
            let bound = "v_now > p_expiry OR NOT CAST(@tokenrun_epoch AS BINARY) <=> \
                         CAST(p_epoch AS BINARY)";
            assert!(procedure.contains(bound), "{procedure}");
        }
        for procedure in procedures {
            assert!(procedure.contains("SET v_now = SYSDATE(6)"), "{procedure}");
        }
    }

    /// An error must not leave a transaction open: its client may be frozen.
    #[test]
    fn every_procedure_with_a_transaction_ends_it_after_an_error() {
        for (name, procedure) in PROCEDURES {
            let begins = procedure.contains("START TRANSACTION");
            let handler =
                "EXIT HANDLER FOR SQLEXCEPTION\n    BEGIN\n        ROLLBACK;\n        RESIGNAL;";
            assert_eq!(begins, procedure.contains(handler), "{name}");
        }
    }

    /// A table may have an engine that locks no rows.
    #[test]
    fn every_new_version_is_written_over_the_one_that_was_read() {
        for (procedure, condition) in [
            (sql!("procedure_swap"), "AND version = p_from;"),
            (sql!("procedure_note"), "AND note_version <=> p_from;"),
        ] {
            let (update, rest) = procedure.split_once(condition).unwrap_or_default();
            assert!(update.contains("UPDATE tokenrun_"), "{procedure}");
            assert!(rest.contains("IF ROW_COUNT() <> 1 AND"), "{procedure}");
        }
    }

    /// InnoDB locks the rows that a query within another statement reads.
    #[test]
    fn no_procedure_reads_rows_within_another_statement() {
        for (name, procedure) in PROCEDURES {
            assert!(!procedure.contains("(SELECT"), "{name}");
            assert!(!procedure.contains("(\n        SELECT"), "{name}");
        }
    }

    #[test]
    fn no_statement_reads_the_time_of_a_statements_start() {
        for statement in Statements::default().creation() {
            assert!(!statement.contains("NOW("), "{statement}");
        }
    }
}
