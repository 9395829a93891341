//! Faults between this process and a server, and what they mean.

use crate::store::Trouble;
use crate::store::net::fault;
use crate::store::net::tls::Remedies;

pub(super) type Fault = fault::Fault<Said>;

/// What a server has said in place of an answer.
#[derive(Debug)]
pub(in crate::store) enum Said {
    /// An error, by gRPC's number.
    Answer { code: u32, text: String },
    /// This user may not see the server's status.
    StatusDenied,
    /// Something else than was asked for.
    Nonsense(String),
    /// Nothing was written: the look before failed.
    Unread(Box<Fault>),
}

const INVALID_ARGUMENT: u32 = 3;
const PERMISSION_DENIED: u32 = 7;
const RESOURCE_EXHAUSTED: u32 = 8;
const FAILED_PRECONDITION: u32 = 9;
const OUT_OF_RANGE: u32 = 11;
const UNAVAILABLE: u32 = 14;
const UNAUTHENTICATED: u32 = 16;

/// The longest text of a server that is repeated.
const LONGEST: usize = 300;

impl Said {
    pub(super) fn answer(code: u32, text: &str) -> Self {
        let text = text.replace(|c: char| c.is_control(), " ");
        Self::Answer {
            code,
            text: text.chars().take(LONGEST).collect(),
        }
    }

    pub(super) fn nonsense(what: &str) -> Fault {
        Fault::Said(Self::Nonsense(what.to_owned()))
    }

    /// What the server has said of its status. Some releases show it to the role root alone, as a side effect of the
    /// repair of CVE-2026-33413: <https://github.com/etcd-io/etcd/issues/21663>.
    pub(super) fn of_status(fault: Fault) -> Fault {
        match fault {
            Fault::Said(Self::Answer {
                code: PERMISSION_DENIED,
                ..
            }) => Fault::Said(Self::StatusDenied),
            other => other,
        }
    }

    /// True if a read at an old revision came too late.
    pub(super) fn is_compacted(&self) -> bool {
        matches!(self, Self::Answer { code: OUT_OF_RANGE, text } if text.contains("compacted"))
    }

    /// True if the server takes no more data.
    pub(super) fn is_out_of_space(&self) -> bool {
        matches!(self, Self::Answer { code: RESOURCE_EXHAUSTED, text } if text.contains("space exceeded"))
    }

    fn is_about_login(code: u32, text: &str) -> bool {
        code == UNAUTHENTICATED
            || (code == INVALID_ARGUMENT
                && (text.contains("user name is empty") || text.contains("authentication failed")))
    }
}

impl fault::Said for Said {
    const TLS: Remedies = Remedies {
        not_offered: "have the server listen with TLS (--cert-file), or write etcd://",
        untrusted: "give the certificate of the authority that signed the server's as cacert",
        other: "correct the files of cacert, cert and key, or the server's TLS versions",
    };

    fn trouble(&self) -> Trouble {
        match self {
            Self::Answer { code, text } => match *code {
                PERMISSION_DENIED => Trouble::Denied,
                code if Self::is_about_login(code, text) => Trouble::Denied,
                RESOURCE_EXHAUSTED => Trouble::Refused,
                FAILED_PRECONDITION | INVALID_ARGUMENT => Trouble::Misconfigured,
                _ => Trouble::Unavailable,
            },
            Self::StatusDenied => Trouble::Denied,
            Self::Nonsense(_) => Trouble::Unavailable,
            Self::Unread(fault) => fault.trouble(),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Answer { text, .. } => text.clone(),
            Self::StatusDenied => {
                "this release of etcd shows its status, which tells a restored cluster, to the role root alone".into()
            }
            Self::Nonsense(what) => format!("it does not answer as etcd does: {what}"),
            Self::Unread(fault) => fault.words(),
        }
    }

    fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Unread(fault) => fault.remedy(),
            Self::StatusDenied => Some("update etcd to a release after 3.5.30 or 3.6.11"),
            Self::Nonsense(_) => None,
            Self::Answer { code, text } if Self::is_about_login(*code, text) => Some(
                "correct the user and the password in the URL, or ETCDCTL_USER and ETCDCTL_PASSWORD",
            ),
            Self::Answer {
                code: PERMISSION_DENIED,
                ..
            } => {
                Some("have an administrator grant this user's role readwrite on tokenrun's prefix")
            }
            Self::Answer { .. } if self.is_out_of_space() => Some(
                "have an administrator compact and defragment etcd, then disarm its alarm (etcdctl alarm disarm)",
            ),
            Self::Answer { .. } => None,
        }
    }

    fn is_elsewhere(&self) -> bool {
        match self {
            Self::Unread(fault) => match fault.as_ref() {
                Fault::Said(Self::Answer { code, .. }) => *code == UNAVAILABLE,
                Fault::Said(Self::Nonsense(_)) | Fault::Io(..) | Fault::TimedOut(_) => true,
                _ => false,
            },
            _ => false,
        }
    }

    fn is_refusal(&self) -> bool {
        match self {
            Self::Answer { code, .. } => !matches!(*code, UNAVAILABLE | UNAUTHENTICATED),
            Self::StatusDenied => true,
            Self::Nonsense(_) => false,
            Self::Unread(fault) => fault.is_refusal(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fault::Said as _;
    use super::*;

    #[test]
    fn a_status_that_is_denied_has_its_own_remedy_and_other_faults_stay() {
        let denied = || Said::answer(PERMISSION_DENIED, "etcdserver: permission denied");
        let Fault::Said(said) = Said::of_status(Fault::Said(denied())) else {
            panic!("another fault");
        };
        assert_eq!(said.trouble(), Trouble::Denied);
        assert!(said.is_refusal() && !said.is_elsewhere());
        assert!(said.words().contains("to the role root alone"));
        assert_ne!(said.remedy(), denied().remedy());
        let lost = Said::of_status(Fault::Said(Said::answer(UNAVAILABLE, "no leader")));
        assert_eq!(lost.words(), "no leader");
    }
}
