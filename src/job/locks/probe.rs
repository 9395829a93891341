//! Checks whether a run's locks are held, without taking them, and by which processes.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::name::{Identity, LockName};
use super::{JOB_BYTE, RUN_BYTE};
use crate::sys::file;
use crate::sys::filesystem::FileSystem;
use crate::sys::ofd;
use crate::sys::procfs;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    /// The supervisor is alive.
    pub run_lock_held: bool,
    /// The guard is alive, or a process of the job that has the descriptor.
    pub job_lock_held: bool,
}

/// Checks the locks in the file of this name. `None` if nothing is known: there is no such file
/// here, it can't be opened, it is another file (a copy), or its locks can't be trusted.
///
/// A lock that is found free stays free, if the row that names the file was read before.
pub fn probe(directory: &Path, name: &LockName) -> Option<Probed> {
    judge(&open(&directory.join(name.as_str()))?, name)
}

fn judge(file: &File, name: &LockName) -> Option<Probed> {
    let identity = Identity::of(file).ok()?;
    let is_that_file = identity.inode.is_file && name.is_of(&identity);
    let is_trusted = is_that_file && FileSystem::of_file(file).ok()?.is_local();
    if is_trusted { look(file) } else { None }
}

/// Removes the file of this name, which has proven a death that is known by now.
pub fn remove(directory: &Path, name: &LockName) {
    // A file that can't be removed (another user's, for example) is swept later.
    let _ = fs::remove_file(directory.join(name.as_str()));
}

pub(super) fn open(path: &Path) -> Option<File> {
    file::open_plainly(path).ok()
}

pub(super) fn look(file: &File) -> Option<Probed> {
    Some(Probed {
        run_lock_held: ofd::is_locked(file.as_fd(), RUN_BYTE).ok()?,
        job_lock_held: ofd::is_locked(file.as_fd(), JOB_BYTE).ok()?,
    })
}

/// How many are named.
const MOST_NAMES: usize = 8;

/// The processes that have the file of this name open: `sleep (pid 4711)`. Empty if /proc shows
/// none of them: they belong to another user or container.
pub fn holders(name: &LockName) -> Vec<String> {
    if !procfs::is_ours() {
        return Vec::new();
    }
    let mut all = procfs::processes().unwrap_or_default();
    all.retain(|process| has_open(process.pid, name.as_str()));
    let named = all.iter().take(MOST_NAMES);
    let mut names: Vec<String> = named
        .map(|process| format!("{} (pid {})", process.name.escape_debug(), process.pid))
        .collect();
    if all.len() > MOST_NAMES {
        names.push(format!("{} more", all.len() - MOST_NAMES));
    }
    names
}

/// Reads the link's text without following the link: the file behind it may be on a file system
/// that hangs. The name is random, so its text is enough.
fn has_open(pid: i32, name: &str) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    entries
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .any(|target| is_named(&target, name))
}

fn is_named(target: &Path, name: &str) -> bool {
    let shown = target.file_name().map(OsStr::as_bytes).unwrap_or_default();
    shown.strip_suffix(b" (deleted)").unwrap_or(shown) == name.as_bytes()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::{LockName, becomes, take};
    use super::*;

    const fn held(run_lock_held: bool, job_lock_held: bool) -> Option<Probed> {
        Some(Probed {
            run_lock_held,
            job_lock_held,
        })
    }

    #[test]
    fn each_lock_is_visible_as_long_as_it_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let (run, job) = take(folder.path(), 7, true).unwrap();
        let name = run.name().clone();
        // Twice: a check changes nothing.
        for _ in 0..2 {
            assert_eq!(probe(folder.path(), &name), held(true, true));
        }
        let shows = |expected| becomes(|| probe(folder.path(), &name) == expected);
        drop(run);
        assert!(shows(held(false, true)));
        drop(job);
        assert!(shows(held(false, false)));
        let (run, job) = take(folder.path(), 8, true).unwrap();
        drop(job);
        assert!(becomes(
            || probe(folder.path(), run.name()) == held(true, false)
        ));
    }

    #[test]
    fn so_many_of_the_holders_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let (run, _job) = take(folder.path(), 7, true).unwrap();
        // This process is one of them.
        let mut children = Vec::new();
        for count in 1..=MOST_NAMES + 2 {
            let expected = count.min(MOST_NAMES) + usize::from(count > MOST_NAMES);
            assert!(becomes(|| holders(run.name()).len() == expected));
            let file = File::open(folder.path().join(run.name().as_str())).unwrap();
            let child = Command::new("sleep").arg("600").stdin(file).spawn();
            children.push(child.unwrap());
        }
        let said = || holders(run.name()).pop().unwrap_or_default();
        assert!(becomes(|| said() == "3 more"));
        for mut child in children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn simultaneous_checks_see_no_locks_of_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let (run, job) = take(folder.path(), 7, true).unwrap();
        let name = run.name().clone();
        drop((run, job));
        assert!(becomes(|| probe(folder.path(), &name) == held(false, false)));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        assert_eq!(probe(folder.path(), &name), held(false, false));
                    }
                });
            }
        });
    }

    #[test]
    fn another_file_proves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (run, job) = take(folder.path(), 7, true).unwrap();
        let name = run.name().clone();
        let path = folder.path().join(name.as_str());
        let aside = folder.path().join("aside");
        drop((run, job));
        assert!(becomes(|| probe(folder.path(), &name) == held(false, false)));

        fs::rename(&path, &aside).unwrap();
        assert_eq!(probe(folder.path(), &name), None, "it is not there");
        fs::copy(&aside, &path).unwrap();
        assert_eq!(probe(folder.path(), &name), None, "a copy");
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&aside, &path).unwrap();
        assert_eq!(probe(folder.path(), &name), None, "a link to it");
        fs::remove_file(&path).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(probe(folder.path(), &name), None, "a pipe");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(probe(folder.path(), &name), None, "a directory");
        fs::remove_dir(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
        assert_eq!(probe(folder.path(), &name), held(false, false));
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(probe(elsewhere.path(), &name), None);
    }

    #[test]
    fn a_file_on_a_file_system_that_is_not_local_proves_nothing() {
        let name_of = |file| LockName::new(7, &Identity::of(file).unwrap(), true);
        let local = tempfile::tempfile().unwrap();
        assert_eq!(judge(&local, &name_of(&local)), held(false, false));
        let other = open(Path::new("/proc/self/status")).unwrap();
        assert_eq!(judge(&other, &name_of(&other)), None);
    }

    #[test]
    fn processes_that_have_the_file_open_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let (run, job) = take(folder.path(), 7, true).unwrap();
        let name = run.name().clone();
        let own = format!("(pid {})", crate::sys::process::pid());
        let is_own = |found: &[String]| matches!(found, [one] if one.ends_with(&own));
        assert!(becomes(|| is_own(&holders(&name))));
        fs::remove_file(folder.path().join(name.as_str())).unwrap();
        drop(run);
        assert!(
            becomes(|| is_own(&holders(&name))),
            "a file that was removed"
        );
        drop(job);
        assert!(becomes(|| holders(&name).is_empty()));
    }

    #[test]
    fn only_the_whole_name_counts() {
        let is = |target: &str| is_named(Path::new(target), "run-1");
        assert!(is("/a/run-1") && is("/run-1") && is("/a/run-1 (deleted)"));
        assert!(!is("/a/xrun-1") && !is("/a/run-12") && !is("/run-1/x") && !is("pipe:[1]"));
    }
}
