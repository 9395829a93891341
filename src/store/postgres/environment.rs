//! This process's environment, as libpq would read it.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::conninfo::resolve::{Environment, Secrecy};
use crate::sys::user;

/// The environment of this process.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn text(&self, path: &Path) -> std::io::Result<String> {
        std::fs::read_to_string(path)
    }

    fn secrecy(&self, path: &Path) -> Secrecy {
        let Ok(found) = std::fs::metadata(path) else {
            return Secrecy::Absent;
        };
        match found.mode() {
            _ if !found.is_file() => Secrecy::NoFile,
            mode if mode & 0o077 == 0 => Secrecy::Kept,
            mode if found.uid() == 0 && mode & 0o037 == 0 => Secrecy::RootsGroup,
            _ => Secrecy::Open,
        }
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
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
