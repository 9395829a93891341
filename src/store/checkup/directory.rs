//! Directories, and this user's rights in them.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::Check;
use crate::store::Trouble;
use crate::sys::errno::Errno;
use crate::sys::file::{self, Access};
use crate::sys::sharing::{Sharing, is_sticky};
use crate::sys::user;

/// Checks that a directory exists, or can be made, and that files can be made in it.
pub(in crate::store) fn check(step: &'static str, directory: &Path) -> Check {
    let shown = directory.display();
    let Some(existing) = directory.ancestors().find(|path| path.exists()) else {
        return Check::fail(
            step,
            Trouble::Misconfigured,
            format!("{shown} can't be looked at"),
            "give another path",
        );
    };
    let is_there = existing == directory;
    let found = match fs::metadata(existing) {
        Ok(found) if found.is_dir() => found,
        _ => {
            let found = format!("{} is no directory", existing.display());
            return Check::fail(step, Trouble::Misconfigured, found, "give another path");
        }
    };
    if let Err(error) = file::check(existing, Access::MakeFiles) {
        let what = if is_there { "written to" } else { "made" };
        return Check::fail(
            step,
            Trouble::Denied,
            format!(
                "{shown} can't be {what}: {error} ({})",
                owner(existing, &found)
            ),
            remedy_of(&error)
                .unwrap_or("let this user write there, run as its owner, or give another path"),
        );
    }
    let found_words = if is_there {
        format!("{shown} can be written to ({})", owner(existing, &found))
    } else {
        format!("{shown} is not there yet: the first run makes it")
    };
    if is_there && found.mode() & 0o002 != 0 {
        return Check::warn(
            step,
            format!("{found_words}; every user may put files there"),
            "use a directory of the user's own",
        );
    }
    Check::fine(step, found_words)
}

/// Examines the directory of a database. The users of a group may share it.
pub(in crate::store) fn of_database(directory: &Path) -> Check {
    const STEP: &str = "directory";
    let check = check(STEP, directory);
    let is_loose =
        |found: fs::Metadata| Sharing::of(&found) == Sharing::Group && !is_sticky(&found);
    if check.remedy.is_some() || !fs::metadata(directory).is_ok_and(is_loose) {
        return check;
    }
    let found = format!(
        "{}; each user of its group can rename and remove the files of the others",
        check.found
    );
    Check::warn(STEP, found, format!("chmod 3770 {}", directory.display()))
}

/// What the files of a run take at most until its end, in a new database or an old one.
const ROOM: usize = 64 * 1_024;

/// Checks that there is room in a directory, with a file that has no name.
pub(in crate::store) fn room(directory: &Path) -> Check {
    const STEP: &str = "room";
    let written = file::create_unnamed_in(directory)
        .and_then(|mut file| file.write_all(&[0; ROOM]).and_then(|()| file.sync_data()));
    let Err(error) = written else {
        return Check::fine(STEP, format!("{} KiB can be written", ROOM / 1_024));
    };
    let found = format!("{} KiB can't be written: {error}", ROOM / 1_024);
    let (trouble, remedy) = match Errno::of(&error) {
        Some(Errno::ENOSPC | Errno::EDQUOT) => (Trouble::Unavailable, "make room there"),
        Some(Errno::EIO) => (Trouble::Unavailable, "the disk is broken (dmesg)"),
        Some(Errno::EFBIG) => {
            let remedy = "raise the file size limit (ulimit -f)";
            (Trouble::Misconfigured, remedy)
        }
        // The file system has no such files.
        _ => return Check::unknown(STEP, found, "look at the free space (df)"),
    };
    Check::fail(STEP, trouble, found, remedy)
}

/// What to do about an error that no right to the path would mend.
pub(in crate::store) fn remedy_of(error: &io::Error) -> Option<&'static str> {
    (Errno::of(error) == Some(Errno::EROFS)).then_some("mount it writable, or give another path")
}

/// The owner and the mode of a path.
pub(in crate::store) fn owner(path: &Path, found: &fs::Metadata) -> String {
    let name = user::name_of(found.uid());
    let kind = if path.is_dir() { "directory" } else { "file" };
    format!("a {kind} of {name}, mode {:04o}", found.mode() & 0o7777)
}

/// The directory of the locks that prove a death on this host. Without them tokenrun works, and
/// proves nothing.
#[must_use]
pub fn locks(directory: Option<&Path>) -> Check {
    const STEP: &str = "lock_files";
    const LESS: &str =
        "nothing proves on this host that a run is dead, so takeovers wait for --takeover-after";
    let Some(directory) = directory else {
        let found = format!("there is no place for them: {LESS}");
        return Check::warn(
            STEP,
            found,
            "set HOME or XDG_STATE_HOME to an absolute path",
        );
    };
    let check = check(STEP, directory);
    if check.remedy.is_some() {
        let found = format!("{}; {LESS}", check.found);
        let remedy = check.remedy.unwrap_or_default();
        return Check::warn(STEP, found, remedy);
    }
    if let Err(error) = crate::store::filesystem::check(
        directory
            .ancestors()
            .find(|path| path.exists())
            .unwrap_or(directory),
    ) {
        return Check::warn(STEP, format!("{error}; {LESS}"), "use a local file system");
    }
    let names = fs::read_dir(directory).into_iter().flatten().flatten();
    let own = names.filter(|entry| !entry.file_name().to_string_lossy().starts_with("swept"));
    match own.count() {
        0 => check,
        count => Check::fine(STEP, format!("{}; {count} of runs are in it", check.found)),
    }
}
