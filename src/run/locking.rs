//! The locks of a run, and what those of another run prove.

use std::path::PathBuf;

use super::ending::Ending;
use super::guarding::Guarding;
use crate::job::locks::{self, LockName, Probed, RunLock};
use crate::store::Reading;
use crate::sys::random;
use crate::token::{Evidence, Row, SessionId, State, StoreTime};

/// Where the locks of a store's runs are, and who inherits this run's.
#[derive(Debug)]
pub struct LockSettings {
    /// The directory, which is made when it is needed.
    pub directory: PathBuf,
    /// Whether the job inherits its lock.
    pub inherited: bool,
}

/// This run's own lock, and a look at others'.
#[derive(Debug)]
pub(super) struct Locking<'a> {
    settings: &'a LockSettings,
    /// This run's, once it is taken.
    own: Option<RunLock>,
    /// The session that the last look proved dead, and its file.
    dead: Option<(SessionId, LockName)>,
}

impl<'a> Locking<'a> {
    pub(super) const fn new(settings: &'a LockSettings) -> Self {
        Self {
            settings,
            own: None,
            dead: None,
        }
    }

    /// What this host can prove about the run in the row, which was read before. Only a
    /// row that is running and names a file costs a look.
    pub(super) fn evidence(&mut self, reading: &Reading, own: &SessionId) -> Evidence {
        self.dead = None;
        let Some(row) = &reading.row else {
            return Evidence::None;
        };
        let file = row.lock_file.as_deref().and_then(LockName::parse);
        let (Some(session), Some(file)) = (row.session().filter(|it| *it != own), file) else {
            return Evidence::None;
        };
        let Some(probed) = locks::probe(&self.settings.directory, &file) else {
            return Evidence::None;
        };
        let evidence = judge(probed, &file, || is_young(row, &reading.now));
        if evidence == Evidence::Dead {
            self.dead = Some((session.clone(), file));
        }
        evidence
    }

    /// Takes this run's locks and hands the job's to the guard, which must not have
    /// started the job. Returns the file's name.
    ///
    /// # Errors
    /// Why there are no locks, in a line.
    pub(super) fn take(&mut self, guarding: &mut Guarding) -> Result<String, String> {
        let directory = &self.settings.directory;
        let said = |error: std::io::Error| format!("{}: {error}", directory.display());
        let bits = random::bits128().map_err(said)?;
        let (run, job) = locks::take(directory, bits, self.settings.inherited).map_err(said)?;
        if let Err(error) = guarding.hand_over(job, self.settings.inherited) {
            run.remove();
            return Err(said(error));
        }
        Ok(self.own.insert(run).name().to_string())
    }

    /// The token was taken from this session. What proved its death proves nothing more.
    pub(super) fn taken_from(&mut self, vanished: &SessionId) {
        if let Some((session, file)) = self.dead.take()
            && session == *vanished
        {
            locks::remove(&self.settings.directory, &file);
        }
    }

    /// The run is over. Its file stays only where the row may still name it: then it
    /// proves that the run is dead, unless processes that were let be hold its lock.
    pub(super) fn finish(&mut self, ending: &Ending) {
        let Some(own) = self.own.take() else {
            return;
        };
        let is_over = !may_be_in_row(ending);
        if is_over || own.is_job_lock_held().unwrap_or(true) {
            own.remove();
        }
        locks::sweep_if_due(&self.settings.directory);
    }
}

/// Whether the row may still say that this session runs.
const fn may_be_in_row(ending: &Ending) -> bool {
    match ending {
        Ending::Ran { recorded, .. } => !*recorded,
        Ending::StoreFailed {
            perhaps_granted, ..
        } => *perhaps_granted,
        Ending::Refused { .. } | Ending::Stopped(_) | Ending::NoGuard => false,
    }
}

/// Who holds a lock is looked up only where it will be told: while the run is not
/// silent, it is refused by its heartbeat.
fn judge(probed: Probed, file: &LockName, is_young: impl FnOnce() -> bool) -> Evidence {
    if !probed.job_lock_held && !file.is_inherited() {
        // The job may live, whoever else does not.
        return Evidence::None;
    }
    let holders = match probed.job_lock_held && !is_young() {
        true => locks::holders(file),
        false => Vec::new(),
    };
    Evidence::of_locks(probed.run_lock_held, probed.job_lock_held, holders)
}

fn is_young(row: &Row, now: &StoreTime) -> bool {
    let State::Running { heartbeat_at, .. } = &row.state else {
        return false;
    };
    let age = now.age_of(*heartbeat_at, Some(&row.domain));
    age.is_some_and(|age| age < row.takeover_after)
}
