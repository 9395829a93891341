//! Faults between this process and a server, and what they mean.

use redis::ServerError;

use crate::store::Trouble;
use crate::store::net::deadline::Activity;
use crate::store::net::fault;
use crate::store::net::tls::Remedies;

pub(super) type Fault = fault::Fault<Said>;

/// The remedy for missing rights.
pub(super) const RIGHTS: &str =
    "have an administrator grant this user tokenrun's commands and keys with ACL SETUSER";

/// What a server has said in place of an answer.
#[derive(Debug)]
pub(super) enum Said {
    /// An error.
    Answer {
        doing: Activity,
        /// The first word of the server's text.
        code: String,
        text: String,
    },
    /// Something else than was asked for.
    Nonsense(String),
    /// It follows another server, whose address this is.
    Replica(String),
    /// It removes tokens by this policy when its memory is full.
    Evicts(String),
    /// It is a member of a quorum for other nodes.
    Mixed,
}

impl Said {
    pub(super) fn answer(doing: Activity, error: &ServerError) -> Self {
        let code = error.code().to_owned();
        let text = error.details().unwrap_or_default();
        // Its first sentence, without the place in the script.
        let text = without_place(text).split(". ").next().unwrap_or_default();
        let text = text.trim_end_matches('.').replace(['\r', '\n'], " ");
        Self::Answer {
            doing,
            text: format!("{code} {text}"),
            code,
        }
    }

    /// True if the server has too many clients.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, Self::Answer { text, .. } if text.contains("max number of clients"))
    }

    fn remedy_of(&self, doing: Activity, code: &str, text: &str) -> Option<&'static str> {
        if doing == Activity::LoggingIn && text.contains("AUTH") {
            return Some("correct the user and the password in the URL, or REDISCLI_AUTH");
        }
        if is_denied_in_script(text) {
            return Some(RIGHTS);
        }
        if self.is_full() {
            return Some("end connections that CLIENT LIST shows, or raise maxclients");
        }
        if text.contains("DB index is out of range") {
            return Some("name a database that the server has (databases in redis.conf)");
        }
        if text.contains("unknown command") {
            return Some(
                "remove rename-command of EVAL, and of the commands that scripts call, from redis.conf",
            );
        }
        Some(match code {
            "BUSY" => "wait for the script that the server runs, or end it with SCRIPT KILL",
            "NOAUTH" => "give a password: in the URL, or by REDISCLI_AUTH",
            "WRONGPASS" => "correct the user and the password in the URL, or REDISCLI_AUTH",
            "NOPERM" => RIGHTS,
            "MISCONF" => "see the server's log: it can't write its data to the disk",
            "OOM" => "raise maxmemory, or remove what another program has stored there",
            "NOREPLICAS" => "see why its replicas do not follow (min-replicas-to-write)",
            "MOVED" | "ASK" | "CROSSSLOT" => {
                "name the node of the cluster that has tokenrun's keys, and its replicas"
            }
            "CLUSTERDOWN" => "see CLUSTER INFO: every slot needs a master that is up",
            "WRONGTYPE" => {
                "another program uses a key of tokenrun's: remove it, or give another ?prefix="
            }
            _ => return None,
        })
    }
}

impl fault::Said for Said {
    const TLS: Remedies = Remedies {
        not_offered: "have the server listen with TLS (tls-port), or write redis://",
        untrusted: "give the certificate of the authority that signed the server's as cacert",
        other: "correct the files of cacert, cert and key, or the server's TLS versions",
    };

    fn trouble(&self) -> Trouble {
        match self {
            Self::Answer { doing, code, text } => said_trouble(*doing, code, text),
            Self::Nonsense(_) => Trouble::Unavailable,
            Self::Replica(_) => Trouble::Refused,
            Self::Mixed | Self::Evicts(_) => Trouble::Misconfigured,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Answer { text, .. } => text.clone(),
            Self::Nonsense(what) => format!("it does not answer as Redis does: {what}"),
            Self::Evicts(policy) => format!(
                "when its memory is full it removes keys (maxmemory-policy {policy}), and it has done so, or its \
                 counters were reset: a token that is removed lets two nodes run the job"
            ),
            Self::Mixed => {
                "it is a server of a store whose address has ?quorum: nodes with that address and nodes with this one \
                 do not exclude each other"
                    .into()
            }
            Self::Replica(master) if master.len() < 2 => {
                "it is a replica, and tokens are written on a master".into()
            }
            Self::Replica(master) => {
                format!("it is a replica of {master}, and tokens are written on a master")
            }
        }
    }

    fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Answer { doing, code, text } => self.remedy_of(*doing, code, text),
            Self::Evicts(_) => Some(
                "CONFIG SET maxmemory-policy noeviction, and in redis.conf; then tokenrun distrust",
            ),
            Self::Mixed => {
                Some("give all nodes the same address, or give this one another ?prefix=")
            }
            Self::Nonsense(_) | Self::Replica(_) => None,
        }
    }

    fn is_elsewhere(&self) -> bool {
        match self {
            Self::Replica(_) => true,
            Self::Answer { code, .. } => matches!(
                code.as_str(),
                "READONLY"
                    | "MOVED"
                    | "ASK"
                    | "MASTERDOWN"
                    | "LOADING"
                    | "CLUSTERDOWN"
                    | "NOREPLICAS"
            ),
            Self::Nonsense(_) | Self::Mixed | Self::Evicts(_) => false,
        }
    }

    fn is_refusal(&self) -> bool {
        match self {
            Self::Answer { doing, .. } => *doing == Activity::Asking,
            Self::Replica(_) | Self::Mixed | Self::Evicts(_) => true,
            Self::Nonsense(_) => false,
        }
    }
}

/// An error without the name of the script and the line: `… script: HASH, on @user_script:4.`
fn without_place(text: &str) -> &str {
    let before = text.split_once(" script: ");
    match before {
        Some((before, after)) if is_place(after) => before,
        _ => text,
    }
}

fn is_place(text: &str) -> bool {
    let hash = text.bytes().take_while(u8::is_ascii_hexdigit).count();
    hash == 40
}

/// True if a command in a script was denied. Such an error has no code of its own: in Redis 7.0 it is
/// `ERR The user executing the script can't run this command or subcommand`, and in newer servers `ERR
/// ACL failure in script: User etl has no permissions to run the 'hset' command`.
fn is_denied_in_script(text: &str) -> bool {
    [
        "The user executing the script can't",
        "ACL failure in script",
    ]
    .iter()
    .any(|denied| text.contains(denied))
}

/// What an answer with an error means. A script stops at its first error, and the first write fails
/// if any does: nothing has happened.
fn said_trouble(doing: Activity, code: &str, text: &str) -> Trouble {
    match code {
        "NOAUTH" | "WRONGPASS" | "NOPERM" | "DENIED" => Trouble::Denied,
        "LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "BUSY" | "MISCONF" | "OOM"
        | "NOREPLICAS" | "READONLY" | "MOVED" | "ASK" | "NOSCRIPT" | "UNKILLABLE" | "UNBLOCKED" => {
            Trouble::Refused
        }
        _ if text.contains("max number of clients") => Trouble::Refused,
        _ if doing == Activity::LoggingIn && text.contains("AUTH") => Trouble::Denied,
        _ if is_denied_in_script(text) => Trouble::Denied,
        _ => Trouble::Misconfigured,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: &str, text: &str) -> Fault {
        Fault::Said(Said::Answer {
            doing: Activity::Asking,
            code: code.into(),
            text: format!("{code} {text}"),
        })
    }

    #[test]
    fn each_refusal_has_its_kind() {
        for (code, trouble) in [
            ("NOAUTH", Trouble::Denied),
            ("NOPERM", Trouble::Denied),
            ("MISCONF", Trouble::Refused),
            ("OOM", Trouble::Refused),
            ("LOADING", Trouble::Refused),
            ("CLUSTERDOWN", Trouble::Refused),
            ("NOREPLICAS", Trouble::Refused),
            ("NOSCRIPT", Trouble::Refused),
            ("READONLY", Trouble::Refused),
            ("WRONGTYPE", Trouble::Misconfigured),
            ("ERR", Trouble::Misconfigured),
        ] {
            let fault = said(code, "x");
            assert_eq!(fault.trouble(), trouble, "{code}");
            let error = fault.store_error("redis://h", "h:6379");
            assert!(error.what.contains(code), "{error}");
        }
    }

    #[test]
    fn each_answer_has_its_remedy() {
        use Trouble::{Denied, Misconfigured, Refused};
        let (asking, logging_in) = (Activity::Asking, Activity::LoggingIn);
        for (doing, text, trouble, remedy) in [
            (logging_in, "ERR AUTH x", Denied, "correct the user"),
            (asking, "ERR AUTH x", Misconfigured, ""),
            (logging_in, "ERR x", Misconfigured, ""),
            (asking, "ERR ACL failure in script: x", Denied, RIGHTS),
            (asking, "ERR max number of clients", Refused, "maxclients"),
            (
                asking,
                "ERR DB index is out of range",
                Misconfigured,
                "databases",
            ),
            (
                asking,
                "ERR unknown command 'eval'",
                Misconfigured,
                "rename-command",
            ),
            (asking, "BUSY x", Refused, "SCRIPT KILL"),
            (asking, "NOAUTH x", Denied, "give a password"),
            (asking, "WRONGPASS x", Denied, "correct the user"),
            (asking, "NOPERM x", Denied, RIGHTS),
            (asking, "MISCONF x", Refused, "the disk"),
            (asking, "OOM x", Refused, "maxmemory"),
            (asking, "NOREPLICAS x", Refused, "min-replicas-to-write"),
            (asking, "MOVED x", Refused, "node of the cluster"),
            (asking, "CLUSTERDOWN x", Refused, "CLUSTER INFO"),
            (asking, "WRONGTYPE x", Misconfigured, "?prefix="),
        ] {
            let (code, _) = text.split_once(' ').unwrap();
            let said = Said::Answer {
                doing,
                code: code.into(),
                text: text.into(),
            };
            assert_eq!(said.is_full(), remedy == "maxclients", "{text}");
            let fault = Fault::Said(said);
            assert_eq!(fault.trouble(), trouble, "{text}");
            assert_eq!(fault.is_refusal(), doing == asking, "{text}");
            let found = fault.remedy().unwrap_or_default();
            assert!(found.contains(remedy), "{text}: {found}");
            assert_eq!(found.is_empty(), remedy.is_empty(), "{text}: {found}");
        }
    }

    #[test]
    fn a_replica_names_its_master_if_it_knows_it() {
        let words = |master: &str| Fault::Said(Said::Replica(master.into())).words();
        assert!(words(":").starts_with("it is a replica, "));
        assert!(words(":1").starts_with("it is a replica of :1, "));
        assert!(Fault::Said(Said::Replica(":".into())).is_refusal());
        assert!(!Fault::Said(Said::Nonsense("x".into())).is_refusal());
    }

    #[test]
    fn an_error_in_a_script_is_said_without_its_place() {
        let place = "script: f8a2aa7f2a3f4a9a3f1e4c5a9a3f1e4c5a9a3f1e, on @user_script:4.";
        for (text, said) in [
            (
                format!("Wrong kind of value {place}"),
                "Wrong kind of value",
            ),
            (
                "ACL failure in script: User etl has no permissions".into(),
                "ACL failure in script: User etl has no permissions",
            ),
        ] {
            assert_eq!(without_place(&text), said);
        }
        let denied = said("ERR", "ACL failure in script: User etl has no permissions");
        assert_eq!(denied.trouble(), Trouble::Denied);
    }

    #[test]
    fn only_a_server_that_can_have_another_in_its_place_leads_to_the_next() {
        assert!(said("READONLY", "").is_elsewhere());
        assert!(said("NOREPLICAS", "").is_elsewhere());
        assert!(Fault::Said(Said::Replica("h:1".into())).is_elsewhere());
        assert!(!said("OOM", "").is_elsewhere());
        assert!(!said("NOPERM", "").is_elsewhere());
    }
}
