//! What a server's errors mean.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::store::Trouble;
use crate::store::net::fault;
use crate::store::net::tls::Remedies;

pub(in crate::store) type Fault = fault::Fault<Said>;

/// What a server has said in place of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) enum Said {
    /// An error.
    Server {
        code: u16,
        state: Option<String>,
        message: String,
    },
    /// It wants a proof that the client can't or won't give.
    Login(String),
    /// It accepts no writes.
    ReadOnly,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&fault::Said::words(self))
    }
}

impl Error for Said {}

/// What to do about a full disk.
const FULL: &str = "the disk of the server is full: make room on it";

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

impl Said {
    const fn code(&self) -> Option<u16> {
        match self {
            Self::Server { code, .. } => Some(*code),
            Self::Login(_) | Self::ReadOnly => None,
        }
    }

    fn is_one_of(&self, codes: &[u16]) -> bool {
        self.code().is_some_and(|code| codes.contains(&code))
    }

    /// True if the request has waited for a lock as long as it may, or was chosen to give way.
    pub(super) fn is_lock_refused(&self) -> bool {
        self.is_one_of(&[code::LOCK_TIMEOUT, code::DEADLOCK])
    }

    fn of_server(&self, state: Option<&str>) -> Trouble {
        use fault::Said as _;
        match state.and_then(|state| state.get(..2)) {
            _ if self.is_one_of(&code::DENIED) => Trouble::Denied,
            _ if self.is_lock_refused() => Trouble::Locked,
            _ if self.is_one_of(&code::UNCLEAR) => Trouble::Unavailable,
            _ if self.is_elsewhere() || self.is_one_of(&code::NO_CONNECTION) => Trouble::Refused,
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
}

impl fault::Said for Said {
    const TLS: Remedies = Remedies {
        not_offered: "set ssl_cert and ssl_key on the server; ssl-mode=PREFERRED does without",
        untrusted: "give the certificate of the authority that signed the server's as ssl-ca",
        other: "correct the files of ssl-ca, ssl-cert and ssl-key, or the server's TLS versions",
    };

    fn trouble(&self) -> Trouble {
        match self {
            Self::Server { state, .. } => self.of_server(state.as_deref()),
            Self::Login(_) => Trouble::Denied,
            Self::ReadOnly => Trouble::Refused,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Login(what) => what.clone(),
            Self::ReadOnly | Self::Server { code: 1172, .. } => {
                "it is read-only, and tokens are written on a server that is not".into()
            }
            Self::Server { .. } if self.is_lock_refused() => {
                "its tables are locked by another session, which SHOW PROCESSLIST shows".into()
            }
            Self::Server { code, message, .. } => {
                format!("{} (error {code})", message.replace('\n', " "))
            }
        }
    }

    fn remedy(&self) -> Option<&'static str> {
        let Self::Server { code, message, .. } = self else {
            return None;
        };
        match *code {
            1142 | 1143 | 1370 => Some(
                "have a database administrator run what tokenrun init --print-sql prints, with the \
                 rights that it names",
            ),
            code::NO_PROCEDURE => {
                Some("run tokenrun init, which makes the procedures that are missing")
            }
            1665 => Some("have binlog_format=ROW or MIXED on the server"),
            1071 => Some("have a server whose innodb_page_size is 16k or more, or another store"),
            code::OPTION_PREVENTS if !self.is_elsewhere() => Some(
                "change that option of the server (its variable enforce_storage_engine is one)",
            ),
            code => disk_remedy(code, message),
        }
    }

    fn is_elsewhere(&self) -> bool {
        match self {
            Self::ReadOnly => true,
            // The server's language changes the sentence, and not the option's name in it.
            Self::Server { code, message, .. } if *code == code::OPTION_PREVENTS => {
                ["read-only", "read_only"]
                    .iter()
                    .any(|it| message.contains(it))
            }
            _ => self.is_one_of(&code::READ_ONLY),
        }
    }

    fn is_refusal(&self) -> bool {
        matches!(self, Self::Server { .. }) && !self.is_one_of(&code::UNCLEAR)
    }

    fn cause(&self) -> Option<Arc<dyn Error + Send + Sync>> {
        matches!(self, Self::Server { .. }).then(|| Arc::new(self.clone()) as _)
    }
}

/// What to do if the server says that its disk is full, or that its file system is read-only.
fn disk_remedy(code: u16, message: &str) -> Option<&'static str> {
    if !code::DISK.contains(&code) {
        return None;
    }
    // The number of the operating system's error: no space left, a quota, a read-only file system.
    let mut numbers = message.split(|c: char| !c.is_ascii_digit());
    let is_read_only = numbers.clone().any(|it| it == "30");
    let is_full = numbers.any(|it| ["28", "122"].contains(&it));
    match code {
        1021 | 1114 => Some(FULL),
        _ if is_full => Some(FULL),
        _ if is_read_only => Some(
            "the file system of the server is read-only: see its log and the host's, and mount it for \
             writing again",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: u16, state: &str) -> Fault {
        Fault::Said(Said::Server {
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
        Fault::Said(Said::Server {
            code,
            state: Some("HY000".into()),
            message: message.to_owned(),
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
            assert_eq!(fault.is_elsewhere(), is_read_only, "{option}");
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
    fn an_error_is_told_in_a_line_and_one_of_the_server_is_a_cause() {
        for (fault, words, is_cause) in [
            (said_of(1064, "near\n'x'"), "near 'x' (error 1064)", true),
            (said(1213, "40001"), "locked by another session", true),
            (said(1172, "HY000"), "it is read-only", true),
            (Fault::Said(Said::ReadOnly), "it is read-only", false),
            (Fault::Said(Said::Login("no".into())), "no", false),
        ] {
            assert!(fault.words().contains(words), "{fault:?}");
            let source = fault.store_error("s", "h").source;
            assert_eq!(source.is_some(), is_cause, "{fault:?}");
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
        assert!(!Fault::Said(Said::ReadOnly).is_refusal());
    }
}
