//! The common part of the stores with tables: cells, the tables, and the conversion between the
//! protocol's values and rows.
//!
//! A row has a few columns that the store's own queries or an administrator need, and a document in
//! JSON with everything else. The statements are whole, a file for each, in `sql/` under the
//! database's name. Operations that are the same everywhere (lists, history, acts, keys) are in
//! [`cold`]. Reading, swapping and waiting are written by hand for each database, since its safety
//! rests on them.

pub mod cell;
pub mod cold;
pub mod table;
pub mod token;
pub mod waiter;

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
