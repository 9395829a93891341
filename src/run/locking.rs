//! The locks of this run, and the evidence in the locks of another.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ending::Ending;
use super::guarding::Guarding;
use super::setup::LockSettings;
use crate::job::locks::{self, Clerk, JobLock, LockName, Probed, RunLock};
use crate::store::Reading;
use crate::sys::procfs::is_namesake;
use crate::sys::random;
use crate::sys::signals::Inherited;
use crate::token::{Evidence, Row, SessionId, StoreTime};

/// How long the end of a run waits for the removal of its lock file by another process, which is killed then: long enough
/// for a busy host. A file that stays is swept after a day.
const LEAVING: Duration = Duration::from_millis(500);

/// The process that does file operations.
#[derive(Debug)]
enum Hands {
    /// This process.
    Own,
    /// The clerk.
    Clerk(Box<Clerk>),
    /// No process: the clerk is not there yet, has left, or could not be forked; with the reason.
    None(&'static str),
}

const NOT_YET: Hands = Hands::None("it was not asked yet");

/// This run's own lock, and checks of others.
#[derive(Debug)]
pub(super) struct Locking<'a> {
    settings: &'a LockSettings,
    hands: Hands,
    /// This run's own lock, once taken.
    own: Option<RunLock>,
    ahead: Ahead,
    /// The session that the last check proved dead, and its file.
    dead: Option<(SessionId, LockName)>,
}

/// The locks, taken in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ahead {
    NotYet,
    Taken,
    /// They could not be taken, or were requested meanwhile.
    Tried,
}

impl<'a> Locking<'a> {
    pub(super) const fn new(settings: &'a LockSettings) -> Self {
        let hands = match settings.patience {
            None => Hands::Own,
            Some(_) => NOT_YET,
        };
        Self {
            settings,
            hands,
            own: None,
            ahead: Ahead::NotYet,
            dead: None,
        }
    }

    /// Forks the clerk, if the store needs one. To be called after the guard's fork, while there is
    /// one thread.
    pub(super) fn fork_clerk(&mut self, inherited: Inherited) {
        if let (Some(patience), Some(directory)) =
            (self.settings.patience, &self.settings.directory)
        {
            self.hands = match Clerk::fork(directory, patience, inherited) {
                Ok(clerk) => Hands::Clerk(Box::new(clerk)),
                Err(_) => Hands::None("there is no process for it"),
            };
        }
    }

    /// The job has started: this run needs no more evidence about others.
    pub(super) fn dismiss_clerk(&mut self, guarding: &mut Guarding) {
        let hands = std::mem::replace(&mut self.hands, Hands::None("it was dismissed"));
        match hands {
            Hands::Clerk(clerk) => {
                if let Some(hanging) = clerk.dismiss() {
                    guarding.disown(hanging);
                }
            }
            other => self.hands = other,
        }
    }

    fn probe(&mut self, name: &LockName) -> Option<Probed> {
        match &mut self.hands {
            Hands::Own => locks::probe(self.settings.directory.as_deref()?, name),
            Hands::Clerk(clerk) => clerk.probe(name),
            Hands::None(_) => None,
        }
    }

    fn make(&mut self, directory: &Path) -> io::Result<(RunLock, JobLock)> {
        let bits = random::bits128()?;
        let inherited = self.settings.inherited;
        match &mut self.hands {
            Hands::Own => locks::take(directory, bits, inherited),
            Hands::Clerk(clerk) => clerk.take(bits, inherited),
            Hands::None(why) => Err(io::Error::other(*why)),
        }
    }

    fn remove(&self, run: RunLock) {
        match self.hands {
            Hands::Own => run.remove(),
            Hands::Clerk(_) | Hands::None(_) => run.remove_within(LEAVING),
        }
    }

    /// What this host can prove about the run in the row, which was read before. Only a row that is
    /// running and names a file costs a check.
    pub(super) fn evidence(&mut self, reading: &Reading, own: &SessionId) -> Evidence {
        self.dead = None;
        let Some((row, session, file)) = another(reading, own) else {
            return Evidence::None;
        };
        let Some(probed) = self.probe(&file) else {
            return Evidence::None;
        };
        let evidence = judge(probed, &file, || is_young(row, &reading.now));
        if evidence == Evidence::Dead {
            self.dead = Some((session.clone(), file));
        }
        evidence
    }

    /// Checks while this process has no children yet: a clerk that it needs is there for this
    /// check alone. A clerk for the run is forked after the guard. Without a check, a run whose
    /// heartbeats arrive counts as alive, as long as a process of its number seems to be its
    /// supervisor.
    pub(super) fn first_evidence(
        &mut self,
        reading: &Reading,
        own: &SessionId,
        inherited: Inherited,
    ) -> Evidence {
        let Some((row, ..)) = another(reading, own) else {
            return Evidence::None;
        };
        if matches!(self.hands, Hands::Own) {
            return self.evidence(reading, own);
        }
        if is_young(row, &reading.now) && row.document.pid.is_some_and(is_namesake) {
            return Evidence::None;
        }
        self.fork_clerk(inherited);
        let evidence = self.evidence(reading, own);
        if let Hands::Clerk(clerk) = std::mem::replace(&mut self.hands, NOT_YET) {
            // One that hangs is a child that this process had before its guard.
            let _ = clerk.dismiss();
        }
        evidence
    }

    /// Takes this run's locks and hands the job's lock to the guard, which must not have started
    /// the job. Returns the file's name.
    ///
    /// # Errors
    /// Why there are no locks, in one line.
    pub(super) fn take(&mut self, guarding: &mut Guarding) -> Result<String, String> {
        let ahead = std::mem::replace(&mut self.ahead, Ahead::Tried);
        let own = self.own.as_ref().map(|own| own.name().clone());
        match own.filter(|_| ahead == Ahead::Taken) {
            // Unless the file was removed meanwhile.
            Some(own) if self.probe(&own).is_some() => Ok(own.to_string()),
            _ => self.take_now(guarding),
        }
    }

    /// Takes the locks in advance, once. A failure is reported when the locks are requested.
    pub(super) fn take_ahead(&mut self, guarding: &mut Guarding) {
        if self.ahead == Ahead::NotYet && self.own.is_none() {
            self.ahead = match self.take_now(guarding) {
                Ok(_) => Ahead::Taken,
                Err(_) => Ahead::Tried,
            };
        }
    }

    fn take_now(&mut self, guarding: &mut Guarding) -> Result<String, String> {
        let Some(directory) = &self.settings.directory else {
            return Err("there is no directory for them".to_owned());
        };
        let said = |error: io::Error| format!("{}: {error}", directory.display());
        let (run, job) = self.make(directory).map_err(said)?;
        if let Err(error) = guarding.hand_over(job, self.settings.inherited) {
            self.remove(run);
            return Err(said(error));
        }
        Ok(self.own.insert(run).name().to_string())
    }

    /// The token was taken from this session. The proof of its death is not needed any more.
    pub(super) fn taken_from(&mut self, vanished: &SessionId) {
        let proven = self.dead.take().filter(|(dead, _)| dead == vanished);
        match (proven, &self.hands, &self.settings.directory) {
            (Some((_, file)), Hands::Own, Some(directory)) => locks::remove(directory, &file),
            (Some((_, file)), Hands::Clerk(clerk), _) => clerk.remove(&file),
            _ => {}
        }
    }

    /// The run is over. Its file stays only where the row may still name it: then the file proves
    /// that the run is dead, unless processes that were left alone hold its lock.
    pub(super) fn finish(&mut self, ending: &Ending) {
        if let Some(own) = self.own.take() {
            let is_over = !may_be_in_row(ending);
            if is_over || own.is_job_lock_held().unwrap_or(true) {
                self.remove(own);
            }
            if let (Hands::Own, Some(directory)) = (&self.hands, &self.settings.directory) {
                locks::sweep_if_due(directory);
            }
        }
        let over = Hands::None("the run is over");
        if let Hands::Clerk(clerk) = std::mem::replace(&mut self.hands, over) {
            clerk.dismiss_at_the_end();
        }
    }
}

/// What this host can prove about the run in the row that was read, for a process outside that run.
pub fn evidence_of(directory: PathBuf, reading: &Reading, own: &SessionId) -> Evidence {
    let settings = LockSettings {
        directory: Some(directory),
        inherited: false,
        patience: None,
    };
    Locking::new(&settings).evidence(reading, own)
}

/// The row of a run of another session, its session, and the file that it names.
fn another<'a>(
    reading: &'a Reading,
    own: &SessionId,
) -> Option<(&'a Row, &'a SessionId, LockName)> {
    let row = reading.row.as_ref()?;
    let session = row.session().filter(|it| *it != own)?;
    let file = LockName::parse(row.run()?.lock_file.as_deref()?)?;
    Some((row, session, file))
}

/// True if the row may still contain this session.
const fn may_be_in_row(ending: &Ending) -> bool {
    match ending {
        Ending::Ran { recorded, .. } => !*recorded,
        Ending::StoreFailed {
            perhaps_granted, ..
        } => *perhaps_granted,
        Ending::Refused { .. }
        | Ending::Done(_)
        | Ending::Stopped(_)
        | Ending::NoGuard
        | Ending::Unstartable(_) => false,
    }
}

/// Judges locks. Their holders are looked up only where they are shown: while the run is not
/// silent, its heartbeat decides.
fn judge(probed: Probed, file: &LockName, is_young: impl FnOnce() -> bool) -> Evidence {
    if !probed.job_lock_held && !file.is_inherited() {
        // The job may be alive, whatever the other process does.
        return Evidence::None;
    }
    let holders = match probed.job_lock_held && !is_young() {
        true => locks::holders(file),
        false => Vec::new(),
    };
    Evidence::of_locks(probed.run_lock_held, probed.job_lock_held, holders)
}

fn is_young(row: &Row, now: &StoreTime) -> bool {
    let age = row.run().and_then(|_| row.age(now));
    age.is_some_and(|age| age < row.document.takeover_after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::ending::JobEnd;
    use crate::sys::wait::Status;
    use crate::token::Stamp;
    use crate::token::rule::tests::fixture::{
        TAKEOVER_AFTER, but, epoch, idle, lock_file, running, session,
    };
    use std::time::Duration;

    struct Host {
        folder: tempfile::TempDir,
        settings: LockSettings,
    }

    impl Host {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let settings = LockSettings {
                directory: Some(folder.path().to_owned()),
                inherited: true,
                patience: None,
            };
            Self { folder, settings }
        }

        fn locking(&self) -> Locking<'_> {
            Locking::new(&self.settings)
        }

        fn take(&self, inherited: bool) -> (RunLock, locks::JobLock) {
            locks::take(self.folder.path(), 7, inherited).unwrap()
        }

        fn files(&self) -> usize {
            let names = std::fs::read_dir(self.folder.path()).unwrap();
            let names = names.map(|entry| entry.unwrap().file_name());
            names
                .filter(|name| !name.to_string_lossy().starts_with("swept"))
                .count()
        }
    }

    /// `a`'s run, whose heartbeat is `silent_for` old, with this lock file.
    fn reading(row: Row, file: &LockName, silent_for: Duration) -> Reading {
        let heartbeat = row.stamped.stamp;
        let now = StoreTime {
            stamp: Stamp {
                tick_ms: heartbeat.tick_ms + i64::try_from(silent_for.as_millis()).unwrap(),
                ..heartbeat
            },
            epoch: epoch("d"),
        };
        Reading {
            row: Some(but(row, |row| *lock_file(row) = Some(file.to_string()))),
            now,
            queue: Vec::new(),
            memory: crate::token::Memory::SOUND,
            refuses: None,
            done: None,
        }
    }

    const YOUNG: Duration = Duration::ZERO;

    #[test]
    fn the_locks_prove_life_or_death() {
        let host = Host::new();
        let me = session("me");
        for inherited in [true, false] {
            let (run, job) = host.take(inherited);
            let file = run.name().clone();
            let read = reading(running("a"), &file, YOUNG);
            let mut locking = host.locking();
            let mut prove = || locking.evidence(&read, &me);
            assert_eq!(prove(), Evidence::Alive(vec![]));
            drop(job);
            assert_eq!(prove(), Evidence::None, "only its supervisor lives");
            drop(run);
            let free = match inherited {
                true => Evidence::Dead,
                false => Evidence::None,
            };
            assert_eq!(prove(), free);
            std::fs::remove_file(host.folder.path().join(file.as_str())).unwrap();
            assert_eq!(prove(), Evidence::None, "no file");
        }
    }

    #[test]
    fn only_the_locks_of_another_running_session_are_checked() {
        let host = Host::new();
        let (run, job) = host.take(true);
        let file = run.name().clone();
        drop((run, job));
        let mut locking = host.locking();
        let running = reading(running("a"), &file, YOUNG);
        let own = running.row.as_ref().unwrap().session().unwrap().clone();
        assert_eq!(locking.evidence(&running, &own), Evidence::None);
        let idle = Reading {
            row: Some(idle("a")),
            ..running.clone()
        };
        assert_eq!(locking.evidence(&idle, &session("me")), Evidence::None);
        let empty = Reading { row: None, ..idle };
        assert_eq!(locking.evidence(&empty, &session("me")), Evidence::None);
        assert_eq!(
            locking.evidence(&running, &session("me")),
            Evidence::Dead,
            "but for that"
        );
    }

    #[test]
    fn the_holders_of_a_lock_are_looked_up_only_where_they_are_shown() {
        let host = Host::new();
        let (run, _job) = host.take(true);
        let me = session("me");
        let named = |row: Row, silent_for| {
            let read = reading(row, run.name(), silent_for);
            match host.locking().evidence(&read, &me) {
                Evidence::Alive(names) => names.len(),
                other => panic!("{other:?}"),
            }
        };
        let a_moment = Duration::from_millis(1);
        assert_eq!(named(running("a"), TAKEOVER_AFTER - a_moment), 0);
        assert_eq!(named(running("a"), TAKEOVER_AFTER), 1);
        let elsewhere = but(running("a"), |row| row.stamped.epoch = epoch("other"));
        assert_eq!(named(elsewhere, YOUNG), 1, "an unknown age");
    }

    #[test]
    fn the_new_holder_removes_the_file_of_the_dead_session() {
        let host = Host::new();
        let (run, job) = host.take(true);
        let read = reading(running("a"), run.name(), YOUNG);
        let holder = read.row.as_ref().unwrap().session().unwrap().clone();
        let mut locking = host.locking();
        locking.evidence(&read, &session("me"));
        locking.taken_from(&holder);
        assert_eq!(host.files(), 1, "it was not proven dead");
        drop((run, job));
        locking.evidence(&read, &session("me"));
        locking.taken_from(&session("other"));
        assert_eq!(host.files(), 1, "another was taken from");
        locking.evidence(&read, &session("me"));
        locking.taken_from(&holder);
        assert_eq!(host.files(), 0);
    }

    #[test]
    fn a_file_stays_only_where_the_row_may_still_name_it() {
        let ran = |recorded| Ending::Ran {
            end: JobEnd::Itself(Status::Exited(0)),
            stopped_by: None,
            recorded,
        };
        let failed = |perhaps_granted| Ending::StoreFailed {
            error: crate::store::StoreError::unavailable("gone"),
            perhaps_granted,
        };
        for (ending, left) in [
            (ran(true), 0),
            (ran(false), 1),
            (failed(false), 0),
            (failed(true), 1),
            (Ending::Stopped(15), 0),
            (Ending::NoGuard, 0),
        ] {
            let host = Host::new();
            let mut locking = host.locking();
            let (run, job) = host.take(true);
            locking.own = Some(run);
            drop(job);
            locking.finish(&ending);
            assert_eq!(host.files(), left, "{ending:?}");
        }
        // Processes that were left alone must not delay others.
        let host = Host::new();
        let mut locking = host.locking();
        let (run, _job) = host.take(true);
        locking.own = Some(run);
        locking.finish(&ran(false));
        assert_eq!(host.files(), 0);
    }
}
