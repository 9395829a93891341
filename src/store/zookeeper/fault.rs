//! Faults between this process and a server, and what they mean.

use super::wire::code;
use crate::store::Trouble;
use crate::store::net::fault;
use crate::store::net::tls::Remedies;

pub(super) type Fault = fault::Fault<Said>;

/// What a server has said in place of an answer.
#[derive(Debug)]
pub(in crate::store) enum Said {
    /// A request failed, by ZooKeeper's code; on this node.
    Failed { code: i32, path: String },
    /// It gave no session.
    NoSession,
    /// Something else than was asked for.
    Nonsense(&'static str),
    /// Nothing was written: the look before failed.
    Unread(Box<Fault>),
}

impl Said {
    pub(super) const fn nonsense(what: &'static str) -> Fault {
        Fault::Said(Self::Nonsense(what))
    }

    fn is_session(code: i32) -> bool {
        matches!(code, code::SESSION_EXPIRED | code::SESSION_MOVED)
    }
}

impl fault::Said for Said {
    const TLS: Remedies = Remedies {
        not_offered: "name the server's secureClientPort, or write zk://",
        untrusted: "give the certificate of the authority that signed the server's as cacert",
        other: "correct the files of cacert, cert and key, or the server's TLS versions",
    };

    fn trouble(&self) -> Trouble {
        match self {
            Self::Failed { code, .. } => match *code {
                code::NO_RIGHT | code::LOGIN_FAILED => Trouble::Denied,
                code::BAD_RIGHTS | code::UNIMPLEMENTED => Trouble::Misconfigured,
                code::OVER_QUOTA => Trouble::Refused,
                _ => Trouble::Unavailable,
            },
            Self::NoSession | Self::Nonsense(_) => Trouble::Unavailable,
            Self::Unread(fault) => fault.trouble(),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Failed { code, path } => match *code {
                code::NO_RIGHT => format!("this log-in may not do that at {path}"),
                code::LOGIN_FAILED => "it refuses the user and the password".to_owned(),
                code::BAD_RIGHTS => format!("it takes no rights at {path}"),
                code::OVER_QUOTA => format!("the quota of {path} is used up"),
                code::UNIMPLEMENTED => "it is older than 3.5, or no ZooKeeper".to_owned(),
                code if Self::is_session(code) => "its session has ended".to_owned(),
                code => format!("error {code} at {path}"),
            },
            Self::NoSession => "it gives no session".to_owned(),
            Self::Nonsense(what) => format!("it does not answer as ZooKeeper does: {what}"),
            Self::Unread(fault) => fault.words(),
        }
    }

    fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Unread(fault) => fault.remedy(),
            Self::Failed { code, .. } => match *code {
                code::NO_RIGHT => Some(
                    "log in as the user that made tokenrun's nodes, or have an administrator give this one all rights on them (setAcl -R)",
                ),
                code::LOGIN_FAILED => Some("correct the user and the password in the URL"),
                code::OVER_QUOTA => Some("have an administrator raise or remove the quota"),
                _ => None,
            },
            Self::NoSession | Self::Nonsense(_) => None,
        }
    }

    fn is_elsewhere(&self) -> bool {
        match self {
            Self::Unread(fault) => match fault.as_ref() {
                Fault::Said(Self::Failed { code, .. }) => Self::is_session(*code),
                Fault::Said(_) | Fault::Io(..) | Fault::TimedOut(_) => true,
                Fault::Tls(..) | Fault::Settings(_) => false,
            },
            _ => false,
        }
    }

    fn is_refusal(&self) -> bool {
        match self {
            Self::Failed { code, .. } => !Self::is_session(*code) && *code != code::LOGIN_FAILED,
            Self::NoSession | Self::Nonsense(_) => false,
            Self::Unread(fault) => fault.is_refusal(),
        }
    }
}
