//! The job
pub mod ancestry;
