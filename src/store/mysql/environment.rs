//! This process's environment, as a client of MySQL would read it.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::conninfo::resolve::Environment;
use crate::sys::user;

/// The environment of this process.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn text(&self, path: &Path) -> Result<Option<String>, String> {
        let found = std::fs::metadata(path);
        // A pipe would be waited for.
        if found.is_ok_and(|found| !found.is_file()) {
            return Ok(None);
        }
        match std::fs::read(path) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            // The files of the system may be for others alone; this user's own is meant for it.
            Err(error) if self.home().is_some_and(|home| path.starts_with(home)) => {
                match error.kind() {
                    ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(None),
                    _ => Err(error.to_string()),
                }
            }
            Err(_) => Ok(None),
        }
    }

    fn is_for_all(&self, path: &Path) -> bool {
        let found = std::fs::metadata(path);
        found.is_ok_and(|found| found.is_file() && found.mode() & 0o002 != 0)
    }

    fn files(&self, directory: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        found.sort();
        found
    }

    fn user(&self) -> Option<String> {
        user::effective().map(|user| user.name)
    }

    fn home(&self) -> Option<PathBuf> {
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
        home.map(PathBuf::from)
            .or_else(|| user::effective().map(|user| user.home))
    }
}
