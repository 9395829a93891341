//! What the errors of the server and of the driver mean.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;

use tokio_postgres::error::{DbError, Severity, SqlState};

use super::handshake::HandshakeError;
use crate::store::Trouble;
use crate::store::net::fault;
use crate::store::net::tls::{Insecure, Remedies, is_certain};

pub(in crate::store) type Fault = fault::Fault<Said>;

/// What the driver has given in place of an answer.
#[derive(Debug)]
pub(in crate::store) enum Said {
    /// An error of the driver or the server.
    Driver(tokio_postgres::Error),
    /// The driver can't answer the server's login request: a password is missing, or it does not
    /// support the method.
    Unable(tokio_postgres::Error),
    /// The server is a standby.
    Standby,
}

/// The fault in place of an answer. A standby refuses to report the name of a log file, which the
/// statements request.
pub(super) fn of_answer(error: tokio_postgres::Error) -> Fault {
    let said = error.as_db_error();
    let routine = said.and_then(|said| said.routine());
    Fault::Said(match error.code() {
        Some(code)
            if *code == SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE
                && routine == Some("pg_walfile_name") =>
        {
            Said::Standby
        }
        _ => Said::Driver(error),
    })
}

impl Said {
    pub(super) fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Driver(error) => error.code(),
            _ => None,
        }
    }
}

impl fault::Said for Said {
    const TLS: Remedies = Remedies {
        not_offered: "set ssl = on and a certificate on the server; sslmode=prefer does without",
        untrusted: "give the certificate of the authority that signed the server's as sslrootcert, or have \
             the server's signed by one that is in there",
        other: "correct the files of sslrootcert, sslcert and sslkey, or the server's TLS versions",
    };

    fn trouble(&self) -> Trouble {
        match self {
            Self::Standby => Trouble::Refused,
            Self::Unable(_) => Trouble::Denied,
            Self::Driver(error) => match of_driver(error) {
                Trouble::Unavailable if self.is_refusal() => Trouble::Refused,
                trouble => trouble,
            },
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Driver(error) => driver_words(error),
            Self::Unable(error) => chain(error),
            Self::Standby => "it is a standby, and tokens are written on a primary".into(),
        }
    }

    fn remedy(&self) -> Option<&'static str> {
        match self.code() {
            Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => Some(
                "ask a database administrator to run what tokenrun init --print-sql prints, and then \
                 GRANT tokenrun TO this role",
            ),
            Some(code) if *code == SqlState::UNTRANSLATABLE_CHARACTER => Some(
                "have a database whose encoding is UTF8, or names and labels that its encoding has",
            ),
            _ => None,
        }
    }

    fn is_elsewhere(&self) -> bool {
        matches!(self, Self::Standby) || self.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
    }

    /// A proxy that speaks for a server, such as a pooler, may omit the severity.
    fn is_refusal(&self) -> bool {
        let Self::Driver(error) = self else {
            return false;
        };
        let said = error.as_db_error();
        said.is_some_and(|said| said.parsed_severity() == Some(Severity::Error))
    }

    fn cause(&self) -> Option<Arc<dyn StdError + Send + Sync>> {
        match self {
            Self::Driver(cause) => Some(Arc::new(cause.as_db_error()?.clone())),
            _ => None,
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
    if let Some(HandshakeError(failed)) = cause.and_then(|it| it.downcast_ref()) {
        return match is_certain(failed) {
            true => Fault::Tls(Insecure::of(failed), chain(&error)),
            false => Fault::Said(Said::Driver(error)),
        };
    }
    // An error without a cause means nonsense or silence. A cut connection has an error of the
    // operating system as its cause. The driver's own refusals are what is left.
    let is_own = cause.is_some_and(|it| !it.is::<DbError>() && !it.is::<io::Error>());
    match is_own {
        true if tls && !agreed => Fault::Tls(Insecure::NotOffered, chain(&error)),
        true => Fault::Said(Said::Unable(error)),
        false => Fault::Said(Said::Driver(error)),
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
