//! Connection strings, variables and option files as the `mysql` and `mariadb` clients take them. Pure:
//! callers pass in whatever is read from outside.

pub mod files;
pub mod resolve;
pub mod text;

#[cfg(test)]
mod tests;
