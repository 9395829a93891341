//! The end of a run for scripts: the file of `--report`, and what hooks learn.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::message::Message;
use super::printable::json;
use super::run_end::{loss_word, not_started_word, told, unstarted_word};
use super::whole_file::write_whole;
use crate::duration::rounded;
use crate::exit;
use crate::exit::Exit;
use crate::job::hooks::HookEnd;
use crate::run::ending::{Ending, JobEnd, Unstarted};
use crate::run::event::Granted;
use crate::store::Trouble;
use crate::sys::wait::Status;
use crate::token::{ClientId, GroupName, Outcome, Refusal, SessionId};

/// What `--report` writes.
#[derive(Debug, Serialize)]
pub struct RunReport<'a> {
    pub group: &'a GroupName,
    /// This node.
    pub client: &'a ClientId,
    /// This invocation.
    pub session: &'a SessionId,
    /// The store's name.
    pub store: &'a str,
    /// How it ended: a run's outcome, or `refused`, `stopped`, `store_failed`.
    pub outcome: &'static str,
    /// True if history has the record; `null` if no run was to be recorded, as for a run within a run.
    pub recorded: Option<bool>,
    /// tokenrun's own exit code.
    pub tokenrun_exit_code: u8,
    /// The job's exit code, if it exited.
    pub exit_code: Option<i32>,
    /// The signal that killed the job, if one did.
    pub signal: Option<i32>,
    /// The fencing token.
    pub fence: Option<i64>,
    /// How the token was granted.
    pub grant: Option<&'static str>,
    /// The client that the token belonged to before, if another.
    pub previous_client: Option<&'a ClientId>,
    /// The reason of a refusal, in a word.
    pub refused: Option<&'static str>,
    /// The client that holds the token, or that it is kept for, if that is the reason.
    pub refused_by: Option<&'a ClientId>,
    /// The clause of the rule that refused.
    pub clause: Option<u8>,
    /// The store's servers that accepted writes at once, if several were seen: another node may
    /// have run the job too.
    pub primaries: Option<&'a [String]>,
    /// When tokenrun began, by this host's clock.
    pub started_at: String,
    /// When it ended, likewise.
    pub ended_at: String,
}

impl<'a> RunReport<'a> {
    /// Copies an ending into the report.
    pub fn set_ending(&mut self, ending: &'a Ending, granted: Option<&'a Granted>) {
        if let Some(granted) = granted {
            self.fence = Some(granted.fence.0);
            self.grant = granted.kind.map(|kind| kind.as_str());
            self.previous_client = granted.previous_client.as_ref();
        }
        self.outcome = outcome_word(ending);
        match ending {
            Ending::Refused { clause, why } => {
                self.clause = Some(clause.number());
                self.refused = Some(why.word());
                self.refused_by = match why {
                    Refusal::Reserved { to, .. } => Some(to),
                    _ => why.holder(None),
                };
            }
            Ending::Done(_)
            | Ending::Stopped(_)
            | Ending::StoreFailed { .. }
            | Ending::NoGuard
            | Ending::Unstartable(_) => {}
            Ending::Ran { end, recorded, .. } => {
                let record = end.record();
                self.exit_code = record.exit_code;
                self.signal = record.signal;
                // A run within a run has no grant of its own, and so no record.
                self.recorded = granted.map(|_| *recorded);
            }
        }
    }

    /// Writes the report so that a reader sees the old file or the whole new one. An existing
    /// special file (a device, a pipe) is written to, never replaced.
    ///
    /// # Errors
    /// If the file or its directory can't be written.
    pub fn write_to(&self, path: &Path) -> io::Result<()> {
        let text = json(serde_json::to_string_pretty(self)?) + "\n";
        write_whole(path, text.as_bytes(), self.session)
    }
}

/// How a run ended, in a word: a run's outcome, or `refused`, `done`, `stopped`, `store_failed`.
pub(super) fn outcome_word(ending: &Ending) -> &'static str {
    match ending {
        Ending::Refused { .. } => "refused",
        Ending::Done(_)
        | Ending::Ran {
            end: JobEnd::NotStarted(Unstarted::Done(_)),
            ..
        } => "done",
        Ending::Stopped(_) => "stopped",
        Ending::StoreFailed { .. } => "store_failed",
        Ending::NoGuard | Ending::Unstartable(_) => Outcome::NotStarted.word(),
        Ending::Ran { end, .. } => end.record().outcome.word(),
    }
}

/// Which hook an end is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    Success,
    Failure,
    Refused,
}

impl Occasion {
    /// The option of its command.
    pub const fn option(self) -> &'static str {
        match self {
            Self::Success => "--on-success",
            Self::Failure => "--on-failure",
            Self::Refused => "--on-refused",
        }
    }
}

/// What a hook learns of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookReport {
    /// Which hook it is for.
    pub occasion: Occasion,
    /// The outcome, by the word of the report of `--report`.
    pub outcome: &'static str,
    /// tokenrun's exit status; `None` for the run of another session.
    pub exit_code: Option<u8>,
    /// The cause, in a word for scripts.
    pub reason: Option<&'static str>,
}

impl HookReport {
    /// The values of [`crate::run::environment::HOOK_VARIABLES`].
    pub fn values(&self) -> [String; 3] {
        [
            self.outcome.to_owned(),
            self.exit_code.map_or_else(String::new, |it| it.to_string()),
            self.reason.unwrap_or_default().to_owned(),
        ]
    }

    /// The end of a run that ends tokenrun so. `None` for a key that is done already: that is
    /// neither a success of this run nor a failure.
    pub fn of(ending: &Ending, exit: Exit) -> Option<Self> {
        use Occasion::{Failure, Refused, Success};
        let outcome = outcome_word(ending);
        let (occasion, outcome, reason) = match ending {
            Ending::Done(_)
            | Ending::Ran {
                end: JobEnd::NotStarted(Unstarted::Done(_)),
                ..
            } => return None,
            Ending::Refused { why, .. } => (Refused, outcome, Some(why.word())),
            // The database's lock of the row is a run's that is not over.
            Ending::StoreFailed { error, .. } if error.trouble == Trouble::Held => {
                (Refused, "refused", Some(error.trouble.word()))
            }
            Ending::StoreFailed { error, .. } => (Failure, outcome, Some(error.trouble.word())),
            Ending::Stopped(_) => (Failure, outcome, Some("signal")),
            Ending::NoGuard => (Failure, outcome, Some("guard_gone")),
            Ending::Unstartable(why) => (Failure, outcome, Some(not_started_word(why))),
            Ending::Ran { end, .. } => match reason_of(end, exit) {
                None => (Success, outcome, None),
                reason => (Failure, outcome, reason),
            },
        };
        Some(Self {
            occasion,
            outcome,
            exit_code: Some(exit.code()),
            reason,
        })
    }

    /// The end of a run that failed before it could look at its token. `None` for a command line
    /// that can't be understood.
    pub fn of_error(code: u8, message: &Message, of_store: bool) -> Option<Self> {
        let (occasion, outcome) = match (code, of_store) {
            (exit::USAGE, _) => return None,
            (exit::NOT_NOW, _) => (Occasion::Refused, "refused"),
            (_, true) => (Occasion::Failure, "store_failed"),
            (_, false) => (Occasion::Failure, Outcome::NotStarted.word()),
        };
        Some(Self {
            occasion,
            outcome,
            exit_code: Some(code),
            reason: message.reason.or(Some(message.event)),
        })
    }

    /// The end of the run of a holder that vanished: provably dead, or silent.
    pub const fn of_vanished(proven: bool) -> Self {
        Self {
            occasion: Occasion::Failure,
            outcome: Outcome::Unknown.word(),
            exit_code: None,
            reason: Some(if proven { "dead" } else { "silent" }),
        }
    }
}

/// Why an end is no success; `None` if it is one.
fn reason_of(end: &JobEnd, exit: Exit) -> Option<&'static str> {
    match end {
        JobEnd::Itself(Status::Exited(0)) => match exit {
            Exit::OK => None,
            _ => Some("not_recorded"),
        },
        JobEnd::Itself(status) => Some(told(*status).0),
        JobEnd::TimedOut(_) => Some("timeout"),
        JobEnd::Lost(loss) => Some(loss_word(*loss)),
        JobEnd::NotStarted(unstarted) => Some(unstarted_word(unstarted)),
    }
}

/// The message for a hook's end, unless it was a success. `limit` is its longest time.
pub fn ended(occasion: Occasion, end: &HookEnd, limit: Duration) -> Option<Message> {
    let (reason, how) = match end {
        HookEnd::Ended(Status::Exited(0)) => return None,
        HookEnd::Ended(status) => told(*status),
        HookEnd::TimedOut => {
            let limit = rounded(limit);
            let how = format!("did not end within {limit} (--hook-timeout), and was killed");
            ("timeout", how)
        }
        HookEnd::Stopped => ("stopped", "was killed after a stop signal".to_owned()),
        HookEnd::Unkillable => (
            "unkillable",
            "did not end in time, and some of it can't be killed: it is left alone".to_owned(),
        ),
        HookEnd::NotStarted(error) => ("not_started", format!("could not be started: {error}")),
        HookEnd::Lost => (
            "unknown",
            "ended in an unknown way: its keeper was killed, or does not answer".to_owned(),
        ),
    };
    let text = format!("the command of {} {how}", occasion.option());
    Some(Message::warning("hook_failed", text).because(reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::ending::{Failed, Loss, NotStarted};
    use crate::store::StoreError;
    use crate::token::{Clause, Refusal};

    fn ran(end: JobEnd) -> Ending {
        Ending::Ran {
            end,
            stopped_by: None,
            recorded: true,
        }
    }

    fn report(ending: &Ending, code: u8) -> (Occasion, &'static str, &'static str) {
        let report = HookReport::of(ending, Exit::Code(code)).unwrap();
        assert_eq!(report.exit_code, Some(code));
        (
            report.occasion,
            report.outcome,
            report.reason.unwrap_or_default(),
        )
    }

    #[test]
    fn each_end_has_its_hook_outcome_and_reason() {
        use Occasion::{Failure, Refused, Success};
        let itself = |status| ran(JobEnd::Itself(status));
        let cases = [
            (itself(Status::Exited(0)), 0, (Success, "succeeded", "")),
            (
                itself(Status::Exited(0)),
                74,
                (Failure, "succeeded", "not_recorded"),
            ),
            (
                itself(Status::Exited(3)),
                3,
                (Failure, "failed", "exit_status"),
            ),
            (
                itself(Status::Signalled(9)),
                137,
                (Failure, "killed", "signal"),
            ),
            (
                ran(JobEnd::TimedOut(Status::Signalled(15))),
                124,
                (Failure, "timed_out", "timeout"),
            ),
            (
                ran(JobEnd::Lost(Loss::Revoked)),
                76,
                (Failure, "lost", "revoked"),
            ),
            (
                ran(JobEnd::NotStarted(Unstarted::Guard(NotStarted::NotFound(
                    Failed::of(&[], "x"),
                )))),
                127,
                (Failure, "not_started", "not_found"),
            ),
            (Ending::Stopped(15), 143, (Failure, "stopped", "signal")),
            (Ending::NoGuard, 71, (Failure, "not_started", "guard_gone")),
            (
                Ending::Refused {
                    clause: Clause::Behind,
                    why: Refusal::Behind { ahead: 1 },
                },
                0,
                (Refused, "refused", "behind"),
            ),
        ];
        for (ending, code, expected) in cases {
            assert_eq!(report(&ending, code), expected, "{ending:?}");
        }
    }

    #[test]
    fn a_store_that_can_not_be_used_is_a_failure() {
        let ending = Ending::StoreFailed {
            error: StoreError::denied("x"),
            perhaps_granted: false,
        };
        let (occasion, outcome, _) = report(&ending, 77);
        assert_eq!((occasion, outcome), (Occasion::Failure, "store_failed"));
    }

    #[test]
    fn a_usage_error_has_no_hook_and_others_have() {
        let message = Message::warning("system", "x".into());
        assert_eq!(HookReport::of_error(exit::USAGE, &message, false), None);
        let report = HookReport::of_error(exit::SYSTEM, &message, false).unwrap();
        assert_eq!(report.values(), ["not_started", "71", "system"]);
        let report = HookReport::of_error(exit::CONFIG, &message, true).unwrap();
        assert_eq!(report.outcome, "store_failed");
    }

    #[test]
    fn the_exit_status_of_a_run_that_vanished_is_unknown() {
        assert_eq!(
            HookReport::of_vanished(true).values(),
            ["unknown", "", "dead"]
        );
        assert_eq!(
            HookReport::of_vanished(false).values(),
            ["unknown", "", "silent"]
        );
    }

    #[test]
    fn a_hook_that_succeeds_is_not_mentioned() {
        let limit = Duration::from_secs(10);
        let text = |end| ended(Occasion::Failure, &end, limit).map(|message| message.text);
        assert_eq!(text(HookEnd::Ended(Status::Exited(0))), None);
        assert_eq!(
            text(HookEnd::TimedOut).unwrap(),
            "the command of --on-failure did not end within 10s (--hook-timeout), and was killed"
        );
        assert_eq!(
            text(HookEnd::Ended(Status::Exited(22))).unwrap(),
            "the command of --on-failure exited with 22"
        );
    }
}
