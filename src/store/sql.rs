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
