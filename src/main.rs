//! tokenrun.
fn main() {}
