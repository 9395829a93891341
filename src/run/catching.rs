//! What the job prints, if it is caught: from the pipe to the store.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::ending::{Ending, JobEnd};
use super::event::Granted;
use crate::job::{Capture, Captured, Capturing};
use crate::store::worker::Worker;
use crate::store::{Answer, Request, StoreError};
use crate::sys::poll::wait_readable;
use crate::token::{GroupName, OutputRecord};

/// How long the end of a run waits until the output is stored.
const KEEP_WAIT: Duration = Duration::from_secs(2);

/// The capture of a job's output, and whose it is.
#[derive(Debug)]
pub(super) struct Catching {
    stage: Stage,
    /// The grant, once the job has been started under it.
    granted: Option<Granted>,
}

#[derive(Debug)]
enum Stage {
    /// It is not caught, or no more.
    Off,
    /// The pipe is made, and is not read yet.
    Made(Capture),
    /// A thread reads it.
    Reading(Capturing),
}

impl Catching {
    /// Makes the pipe if output is to be caught, of this size. Returns its other end, which only the
    /// job may keep.
    ///
    /// # Errors
    /// The system is out of descriptors.
    pub(super) fn prepare(size: Option<usize>) -> io::Result<(Self, Option<OwnedFd>)> {
        let made = size.map(Capture::new).transpose()?;
        let (stage, output) = match made {
            Some((capture, output)) => (Stage::Made(capture), Some(output)),
            None => (Stage::Off, None),
        };
        let granted = None;
        Ok((Self { stage, granted }, output))
    }

    /// Starts the thread. To be called when every process is forked that needs a single thread.
    ///
    /// # Errors
    /// The system cannot create a thread: no job may be started.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        self.stage = match std::mem::replace(&mut self.stage, Stage::Off) {
            Stage::Made(capture) => Stage::Reading(capture.begin()?),
            other => other,
        };
        Ok(())
    }

    /// The job is being started under this grant.
    pub(super) fn granted(&mut self, granted: &Granted) {
        self.granted = Some(granted.clone());
    }

    /// What was caught, once the run is over; `None` if no job ran, or its output was not caught.
    pub(super) fn end(&mut self, ending: &Ending) -> Option<Captured> {
        let Stage::Reading(capturing) = std::mem::replace(&mut self.stage, Stage::Off) else {
            return None;
        };
        let has_run = match ending {
            Ending::Ran { end, .. } => !matches!(end, JobEnd::NotStarted(_)),
            _ => false,
        };
        let captured = capturing.end();
        has_run.then_some(captured)
    }

    /// The record of what was caught; `None` if the run has none itself: it ran under an outer
    /// session's lease.
    fn record(&self, group: &GroupName, captured: &Captured) -> Option<OutputRecord> {
        let granted = self.granted.as_ref().filter(|it| it.kind.is_some())?;
        Some(OutputRecord::new(
            group.clone(),
            granted.fence,
            granted.session.clone(),
            captured.printed,
            &captured.last,
        ))
    }

    /// Stores what was caught. Waits for the store, but not long: the token is released, and the
    /// output is not worth more.
    ///
    /// # Errors
    /// It is unknown whether it is stored.
    pub(super) fn keep(
        &self,
        worker: &mut Worker,
        group: &GroupName,
        ending: &Ending,
        captured: &Captured,
    ) -> Result<(), StoreError> {
        let Some(record) = self.record(group, captured) else {
            return Ok(());
        };
        if !matches!(ending, Ending::Ran { recorded: true, .. }) {
            // The store did not answer, and may still be busy with an earlier request.
            return Err(StoreError::unavailable("the run could not be recorded"));
        }
        worker.send(Request::KeepOutput(Box::new(record)), true);
        if !worker.has_early_answer()
            && let Some(fd) = worker.fd()
        {
            // Whatever it returns, the answer is looked for next.
            let _ = wait_readable(fd, Some(KEEP_WAIT));
        }
        match worker.answer() {
            Some(Answer::Kept(kept)) => kept,
            _ => Err(StoreError::unavailable("the store did not answer in time")),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::job::Captured;
    use crate::store::model::ModelStore;
    use crate::sys::wait::Status;
    use crate::token::rule::tests::fixture::session;
    use crate::token::{Fence, GrantKind};

    pub(in crate::run) fn ran(recorded: bool) -> Ending {
        Ending::Ran {
            end: JobEnd::Itself(Status::Exited(0)),
            stopped_by: None,
            recorded,
        }
    }

    /// Output beside no run, or beside one that another has recorded as unknown, would be a riddle.
    #[test]
    fn output_is_stored_only_if_its_run_is_recorded() {
        let group = GroupName::new("g").unwrap();
        let captured = Captured {
            last: b"hello".to_vec(),
            printed: 5,
        };
        for kind in [Some(GrantKind::Bind), None] {
            let granted = Some(Granted {
                session: session("a1"),
                fence: Fence(7),
                kind,
                previous_client: None,
            });
            let catching = Catching {
                stage: Stage::Off,
                granted,
            };
            for recorded in [false, true] {
                let store = ModelStore::new();
                let mut worker = Worker::new(Box::new(store.clone()));
                let kept = catching.keep(&mut worker, &group, &ran(recorded), &captured);
                let has_own = kind.is_some();
                assert_eq!(kept.is_ok(), recorded || !has_own);
                let stored = store.contents().outputs.len();
                assert_eq!(stored, usize::from(recorded && has_own));
            }
        }
    }
}
