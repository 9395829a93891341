//! The common part of the stores with tables: cells, the tables, and the conversion between the
//! protocol's values and rows.
//!
//! A row has a few columns that the store's own queries or an administrator need, and a document in
//! JSON with everything else. The statements are whole, a file for each, in `sql/` under the
//! database's name. What a statement reads is a row of cells ([`cell`]), which is converted here. All
//! operations on the tables of a server are in [`server`]. Swapping is written by hand for each database, since its
//! safety rests on it.

pub mod cell;
pub mod records;
pub mod server;
pub mod swap;
pub mod table;
pub mod token;
pub mod waiter;

/// A statement of a database, by the name of its file, without the comments above it.
macro_rules! statement {
    ($database:literal, $name:literal) => {
        const {
            $crate::store::sql::body(include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/src/store/sql/",
                $database,
                "/",
                $name,
                ".sql"
            )))
        }
    };
}
pub(in crate::store) use statement;

/// The statements that read records. Each is a file with its name.
#[derive(Debug, Clone, Copy)]
pub struct Statements {
    /// Runs of all groups: limit, client, outcomes, since, until.
    pub runs: &'static str,
    /// Runs of one group: as above, and the group.
    pub runs_of_group: &'static str,
    /// Acts: limit, group, since, until.
    pub acts: &'static str,
    /// Refusals: limit, group, since, until.
    pub refusals: &'static str,
    /// The numbers of refusals: no values.
    pub refusal_totals: &'static str,
    /// An output: group; fence, or NULL for the newest.
    pub output: &'static str,
    /// A key: group, key.
    pub key: &'static str,
    /// Keys: group.
    pub keys: &'static str,
}

/// The statements that read records, from the files of a database.
macro_rules! record_statements {
    ($database:literal) => {
        $crate::store::sql::Statements {
            runs: $crate::store::sql::statement!($database, "runs"),
            runs_of_group: $crate::store::sql::statement!($database, "runs_of_group"),
            acts: $crate::store::sql::statement!($database, "acts"),
            refusals: $crate::store::sql::statement!($database, "refusals"),
            refusal_totals: $crate::store::sql::statement!($database, "refusal_totals"),
            output: $crate::store::sql::statement!($database, "output"),
            key: $crate::store::sql::statement!($database, "key"),
            keys: $crate::store::sql::statement!($database, "keys"),
        }
    };
}
pub(in crate::store) use record_statements;

/// A statement without the comments above it.
pub(in crate::store) const fn body(statement: &'static str) -> &'static str {
    let mut rest = statement;
    while let [b'-', b'-', ..] = rest.as_bytes() {
        let mut end = 0;
        while end + 1 < rest.len() && rest.as_bytes()[end] != b'\n' {
            end += 1;
        }
        rest = rest.split_at(end + 1).1;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::body;

    #[test]
    fn comments_above_a_statement_are_not_sent() {
        assert_eq!(body("-- a\n-- b\nSELECT 1 -- c\n"), "SELECT 1 -- c\n");
        assert_eq!(body("SELECT 1"), "SELECT 1");
        assert_eq!(body("-- a"), "");
    }
}
