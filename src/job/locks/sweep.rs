//! Removes the lock files of dead runs that no run on this host took over.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::name::{DRAFT, LockName};
use super::probe::{Probed, look};
use super::taking::check_users;
use crate::sys::place::Directory;
use crate::sys::user::effective_id;

/// The minimum age of a swept file, and the time between two sweeps. A granted run names its file
/// at once, and takeover-after is at most a day: silence has shown whatever an older file could
/// prove, except for a run that lasted or waited for long; then others wait until it counts as
/// silent.
const AGE: Duration = Duration::from_secs(24 * 3_600);

/// How many files one sweep checks.
const MOST_FILES: usize = 4_096;

/// When the rest is checked, if there are more.
const REST_AFTER: Duration = Duration::from_mins(10);

/// The begin of the name of a mark.
const MARK: &str = "swept";

const MARK_MODE: u32 = 0o600;

/// Removes lock files and temporary files that are older than a day and not locked, if this user's
/// last sweep is a day old. Otherwise this costs one system call. In a very full directory it handles a
/// part of them.
pub fn sweep_if_due(directory: &Path) {
    // Without the directory, or the right to write there, nothing can be removed.
    let _ = sweep(directory);
}

fn sweep(directory: &Path) -> io::Result<()> {
    let now = SystemTime::now();
    // A mark from the future: the clock was set back since.
    let is_fresh = |found: Metadata| age(&found, now).is_some_and(|age| age < AGE);
    if fs::symlink_metadata(directory.join(mark_name())).is_ok_and(is_fresh) {
        return Ok(());
    }
    let directory = Directory::open(directory)?;
    check_users(&directory)?;
    let Some(mark) = mark(&directory)? else {
        return Ok(());
    };
    mark.set_modified(now)?;
    let mut looked_at = 0;
    for entry in fs::read_dir(directory.path())?.take(MOST_FILES).flatten() {
        looked_at += 1;
        let name = entry.file_name();
        if is_lock_file(&name) && is_left_behind(&directory, &name, now) {
            // Another process may have been quicker.
            let _ = directory.remove(&name);
        }
    }
    if looked_at == MOST_FILES {
        // Otherwise the rest follows a day later.
        mark.set_modified(now - (AGE - REST_AFTER))?;
    }
    Ok(())
}

/// The name of the file whose modification time is the time of this user's last sweep. Each has one:
/// with the sticky bit each removes only their own files.
fn mark_name() -> OsString {
    format!("{MARK}-{}", effective_id()).into()
}

/// The mark. A file that another program or user may have put there is left alone, and no sweep
/// happens.
fn mark(directory: &Directory) -> io::Result<Option<File>> {
    let name = mark_name();
    let mark = match directory.open_file(&name, true) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            directory.create_exactly(&name, MARK_MODE)?
        }
        opened => opened?,
    };
    Ok(is_mark(&mark.metadata()?).then_some(mark))
}

fn is_mark(found: &Metadata) -> bool {
    let is_this_users = found.uid() == effective_id() && found.mode() & 0o7777 == MARK_MODE;
    is_this_users && found.is_file() && found.nlink() == 1 && found.len() == 0
}

fn age(found: &Metadata, now: SystemTime) -> Option<Duration> {
    now.duration_since(found.modified().ok()?).ok()
}

/// No other file is ever touched, wherever it comes from.
fn is_lock_file(name: &OsStr) -> bool {
    let is_draft = |name: &[u8]| {
        let bits = name.strip_prefix(DRAFT.as_bytes());
        bits.is_some_and(|bits| bits.len() == 32 && bits.iter().all(u8::is_ascii_hexdigit))
    };
    is_draft(name.as_bytes()) || name.to_str().and_then(LockName::parse).is_some()
}

fn is_left_behind(directory: &Directory, name: &OsStr, now: SystemTime) -> bool {
    let found = directory.look(name).and_then(|there| there.metadata());
    let found = found.ok().filter(Metadata::is_file);
    let is_old = found.and_then(|found| age(&found, now)) > Some(AGE);
    let free = |file: File| look(&file) == Some(FREE);
    is_old && directory.open_file(name, false).is_ok_and(free)
}

const FREE: Probed = Probed {
    run_lock_held: false,
    job_lock_held: false,
};

#[cfg(test)]
mod tests {
    use super::super::{becomes, take};
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    fn make_old(path: &Path) {
        let old = SystemTime::now() - AGE - Duration::from_secs(60);
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(old).unwrap();
    }

    fn dead(directory: &Path, bits: u128) -> PathBuf {
        let (run, job) = take(directory, bits, true).unwrap();
        let path = directory.join(run.name().as_str());
        drop((run, job));
        assert!(becomes(|| look(&File::open(&path).unwrap()) == Some(FREE)));
        path
    }

    #[test]
    fn only_files_of_locks_that_are_old_and_free_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path();
        let old = dead(directory, 1);
        let young = dead(directory, 2);
        let draft = directory.join(format!("new-{:032x}", 3));
        let others = ["notes", "run-x", "new-", &format!("new-{}", "x".repeat(32))];
        let others = others.map(|name| directory.join(name));
        let (run, job) = take(directory, 4, true).unwrap();
        let run_held = directory.join(run.name().as_str());
        drop(job);
        let (run_of_job, job) = take(directory, 5, false).unwrap();
        let job_held = directory.join(run_of_job.name().as_str());
        drop(run_of_job);
        File::create(&draft).unwrap();
        for other in &others {
            File::create(other).unwrap();
            make_old(other);
        }
        for path in [&old, &draft, &run_held, &job_held] {
            make_old(path);
        }
        sweep_if_due(directory);
        assert!(!old.exists() && !draft.exists());
        for path in others.iter().chain([&young, &run_held, &job_held]) {
            assert!(path.exists(), "{}", path.display());
        }
        drop((run, job));
    }

    #[test]
    fn a_sweep_happens_once_a_day() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path();
        let mark = directory.join(mark_name());
        sweep_if_due(directory);
        let old = dead(directory, 1);
        make_old(&old);
        sweep_if_due(directory);
        assert!(old.exists());
        make_old(&mark);
        sweep_if_due(directory);
        assert!(!old.exists());
        let old = dead(directory, 3);
        make_old(&old);
        sweep_if_due(directory);
        assert!(old.exists(), "the mark is new again");

        let old = dead(directory, 2);
        make_old(&old);
        let file = File::options().write(true).open(&mark).unwrap();
        file.set_modified(SystemTime::now() + AGE).unwrap();
        sweep_if_due(directory);
        assert!(!old.exists(), "the clock was set back");
    }

    #[test]
    fn very_many_files_are_checked_in_turns() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path();
        for number in 0..MOST_FILES + 2 {
            let draft = directory.join(format!("{DRAFT}{number:032x}"));
            File::create(&draft).unwrap();
            make_old(&draft);
        }
        let left = || fs::read_dir(directory).unwrap().count();
        sweep_if_due(directory);
        // The mark may be among the files that were checked.
        assert!((3..=4).contains(&left()), "{}", left());
        sweep_if_due(directory);
        assert!(left() >= 3, "the rest is not looked at at once");
        let mark = directory.join(mark_name());
        let swept_at = fs::metadata(&mark).unwrap().modified().unwrap();
        let file = File::options().write(true).open(&mark).unwrap();
        file.set_modified(swept_at - REST_AFTER).unwrap();
        sweep_if_due(directory);
        assert_eq!(left(), 1, "the mark");
    }

    #[test]
    fn a_mark_that_leads_elsewhere_changes_nothing_there() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        make_old(&victim);
        let directory = folder.path().join("locks");
        let old = dead(&directory, 1);
        make_old(&old);
        std::os::unix::fs::symlink(&victim, directory.join(mark_name())).unwrap();
        sweep_if_due(&directory);
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert!(old.exists());
    }

    #[test]
    fn a_mark_that_another_program_may_have_put_there_stops_the_sweep() {
        let spoil: [fn(&Path); 4] = [
            |mark| fs::write(mark, "precious").unwrap(),
            |mark| fs::set_permissions(mark, Permissions::from_mode(0o644)).unwrap(),
            |mark| fs::hard_link(mark, mark.with_extension("more")).unwrap(),
            |mark| {
                fs::remove_file(mark).unwrap();
                fs::create_dir(mark).unwrap();
            },
        ];
        for (number, spoil) in spoil.into_iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let directory = folder.path();
            sweep_if_due(directory);
            let mark = directory.join(mark_name());
            spoil(&mark);
            let old = dead(directory, 1);
            make_old(&old);
            let long_ago = SystemTime::now() - 2 * AGE;
            let mark = File::open(&mark).unwrap();
            mark.set_modified(long_ago).unwrap();
            sweep_if_due(directory);
            assert!(old.exists(), "{number}");
            assert_eq!(mark.metadata().unwrap().modified().unwrap(), long_ago);
        }
    }

    #[test]
    fn what_is_no_file_is_no_mark() {
        let folder = tempfile::tempdir().unwrap();
        let queue = folder.path().join("queue");
        let mode = nix::sys::stat::Mode::from_bits_truncate(MARK_MODE);
        nix::unistd::mkfifo(&queue, mode).unwrap();
        fs::set_permissions(&queue, Permissions::from_mode(MARK_MODE)).unwrap();
        assert!(!is_mark(&fs::metadata(&queue).unwrap()));
    }

    #[test]
    fn needs_root_another_users_mark_is_no_mark() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        fs::write(&mark, "").unwrap();
        fs::set_permissions(&mark, Permissions::from_mode(MARK_MODE)).unwrap();
        assert!(is_mark(&fs::metadata(&mark).unwrap()));
        std::os::unix::fs::chown(&mark, Some(65_534), None).unwrap();
        assert!(!is_mark(&fs::metadata(&mark).unwrap()));
    }

    #[test]
    fn a_directory_that_is_not_one_of_its_users_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("locks");
        let old = dead(&directory, 1);
        make_old(&old);
        let set_mode = |mode| fs::set_permissions(folder.path(), Permissions::from_mode(mode));
        // Now a group shares the one that it lies in.
        set_mode(0o2770).unwrap();
        sweep_if_due(&directory);
        assert!(old.exists());
        set_mode(0o755).unwrap();
        sweep_if_due(&directory);
        assert!(!old.exists());
    }

    #[test]
    fn a_directory_that_is_not_there_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("none");
        sweep_if_due(&directory);
        assert!(!directory.exists());
    }
}
