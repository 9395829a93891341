//! The configuration files: settings that ten cron lines need not repeat. The files are read
//! strictly: what can't be understood, or could be another's doing, is refused and never
//! passed over, because who runs without its settings runs with another store, beside the
//! others.

mod document;
mod file;
mod keys;
mod refusal;

pub use self::document::{FOREVER, Setting, Source};
pub use self::keys::{KEYS, Key, Kind, REFUSED};
pub use self::refusal::Refusal;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use self::document::Document;
use self::file::Missing;

/// What an administrator sets for all users.
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
    /// The user's own file; `None` if nothing absolute says where.
    #[must_use]
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

/// What the configuration files say.
#[derive(Debug, Default)]
pub struct Config {
    /// The user's own comes first.
    documents: Vec<Document>,
}

impl Config {
    /// Reads the file that was `given`, which must be there, and no other; none if that is
    /// empty. Without one, reads the user's and the system's, if they are there: where neither
    /// is, this costs two calls of lstat(2).
    ///
    /// # Errors
    /// One line on the first thing that is wrong.
    pub fn load(given: Option<&OsStr>, home: &Home) -> Result<Self, Refusal> {
        let mut config = Self::default();
        match given {
            Some(path) if path.is_empty() => {}
            Some(path) => config.add(Path::new(path), Missing::Refused)?,
            None => {
                if let Some(path) = home.file() {
                    config.add(&path, Missing::FineAndUnreachableToo)?;
                }
                config.add(Path::new(SYSTEM_FILE), Missing::Fine)?;
            }
        }
        Ok(config)
    }

    fn add(&mut self, path: &Path, missing: Missing) -> Result<(), Refusal> {
        if let Some(contents) = file::read(path, missing)? {
            self.documents.push(Document::read(path, &contents)?);
        }
        Ok(())
    }

    /// What holds for a group, or where no group is named: a group's table comes before
    /// `[defaults]`, in whichever file, and the user's file before the system's.
    #[must_use]
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
mod tests;
