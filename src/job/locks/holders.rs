//! Which processes hold a run's job lock, for display.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::LockName;
use crate::sys::procfs;

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
    let file = target.file_name().map(OsStr::as_bytes).unwrap_or_default();
    let file = file.strip_suffix(b" (deleted)").unwrap_or(file);
    file == name.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::take;
    use super::*;

    #[test]
    fn processes_that_have_the_file_open_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let (run, job) = take(folder.path(), 7, true).unwrap();
        let name = run.name().clone();
        let own = format!("(pid {})", crate::sys::process::pid());
        let found = holders(&name);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with(&own), "{found:?}");
        fs::remove_file(folder.path().join(name.as_str())).unwrap();
        drop(run);
        assert_eq!(holders(&name).len(), 1, "a file that was removed");
        drop(job);
        assert_eq!(holders(&name), [""; 0]);
    }

    #[test]
    fn only_the_whole_name_counts() {
        let is = |target: &str| is_named(Path::new(target), "run-1");
        assert!(is("/a/run-1") && is("/run-1") && is("/a/run-1 (deleted)"));
        assert!(!is("/a/xrun-1") && !is("/a/run-12") && !is("/run-1/x") && !is("pipe:[1]"));
    }
}
