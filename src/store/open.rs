//! Everything that depends on the kind of store that a URL names: opening it, making it, printing
//! the script that makes it, and examining it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::checkup::{Check, Tell, directory};
use super::etcd;
use super::etcd::settings::Settings as EtcdSettings;
use super::kv::KvStore;
use super::mysql::{self, MysqlStore};
use super::net::host::{self, Secret};
use super::net::options::BadSettings;
use super::postgres::{self, PostgresStore};
use super::redis::quorum::QuorumKv;
use super::redis::settings::Settings as RedisSettings;
use super::redis::{self, RedisKv};
use super::sql::server::SqlStore;
use super::sqlite::{self, SqliteStore};
use super::url::StoreUrl;
use super::zookeeper;
use super::zookeeper::settings::Settings as ZkSettings;
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
        error: BadSettings,
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
    /// True if the store is the default.
    pub is_default: bool,
    /// The directory for this host's state, if there is a place for it.
    pub state: Option<&'a Path>,
}

impl StoreUrl {
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
        let store: Box<dyn Store> = match self {
            Self::Sqlite(path) => {
                let store = sqlite_store(path, opening)?;
                let locks = Some(store.directory_beside());
                let store = Box::new(store);
                return Ok(Opened { store, locks });
            }
            Self::Postgres(text) => Box::new(postgres_store(text, opening, warn)?),
            Self::Mysql(text) => Box::new(mysql_store(text, opening, warn)?),
            Self::Redis(text) => Box::new(redis_store(text, opening)?),
            Self::Etcd(text) => Box::new(etcd_store(text, opening)?),
            Self::Zookeeper(text) => Box::new(zk_store(text, opening)?),
        };
        let locks = opening.state.map(locks_in);
        Ok(Opened { store, locks })
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
        Ok(match self {
            Self::Sqlite(path) => sqlite_store(path, opening)?.name().to_owned(),
            Self::Postgres(text) => made(postgres_store(text, opening, warn)?, SqlStore::init)?,
            Self::Mysql(text) => made(mysql_store(text, opening, warn)?, SqlStore::init)?,
            // There is nothing to make. The server must be usable.
            Self::Redis(text) if !is_quorum(text) => {
                made(redis_store(text, opening)?, |it| it.list().map(drop))?
            }
            // Several servers cannot prove that they have no past: the operator says so.
            Self::Redis(text) => made(redis_store(text, opening)?, |it| it.init(opening.timeout))?,
            Self::Etcd(text) => made(etcd_store(text, opening)?, |it| it.init(opening.timeout))?,
            Self::Zookeeper(text) => made(zk_store(text, opening)?, |it| it.init(opening.timeout))?,
        })
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
                let settings = settings(postgres::settings, text, opening.application, warn)?;
                Ok(postgres::creation(&settings.schema))
            }
            Self::Mysql(text) => {
                settings(mysql::settings, text, opening.application, warn)?;
                Ok(mysql::schema::creation())
            }
            Self::Redis(_) | Self::Etcd(_) | Self::Zookeeper(_) => Err(StoreError::misconfigured(
                "there is no SQL for a store of Redis, Valkey, etcd or ZooKeeper, which needs no tables",
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
            Self::Postgres(text) => examine_servers(
                postgres::settings(&text.0, "tokenrun doctor"),
                IN_MANY_PLACES,
                postgres::examine::examine,
                examination,
                tell,
            ),
            Self::Mysql(text) => examine_servers(
                mysql::settings(&text.0, "tokenrun doctor"),
                IN_MANY_PLACES,
                mysql::examine::examine,
                examination,
                tell,
            ),
            Self::Redis(text) => examine_servers(
                redis_settings(text),
                "correct it in the URL",
                redis::examine::examine,
                examination,
                tell,
            ),
            Self::Etcd(text) => examine_servers(
                settings_of_etcd(text),
                "correct it in the URL, or in etcdctl's variables",
                etcd::examine::examine,
                examination,
                tell,
            ),
            Self::Zookeeper(text) => examine_servers(
                settings_of_zk(text),
                "correct it in the URL",
                zookeeper::examine::examine,
                examination,
                tell,
            ),
        }
    }
}

const IN_MANY_PLACES: &str = "correct it in the connection string, the variable or the file";

/// Examines a store across a network, and the lock files on this host. `remedy`: for settings that are wrong.
fn examine_servers<S: host::Settings>(
    settings: Result<S, impl fmt::Display>,
    remedy: &str,
    examine: fn(&S, &Timing, Option<&GroupName>, &mut Tell<'_>),
    examination: &Examination<'_>,
    tell: &mut Tell<'_>,
) {
    match settings {
        Err(error) => tell(Check::fail(
            "store",
            Trouble::Misconfigured,
            error.to_string(),
            remedy,
        )),
        Ok(settings) => {
            tell(Check::fine("store", settings.name()));
            examine(&settings, examination.timing, examination.group, tell);
            let locks = examination.state.map(locks_in);
            tell(directory::locks(locks.as_deref()));
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

/// Makes a store, and returns its name.
fn made<S: Store>(
    mut store: S,
    make: impl FnOnce(&mut S) -> Result<(), StoreError>,
) -> Result<String, StoreError> {
    make(&mut store)?;
    Ok(store.name().to_owned())
}

/// From now on the process may hold a password. The job's own limits stay: an exec makes a process
/// dumpable again. Where this call is refused, only the protection from dumps is lost.
fn guard_password() {
    let _ = process::forbid_core_dumps();
}

fn postgres_store(
    text: &Secret,
    opening: &Opening<'_>,
    warn: &mut dyn FnMut(&str),
) -> Result<PostgresStore, OpenError> {
    guard_password();
    let settings = settings(postgres::settings, text, opening.application, warn)?;
    Ok(PostgresStore::new(settings, opening.timeout))
}

fn mysql_store(
    text: &Secret,
    opening: &Opening<'_>,
    warn: &mut dyn FnMut(&str),
) -> Result<MysqlStore, OpenError> {
    guard_password();
    let settings = settings(mysql::settings, text, opening.application, warn)?;
    Ok(MysqlStore::new(settings, opening.timeout))
}

fn redis_store(text: &Secret, opening: &Opening<'_>) -> Result<KvStore, StoreError> {
    guard_password();
    let settings = redis_settings(text)?;
    let (timeout, application) = (opening.timeout, opening.application);
    Ok(match settings.is_quorum {
        true => KvStore::new(QuorumKv::new(settings, timeout, application)?),
        false => KvStore::new(RedisKv::new(settings, timeout, application)),
    })
}

fn etcd_store(text: &Secret, opening: &Opening<'_>) -> Result<KvStore, StoreError> {
    guard_password();
    let settings = settings_of_etcd(text)?;
    Ok(etcd::store(settings, opening.timeout))
}

fn zk_store(text: &Secret, opening: &Opening<'_>) -> Result<KvStore, StoreError> {
    guard_password();
    let settings = settings_of_zk(text)?;
    Ok(zookeeper::store(settings, opening.timeout))
}

fn settings_of_zk(text: &Secret) -> Result<ZkSettings, StoreError> {
    let read = ZkSettings::read(&text.0);
    read.map_err(|bad| StoreError::misconfigured(format!("the store's URL {bad}")))
}

fn settings_of_etcd(text: &Secret) -> Result<EtcdSettings, StoreError> {
    let read = EtcdSettings::read(&text.0, |name| std::env::var(name).ok());
    read.map_err(|bad| StoreError::misconfigured(format!("the store's URL {bad}")))
}

/// True if this address is that of a majority of servers.
fn is_quorum(text: &Secret) -> bool {
    redis_settings(text).is_ok_and(|settings| settings.is_quorum)
}

fn redis_settings(text: &Secret) -> Result<RedisSettings, StoreError> {
    let read = RedisSettings::read(&text.0, |name| std::env::var(name).ok());
    read.map_err(|bad| StoreError::misconfigured(format!("the store's URL {bad}")))
}

fn settings<S: host::Settings>(
    read: fn(&str, &str) -> Result<S, BadSettings>,
    text: &Secret,
    application: &str,
    warn: &mut dyn FnMut(&str),
) -> Result<S, OpenError> {
    let settings = read(&text.0, application);
    let settings = settings.map_err(|error| OpenError::Settings {
        error,
        text: text.clone(),
    })?;
    for warning in &settings.servers().warnings {
        warn(warning);
    }
    Ok(settings)
}
