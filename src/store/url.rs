//! Store URLs: the values of `--store`, what is shown of them, and the default.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::etcd::settings as etcd;
use super::mysql::conninfo::text as mysql;
use super::net::address::BadAddress;
use super::net::host::{Secret, Settings as _};
use super::net::options::Pairs;
use super::postgres::conninfo::text as postgres;
use super::redis::settings as redis;
use super::zookeeper::settings as zk;
use crate::sys::file::Inode;
use crate::sys::place::Place;
use crate::sys::sqlite_files::{LOCKS, companion, database_of};

/// A store that can be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL database: a connection string in libpq's syntax. It may hold a password.
    Postgres(Secret),
    /// A database of MySQL or MariaDB: a URL. It may hold a password.
    Mysql(Secret),
    /// A Redis or Valkey server: its URL. It may hold a password.
    Redis(Secret),
    /// An etcd cluster: its URL. It may hold a password.
    Etcd(Secret),
    /// A ZooKeeper ensemble: its URL. It may hold a password.
    Zookeeper(Secret),
}

/// The schemes of databases that users of other lock tools may try.
const UNSUPPORTED: [&str; 4] = ["mongodb", "consul", "mssql", "oracle"];

/// Why a text names no store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error(
        "the store {0:?} has an unknown scheme: write postgres://user@host/database, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path or a plain path of a file"
    )]
    UnknownScheme(String),
    /// A database that other tools of this kind use.
    #[error(
        "tokenrun does not support {0}:// stores: use PostgreSQL (postgres://user@host/database), MySQL or MariaDB (mysql://user@host/database), Redis or Valkey (redis://user@host), etcd (etcd://user@host), ZooKeeper (zk://host) or a SQLite file (sqlite:///absolute/path)"
    )]
    Unsupported(String),
    /// `sqlite://` without an absolute path.
    #[error("the store {0:?} has no absolute path: write sqlite:///absolute/path")]
    NotAbsolute(String),
    /// A file of such a name would be a private one, relative to this process's directory.
    #[error(
        "the store {0:?} is no path that can be meant: write postgres://user@host/database, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path or a plain path of a file (./NAME, if its name is like this; ~ and variables are a shell's, and mean nothing here)"
    )]
    Unlikely(String),
    /// The rest of the text may hold a password.
    #[error("the store {0}://… {1}")]
    Address(String, BadAddress),
    #[error(
        "the store is empty: write postgres://user@host/database, mysql://user@host/database, redis://user@host, etcd://user@host, zk://host, sqlite:///absolute/path or a plain path of a file"
    )]
    Empty,
    /// No default where a private file would exclude no other node.
    #[error(
        "there is no default store {0}: a file in this container would exclude no other node; give --store or TOKENRUN_STORE"
    )]
    NoDefaultHere(&'static str),
    /// The place of the default is unknown.
    #[error(
        "no place for the default store: neither HOME nor XDG_STATE_HOME is an absolute path; give --store"
    )]
    NoHome,
}

impl StoreUrl {
    /// Reads a value of `--store`.
    ///
    /// # Errors
    /// Says what is wrong and what to write.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err(UrlError::Empty);
        }
        if postgres::is_conninfo(trimmed) {
            return Ok(Self::Postgres(Secret(trimmed.to_owned())));
        }
        let Some((scheme, rest)) = trimmed.split_once("://") else {
            return plain_path(text).map(Self::Sqlite);
        };
        match scheme {
            _ if mysql::is_url(trimmed) => Ok(Self::Mysql(Secret(trimmed.to_owned()))),
            "sqlite" if rest.starts_with('/') => Ok(Self::Sqlite(PathBuf::from(rest))),
            // What looks like a host may come with a password: it is not repeated.
            "sqlite" if rest.contains('@') => Err(UrlError::NotAbsolute("sqlite://…".into())),
            "sqlite" => Err(UrlError::NotAbsolute(text.to_owned())),
            of_redis if redis::is_scheme(of_redis) => match redis::parse(trimmed) {
                Ok(_) => Ok(Self::Redis(Secret(trimmed.to_owned()))),
                Err(bad) => Err(UrlError::Address(of_redis.to_owned(), bad)),
            },
            of_etcd if etcd::is_scheme(of_etcd) => match etcd::Settings::read(trimmed, |_| None) {
                Ok(_) => Ok(Self::Etcd(Secret(trimmed.to_owned()))),
                Err(bad) => Err(UrlError::Address(of_etcd.to_owned(), bad)),
            },
            of_zk if zk::is_scheme(of_zk) => match zk::Settings::read(trimmed) {
                Ok(_) => Ok(Self::Zookeeper(Secret(trimmed.to_owned()))),
                Err(bad) => Err(UrlError::Address(of_zk.to_owned(), bad)),
            },
            other if UNSUPPORTED.contains(&other) => Err(UrlError::Unsupported(other.to_owned())),
            // The rest may hold a password: it is not repeated.
            other => Err(UrlError::UnknownScheme(format!("{other}://…"))),
        }
    }

    /// The default store.
    ///
    /// # Errors
    /// Where a private file would exclude no other node, or if there is no place for it.
    pub fn default_for(environment: &NodeEnvironment) -> Result<Self, UrlError> {
        if environment.is_pid_1 {
            return Err(UrlError::NoDefaultHere("as process 1 of a container"));
        }
        if environment.in_kubernetes {
            return Err(UrlError::NoDefaultHere("in Kubernetes"));
        }
        Ok(Self::Sqlite(
            state_directory(environment)?.join("tokenrun.db"),
        ))
    }

    /// The file that the store is, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Postgres(_)
            | Self::Mysql(_)
            | Self::Redis(_)
            | Self::Etcd(_)
            | Self::Zookeeper(_) => None,
        }
    }

    /// True if writing this path would replace the store's database, a file beside it or one in its directory of locks,
    /// by whatever path the directories are reached.
    pub fn has_file(&self, path: &Path) -> bool {
        let found = |path| Place::find(path).ok().map(|place| place.path());
        let (Some(database), Some(file)) = (self.file().and_then(found), found(path)) else {
            return false;
        };
        let is_database = |it: &Path| is_same_name(it, &database);
        let beside = database_of(file.as_os_str().as_bytes());
        let locks = companion(&database, LOCKS);
        is_database(&file)
            || beside.is_some_and(is_database)
            || file.parent().is_some_and(|it| is_same_name(it, &locks))
    }

    /// The URL without its password.
    pub fn shown(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite://{}", path.display()),
            Self::Postgres(text)
            | Self::Mysql(text)
            | Self::Redis(text)
            | Self::Etcd(text)
            | Self::Zookeeper(text) => without_password(&text.0),
        }
    }
}

/// True if two paths without links are one name in one directory, which may be mounted twice.
fn is_same_name(one: &Path, other: &Path) -> bool {
    let directory = |path: &Path| Inode::at(path.parent()?).ok();
    let is_same =
        |one: Inode, other: Inode| (one.device, one.number) == (other.device, other.number);
    one == other
        || one.file_name() == other.file_name()
            && directory(one)
                .zip(directory(other))
                .is_some_and(|(one, other)| is_same(one, other))
}

/// What is shown of a text that names no store.
const UNREADABLE: &str = "(what can't be read is not shown)";

/// Checks that a text names a store, as far as the text alone shows. Returns the file, if the store is one.
///
/// # Errors
/// What is wrong with it; reads after its name.
pub fn check(text: &str) -> Result<Option<PathBuf>, String> {
    let read = match StoreUrl::parse(text) {
        Ok(StoreUrl::Postgres(text)) => postgres::parse(&text.0).map(drop),
        Ok(StoreUrl::Mysql(text)) => mysql::parse(&text.0).map(drop),
        Ok(url) => return Ok(url.file().map(Path::to_owned)),
        Err(error) => return Err(format!("is not good: {error}")),
    };
    read.map(|()| None).map_err(|error| error.to_string())
}

/// True if a store's URL holds a password.
pub fn has_password(text: &str) -> bool {
    match StoreUrl::parse(text) {
        Ok(StoreUrl::Postgres(text)) => {
            postgres::parse(&text.0).is_ok_and(|pairs| has_secret(&pairs))
        }
        Ok(StoreUrl::Mysql(text)) => mysql::has_password(&text.0),
        Ok(StoreUrl::Redis(text)) => redis::parse(&text.0).is_ok_and(|it| it.has_password()),
        Ok(StoreUrl::Etcd(text)) => of_etcd(&text).is_some_and(|it| it.has_password()),
        Ok(StoreUrl::Zookeeper(text)) => {
            zk::Settings::read(&text.0).is_ok_and(|it| it.has_password())
        }
        Ok(StoreUrl::Sqlite(_)) | Err(_) => false,
    }
}

/// Where the password of this store's URL may be kept instead, and not the whole URL.
pub fn password_place(text: &str) -> Option<&'static str> {
    match StoreUrl::parse(text) {
        Ok(StoreUrl::Mysql(_)) => Some("~/.my.cnf"),
        Ok(StoreUrl::Redis(_)) => Some("REDISCLI_AUTH"),
        Ok(StoreUrl::Etcd(_)) => Some("ETCDCTL_PASSWORD"),
        Ok(StoreUrl::Zookeeper(_)) => None,
        _ => Some("~/.pgpass"),
    }
}

/// The settings of the URL alone.
fn of_etcd(url: &Secret) -> Option<etcd::Settings> {
    etcd::Settings::read(&url.0, |_| None).ok()
}

fn is_secret(name: &str) -> bool {
    name == "password" || name == "sslpassword"
}

fn has_secret(pairs: &Pairs) -> bool {
    pairs.iter().any(|(name, _)| is_secret(name))
}

/// A store's URL without its password.
pub fn without_password(text: &str) -> String {
    let pairs = match StoreUrl::parse(text) {
        Ok(StoreUrl::Sqlite(_)) => return text.to_owned(),
        Ok(StoreUrl::Mysql(url)) => return mysql::without_password(&url.0),
        Ok(StoreUrl::Redis(url)) => {
            return redis::parse(&url.0).map_or_else(|_| UNREADABLE.into(), |it| it.name());
        }
        Ok(StoreUrl::Etcd(url)) => {
            return of_etcd(&url).map_or_else(|| UNREADABLE.into(), |it| it.name());
        }
        Ok(StoreUrl::Zookeeper(url)) => {
            return zk::Settings::read(&url.0).map_or_else(|_| UNREADABLE.into(), |it| it.name());
        }
        Ok(StoreUrl::Postgres(url)) => postgres::parse(&url.0),
        Err(_) => return UNREADABLE.to_owned(),
    };
    match pairs {
        Err(_) => UNREADABLE.to_owned(),
        Ok(pairs) if !has_secret(&pairs) => text.to_owned(),
        Ok(pairs) => {
            let shown = pairs.iter().map(|(name, value)| match is_secret(name) {
                true => format!("{name}=***"),
                false => format!("{name}={value}"),
            });
            shown.collect::<Vec<_>>().join(" ")
        }
    }
}

/// A file's path, unless it looks like a typing error for something else: two nodes would have a
/// store each, and run the job at once.
fn plain_path(text: &str) -> Result<PathBuf, UrlError> {
    let first = text.split_once('/').map_or(text, |(first, _)| first);
    if let Some((before, _)) = first.split_once([':', '@']) {
        // The rest may hold a password: it is not repeated.
        return Err(UrlError::Unlikely(format!("{before}…")));
    }
    if let Some((keyword, _)) = first.split_once('=')
        && postgres::is_conninfo(&format!("{}=", keyword.to_lowercase()))
    {
        // A connection string of PostgreSQL in capitals may hold a password too.
        return Err(UrlError::Unlikely(format!("{keyword}=…")));
    }
    if first.starts_with(['~', '$']) || text != text.trim() {
        return Err(UrlError::Unlikely(text.to_owned()));
    }
    Ok(PathBuf::from(text))
}

/// The facts about this process on which the default store depends.
#[derive(Debug, Clone, Default)]
pub struct NodeEnvironment {
    /// True if it is process 1 of a PID namespace.
    pub is_pid_1: bool,
    /// True if it runs in a pod.
    pub in_kubernetes: bool,
    pub is_root: bool,
    /// `$XDG_STATE_HOME`.
    pub xdg_state_home: Option<OsString>,
    /// `$HOME`.
    pub home: Option<OsString>,
}

/// The directory for state: `/var/lib/tokenrun` for root, otherwise `$XDG_STATE_HOME/tokenrun`.
///
/// # Errors
/// If there is no place for it.
pub fn state_directory(environment: &NodeEnvironment) -> Result<PathBuf, UrlError> {
    if environment.is_root {
        return Ok(PathBuf::from("/var/lib/tokenrun"));
    }
    let absolute = |text: &OsString| Path::new(text).is_absolute().then(|| PathBuf::from(text));
    let state = environment.xdg_state_home.as_ref().and_then(absolute);
    let home = environment.home.as_ref().and_then(absolute);
    state
        .or_else(|| home.map(|home| home.join(".local/state")))
        .map(|base| base.join("tokenrun"))
        .ok_or(UrlError::NoHome)
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
