//! Connection strings in libpq's syntax: URLs, `key=value`, the variables `PG…`, service files and
//! password files. Pure: callers pass in whatever is read from outside.

pub mod options;
pub mod passfile;
pub mod resolve;
pub mod service;
pub mod settings;
pub mod text;

#[cfg(test)]
mod tests;
