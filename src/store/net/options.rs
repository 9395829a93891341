//! The options of a store's address: which a scheme has, and where a value comes from. The string comes
//! first, then the files that belong to it, then the environment's variables.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::address::BadAddress;
use crate::sys::file::read_regular;
use crate::sys::user;

/// An error in a connection string, a variable or a file that belongs to it. It never repeats a
/// value that may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSettings(pub String);

impl From<BadAddress> for BadSettings {
    fn from(bad: BadAddress) -> Self {
        Self(format!("the store's URL {bad}"))
    }
}

impl BadSettings {
    pub(in crate::store) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    /// `what` is wrong with an option.
    pub(in crate::store) fn of(option: &str, what: &str) -> Self {
        Self(format!("the option {option} {what}"))
    }
}

/// The treatment of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is used.
    Used,
    /// It has no effect on tokenrun, or none beyond tokenrun's own behaviour.
    Harmless,
    /// It is refused, because ignoring it would be less than the user requires.
    Refused,
}

/// An option of a scheme.
#[derive(Debug)]
pub struct Known {
    /// As it is written in a connection string.
    pub name: &'static str,
    /// The variable that is used where neither the string nor a file sets it; empty: none.
    pub variable: &'static str,
    pub fate: Fate,
}

/// The options of a scheme, a line each: name, variable, treatment.
macro_rules! options {
    ($($name:literal $variable:literal $fate:ident),+ $(,)?) => {
        &[$($crate::store::net::options::Known {
            name: $name,
            variable: $variable,
            fate: $crate::store::net::options::Fate::$fate,
        }),+]
    };
}
pub(in crate::store) use options;

/// Options and their values; the later of two values of one option counts.
pub type Pairs = Vec<(String, String)>;

/// The last value of an option.
pub fn last<'a>(pairs: &'a Pairs, name: &str) -> Option<&'a str> {
    let found = pairs.iter().rfind(|(found, _)| found == name);
    found.map(|(_, value)| value.as_str())
}

/// What the kernel says about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    pub is_file: bool,
    pub mode: u32,
    /// The file belongs to root.
    pub is_roots: bool,
}

/// The surroundings of a connection string: variables, files, the user.
pub trait Environment {
    /// A variable's value; `None` if it is not set.
    fn variable(&self, name: &str) -> Option<String>;

    /// A regular file's bytes.
    ///
    /// # Errors
    /// Why it can't be read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// `None` if there is no such file or directory.
    fn status(&self, path: &Path) -> Option<Status>;

    /// The files of a directory, in order.
    fn files(&self, directory: &Path) -> Vec<PathBuf>;

    /// The name of this process's user.
    fn user(&self) -> Option<String>;

    /// That user's home directory.
    fn home(&self) -> Option<PathBuf>;
}

/// The environment of this process.
#[derive(Debug, Clone, Copy)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        read_regular(path)
    }

    fn status(&self, path: &Path) -> Option<Status> {
        let found = std::fs::metadata(path).ok()?;
        Some(Status {
            is_file: found.is_file(),
            mode: found.mode(),
            is_roots: found.uid() == 0,
        })
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
        home_of(std::env::var_os("HOME"))
    }
}

/// The home directory that this variable names; without one, that of the system's list of users.
fn home_of(variable: Option<OsString>) -> Option<PathBuf> {
    let named = variable.filter(|home| !home.is_empty());
    named
        .map(PathBuf::from)
        .or_else(|| user::effective().map(|user| user.home))
}

/// The options of one address, from all their sources.
pub(in crate::store) struct Options<'a> {
    pub(in crate::store) table: &'static [Known],
    /// From the connection string.
    pub(in crate::store) given: Pairs,
    /// From files.
    pub(in crate::store) from_files: Pairs,
    pub(in crate::store) around: &'a dyn Environment,
}

impl Options<'_> {
    /// What the string says, or a file; also an empty text.
    pub(in crate::store) fn stated(&self, name: &str) -> Option<&str> {
        last(&self.given, name).or_else(|| last(&self.from_files, name))
    }

    /// An option's value; an empty one counts as absent.
    pub(in crate::store) fn get(&self, name: &str) -> Option<String> {
        if let Some(value) = self.stated(name) {
            return Some(value.to_owned()).filter(|value| !value.is_empty());
        }
        let known = self.table.iter().find(|known| known.name == name)?;
        self.variable(known.variable)
    }

    /// A variable's value; an empty one counts as absent.
    pub(in crate::store) fn variable(&self, name: &str) -> Option<String> {
        if name.is_empty() {
            return None;
        }
        let value = self.around.variable(name);
        value.filter(|value| !value.is_empty())
    }

    pub(in crate::store) fn number(&self, name: &str) -> Result<Option<i64>, BadSettings> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        match text.trim().parse::<i32>() {
            Ok(number) => Ok(Some(number.into())),
            Err(_) => Err(BadSettings::of(
                name,
                &format!("is {text:?}, not a whole number"),
            )),
        }
    }

    /// An option with an enumerated value.
    pub(in crate::store) fn word<T: Copy>(
        &self,
        name: &str,
        words: &[(&str, T)],
        default: T,
    ) -> Result<T, BadSettings> {
        let Some(value) = self.get(name) else {
            return Ok(default);
        };
        let found = words.iter().find(|(word, _)| *word == value);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            BadSettings::of(name, &format!("is {value:?}; use {}", all.join(", ")))
        })
    }

    pub(in crate::store) fn exists(&self, path: &Path) -> bool {
        self.around.status(path).is_some()
    }

    pub(in crate::store) fn in_home(&self, name: &str) -> Option<PathBuf> {
        Some(self.around.home()?.join(name))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// An environment made for a test.
    #[derive(Default)]
    pub(crate) struct Around {
        variables: BTreeMap<&'static str, String>,
        files: BTreeMap<PathBuf, (Vec<u8>, u32)>,
    }

    impl Around {
        pub(crate) fn set(mut self, name: &'static str, value: &str) -> Self {
            self.variables.insert(name, value.into());
            self
        }

        pub(crate) fn file(mut self, path: &str, text: impl AsRef<[u8]>, mode: u32) -> Self {
            let bytes = text.as_ref().to_vec();
            self.files.insert(path.into(), (bytes, mode));
            self
        }
    }

    impl Environment for Around {
        fn variable(&self, name: &str) -> Option<String> {
            self.variables.get(name).cloned()
        }

        fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
            let found = self.files.get(path);
            Ok(found.ok_or(io::ErrorKind::NotFound)?.0.clone())
        }

        fn status(&self, path: &Path) -> Option<Status> {
            let (_, mode) = self.files.get(path)?;
            Some(Status {
                is_file: true,
                mode: *mode,
                is_roots: false,
            })
        }

        fn files(&self, directory: &Path) -> Vec<PathBuf> {
            let inside = |file: &&PathBuf| file.parent() == Some(directory);
            self.files.keys().filter(inside).cloned().collect()
        }

        fn user(&self) -> Option<String> {
            Some("os".into())
        }

        fn home(&self) -> Option<PathBuf> {
            Some("/home/os".into())
        }
    }

    #[test]
    fn the_string_comes_first_then_files_then_variables() {
        const TABLE: &[Known] = options!["host" "TOKENRUN_TEST_HOST" Used, "port" "" Used];
        let around = Around::default().set("TOKENRUN_TEST_HOST", "variable");
        let pairs = |values: &[&str]| {
            values
                .iter()
                .map(|it| ("host".into(), (*it).into()))
                .collect()
        };
        let host = |given: &[&str], filed: &[&str]| {
            let options = Options {
                table: TABLE,
                given: pairs(given),
                from_files: pairs(filed),
                around: &around,
            };
            assert_eq!(options.get("port"), None);
            options.get("host")
        };
        assert_eq!(host(&[], &[]).as_deref(), Some("variable"));
        assert_eq!(host(&[], &["a", "b"]).as_deref(), Some("b"));
        assert_eq!(host(&["c"], &["a"]).as_deref(), Some("c"));
        assert_eq!(host(&[""], &["a"]), None);
    }

    #[test]
    fn the_process_has_variables_files_and_a_user() {
        let around = ProcessEnvironment;
        assert!(around.variable("PATH").is_some());
        assert_eq!(around.variable("PATH"), std::env::var("PATH").ok());
        assert_eq!(around.variable("TOKENRUN_TEST_UNSET"), None);
        let folder = tempfile::tempdir().unwrap();
        // Some file systems list files as they were made, or the other way round.
        let paths = ["a", "b", "c", "d"].map(|name| folder.path().join(name));
        for at in [2, 0, 3, 1] {
            std::fs::write(&paths[at], "x").unwrap();
        }
        assert_eq!(around.files(folder.path()), paths);
        assert_eq!(
            around.files(&folder.path().join("missing")),
            [""; 0].map(PathBuf::from)
        );
        assert_eq!(around.read(&paths[0]).unwrap(), b"x");
        for path in [folder.path(), &paths[0], Path::new("/")] {
            let found = std::fs::metadata(path).unwrap();
            let expected = Status {
                is_file: found.is_file(),
                mode: found.mode(),
                is_roots: found.uid() == 0,
            };
            assert_eq!(around.status(path), Some(expected));
        }
        assert_eq!(around.status(&folder.path().join("missing")), None);
        let account = user::effective();
        assert_eq!(around.user(), account.as_ref().map(|it| it.name.clone()));
        assert_eq!(around.home(), home_of(std::env::var_os("HOME")));
        let listed = account.map(|it| it.home);
        assert_eq!(
            home_of(Some("/elsewhere".into())),
            Some("/elsewhere".into())
        );
        assert_eq!(home_of(Some("".into())), listed);
        assert_eq!(home_of(None), listed);
    }
}
