//! What the stores with tables share: cells, what the tables are, and how what the protocol keeps
//! becomes a row of one and comes back.
//!
//! A row is a few columns that the store's own queries or an administrator need, and a document in
//! JSON with everything else. The statements are whole, a file for each, in `sql/` under the
//! database's name. What a store does in the same way as the others (lists, history, acts, keys) is
//! in [`cold`]; reading, swapping and waiting are written by hand for each database, since they are
//! what its safety rests on.

pub mod cell;
pub mod cold;
pub mod table;
pub mod token;
pub mod waiter;
