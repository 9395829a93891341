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
    pub(in crate::store::mysql) const LOCK_TIMEOUT: u16 = 1205;
    pub(in crate::store::mysql) const DEADLOCK: u16 = 1213;
    /// The server is read-only, a transaction is, the server can't write, a Galera node is not ready,
    /// and what `session.sql` makes of a server that is read-only.
    pub(in crate::store::mysql) const READ_ONLY: [u16; 5] = [1290, 1792, 1836, 1047, 1172];
    /// The database, the login, a table, a column, a host, a right, a procedure, a plugin.
    pub(in crate::store::mysql) const DENIED: [u16; 13] = [
        1044, 1045, 1130, 1131, 1132, 1142, 1143, 1227, 1370, 1419, 1524, 1698, 3118,
    ];
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
        matches!(self, Self::ReadOnly) || self.is_one_of(&code::READ_ONLY)
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
            _ if self.is_read_only() => Trouble::Refused,
            Some("28") => Trouble::Denied,
            // Values that the server does not accept, rows that violate constraints, other tables than
            // tokenrun's, a variable or a function that the server does not have.
            Some("22" | "23" | "42") => Trouble::Misconfigured,
            _ if self.is_one_of(&[code::UNKNOWN_DATABASE, 1193]) => Trouble::Misconfigured,
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
            (said(1290, "25006"), Trouble::Refused),
            (said(1040, "08004"), Trouble::Refused),
            (said(1146, "42S02"), Trouble::Misconfigured),
            (said(1049, "42000"), Trouble::Misconfigured),
            (said(1317, "70100"), Trouble::Unavailable),
            (said(1180, "HY000"), Trouble::Unavailable),
        ] {
            assert_eq!(fault.trouble(), trouble, "{fault:?}");
        }
    }

    #[test]
    fn after_a_statement_that_was_cut_short_the_connection_is_not_used() {
        assert!(!said(1317, "70100").is_refusal());
        assert!(said(1213, "40001").is_refusal());
        assert!(!Fault::ReadOnly.is_refusal());
    }
}
