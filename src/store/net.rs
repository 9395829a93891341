//! What every store across a network has in common: its URL, its servers, how one is dialled, the session
//! over all of them, what its faults mean, and the check for a second primary.
//!
//! A network store gives a `session::Link`: one connection to one server. Log-in, question and answer are
//! its own; the servers, the deadlines and the classes of faults are here.

pub mod address;
pub mod host;
pub mod options;
pub mod secret;
pub mod tls;
pub mod verified_tls;

pub(super) mod deadline;
pub(super) mod dial;
pub(super) mod fault;
pub(super) mod limit;
pub(super) mod lookout;
pub(super) mod session;
