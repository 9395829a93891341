//! Runs a job on one node at a time, keeps it on that node while it is well, and
//! moves it by itself when the node dies, with nothing but a database.

pub mod cli;
pub mod duration;
pub mod exit;
pub mod job;
pub mod report;
pub mod run;
pub mod store;
pub mod sys;
pub mod token;
