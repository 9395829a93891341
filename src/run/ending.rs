//! How a run ends: for the caller, and for history.

use std::ffi::OsString;

use crate::exit;
use crate::store::{StoreError, Trouble};
use crate::sys::errno::Errno;
use crate::sys::exec::Program;
use crate::sys::signals::{SIGINT, SIGQUIT};
use crate::sys::wait::Status;
use crate::token::{Clause, OnceMark, Outcome, Refusal, RunEnd};

/// Why the job was not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotStarted {
    /// The command does not exist.
    NotFound(Failed),
    /// The command can't be executed.
    NotExecutable(Failed),
    /// The operating system can't create a process.
    NoProcess(Failed),
    /// The lease would have ended before the job's grace, or the guard has left because no start
    /// came in time.
    TooLate,
}

/// A start that has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// The program as it was given: its path helps to find what is wrong with it.
    pub program: String,
    /// What is wrong.
    pub error: String,
}

impl Failed {
    /// The failed start of this command.
    pub fn of(argv: &[OsString], error: impl Into<String>) -> Self {
        let program = argv.first().map(|word| word.to_string_lossy());
        Self {
            program: program.unwrap_or_default().into_owned(),
            error: error.into(),
        }
    }
}

impl NotStarted {
    /// Why the kernel does not execute this command. `missing` says what does not exist.
    pub fn by_errno(argv: &[OsString], errno: Errno, missing: &str) -> Self {
        match errno {
            Errno::ENOENT => Self::NotFound(Failed::of(argv, missing)),
            other => Self::NotExecutable(Failed::of(argv, other.description())),
        }
    }

    /// Why this command can't be started, by a look at its file.
    pub fn foreseen(argv: &[OsString]) -> Option<Self> {
        let error = Program::new(argv)
            .and_then(|program| program.find())
            .err()?;
        let errno = Errno::of(&error)?;
        Some(Self::by_errno(argv, errno, "no such file"))
    }

    /// The reason, for history; `None` if the program has no part in it.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::NotFound(failed) | Self::NotExecutable(failed) | Self::NoProcess(failed) => Some(
                format!("could not start {}: {}", failed.program, failed.error),
            ),
            Self::TooLate => None,
        }
    }

    /// The exit code.
    pub const fn code(&self) -> u8 {
        match self {
            Self::NotFound(_) => exit::NOT_FOUND,
            Self::NotExecutable(_) => exit::NOT_EXECUTABLE,
            Self::NoProcess(_) => exit::SYSTEM,
            Self::TooLate => exit::UNAVAILABLE,
        }
    }
}

/// Why a job is being ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// tokenrun received this stop signal.
    Signal(i32),
    /// The job ran longer than `--timeout`.
    Timeout,
    /// An operator handed the token off to another client, and the run yields.
    HandedOff,
    /// The token is lost or can no longer be guarded.
    Loss(Loss),
}

/// How a token is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The row belongs to another session, or to none.
    Taken,
    /// The store was removed or replaced: other nodes may use another in its place.
    StoreGone,
    /// An operator revoked the token.
    Revoked,
    /// The lease could not be renewed in time.
    Untrusted,
    /// The guard is gone.
    GuardGone,
}

/// The end of the job, once none of its processes is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnd {
    /// The job ended with this status, by itself or after a stop signal.
    Itself(Status),
    /// The job was ended because it ran too long.
    TimedOut(Status),
    /// The job was ended because of its token.
    Lost(Loss),
    /// The job was never started.
    NotStarted(Unstarted),
}

/// Why a granted token started no job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unstarted {
    /// The guard could not start it.
    Guard(NotStarted),
    /// tokenrun received this stop signal first.
    Signal(i32),
    /// The guard was gone first.
    GuardGone,
    /// A run with the same key had succeeded in the meantime.
    Done(Box<OnceMark>),
}

impl JobEnd {
    /// The end as history records it.
    pub fn record(&self) -> RunEnd {
        let (outcome, status) = match self {
            Self::Itself(Status::Exited(0)) => (Outcome::Succeeded, Some(Status::Exited(0))),
            Self::Itself(status @ Status::Exited(_)) => (Outcome::Failed, Some(*status)),
            Self::Itself(status @ Status::Signalled(_)) => (Outcome::Signalled, Some(*status)),
            Self::TimedOut(status) => (Outcome::TimedOut, Some(*status)),
            Self::Lost(_) => (Outcome::Lost, None),
            Self::NotStarted(_) => (Outcome::NotStarted, None),
        };
        let (exit_code, signal) = match status {
            Some(Status::Exited(code)) => (Some(code), None),
            Some(Status::Signalled(signal)) => (None, Some(signal)),
            None => (None, None),
        };
        RunEnd {
            outcome,
            exit_code,
            signal,
            revoked: matches!(self, Self::Lost(Loss::Revoked)),
            reason: match self {
                Self::NotStarted(Unstarted::Guard(why)) => why.reason(),
                _ => None,
            },
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The rule refused.
    Refused { clause: Clause, why: Refusal },
    /// A run with the same key has succeeded before.
    Done(Box<OnceMark>),
    /// A signal asked for the end before the token was taken.
    Stopped(i32),
    /// The store was unusable before the token was taken.
    StoreFailed {
        error: StoreError,
        /// A grant was sent, and its result is unknown.
        perhaps_granted: bool,
    },
    /// The guard was gone before the token was taken.
    NoGuard,
    /// The job can't be started, so the token was not asked for, or not taken.
    Unstartable(NotStarted),
    /// The token was taken.
    Ran {
        end: JobEnd,
        /// Signals that asked for the end and that tokenrun received too.
        stopped_by: Option<i32>,
        /// True if history has the record.
        recorded: bool,
    },
}

/// The exit codes that the user chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Codes {
    /// For being refused.
    pub not_now: u8,
    /// For a key of `--once` that is done.
    pub done: u8,
    /// True if the run has a key of `--once`: then a success that is not recorded is none.
    pub once: bool,
}

impl Ending {
    /// How the process ends.
    pub fn exit(&self, codes: Codes) -> exit::Exit {
        let not_now = codes.not_now;
        use exit::Exit::{Code, Signal};
        match self {
            Self::Refused { .. } => Code(not_now),
            Self::Done(_) => Code(codes.done),
            Self::Stopped(signal) => Signal(*signal),
            Self::StoreFailed { error, .. } if error.trouble == Trouble::Held => Code(not_now),
            Self::StoreFailed { error, .. } => Code(of_trouble(error.trouble)),
            Self::NoGuard => Code(exit::SYSTEM),
            Self::Unstartable(why) => Code(why.code()),
            Self::Ran {
                end: JobEnd::Itself(Status::Exited(0)),
                recorded: false,
                ..
            } if codes.once => Code(exit::UNRECORDED),
            Self::Ran {
                end: JobEnd::NotStarted(Unstarted::Done(_)),
                ..
            } => Code(codes.done),
            Self::Ran {
                end, stopped_by, ..
            } => of_job(end, *stopped_by),
        }
    }
}

/// The exit code for a store that is unusable.
pub const fn of_trouble(trouble: Trouble) -> u8 {
    match trouble {
        Trouble::Unavailable | Trouble::Refused | Trouble::Locked | Trouble::Gone => {
            exit::UNAVAILABLE
        }
        Trouble::Held => exit::NOT_NOW,
        Trouble::Denied => exit::DENIED,
        Trouble::Misconfigured => exit::CONFIG,
    }
}

fn of_job(end: &JobEnd, stopped_by: Option<i32>) -> exit::Exit {
    use exit::Exit::{Code, Signal};
    match end {
        JobEnd::Itself(Status::Exited(code)) => Code(u8::try_from(code & 0xff).unwrap_or(u8::MAX)),
        // The job died of an INT or QUIT that tokenrun received too: the shell's loop around
        // tokenrun must end as it would around the job.
        JobEnd::Itself(Status::Signalled(signal))
            if stopped_by == Some(*signal) && ends_loops(*signal) =>
        {
            Signal(*signal)
        }
        JobEnd::Itself(Status::Signalled(signal)) => Code(exit::of_signal(*signal)),
        JobEnd::TimedOut(_) => Code(exit::TIMED_OUT),
        JobEnd::Lost(_) => Code(exit::LOST),
        JobEnd::NotStarted(unstarted) => match unstarted {
            Unstarted::Signal(signal) => Signal(*signal),
            Unstarted::GuardGone => Code(exit::SYSTEM),
            Unstarted::Done(_) => exit::Exit::OK,
            Unstarted::Guard(why) => Code(why.code()),
        },
    }
}

/// True if this signal ends a shell's loop around the process that dies of it.
pub const fn ends_loops(signal: i32) -> bool {
    matches!(signal, SIGINT | SIGQUIT)
}
