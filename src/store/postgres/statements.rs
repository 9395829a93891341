//! The statements, from the .sql files. They name no schema: each transaction looks for its tables
//! in the store's schema alone.

/// A statement, by the name of its file, without the comments above it.
macro_rules! sql {
    ($name:literal) => {
        $crate::store::sql::statement!("postgres", $name)
    };
}
pub(super) use sql;

use std::borrow::Cow;

use crate::store::sql::waiter::channel;
use crate::token::GroupName;

/// A dollar quotation mark that does not occur in this name.
fn quote_around(name: &str) -> String {
    let mut tag = "do".to_owned();
    // It eventually grows longer than the name.
    while name.contains(&format!("${tag}$")) {
        tag.push('_');
    }
    format!("${tag}$")
}

/// The parts of the statements that depend on the store.
#[derive(Debug, Clone)]
pub(super) struct Statements {
    /// The schema's name, as an identifier and as a text.
    schema: String,
    schema_text: String,
    /// The quotation mark around texts with names in them.
    quote: String,
    /// A statement for the time and its clock epoch, in the place of the server's.
    #[cfg(test)]
    turned: Option<String>,
}

/// The name of a server's log file begins with its timeline; this is the rest, the same for every
/// server: the position of a log's first segment. A standby refuses to report it, and can't hold a
/// token.
pub(super) const FIRST_SEGMENT: &str = "0000000000000000";

impl Statements {
    /// Statements on the tables of this schema.
    pub(super) fn new(schema: &str) -> Self {
        Self {
            schema: format!("\"{}\"", schema.replace('"', "\"\"")),
            schema_text: format!("'{}'", schema.replace('\'', "''")),
            quote: quote_around(schema),
            #[cfg(test)]
            turned: None,
        }
    }

    /// These statements, with another clock than the server's.
    #[cfg(test)]
    pub(super) fn with_clock(mut self, clock: &str) -> Self {
        self.turned = Some(clock.to_owned());
        self
    }

    /// A statement as it is sent.
    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "tests have clocks of their own")]
    pub(super) const fn of(&self, statement: &'static str) -> Cow<'static, str> {
        Cow::Borrowed(statement)
    }

    /// A statement as it is sent, with the clock that the test sets.
    #[cfg(test)]
    pub(super) fn of(&self, statement: &'static str) -> Cow<'static, str> {
        let Some(clock) = &self.turned else {
            return Cow::Borrowed(statement);
        };
        let now = format!("(SELECT now FROM ({clock}) AS turned)");
        let epoch = format!("(SELECT now_epoch || '{FIRST_SEGMENT}' FROM ({clock}) AS turned)");
        let turned = statement.replace("clock_timestamp()", &now);
        let turned = turned.replace("pg_postmaster_start_time()", "NULL::timestamptz");
        Cow::Owned(turned.replace("pg_walfile_name('0/1')", &epoch))
    }

    /// A statement that names the schema itself, with the name filled in.
    pub(super) fn fill(&self, statement: &str) -> String {
        statement
            .replace("{quote}", &self.quote)
            // Last, in one pass: the name may contain anything.
            .split("{schema}")
            .map(|part| part.replace("{schema_text}", &self.schema_text))
            .collect::<Vec<_>>()
            .join(&self.schema)
    }

    /// The search path of a transaction: PostgreSQL's own schema comes first by itself, then the
    /// store's, and only that of temporary tables after it.
    pub(super) fn search_path(&self) -> String {
        format!("{}, pg_temp", self.schema)
    }

    /// The notification channel of a group.
    pub(super) fn channel(&self, group: &GroupName) -> String {
        channel(self.schema_text.bytes().chain(group.as_str().bytes()))
    }
}

/// The script that makes the tables, for an administrator, in one transaction.
pub(in crate::store) fn creation(schema: &str) -> String {
    let statements = Statements::new(schema);
    format!(
        "BEGIN;\n{}\n{}\n{}COMMIT;\n",
        statements.fill(sql!("schema_create")),
        include_str!("../sql/postgres/schema.sql"),
        statements.fill(sql!("grants"))
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_swap_is_bound_to_an_epoch_and_a_time() {
        let swaps = [
            sql!("swap_heartbeat"),
            sql!("swap_grant"),
            sql!("swap_takeover"),
            sql!("swap_release"),
            sql!("swap_act"),
            sql!("swap_raise"),
            sql!("swap_create"),
        ];
        for swap in swaps {
            let started = "pg_postmaster_start_time() IS NOT DISTINCT FROM $29";
            let timeline = "pg_walfile_name('0/1') = $30";
            assert!(
                swap.contains(&format!("{started} AND {timeline}")),
                "{swap}"
            );
            assert!(swap.contains("now <= $28"), "{swap}");
            assert!(swap.contains("clock_timestamp() AS now"), "{swap}");
            assert!(
                swap.contains("set_config('synchronous_commit', 'on', true)"),
                "{swap}"
            );
        }
        let reads = [
            sql!("read"),
            sql!("list"),
            sql!("swap_state"),
            sql!("prune_look"),
        ];
        for read in reads {
            let epoch = "pg_postmaster_start_time() AS started, pg_walfile_name('0/1') AS timeline";
            assert!(read.contains(epoch), "{read}");
        }
    }
}
