//! Faults between this process and a server, and what they mean.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use crate::store::deadline::{Activity, TimedOut};
use crate::store::error::copy_of;
use crate::store::tls::{Insecure, bad_certificate, is_certain, of_certificate};
use crate::store::{StoreError, Trouble};

/// An error that a server has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) code: u16,
    pub(super) state: Option<String>,
    pub(super) message: String,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.message.replace('\n', " ");
        write!(f, "{message} (error {})", self.code)
    }
}

impl Error for Said {}

impl Said {
    /// What to do if the server says that its disk is full, or that its file system is read-only.
    fn disk_remedy(&self) -> Option<&'static str> {
        if !code::DISK.contains(&self.code) {
            return None;
        }
        // The number of the operating system's error: no space left, a quota, a read-only file system.
        let mut numbers = self.message.split(|c: char| !c.is_ascii_digit());
        let is_read_only = numbers.clone().any(|it| it == "30");
        let is_full = numbers.any(|it| ["28", "122"].contains(&it));
        match self.code {
            1021 | 1114 => Some(FULL),
            _ if is_full => Some(FULL),
            _ if is_read_only => Some(
                "the file system of the server is read-only: see its log and the host's, and mount it for \
                 writing again",
            ),
            _ => None,
        }
    }
}

/// What to do about a full disk.
const FULL: &str = "the disk of the server is full: make room on it";

#[derive(Debug)]
pub(super) enum Fault {
    /// It did not happen in time.
    TimedOut(Activity, Duration),
    /// An error of the operating system, or a closed connection.
    Io(Activity, io::Error),
    /// An error that the server answered.
    Server(Said),
    /// The client can't or won't answer the server's login request.
    Login(String),
    /// An error of TLS, in words.
    Tls(Insecure, String),
    /// The server accepts no writes.
    ReadOnly,
    /// The settings require something impossible.
    Settings(String),
}

impl From<TimedOut> for Fault {
    fn from(late: TimedOut) -> Self {
        Self::TimedOut(late.doing, late.after)
    }
}

/// The numbers of the servers' errors that mean something here.
pub(super) mod code {
    pub(in crate::store::mysql) const UNKNOWN_DATABASE: u16 = 1049;
    pub(in crate::store::mysql) const NO_TABLE: u16 = 1146;
    pub(in crate::store::mysql) const NO_PROCEDURE: u16 = 1305;
    pub(in crate::store::mysql) const NO_EXECUTE: u16 = 1370;
    pub(in crate::store::mysql) const LOCK_TIMEOUT: u16 = 1205;
    pub(in crate::store::mysql) const DEADLOCK: u16 = 1213;
    /// An option of the server prevents the statement: read-only, or another.
    pub(in crate::store::mysql) const OPTION_PREVENTS: u16 = 1290;
    /// A transaction is read-only, the server can't write, a Galera node is not ready, and what `session.sql`
    /// makes of a server that is read-only.
    pub(in crate::store::mysql) const READ_ONLY: [u16; 4] = [1792, 1836, 1047, 1172];
    /// The database, the login, a table, a column, a host, a right, a procedure, a plugin, an expired password,
    /// a locked account (MySQL's, and MariaDB's), too many failed logins.
    pub(in crate::store::mysql) const DENIED: [u16; 17] = [
        1044, 1045, 1130, 1131, 1132, 1142, 1143, 1227, 1370, 1419, 1524, 1698, 1820, 1862, 3118,
        3955, 4151,
    ];
    /// No free connection: of the server, of the user, and a limit of the user in an hour.
    pub(in crate::store::mysql) const NO_CONNECTION: [u16; 3] = [1040, 1203, 1226];
    /// The disk is full, or can't be written: a table is full, writing a file failed (in each range of numbers),
    /// the engine's error.
    pub(in crate::store::mysql) const DISK: [u16; 6] = [1021, 1114, 1026, 3, 14, 1030];
    /// The statement was cut short, or the server is going down: what has become of it is unclear.
    pub(in crate::store::mysql) const UNCLEAR: [u16; 14] = [
        1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1180, 1184, 1317, 1927, 1969, 3024,
    ];
}

impl Fault {
    pub(super) fn nonsense(what: &str) -> Self {
        let error = io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        Self::Io(Activity::Asking, error)
    }

    pub(super) const fn code(&self) -> Option<u16> {
        match self {
            Self::Server(said) => Some(said.code),
            _ => None,
        }
    }

    fn is_one_of(&self, codes: &[u16]) -> bool {
        self.code().is_some_and(|code| codes.contains(&code))
    }

    /// Whether the tables, or some of them, do not exist.
    pub(super) fn is_missing_schema(&self) -> bool {
        self.is_one_of(&[code::NO_TABLE, code::NO_PROCEDURE])
    }

    /// Whether the server does not accept writes: nothing has happened, and another server may
    /// accept them.
    pub(super) fn is_read_only(&self) -> bool {
        match self {
            Self::ReadOnly => true,
            // The server's language changes the sentence, and not the option's name in it.
            Self::Server(said) if said.code == code::OPTION_PREVENTS => ["read-only", "read_only"]
                .iter()
                .any(|it| said.message.contains(it)),
            _ => self.is_one_of(&code::READ_ONLY),
        }
    }

    /// Whether the server has refused the request: it has not happened, and the connection stays
    /// usable.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Server(_)) && !self.is_one_of(&code::UNCLEAR)
    }

    /// Whether the request has waited for a lock as long as it may, or was chosen to give way.
    pub(super) fn is_lock_refused(&self) -> bool {
        self.is_one_of(&[code::LOCK_TIMEOUT, code::DEADLOCK])
    }

    pub(super) fn trouble(&self) -> Trouble {
        match self {
            Self::TimedOut(..) => Trouble::Unavailable,
            Self::ReadOnly => Trouble::Refused,
            Self::Io(_, error) => match error.kind() {
                io::ErrorKind::PermissionDenied => Trouble::Denied,
                io::ErrorKind::InvalidInput => Trouble::Misconfigured,
                _ => Trouble::Unavailable,
            },
            Self::Login(_) => Trouble::Denied,
            Self::Tls(..) | Self::Settings(_) => Trouble::Misconfigured,
            Self::Server(said) => self.of_server(said),
        }
    }

    fn of_server(&self, said: &Said) -> Trouble {
        let class = said.state.as_deref().and_then(|state| state.get(..2));
        match class {
            _ if self.is_one_of(&code::DENIED) => Trouble::Denied,
            _ if self.is_lock_refused() => Trouble::Locked,
            _ if self.is_one_of(&code::UNCLEAR) => Trouble::Unavailable,
            _ if self.is_read_only() || self.is_one_of(&code::NO_CONNECTION) => Trouble::Refused,
            Some("28") => Trouble::Denied,
            // Values that the server does not accept, rows that violate constraints, other tables than
            // tokenrun's, a variable or a function that the server does not have.
            Some("22" | "23" | "42") => Trouble::Misconfigured,
            _ if self.is_one_of(&[code::UNKNOWN_DATABASE, code::OPTION_PREVENTS, 1193]) => {
                Trouble::Misconfigured
            }
            _ => Trouble::Refused,
        }
    }

    /// The fault in words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::TimedOut(doing, after) => TimedOut {
                doing: *doing,
                after: *after,
            }
            .words(),
            Self::Io(doing, error) => format!("{error}, while {}", doing.words()),
            Self::Server(_) if self.is_lock_refused() => {
                "its tables are locked by another session, which SHOW PROCESSLIST shows".into()
            }
            Self::Login(what) | Self::Tls(_, what) | Self::Settings(what) => what.clone(),
            Self::Server(_) if self.code() == Some(1172) => Self::ReadOnly.words(),
            Self::Server(said) => said.to_string(),
            Self::ReadOnly => {
                "it is read-only, and tokens are written on a server that is not".into()
            }
        }
    }

    /// The fault as a store's error: `place` is the store, `host` the server.
    pub(super) fn store_error(&self, place: &str, host: &str) -> StoreError {
        let remedy = match self {
            Self::Server(said) if [1142, 1143, 1370].contains(&said.code) => Some(
                "have a database administrator run what tokenrun init --print-sql prints, with the \
                 rights that it names",
            ),
            Self::Server(said) if said.code == code::NO_PROCEDURE => {
                Some("run tokenrun init, which makes the procedures that are missing")
            }
            Self::Server(said) if said.code == 1665 => {
                Some("have binlog_format=ROW or MIXED on the server")
            }
            Self::Server(said) if said.code == 1071 => {
                Some("have a server whose innodb_page_size is 16k or more, or another store")
            }
            Self::Server(said) if said.code == code::OPTION_PREVENTS && !self.is_read_only() => {
                Some(
                    "change that option of the server (its variable enforce_storage_engine is one)",
                )
            }
            Self::Server(said) => said.disk_remedy(),
            _ => None,
        };
        let error = StoreError {
            trouble: self.trouble(),
            what: format!(
                "the store {place} can't be used: server {host}: {}",
                self.words()
            ),
            remedy: remedy.map(str::to_owned),
            source: None,
        };
        match self {
            Self::Io(_, cause) => error.caused_by(copy_of(cause)),
            Self::Server(said) => error.caused_by(said.clone()),
            _ => error,
        }
    }
}

/// The fault of a TLS handshake that failed.
pub(super) fn of_handshake(error: io::Error) -> Fault {
    if !is_certain(&error) {
        return Fault::Io(Activity::LoggingIn, error);
    }
    let why = bad_certificate(&error).map_or(Insecure::Other, of_certificate);
    Fault::Tls(why, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: u16, state: &str) -> Fault {
        Fault::Server(Said {
            code,
            state: Some(state.to_owned()),
            message: "words".into(),
        })
    }

    #[test]
    fn an_error_of_the_server_is_told_by_its_number() {
        for (fault, trouble) in [
            (said(1045, "28000"), Trouble::Denied),
            (said(1370, "42000"), Trouble::Denied),
            (said(1205, "HY000"), Trouble::Locked),
            (said(1213, "40001"), Trouble::Locked),
            (said(1040, "08004"), Trouble::Refused),
            (said(1203, "42000"), Trouble::Refused),
            (said(1226, "42000"), Trouble::Refused),
            (said(1820, "HY000"), Trouble::Denied),
            (said(1862, "HY000"), Trouble::Denied),
            (said(3118, "HY000"), Trouble::Denied),
            (said(3955, "HY000"), Trouble::Denied),
            (said(4151, "HY000"), Trouble::Denied),
            (said(1792, "25006"), Trouble::Refused),
            (said(1114, "HY000"), Trouble::Refused),
            (said(1146, "42S02"), Trouble::Misconfigured),
            (said(1049, "42000"), Trouble::Misconfigured),
            (said(1317, "70100"), Trouble::Unavailable),
            (said(1180, "HY000"), Trouble::Unavailable),
        ] {
            assert_eq!(fault.trouble(), trouble, "{fault:?}");
        }
    }

    fn said_of(code: u16, message: &str) -> Fault {
        let Fault::Server(said) = said(code, "HY000") else {
            unreachable!();
        };
        Fault::Server(Said {
            message: message.to_owned(),
            ..said
        })
    }

    #[test]
    fn an_option_that_prevents_a_statement_is_told_by_its_name() {
        for (option, is_read_only) in [
            ("--read-only", true),
            ("--super-read-only", true),
            ("read_only=NO_LOCK", true),
            ("NO_ENGINE_SUBSTITUTION", false),
            ("--skip-grant-tables", false),
        ] {
            let fault = said_of(
                1290,
                &format!("The server is running with the {option} option"),
            );
            assert_eq!(fault.is_read_only(), is_read_only, "{option}");
            let trouble = match is_read_only {
                true => Trouble::Refused,
                false => Trouble::Misconfigured,
            };
            assert_eq!(fault.trouble(), trouble, "{option}");
            let remedy = fault.store_error("s", "h").remedy;
            assert_eq!(remedy.is_some(), !is_read_only, "{option}");
        }
    }

    #[test]
    fn a_disk_that_is_full_or_read_only_has_a_line_of_its_own() {
        for (code, message, words) in [
            (
                1114,
                "The table 'tokenrun_runs' is full",
                Some("full: make room"),
            ),
            (1021, "Disk full (/tmp)", Some("full: make room")),
            (
                1026,
                "Error writing file './binlog' (Errcode: 28 \"No space left on device\")",
                Some("full: make room"),
            ),
            (
                3,
                "Error writing file 'x' (OS errno 28 - No space)",
                Some("full: make room"),
            ),
            (
                1030,
                "Got error 122 - 'Quota' from storage engine",
                Some("full: make room"),
            ),
            (
                1030,
                "Got error 30 'Read-only file system' from storage engine",
                Some("file system"),
            ),
            (1030, "Got error 168 'Unknown' from storage engine", None),
            (1064, "near '28' at line 30", None),
        ] {
            let remedy = said_of(code, message).store_error("s", "h").remedy;
            let found = remedy.as_deref().unwrap_or_default();
            assert_eq!(words.is_some(), remedy.is_some(), "{message}: {found}");
            assert!(
                found.contains(words.unwrap_or_default()),
                "{message}: {found}"
            );
        }
    }

    #[test]
    fn after_a_statement_that_was_cut_short_the_connection_is_not_used() {
        assert!(!said(1317, "70100").is_refusal());
        assert!(said(1213, "40001").is_refusal());
        assert!(!Fault::ReadOnly.is_refusal());
    }
}
