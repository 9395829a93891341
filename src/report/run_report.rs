//! The file of `--report`: the result of a run, for scripts.

use std::io;
use std::path::Path;

use serde::Serialize;

use super::printable::json;
use super::whole_file::write_whole;
use crate::run::ending::{Ending, JobEnd, Unstarted};
use crate::run::event::Granted;
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
    /// Whether history has the record; `null` if no job was to be recorded.
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
                    Refusal::Forgetful { .. } | Refusal::Observed { .. } => None,
                    Refusal::HeadStart { of, .. } => of.as_ref(),
                    Refusal::Held { by, .. } => Some(by),
                    Refusal::Bound { to, .. } | Refusal::Reserved { to, .. } => Some(to),
                    Refusal::AliveHere(_)
                    | Refusal::Paused(_)
                    | Refusal::TooSoon { .. }
                    | Refusal::Behind { .. } => None,
                };
            }
            Ending::Done(_)
            | Ending::Stopped(_)
            | Ending::StoreFailed { .. }
            | Ending::NoGuard
            | Ending::Unstartable(_) => {}
            Ending::Ran { end, recorded, .. } => self.set_end(end, *recorded),
        }
    }

    fn set_end(&mut self, end: &JobEnd, recorded: bool) {
        let record = end.record();
        self.exit_code = record.exit_code;
        self.signal = record.signal;
        self.recorded = Some(recorded);
    }

    /// Writes the report so that a reader sees the old file or the whole new one. An existing
    /// special file (a device, a pipe) is written to, never replaced.
    ///
    /// # Errors
    /// If the file or its directory can't be written.
    pub fn write_to(&self, path: &Path) -> io::Result<()> {
        write_whole(path, &self.text()?, self.session)
    }

    fn text(&self) -> io::Result<Vec<u8>> {
        let mut text = json(serde_json::to_string_pretty(self)?).into_bytes();
        text.push(b'\n');
        Ok(text)
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
        Ending::NoGuard | Ending::Unstartable(_) => Outcome::NotStarted.as_str(),
        Ending::Ran { end, .. } => end.record().outcome.as_str(),
    }
}
