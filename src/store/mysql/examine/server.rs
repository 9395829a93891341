//! A server under examination, and its queries.

use std::time::Duration;

use super::super::link::Session;
use super::super::wire::Answer;
use crate::store::Trouble;
use crate::store::checkup::{Check, Tell};

/// A connected server, and its queries.
pub(super) struct Server<'a, 'b> {
    pub(super) connection: Session,
    pub(super) limit: Duration,
    pub(super) tell: &'a mut Tell<'b>,
}

impl Server<'_, '_> {
    pub(super) fn tell(&mut self, check: Check) {
        (self.tell)(check);
    }

    /// The answer to a statement; `None` if it failed, which is reported as this step's failure.
    pub(super) fn ask(&mut self, step: &'static str, statement: &str) -> Option<Answer> {
        let failed = match self.connection.ask(self.limit, statement) {
            Ok(answer) => return Some(answer),
            Err(failed) => failed,
        };
        let remedy = match failed.error.trouble {
            Trouble::Denied => "give the user what tokenrun init --print-sql prints",
            Trouble::Misconfigured => "see whether the tables are whole",
            _ => "see the server's log, and whether it is overloaded, stopped or out of disk",
        };
        let check = Check::fail(step, failed.error.trouble, failed.error.what, remedy);
        self.tell(check);
        None
    }
}
