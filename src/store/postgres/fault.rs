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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::postgres::played::{LOGGED_IN, error, message, queried};

    /// Errors, and what they are told as.
    const TOLD: &str = "\
ERROR 55000 pg_walfile_name -> Refused, elsewhere: it is a standby, and tokens are written on a primary
ERROR 55000 f -> Refused, refusal, caused: so long (SQLSTATE 55000)
ERROR 22023 pg_walfile_name -> Misconfigured, refusal, caused: so long (SQLSTATE 22023)
ERROR 25006 f -> Refused, elsewhere, refusal, caused: so long (SQLSTATE 25006)
FATAL 57P01 f -> Unavailable, caused: so long (SQLSTATE 57P01)
- 53100 f -> Unavailable, caused: so long (SQLSTATE 53100)
ERROR 55P03 f -> Locked, refusal, caused: its tables are locked by another session, which pg_locks shows \
(SQLSTATE 55P03)
ERROR 42501 f -> Denied, refusal, caused: so long (SQLSTATE 42501); ask a database administrator
ERROR 22P05 f -> Misconfigured, refusal, caused: so long (SQLSTATE 22P05); have a database whose encoding is UTF8";

    #[test]
    fn an_error_in_place_of_an_answer_is_told_by_its_code_and_severity() {
        for line in TOLD.lines() {
            let (sent, told) = line.split_once(" -> ").unwrap();
            let fault = of_answer(queried(&[LOGGED_IN, &error(sent)], &[]).unwrap_err());
            let told_as = fault.store_error("s", "h");
            let kinds = [
                (fault.is_elsewhere(), ", elsewhere"),
                (fault.is_refusal(), ", refusal"),
                (told_as.source.is_some(), ", caused"),
            ];
            let kinds: String = kinds.iter().filter(|it| it.0).map(|it| it.1).collect();
            let found = format!("{:?}{kinds}: {}", fault.trouble(), fault.words());
            let (expected, remedy) = told.split_once("; ").unwrap_or((told, ""));
            assert_eq!(found, expected, "{sent}");
            let found = told_as.remedy.unwrap_or_default();
            assert!(found.starts_with(remedy), "{sent}: {found}");
            assert_eq!(found.is_empty(), remedy.is_empty(), "{sent}: {found}");
        }
        let closed = of_answer(queried(&[LOGGED_IN, b""], &[]).unwrap_err());
        assert_eq!(closed.words(), "connection closed");
        assert_eq!(closed.trouble(), Trouble::Unavailable);
        assert!(!closed.is_refusal() && closed.store_error("s", "h").source.is_none());
    }

    #[test]
    fn a_login_that_the_driver_refuses_itself_is_no_fault_of_the_connection() {
        let asks_for_password = message(b'R', &[0, 0, 0, 3]);
        let denied = error("FATAL 28P01 f");
        let missing = "invalid configuration: password missing";
        let driver = |words: &'static str, trouble| ("Said(Driver", words, trouble);
        let unable = ("Said(Unable", missing, Trouble::Denied);
        let no_tls = ("Tls(NotOffered", missing, Trouble::Misconfigured);
        let denial = driver("so long (SQLSTATE 28P01)", Trouble::Denied);
        let nonsense = driver("error communicating", Trouble::Unavailable);
        let cut = driver("connection closed", Trouble::Unavailable);
        for (sent, tls, agreed, (kind, words, trouble)) in [
            (asks_for_password.as_slice(), false, false, unable),
            (&asks_for_password, true, true, unable),
            (&asks_for_password, true, false, no_tls),
            (&denied, true, false, denial),
            // A message that is shorter than its own length.
            (b"R\0\0\0\0", true, false, nonsense),
            (b"", true, false, cut),
        ] {
            let fault = of_login(queried(&[sent], &[]).unwrap_err(), tls, agreed);
            assert!(format!("{fault:?}").starts_with(kind), "{fault:?}");
            assert!(fault.words().starts_with(words), "{}", fault.words());
            assert_eq!(fault.trouble(), trouble, "{fault:?}");
        }
    }
}
