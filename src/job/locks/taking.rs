//! Takes the two locks of a run, and gives them up.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::name::{DRAFT, Identity, LockName};
use super::{JOB_BYTE, RUN_BYTE};
use crate::sys::errno::Errno;
use crate::sys::filesystem::FileSystem;
use crate::sys::ofd;
use crate::sys::place::Directory;
use crate::sys::process::remove_file_within;
use crate::sys::sharing::objection_to_directory;

/// The supervisor's own lock. The file stays when this is dropped: then it proves that the run is
/// dead.
#[derive(Debug)]
pub struct RunLock {
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) name: LockName,
}

/// The lock that goes to the guard and is then closed here.
#[derive(Debug)]
pub struct JobLock(pub(super) File);

impl AsFd for JobLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Names a lock file in this directory for one run and takes both locks. `bits`: the file's random
/// name, drawn for each run. `inherited`: whether the job will inherit its lock. A missing
/// directory is made, shared like the one that it is made in.
///
/// # Errors
/// The directory can't be made or written, is another user's, is not on a local file system, the disk is
/// full, descriptors have run out, or the kernel has no such locks. Nothing is left behind then.
pub fn take(directory: &Path, bits: u128, inherited: bool) -> io::Result<(RunLock, JobLock)> {
    check_kind(directory)?;
    let directory = Directory::make(directory)?;
    check_users(&directory)?;
    let draft = OsString::from(format!("{DRAFT}{bits:032x}"));
    let taken = directory
        .create_exactly(&draft, directory.sharing()?.file_mode())
        .and_then(|file| lock_and_name(file, &directory, &draft, bits, inherited));
    if taken.is_err() {
        // The first error is the one to report.
        let _ = directory.remove(&draft);
    }
    taken
}

/// Before anything is created or locked there: on a network file system each of these calls may
/// take as long as its server likes.
fn check_kind(directory: &Path) -> io::Result<()> {
    for path in directory.ancestors() {
        match FileSystem::of_path(path) {
            Ok(found) => return trusted(found),
            Err(Errno::ENOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Where others may write to the parent, one of them could give the name to another directory.
pub(super) fn check_users(directory: &Directory) -> io::Result<()> {
    let parent = directory.path().parent().unwrap_or(Path::new("/"));
    let objection = objection_to_directory(&directory.metadata()?, &fs::metadata(parent)?);
    objection.map_or(Ok(()), |why| {
        let text = format!("{} {why}", directory.path().display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    })
}

fn trusted(file_system: FileSystem) -> io::Result<()> {
    match file_system.is_local() {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "it lies on {file_system}, whose locks can't be trusted"
        ))),
    }
}

fn lock_and_name(
    file: File,
    directory: &Directory,
    draft: &OsStr,
    bits: u128,
    inherited: bool,
) -> io::Result<(RunLock, JobLock)> {
    let (identity, job) = lock_both(&file, directory, draft)?;
    let name = LockName::new(bits, &identity, inherited);
    directory.rename(draft, OsStr::new(name.as_str()))?;
    let path = directory.path().join(name.as_str());
    Ok((RunLock { file, path, name }, JobLock(job)))
}

/// Locks both bytes, the job's through a separate open file description.
fn lock_both(file: &File, directory: &Directory, draft: &OsStr) -> io::Result<(Identity, File)> {
    // First: a sweep leaves locked files alone.
    ofd::lock(file.as_fd(), RUN_BYTE)?;
    // A file system may have been mounted meanwhile.
    trusted(FileSystem::of_file(file)?)?;
    let identity = Identity::of(file)?;
    let job = directory.open_file(draft, true)?;
    ofd::lock(job.as_fd(), JOB_BYTE)?;
    // Verified, because a sandbox may only pretend, and the name may be another file's by now.
    if ofd::is_locked(file.as_fd(), JOB_BYTE)? {
        Ok((identity, job))
    } else {
        Err(io::Error::other("a lock that was taken can't be seen"))
    }
}

impl RunLock {
    /// The file's name, for the token's row.
    pub const fn name(&self) -> &LockName {
        &self.name
    }

    /// True if the guard or a process of the job holds the job's lock.
    pub fn is_job_lock_held(&self) -> io::Result<bool> {
        ofd::is_locked(self.file.as_fd(), JOB_BYTE)
    }

    /// Gives the lock up and removes its file. Its name proves nothing from then on.
    pub fn remove(self) {
        // A file that can't be removed is swept a day later.
        let _ = fs::remove_file(&self.path);
    }

    /// Removes the file where the file system may hang: waits for at most `limit`.
    pub fn remove_within(self, limit: Duration) {
        remove_file_within(limit, &self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::super::becomes;
    use super::*;
    use std::fs::{Permissions, read_dir};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    fn names(directory: &Path) -> Vec<String> {
        let entries = read_dir(directory).unwrap();
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string();
        entries.map(|entry| name(entry).unwrap()).collect()
    }

    #[test]
    fn a_taken_file_is_named_private_and_locked() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("a/b");
        let (run, job) = take(&directory, 7, true).unwrap();
        assert_eq!(names(&directory), [run.name().as_str()]);
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!(mode(&directory), 0o700);
        assert_eq!(mode(&directory.join(run.name().as_str())), 0o600);
        assert!(run.is_job_lock_held().unwrap());
        drop(job);
        assert!(becomes(|| !run.is_job_lock_held().unwrap()));
        run.remove();
        assert!(names(&directory).is_empty());
    }

    #[test]
    fn a_file_is_removed_by_another_process_too() {
        let folder = tempfile::tempdir().unwrap();
        let (run, _job) = take(folder.path(), 7, true).unwrap();
        run.remove_within(Duration::from_secs(60));
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_file_in_a_directory_that_a_group_shares_is_for_the_group() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o2770)).unwrap();
        let directory = folder.path().join("locks");
        let (run, _job) = take(&directory, 7, true).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!(mode(&directory), 0o3770);
        assert_eq!(mode(&directory.join(run.name().as_str())), 0o660);
    }

    #[test]
    fn a_link_in_the_place_of_the_draft_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("locks");
        fs::create_dir(&directory).unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let draft = directory.join(format!("{DRAFT}{:032x}", 1));
        std::os::unix::fs::symlink(&victim, &draft).unwrap();
        let refused = take(&directory, 1, true).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
    }

    #[test]
    fn no_locks_are_taken_where_they_can_not_be_trusted() {
        for path in ["/proc/self", "/proc/no/such/directory"] {
            let refused = take(Path::new(path), 7, true).unwrap_err();
            assert!(refused.to_string().contains("procfs"), "{refused}");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let refused = take(file.path(), 7, true).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::NotADirectory);
    }
}
