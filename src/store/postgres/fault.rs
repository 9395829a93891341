//! Faults between this process and a server, and what they mean.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use tokio_postgres::error::{DbError, Severity, SqlState};

use super::tls::HandshakeError;
use crate::store::deadline::{Activity, TimedOut};
use crate::store::error::copy_of;
use crate::store::tls::{Insecure, of_certificate};
use crate::store::{StoreError, Trouble};

#[derive(Debug)]
pub(super) enum Fault {
    /// It did not happen in time.
    TimedOut(Activity, Duration),
    /// An error of the operating system.
    Io(Activity, io::Error),
    /// An error of the driver or the server.
    Driver(tokio_postgres::Error),
    /// The driver can't answer the server's login request: a password is missing, or it does not
    /// support the method.
    Unable(tokio_postgres::Error),
    /// An error of TLS, in words.
    Tls(Insecure, String),
    /// The server is a standby.
    Standby,
    /// The settings require something impossible.
    Settings(String),
}

impl From<TimedOut> for Fault {
    fn from(late: TimedOut) -> Self {
        Self::TimedOut(late.doing, late.after)
    }
}

impl Fault {
    /// The fault in place of an answer. A standby refuses to report the name of a log file, which
    /// the statements request.
    pub(super) fn of_answer(error: tokio_postgres::Error) -> Self {
        let said = error.as_db_error();
        let routine = said.and_then(|said| said.routine());
        match error.code() {
            Some(code)
                if *code == SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE
                    && routine == Some("pg_walfile_name") =>
            {
                Self::Standby
            }
            _ => Self::Driver(error),
        }
    }

    pub(super) fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Driver(error) => error.code(),
            _ => None,
        }
    }

    /// Whether the tables, or some of them, do not exist.
    pub(super) fn is_missing_schema(&self) -> bool {
        let missing = [
            SqlState::UNDEFINED_TABLE,
            SqlState::INVALID_SCHEMA_NAME,
            SqlState::UNDEFINED_COLUMN,
        ];
        self.code().is_some_and(|code| missing.contains(code))
    }

    /// Whether the server does not accept writes: nothing has happened, and another server may
    /// accept them.
    pub(super) fn is_read_only(&self) -> bool {
        matches!(self, Self::Standby) || self.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
    }

    /// Whether the server has refused the request: it has not happened, and the connection stays
    /// usable. A proxy that speaks for a server, such as a pooler, may omit the severity.
    pub(super) fn is_refusal(&self) -> bool {
        let Self::Driver(error) = self else {
            return false;
        };
        let said = error.as_db_error();
        said.is_some_and(|said| said.parsed_severity() == Some(Severity::Error))
    }

    /// Whether the request has waited for a lock as long as it may.
    pub(super) fn is_lock_refused(&self) -> bool {
        self.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
    }

    /// Whether connecting without TLS, or with it, may help: what libpq's prefer and allow do.
    pub(super) const fn may_depend_on_tls(&self) -> bool {
        matches!(self, Self::Driver(_) | Self::Unable(_) | Self::Tls(..))
    }

    pub(super) fn trouble(&self) -> Trouble {
        match self {
            Self::TimedOut(..) => Trouble::Unavailable,
            Self::Standby => Trouble::Refused,
            Self::Io(_, error) => match error.kind() {
                io::ErrorKind::PermissionDenied => Trouble::Denied,
                io::ErrorKind::InvalidInput => Trouble::Misconfigured,
                _ => Trouble::Unavailable,
            },
            Self::Unable(_) => Trouble::Denied,
            Self::Tls(..) | Self::Settings(_) => Trouble::Misconfigured,
            Self::Driver(error) => match of_driver(error) {
                Trouble::Unavailable if self.is_refusal() => Trouble::Refused,
                trouble => trouble,
            },
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
            Self::Driver(error) => driver_words(error),
            Self::Unable(error) => chain(error),
            Self::Tls(_, what) | Self::Settings(what) => what.clone(),
            Self::Standby => "it is a standby, and tokens are written on a primary".into(),
        }
    }

    /// The fault as a store's error: `place` is the store, `host` the server.
    pub(super) fn store_error(&self, place: &str, host: &str) -> StoreError {
        let remedy = match self.code() {
            Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => Some(
                "ask a database administrator to run what tokenrun init --print-sql prints, and then \
                 GRANT tokenrun TO this role",
            ),
            Some(code) if *code == SqlState::UNTRANSLATABLE_CHARACTER => Some(
                "have a database whose encoding is UTF8, or names and labels that its encoding has",
            ),
            _ => None,
        };
        let words = self.words();
        let error = StoreError {
            trouble: self.trouble(),
            what: format!("the store {place} can't be used: server {host}: {words}"),
            remedy: remedy.map(str::to_owned),
            source: None,
        };
        match self {
            Self::Io(_, cause) => error.caused_by(copy_of(cause)),
            Self::Driver(cause) => match cause.as_db_error() {
                Some(cause) => error.caused_by(cause.clone()),
                None => error,
            },
            _ => error,
        }
    }
}

fn of_driver(error: &tokio_postgres::Error) -> Trouble {
    let Some(db) = error.as_db_error() else {
        return Trouble::Unavailable;
    };
    let code = db.code().code();
    let class = code.get(..2).unwrap_or_default();
    match (code, class) {
        ("42501", _) | (_, "28") => Trouble::Denied,
        ("55P03", _) => Trouble::Locked,
        // A missing feature, a missing database or schema, values that the server does not accept,
        // rows that violate constraints, other tables than tokenrun's, the server's limits.
        (_, "0A" | "3D" | "3F" | "22" | "23" | "42" | "54") => Trouble::Misconfigured,
        _ => Trouble::Unavailable,
    }
}

fn driver_words(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) if *db.code() == SqlState::LOCK_NOT_AVAILABLE => {
            "its tables are locked by another session, which pg_locks shows (SQLSTATE 55P03)".into()
        }
        Some(db) => format!(
            "{} (SQLSTATE {})",
            db.message().replace('\n', " "),
            db.code().code()
        ),
        None => chain(error),
    }
}

/// A driver's error of a failed login. `tls`: TLS was requested; `agreed`: the server has agreed to
/// it.
pub(super) fn of_login(error: tokio_postgres::Error, tls: bool, agreed: bool) -> Fault {
    let cause = error.source();
    if let Some(handshake) = cause.and_then(|it| it.downcast_ref::<HandshakeError>()) {
        let why = handshake
            .certificate()
            .map_or(Insecure::Other, of_certificate);
        return match handshake.is_certain() {
            true => Fault::Tls(why, chain(&error)),
            false => Fault::Driver(error),
        };
    }
    // An error without a cause means nonsense or silence. A cut connection has an error of the
    // operating system as its cause. The driver's own refusals are what is left.
    let is_own = cause.is_some_and(|it| !it.is::<DbError>() && !it.is::<io::Error>());
    match is_own {
        true if tls && !agreed => Fault::Tls(Insecure::NotOffered, chain(&error)),
        true => Fault::Unable(error),
        false => Fault::Driver(error),
    }
}

/// An error with its causes, in a line.
fn chain(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text.replace('\n', " ")
}
