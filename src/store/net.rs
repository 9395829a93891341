//! The parts that stores across a network have in common.

pub mod address;
pub(in crate::store) mod limit;
