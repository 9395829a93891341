//! Everything that depends on the kind of store that a URL names: opening it, making it, printing
//! the script that makes it, examining it, and showing its URL. The only place that distinguishes
//! the kinds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::checkup::{Check, Tell, directory};
use super::postgres::conninfo::ConninfoError;
use super::postgres::conninfo::settings::{Secret, Settings};
use super::postgres::conninfo::text::{is_conninfo, parse};
use super::postgres::{self, PostgresStore};
use super::redis::settings as redis_settings;
use super::redis::{self, RedisKv, RedisStore};
use super::sqlite::{self, SqliteStore};
use super::url::StoreUrl;
use super::{Store, StoreError, Tokens as _, Trouble};
use crate::sys::process;
use crate::token::{GroupName, Timing};

/// How a store is opened.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    /// How long a call may take.
    pub timeout: Duration,
    /// How long the opening itself may take.
    pub limit: Duration,
    /// The connection's name on the server.
    pub application: &'a str,
    /// The directory for this host's state, if there is a place for it.
    pub state: Option<&'a Path>,
}

/// A store that was opened.
pub struct Opened {
    pub store: Box<dyn Store>,
    /// The directory for the locks of its runs on this host. For a file it lies beside the file,
    /// not in the state directory: every user of the store sees the locks, under any user id and in
    /// any container. Without such a place no death is proven.
    pub locks: Option<PathBuf>,
}

/// Why a store was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store is unusable.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The connection string is wrong, or a variable or a file that belongs to it.
    #[error("{error}")]
    Settings {
        /// What is wrong.
        error: ConninfoError,
        /// The connection string.
        text: Secret,
    },
}

/// What an examination compares a store with.
#[derive(Debug, Clone, Copy)]
pub struct Examination<'a> {
    /// The durations of a run.
    pub timing: &'a Timing,
    /// The group whose row is examined.
    pub group: Option<&'a GroupName>,
    /// Whether the store is the default.
    pub is_default: bool,
    /// The directory for this host's state, if there is a place for it.
    pub state: Option<&'a Path>,
}

impl StoreUrl {
    /// The file that the store is, if it is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Postgres(_) | Self::Redis(_) => None,
        }
    }

    /// The URL without its password.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite://{}", path.display()),
            Self::Postgres(text) | Self::Redis(text) => without_password(&text.0),
        }
    }

    /// Opens the store. A missing file is made; a server gets no request yet. `warn` receives
    /// warnings about the settings.
    ///
    /// # Errors
    /// What is wrong with the store or its settings.
    pub fn open(
        &self,
        opening: &Opening<'_>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Opened, OpenError> {
        match self {
            Self::Sqlite(path) => {
                let store = sqlite_store(path, opening)?;
                Ok(Opened {
                    locks: Some(store.directory_beside()),
                    store: Box::new(store),
                })
            }
            Self::Postgres(text) => Ok(Opened {
                store: Box::new(postgres_store(text, opening, warn)?),
                locks: opening.state.map(locks_in),
            }),
            Self::Redis(text) => Ok(Opened {
                store: Box::new(redis_store(text, opening)?),
                locks: opening.state.map(locks_in),
            }),
        }
    }

    /// Makes the store if it is missing, and returns its name.
    ///
    /// # Errors
    /// Why it could not be made.
    pub fn make(
        &self,
        opening: &Opening<'_>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<String, OpenError> {
        match self {
            Self::Sqlite(path) => Ok(sqlite_store(path, opening)?.name().to_owned()),
            Self::Postgres(text) => {
                let mut store = postgres_store(text, opening, warn)?;
                store.init()?;
                Ok(store.name().to_owned())
            }
            // There is nothing to make: that the server can be used is all.
            Self::Redis(text) => {
                let mut store = redis_store(text, opening)?;
                store.list()?;
                Ok(store.name().to_owned())
            }
        }
    }

    /// The script that makes the store, for an administrator.
    ///
    /// # Errors
    /// What is wrong with the settings, which name a schema.
    pub fn creation(
        &self,
        opening: &Opening<'_>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<String, OpenError> {
        match self {
            Self::Sqlite(_) => Ok(sqlite::SCHEMA.to_owned()),
            Self::Postgres(text) => {
                let settings = settings(text, opening.application, warn)?;
                Ok(postgres::schema::creation(&settings.schema))
            }
            Self::Redis(_) => Err(StoreError::misconfigured(
                "there is no SQL for a Redis or Valkey store, which needs no tables",
            )
            .remedy("run it without --print-sql")
            .into()),
        }
    }

    /// Examines the store, step by step, without changing it.
    pub fn examine(&self, examination: &Examination<'_>, tell: &mut Tell<'_>) {
        let Examination { timing, group, .. } = *examination;
        match self {
            Self::Sqlite(path) => {
                let origin = match examination.is_default {
                    true => ", by default: each user has another",
                    false => "",
                };
                let found = format!("a SQLite file, for this host alone{origin}");
                tell(Check::fine("store", found));
                sqlite::examine::examine(path, timing, group, tell);
            }
            Self::Postgres(text) => match postgres::settings(&text.0, "tokenrun doctor") {
                Err(error) => tell(Check::fail(
                    "store",
                    Trouble::Misconfigured,
                    error.to_string(),
                    "correct it in the connection string, the variable or the file",
                )),
                Ok(settings) => {
                    tell(Check::fine("store", settings.name()));
                    postgres::examine::examine(&settings, timing, group, tell);
                    let locks = examination.state.map(locks_in);
                    tell(directory::locks(locks.as_deref()));
                }
            },
            Self::Redis(text) => {
                examine_redis(text, timing, group, tell);
                let locks = examination.state.map(locks_in);
                tell(directory::locks(locks.as_deref()));
            }
        }
    }
}

fn locks_in(state: &Path) -> PathBuf {
    state.join("locks")
}

fn sqlite_store(path: &Path, opening: &Opening<'_>) -> Result<SqliteStore, StoreError> {
    let mut store = SqliteStore::open(path, opening.limit)?;
    if opening.limit != opening.timeout {
        store.set_timeout(opening.timeout)?;
    }
    Ok(store)
}

fn redis_store(text: &Secret, opening: &Opening<'_>) -> Result<RedisStore, StoreError> {
    // As for PostgreSQL.
    let _ = process::forbid_core_dumps();
    let settings = settings_of_redis(text)?;
    let kv = RedisKv::new(settings, opening.timeout, opening.application);
    Ok(RedisStore::new(kv))
}

fn settings_of_redis(text: &Secret) -> Result<redis_settings::Settings, StoreError> {
    let read = redis_settings::Settings::read(&text.0, |name| std::env::var(name).ok());
    read.map_err(|bad| StoreError::misconfigured(format!("the store's URL {bad}")))
}

fn examine_redis(text: &Secret, timing: &Timing, group: Option<&GroupName>, tell: &mut Tell<'_>) {
    match settings_of_redis(text) {
        Err(error) => tell(Check::fail(
            "store",
            Trouble::Misconfigured,
            error.to_string(),
            "correct it in the URL",
        )),
        Ok(settings) => {
            tell(Check::fine("store", settings.name()));
            redis::examine::examine(&settings, timing, group, tell);
        }
    }
}

fn postgres_store(
    text: &Secret,
    opening: &Opening<'_>,
    warn: &mut dyn FnMut(&str),
) -> Result<PostgresStore, OpenError> {
    // From now on the process may hold a password. The job's own limits stay: an exec makes a
    // process dumpable again. Where this call is refused, only the protection from dumps is lost.
    let _ = process::forbid_core_dumps();
    let settings = settings(text, opening.application, warn)?;
    Ok(PostgresStore::new(settings, opening.timeout))
}

fn settings(
    text: &Secret,
    application: &str,
    warn: &mut dyn FnMut(&str),
) -> Result<Settings, OpenError> {
    let settings = postgres::settings(&text.0, application);
    let settings = settings.map_err(|error| OpenError::Settings {
        error,
        text: text.clone(),
    })?;
    for warning in &settings.warnings {
        warn(warning);
    }
    Ok(settings)
}

/// Whether a text names a store, as far as the text alone shows; and the file, if the store is one.
///
/// # Errors
/// What is wrong with it; reads after its name.
pub fn check(text: &str) -> Result<Option<PathBuf>, String> {
    if is_conninfo(text) {
        return match parse(text) {
            Ok(_) => Ok(None),
            Err(error) => Err(error.to_string()),
        };
    }
    match StoreUrl::parse(text) {
        Ok(url) => Ok(url.file().map(Path::to_owned)),
        Err(error) => Err(format!("is not good: {error}")),
    }
}

/// Whether a store's URL holds a password.
#[must_use]
pub fn has_password(text: &str) -> bool {
    if let Ok(settings) = redis_settings::parse(text.trim()) {
        return settings.password.is_some();
    }
    is_conninfo(text)
        && parse(text).is_ok_and(|pairs| pairs.iter().any(|(name, _)| is_secret(name)))
}

/// Where the password of this store's URL may be kept instead.
#[must_use]
pub fn password_place(text: &str) -> &'static str {
    match redis_settings::parse(text.trim()) {
        Ok(_) => "REDISCLI_AUTH",
        Err(_) => "~/.pgpass",
    }
}

fn is_secret(name: &str) -> bool {
    name == "password" || name == "sslpassword"
}

/// A store's URL without its password.
#[must_use]
pub fn without_password(text: &str) -> String {
    if let Ok(settings) = redis_settings::parse(text.trim()) {
        return settings.name();
    }
    if !is_conninfo(text) {
        return match StoreUrl::parse(text) {
            Ok(_) => text.to_owned(),
            Err(_) => "(what can't be read is not shown)".to_owned(),
        };
    }
    let Ok(pairs) = parse(text) else {
        return "(what can't be read is not shown)".to_owned();
    };
    if !pairs.iter().any(|(name, _)| is_secret(name)) {
        return text.to_owned();
    }
    let shown = pairs.iter().map(|(name, value)| match is_secret(name) {
        true => format!("{name}=***"),
        false => format!("{name}={value}"),
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_shown_without_its_password() {
        for (store, shown) in [
            ("/var/x.db", "/var/x.db"),
            ("postgres://etl@db/jobs", "postgres://etl@db/jobs"),
            (
                "postgres://etl:s%40cret@db/jobs",
                "user=etl password=*** host=db dbname=jobs",
            ),
            ("password=secret host=db", "password=*** host=db"),
            ("rediss://etl:s%40cret@db/3", "rediss://etl@db:6379/3"),
        ] {
            let text = without_password(store);
            assert!(!text.contains("cret"), "{text}");
            let sorted = |text: &str| {
                let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
                words.sort_unstable();
                words.retain(|word| !word.starts_with("port="));
                words
            };
            assert_eq!(sorted(&text), sorted(shown));
        }
        for unreadable in [
            "postgres://u:secret@[h/d",
            "mysql://u:secret@h",
            "password='secret",
        ] {
            assert!(
                !without_password(unreadable).contains("secret"),
                "{unreadable}"
            );
        }
    }

    #[test]
    fn a_text_names_a_file_a_server_or_nothing() {
        assert_eq!(check("/var/x.db"), Ok(Some(PathBuf::from("/var/x.db"))));
        assert_eq!(check("postgres://etl@db/jobs"), Ok(None));
        assert_eq!(check("host=db dbname=jobs"), Ok(None));
        assert_eq!(check("redis://u:secret@h"), Ok(None));
        let unknown = check("mongodb://u:secret@h").unwrap_err();
        assert!(unknown.starts_with("is not good: "), "{unknown}");
        assert!(!unknown.contains("secret"), "{unknown}");
        assert!(check("postgres://h/d?hots=x").unwrap_err().contains("hots"));
    }

    #[test]
    fn a_url_is_shown_as_it_can_be_written() {
        let url = StoreUrl::parse("/var/x.db").unwrap();
        assert_eq!(url.shown(), "sqlite:///var/x.db");
        assert_eq!(url.file(), Some(Path::new("/var/x.db")));
        let url = StoreUrl::parse("host=db password=secret").unwrap();
        assert!(!url.shown().contains("secret"));
        assert_eq!(url.file(), None);
    }
}
