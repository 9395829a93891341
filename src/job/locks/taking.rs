//! Takes the two locks of a run, and gives them up.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::name::{DRAFT, Identity, LockName};
use super::{JOB_BYTE, RUN_BYTE};
use crate::sys::apart;
use crate::sys::errno::Errno;
use crate::sys::filesystem::FileSystem;
use crate::sys::ofd;
use crate::sys::open_flags::{NO_FOLLOW, NO_WAIT};
use crate::sys::sharing::Sharing;

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
/// The directory can't be made or written, is not on a local file system, the disk is full,
/// descriptors have run out, or the kernel has no such locks. Nothing is left behind then.
pub fn take(directory: &Path, bits: u128, inherited: bool) -> io::Result<(RunLock, JobLock)> {
    check_kind(directory)?;
    let draft = directory.join(format!("{DRAFT}{bits:032x}"));
    let taken = make(directory, &draft)
        .and_then(|file| lock_and_name(file, directory, &draft, bits, inherited));
    if taken.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&draft);
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
    directory: &Path,
    draft: &Path,
    bits: u128,
    inherited: bool,
) -> io::Result<(RunLock, JobLock)> {
    let (identity, job) = lock_both(&file, draft)?;
    let name = LockName::new(bits, &identity, inherited);
    let path = directory.join(name.as_str());
    fs::rename(draft, &path)?;
    Ok((RunLock { file, path, name }, JobLock(job)))
}

fn make(directory: &Path, draft: &Path) -> io::Result<File> {
    match open(draft, true) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_directory(directory)?;
            open(draft, true)
        }
        made => made,
    }
}

fn open(draft: &Path, new: bool) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(new)
        .mode(mode_in(draft))
        .custom_flags(NO_FOLLOW | NO_WAIT)
        .open(draft)
}

/// The permissions of a file at this path: those that its directory gives.
fn mode_in(path: &Path) -> u32 {
    path.parent()
        .map_or(Sharing::Private, Sharing::of)
        .file_mode()
}

fn make_directory(directory: &Path) -> io::Result<()> {
    match Sharing::make_directory(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_directory(directory.parent().ok_or(error)?)?;
            make_directory(directory)
        }
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        // Another process may have been quicker.
        _ => Ok(()),
    }
}

/// Locks both bytes, the job's through a separate open file description.
fn lock_both(file: &File, draft: &Path) -> io::Result<(Identity, File)> {
    // First: a sweep leaves locked files alone.
    ofd::lock(file.as_fd(), RUN_BYTE)?;
    // A file system may have been mounted meanwhile.
    trusted(FileSystem::of_file(file)?)?;
    let identity = Identity::of(file)?;
    if !identity.inode.is_file {
        return Err(io::Error::other("what lies there is no file"));
    }
    let mode = mode_in(draft);
    if u32::from(identity.inode.mode) != mode {
        // The umask removed bits that the next call needs, or other users of the directory.
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    let job = open(draft, false)?;
    ofd::lock(job.as_fd(), JOB_BYTE)?;
    // Verified, because a sandbox may only pretend, and the path may lead elsewhere by now.
    if ofd::is_locked(file.as_fd(), JOB_BYTE)? {
        Ok((identity, job))
    } else {
        Err(io::Error::other("a lock that was taken can't be seen"))
    }
}

impl RunLock {
    /// The file's name, for the token's row.
    #[must_use]
    pub const fn name(&self) -> &LockName {
        &self.name
    }

    /// Whether the guard or a process of the job holds the job's lock.
    ///
    /// # Errors
    /// Those of fcntl(2), which has no reason to fail.
    pub fn is_job_lock_held(&self) -> io::Result<bool> {
        ofd::is_locked(self.file.as_fd(), JOB_BYTE)
    }

    /// Gives the lock up and removes its file. Its name proves nothing from then on.
    pub fn remove(self) {
        // A file that can't be removed is swept a day later.
        let _ = fs::remove_file(&self.path);
    }

    /// The same where the file system may hang: waits for at most `limit`.
    pub fn remove_apart(self, limit: Duration) {
        apart::remove(&self.path, limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::read_dir;
    use std::os::unix::fs::MetadataExt as _;

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
        assert!(!run.is_job_lock_held().unwrap());
        run.remove();
        assert!(names(&directory).is_empty());
    }

    #[test]
    fn a_file_in_a_directory_that_a_group_shares_is_for_the_group() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o2770)).unwrap();
        let directory = folder.path().join("locks");
        let (run, _job) = take(&directory, 7, true).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!(mode(&directory), 0o2770);
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
