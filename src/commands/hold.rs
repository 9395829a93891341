//! `tokenrun hold`: what follows the end of a run that held a token without a job.

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
        | Ending::NoGuard
        | Ending::Unstartable(_) => false,
        Ending::Ran { end, .. } => match end {
            JobEnd::Lost(_) | JobEnd::TimedOut(_) => true,
            // Another process stopped or killed it.
            JobEnd::Itself(Status::Exited(0) | Status::Signalled(_)) => true,
            // It has reported why it can't go on.
            JobEnd::Itself(Status::Exited(_)) => false,
            JobEnd::NotStarted(Unstarted::Guard(NotStarted::TooLate)) => true,
            JobEnd::NotStarted(_) => false,
        },
    }
}

/// How the agent ends. A requested stop is a success.
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
    fn an_agent_waits_again_for_a_lost_token() {
        assert!(goes_on(&ran(JobEnd::Lost(Loss::Untrusted), None)));
        assert!(goes_on(&ran(JobEnd::Itself(Status::Exited(0)), None)));
        assert!(goes_on(&ran(JobEnd::Itself(Status::Signalled(9)), None)));
    }

    #[test]
    fn an_agent_that_was_stopped_or_cannot_go_on_ends() {
        assert!(!goes_on(&ran(JobEnd::Itself(Status::Exited(0)), Some(15))));
        assert!(!goes_on(&ran(JobEnd::Lost(Loss::Taken), Some(15))));
        assert!(!goes_on(&ran(JobEnd::Itself(Status::Exited(78)), None)));
        assert!(!goes_on(&Ending::Stopped(15)));
    }
}
