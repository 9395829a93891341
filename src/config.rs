//! The configuration files: settings that ten cron lines need not repeat. The files are read
//! strictly: an unreadable file, or one that another user could have written, is refused and never
//! ignored, because a run without its settings would use another store, beside the other nodes.

mod document;
mod file;
mod keys;

pub use self::document::{Setting, Source};
pub use self::file::{FileText, Missing, Refusal, Role, read};
pub use self::keys::{Key, Keys, REFUSED, Value};

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use self::document::Document;
use self::file::CONFIGURATION;

/// The administrator's file for all users.
pub const SYSTEM_FILE: &str = "/etc/tokenrun/config.toml";

/// Where a user's own file lies.
#[derive(Debug, Clone, Default)]
pub struct Home {
    /// `$XDG_CONFIG_HOME`.
    pub xdg_config_home: Option<OsString>,
    /// `$HOME`.
    pub home: Option<OsString>,
}

impl Home {
    /// The user's own file; `None` without an absolute directory.
    pub fn file(&self) -> Option<PathBuf> {
        let absolute = |text: &OsString| Path::new(text).is_absolute().then(|| PathBuf::from(text));
        let directory = self
            .xdg_config_home
            .as_ref()
            .and_then(absolute)
            .or_else(|| Some(self.home.as_ref().and_then(absolute)?.join(".config")))?;
        Some(directory.join("tokenrun/config.toml"))
    }
}

/// The contents of the configuration files.
#[derive(Debug, Default)]
pub struct Config {
    /// The user's own comes first.
    documents: Vec<Document>,
}

impl Config {
    /// Reads only the `given` file, which must exist; none if the name is empty. Without one, reads
    /// the user's and the system's, if they exist; otherwise this costs two calls of lstat(2).
    ///
    /// # Errors
    /// One line about the first error.
    pub fn load(given: Option<&OsStr>, home: &Home, keys: &dyn Keys) -> Result<Self, Refusal> {
        let mut config = Self::default();
        match given {
            Some(path) if path.is_empty() => {}
            Some(path) => config.add(Path::new(path), Missing::Refused, keys)?,
            None => {
                if let Some(path) = home.file() {
                    config.add(&path, Missing::FineAndUnreachableToo, keys)?;
                }
                config.add(Path::new(SYSTEM_FILE), Missing::Fine, keys)?;
            }
        }
        Ok(config)
    }

    fn add(&mut self, path: &Path, missing: Missing, keys: &dyn Keys) -> Result<(), Refusal> {
        if let Some(contents) = read(path, &CONFIGURATION, missing)? {
            self.documents.push(Document::read(path, &contents, keys)?);
        }
        Ok(())
    }

    /// The settings of a group, or without a group: a group's table precedes `[defaults]`, in
    /// either file, and the user's file precedes the system's.
    pub fn settings(&self, group: Option<&str>) -> Vec<&Setting> {
        let documents = self.documents.iter();
        let of_group = documents.clone().filter_map(|it| it.of_group(group?));
        let tables = of_group.chain(documents.map(|it| it.defaults.as_slice()));
        let mut chosen: Vec<&Setting> = Vec::new();
        for table in tables {
            let hidden = |setting: &&Setting| chosen.iter().any(|it| it.hides(setting));
            let seen: Vec<&Setting> = table.iter().filter(|it| !hidden(it)).collect();
            chosen.extend(seen);
        }
        chosen
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
