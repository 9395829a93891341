//! The job: its own process, and what that may leave behind.

use crate::sys::wait::Status;

/// A job of which at least one process is alive.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// Its own process is alive; else only others of its tree are.
    own_process: bool,
    /// How its own process ends.
    status: Status,
    /// It has received TERM.
    reported: bool,
}

impl Job {
    /// A job whose own process ends with this status if it is left alone.
    pub(crate) const fn started(status: Status) -> Self {
        Self {
            own_process: true,
            status,
            reported: false,
        }
    }

    /// True if its own process is alive.
    pub(crate) const fn runs(&self) -> bool {
        self.own_process
    }

    /// TERM. Whether it is the first.
    pub(crate) const fn term(&mut self) -> bool {
        if self.reported {
            return false;
        }
        self.reported = true;
        self.status = Status::Signalled(15);
        true
    }

    /// Its own process ends, if it has not yet. With what status.
    pub(crate) fn exit(&mut self) -> Option<Status> {
        std::mem::replace(&mut self.own_process, false).then_some(self.status)
    }

    /// Its own process is killed, if it has not ended yet. With what status.
    pub(crate) fn kill(&mut self) -> Option<Status> {
        self.exit().map(|_| Status::Signalled(9))
    }
}
