//! `tokenrun hold`: what follows when a run that held a token without a job is over.

use crate::exit;
use crate::run::ending::NotStarted;
use crate::run::ending::{Ending, JobEnd, Unstarted};
use crate::sys::wait::Status;

/// Whether the agent goes on, and waits for its token again.
#[must_use]
pub const fn goes_on(ending: &Ending) -> bool {
    match ending {
        Ending::Ran {
            stopped_by: Some(_),
            ..
        }
        | Ending::Refused { .. }
        | Ending::Done(_)
        | Ending::Stopped(_)
        | Ending::StoreFailed { .. }
        | Ending::NoGuard => false,
        Ending::Ran { end, .. } => match end {
            JobEnd::Lost(_) | JobEnd::TimedOut(_) => true,
            // It was told to end, or killed, by somebody else.
            JobEnd::Itself(Status::Exited(0) | Status::Signalled(_)) => true,
            // It has said why it can't go on.
            JobEnd::Itself(Status::Exited(_)) => false,
            JobEnd::NotStarted(Unstarted::Guard(NotStarted::TooLate)) => true,
            JobEnd::NotStarted(_) => false,
        },
    }
}

/// How the agent ends. One that was told to stop has done what it was to do.
#[must_use]
pub fn exit(ending: &Ending, as_a_run: exit::Exit) -> exit::Exit {
    match ending {
        Ending::Ran {
            stopped_by: Some(_),
            end: JobEnd::Itself(Status::Signalled(_)),
            ..
        } => exit::Exit::OK,
        _ => as_a_run,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::ending::Loss;

    fn ran(end: JobEnd, stopped_by: Option<i32>) -> Ending {
        Ending::Ran {
            end,
            stopped_by,
            recorded: true,
        }
    }

    #[test]
    fn a_token_that_was_lost_is_waited_for_again() {
        assert!(goes_on(&ran(JobEnd::Lost(Loss::Untrusted), None)));
        assert!(goes_on(&ran(JobEnd::Itself(Status::Exited(0)), None)));
        assert!(goes_on(&ran(JobEnd::Itself(Status::Signalled(9)), None)));
    }

    #[test]
    fn who_was_stopped_or_cannot_go_on_ends() {
        assert!(!goes_on(&ran(JobEnd::Itself(Status::Exited(0)), Some(15))));
        assert!(!goes_on(&ran(JobEnd::Lost(Loss::Taken), Some(15))));
        assert!(!goes_on(&ran(JobEnd::Itself(Status::Exited(78)), None)));
        assert!(!goes_on(&Ending::Stopped(15)));
    }
}
