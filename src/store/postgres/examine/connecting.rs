//! Connecting to a server: its name, its port, TLS, and the login. The kinds of the driver's errors
//! and the server's codes identify a failure; the server's own views describe a connection.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

use super::limits::Between;
use super::server::{Over, Server};
use super::server::{flag, text};
use crate::store::Trouble;
use crate::store::checkup::Check;
use crate::store::net::deadline::{Activity, TimedOut};
use crate::store::net::fault::Said as _;
use crate::store::net::host::{Host, Place};
use crate::store::postgres::conninfo::settings::{Settings, SslMode};
use crate::store::postgres::fault::{Fault, Said};

const VERIFY: &str =
    "set sslmode=verify-full with sslrootcert, the file of the authority that signed (or system)";

const TLS: &str = include_str!("../../sql/postgres/doctor_tls.sql");
const AUTHENTICATION: &str = include_str!("../../sql/postgres/doctor_authentication.sql");

/// The first release that reports the authentication method, as `server_version_num`.
const TELLS_METHOD: i32 = 160_000;

/// The name of a server, once its addresses are known.
pub(super) fn name(host: &Host, addresses: &[SocketAddr]) -> Option<Check> {
    let Place::Tcp { to, .. } = &host.place else {
        return None;
    };
    if to.parse::<IpAddr>().is_ok() {
        return Some(Check::fine("name", format!("{to} is an address")));
    }
    let addresses: Vec<String> = addresses.iter().map(|it| it.ip().to_string()).collect();
    let found = format!("{to} is {}", addresses.join(", "));
    (!addresses.is_empty()).then(|| Check::fine("name", found))
}

/// The check that a connection was made.
pub(super) fn connected(to: &str) -> Check {
    Check::fine("port", format!("connected to {to}"))
}

/// The peer of a connection: one of these addresses, or a Unix socket.
pub(super) fn peer(host: &Host, addresses: &[SocketAddr]) -> String {
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    match addresses.as_slice() {
        [] => host.to_string(),
        several => several.join(" or "),
    }
}

/// The check that failed, after those that passed: the kind of fault shows how far it got.
pub(super) fn failed(
    settings: &Settings,
    host: &Host,
    addresses: &[SocketAddr],
    fault: &Fault,
) -> Vec<Check> {
    let check = failure(settings, host, fault);
    match fault {
        Fault::TimedOut(TimedOut {
            doing: Activity::LookingUp | Activity::Connecting,
            ..
        })
        | Fault::Io(..)
        | Fault::Settings(_) => vec![check],
        Fault::TimedOut(_) | Fault::Said(_) | Fault::Tls(..) => {
            vec![connected(&peer(host, addresses)), check]
        }
    }
}

fn failure(settings: &Settings, host: &Host, fault: &Fault) -> Check {
    let trouble = fault.trouble();
    let words = fault.words();
    // With several servers each check names its own.
    let host_words = match settings.servers.hosts.len() {
        1 => format!("{host}: "),
        _ => String::new(),
    };
    match fault {
        Fault::TimedOut(TimedOut {
            doing: Activity::LookingUp,
            ..
        })
        | Fault::Io(Activity::LookingUp, _) => Check::fail(
            "name",
            trouble,
            format!("{host_words}{words}"),
            "correct the host in the store, or check whether this host's name servers know it (getent hosts)",
        ),
        Fault::TimedOut(TimedOut {
            doing: Activity::Connecting,
            ..
        }) => Check::fail(
            "port",
            trouble,
            format!("{host_words}{words}"),
            "check whether the host is up and no firewall in between drops what is sent there",
        ),
        Fault::Io(_, error) => Check::fail(
            "port",
            trouble,
            format!("{host_words}{words}"),
            port_remedy(host, error.kind()),
        ),
        Fault::TimedOut(..) => Check::fail(
            "login",
            trouble,
            format!("{host_words}{words}"),
            "check whether the server is stopped, overloaded or out of disk, and whether it is PostgreSQL \
             that listens there",
        ),
        Fault::Tls(why, _) => Check::fail("tls", trouble, words, why.remedy(&Said::TLS)),
        Fault::Settings(_) => Check::fail("tls", trouble, words, "correct the store's settings"),
        Fault::Said(Said::Standby) => Check::fail("server", trouble, words, "name the primary"),
        Fault::Said(said) => refused(settings, said, trouble, &words),
    }
}

fn port_remedy(host: &Host, kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::PermissionDenied if host.is_unix() => {
            "let this user search the directory of the socket and write to it"
        }
        _ if host.is_unix() => {
            "check whether the server runs, and has its socket there (unix_socket_directories, port)"
        }
        ErrorKind::ConnectionRefused => {
            "check whether the server runs and listens there (listen_addresses, port)"
        }
        _ => "check whether the host is up and reached from here",
    }
}

/// The server or the driver refused.
fn refused(settings: &Settings, said: &Said, trouble: Trouble, words: &str) -> Check {
    let code = said.code().map_or("", |code| code.code());
    let (step, remedy) = match code {
        "28P01" => (
            "authentication",
            "correct the password (~/.pgpass, PGPASSWORD, --store-file)",
        ),
        _ if code.starts_with("28") => (
            "authentication",
            "make the role, or let it in from this host in the server's pg_hba.conf",
        ),
        "3D000" => (
            "login",
            "make the database, or correct its name in the store",
        ),
        "53300" => (
            "login",
            "raise max_connections, or put a pooler in transaction mode in between",
        ),
        "57P03" => ("login", "wait until the server has started, or see its log"),
        "42501" => ("login", "GRANT CONNECT ON DATABASE … TO the role"),
        "" if matches!(said, Said::Unable(_)) => (
            "authentication",
            "give a password in ~/.pgpass, PGPASSWORD or --store-file, and a method that tokenrun \
             knows (scram-sha-256) in pg_hba.conf",
        ),
        "" => (
            "login",
            "check whether it is PostgreSQL that listens there, and the server's log",
        ),
        _ => ("login", "see the server's log"),
    };
    let found = format!("as {} to {}: {words}", settings.user, settings.dbname);
    Check::fail(step, trouble, found, remedy)
}

/// An existing connection, as far as TLS and the login are concerned.
pub(super) struct Made {
    is_unix: bool,
    is_loopback: bool,
    is_secured: bool,
    between: Between,
}

impl Made {
    /// Over a Unix socket there is no `peer`.
    pub(super) fn new(peer: Option<SocketAddr>, is_secured: bool, between: Between) -> Self {
        Self {
            is_unix: peer.is_none(),
            is_loopback: peer.is_some_and(|peer| peer.ip().is_loopback()),
            is_secured,
            between,
        }
    }

    /// Whether no third party can read the traffic.
    const fn is_private(&self) -> bool {
        self.is_unix || self.is_loopback || self.is_secured
    }
}

/// Checks TLS and the authentication method. `release` is the server's `server_version_num`.
pub(super) fn examine(
    server: &mut Server<'_, '_>,
    settings: &Settings,
    made: &Made,
    release: i32,
) -> Result<(), Over> {
    let mut protocol = None;
    // Behind a pooler the server knows only the pooler's own connection.
    if made.is_secured && made.between == Between::Nothing {
        let row = server.ask_aside("tls", TLS)?;
        let row = row.filter(|row| flag(row, "ssl"));
        protocol = row.map(|row| text(&row, "version"));
    }
    server.tell(tls(settings, made, protocol.as_deref()));
    let mut asked = Asked::Unknown;
    if release >= TELLS_METHOD && made.between != Between::Pooler {
        let Some(row) = server.ask_aside("authentication", AUTHENTICATION)? else {
            return Ok(());
        };
        asked = match text(&row, "method") {
            none if none.is_empty() => Asked::Nothing,
            method => Asked::By(method),
        };
    }
    server.tell(authentication(made, &asked));
    Ok(())
}

/// `protocol`: the server's own report of the connection.
fn tls(settings: &Settings, made: &Made, protocol: Option<&str>) -> Check {
    const STEP: &str = "tls";
    if made.is_unix {
        return Check::fine(STEP, "none: a Unix socket needs none");
    }
    if !made.is_secured {
        if made.is_loopback {
            return Check::fine(STEP, "none; the connection does not leave this host");
        }
        return Check::warn(
            STEP,
            "none: what is sent can be read and changed on its way; whether the server has none, or \
             TLS was tried and failed, can't be known",
            format!(
                "set ssl = on on the server, and {VERIFY}: a TLS failure then ends the login with its reason"
            ),
        );
    }
    let protocol = protocol.unwrap_or("TLS, of which version can't be known");
    let end = "when its certificate ends can't be known";
    match settings.tls.mode {
        _ if settings.tls.roots.is_none() => Check::warn(
            STEP,
            format!(
                "{protocol}; the certificate is not verified: another server could have answered; {end}"
            ),
            VERIFY,
        ),
        SslMode::VerifyFull => Check::fine(
            STEP,
            format!("{protocol}; the certificate was checked, and its name; {end}"),
        ),
        SslMode::VerifyCa | SslMode::Require => Check::fine(
            STEP,
            format!("{protocol}; the certificate was checked, but not its name; {end}"),
        ),
        SslMode::Prefer | SslMode::Allow | SslMode::Disable => Check::warn(
            STEP,
            format!(
                "{protocol}; the certificate was checked, but a connection without TLS would do as well; {end}"
            ),
            VERIFY,
        ),
    }
}

/// How the server authenticated this client.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Asked {
    /// The server does not report it.
    Unknown,
    /// It required nothing.
    Nothing,
    /// By this method of `pg_hba.conf`.
    By(String),
}

fn authentication(made: &Made, asked: &Asked) -> Check {
    const STEP: &str = "authentication";
    const NO_TRUST: &str =
        "set scram-sha-256 in the server's pg_hba.conf, and a password in ~/.pgpass";
    let method = match asked {
        Asked::By(method) => method.as_str(),
        Asked::Nothing if made.is_unix => {
            return Check::fine(STEP, "the method is trust");
        }
        Asked::Nothing => {
            let found = "the method is trust: every client that reaches the server is let in";
            return Check::warn(STEP, found, NO_TRUST);
        }
        Asked::Unknown if made.between == Between::Pooler => {
            return Check::unknown(
                STEP,
                "a pooler is in between: its authentication method can't be known",
                "see auth_type in the pooler's configuration: scram-sha-256 is good",
            );
        }
        Asked::Unknown => {
            return Check::unknown(
                STEP,
                "the authentication method can't be known: PostgreSQL tells it since version 16",
                "see its pg_hba.conf (the view pg_hba_file_rules): scram-sha-256 is good, and trust \
                 lets in every client",
            );
        }
    };
    let found = format!("the method is {method}");
    match method {
        "md5" => Check::warn(
            STEP,
            found,
            "set password_encryption = scram-sha-256, set the password again, and set \
             scram-sha-256 in pg_hba.conf",
        ),
        "password" | "ldap" | "pam" | "bsd" | "radius" if !made.is_private() => Check::warn(
            STEP,
            format!("{found}, and the password was sent where it can be read"),
            "set scram-sha-256 in the server's pg_hba.conf, or TLS",
        ),
        _ => Check::fine(STEP, found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::checkup::Verdict;
    use crate::store::checkup::pinned::pin;
    use crate::store::net::tls::{Insecure, Roots};
    use std::io::Error;
    use std::time::Duration;

    fn made(peer: &str, is_secured: bool, between: Between) -> Made {
        Made::new(peer.parse().ok(), is_secured, between)
    }

    fn said(made: &Made, method: &str) -> Verdict {
        authentication(made, &Asked::By(method.to_owned())).verdict
    }

    #[test]
    fn an_authentication_method_is_judged_by_where_the_password_can_be_read() {
        let open = made("192.0.2.1:5432", false, Between::Nothing);
        let secured = made("192.0.2.1:5432", true, Between::Nothing);
        let unix = made("", false, Between::Unknown);
        for (method, openly, securely) in [
            ("scram-sha-256", Verdict::Fine, Verdict::Fine),
            ("cert", Verdict::Fine, Verdict::Fine),
            ("peer", Verdict::Fine, Verdict::Fine),
            ("md5", Verdict::Warn, Verdict::Warn),
            ("password", Verdict::Warn, Verdict::Fine),
            ("ldap", Verdict::Warn, Verdict::Fine),
        ] {
            assert_eq!(said(&open, method), openly, "{method}");
            assert_eq!(said(&secured, method), securely, "{method}");
        }
        let nothing = |made| authentication(made, &Asked::Nothing).verdict;
        assert_eq!(nothing(&open), Verdict::Warn);
        assert_eq!(nothing(&secured), Verdict::Warn);
        assert_eq!(nothing(&unix), Verdict::Fine);
    }

    #[test]
    fn an_authentication_method_that_is_not_reported_is_unknown() {
        let old = made("127.0.0.1:5432", false, Between::Nothing);
        let pooled = made("127.0.0.1:6432", false, Between::Pooler);
        for (made, word) in [(old, "since version 16"), (pooled, "a pooler")] {
            let check = authentication(&made, &Asked::Unknown);
            assert_eq!(check.verdict, Verdict::Unknown);
            assert!(check.found.contains(word), "{check:?}");
        }
    }

    #[test]
    fn what_is_said_of_a_connection_is_pinned() {
        let parse = |text: &str| crate::store::postgres::settings(text, "test").unwrap();
        let far = "192.0.2.1:5432";
        let pooled = Between::Pooler;
        let nothing = Between::Nothing;
        let mut cases = Vec::new();
        for (name, made) in [
            ("unix", made("", false, Between::Unknown)),
            ("here", made("127.0.0.1:5432", false, nothing)),
            ("plain", made(far, false, nothing)),
            ("secured", made(far, true, nothing)),
            ("pooled", made(far, true, pooled)),
        ] {
            use SslMode::{Prefer, Require, VerifyCa, VerifyFull};
            for mode in [Prefer, Require, VerifyCa, VerifyFull] {
                let mut settings = parse("host=db sslmode=prefer user=u dbname=d");
                settings.tls.mode = mode;
                for roots in [None, Some(Roots::System)] {
                    let protocol = (name == "secured").then_some("TLSv1.3");
                    let case = format!("{name}, {mode:?}, {roots:?}");
                    settings.tls.roots = roots;
                    cases.push((case, vec![tls(&settings, &made, protocol)]));
                }
            }
            let asked = [Asked::Unknown, Asked::Nothing].into_iter();
            let methods = ["scram-sha-256", "md5", "password", "ldap"];
            let all = asked.chain(methods.map(|it| Asked::By(it.to_owned())));
            for asked in all {
                cases.push((
                    format!("{name}, {asked:?}"),
                    vec![authentication(&made, &asked)],
                ));
            }
        }
        pin("postgres_connection", cases);
    }

    fn faults() -> Vec<(&'static str, Fault)> {
        let late = |doing| {
            let after = Duration::from_secs(10);
            Fault::TimedOut(TimedOut { doing, after })
        };
        let broken = |doing, kind| Fault::Io(doing, Error::from(kind));
        vec![
            ("late look-up", late(Activity::LookingUp)),
            ("look-up", broken(Activity::LookingUp, ErrorKind::NotFound)),
            ("late", late(Activity::Connecting)),
            (
                "refused",
                broken(Activity::Connecting, ErrorKind::ConnectionRefused),
            ),
            (
                "denied",
                broken(Activity::Connecting, ErrorKind::PermissionDenied),
            ),
            ("gone", broken(Activity::Connecting, ErrorKind::NotFound)),
            ("late log-in", late(Activity::LoggingIn)),
            ("no TLS", Fault::Tls(Insecure::NotOffered, "none".into())),
            ("untrusted", Fault::Tls(Insecure::Untrusted, "bad".into())),
            ("settings", Fault::Settings("impossible".into())),
        ]
    }

    #[test]
    fn what_is_said_of_a_connection_that_failed_is_pinned() {
        let mut cases = Vec::new();
        for url in [
            "host=db1 port=7 user=etl dbname=jobs",
            "host=/run/pg port=7 user=etl dbname=jobs",
            "host=db1,db2 port=7 user=etl dbname=jobs",
        ] {
            let settings = crate::store::postgres::settings(url, "test").unwrap();
            let host = settings.servers.hosts[0].clone();
            let addresses = match host.is_unix() {
                true => vec![],
                false => ["10.0.0.1:7", "10.0.0.2:7"]
                    .map(|it| it.parse().unwrap())
                    .to_vec(),
            };
            cases.extend([(
                url.to_owned(),
                name(&host, &addresses).into_iter().collect(),
            )]);
            for (name, fault) in faults() {
                let checks = failed(&settings, &host, &addresses, &fault);
                cases.push((format!("{url}: {name}"), checks));
            }
        }
        pin("postgres_connecting", cases);
    }

    #[test]
    fn the_tls_check_says_what_is_unknown_of_the_certificate() {
        let parse = |text: &str| crate::store::postgres::settings(text, "test").unwrap();
        let settings = parse("host=db sslmode=require user=u dbname=d");
        let direct = made("192.0.2.1:5432", true, Between::Nothing);
        let check = tls(&settings, &direct, Some("TLSv1.3"));
        for word in ["TLSv1.3", "when its certificate ends can't be known"] {
            assert!(check.found.contains(word), "{check:?}");
        }
        let pooled = made("192.0.2.1:6432", true, Between::Pooler);
        let check = tls(&settings, &pooled, None);
        assert!(
            check.found.contains("which version can't be known"),
            "{check:?}"
        );
        let plain = made("192.0.2.1:5432", false, Between::Nothing);
        let check = tls(&settings, &plain, None);
        assert_eq!(check.verdict, Verdict::Warn);
        assert!(
            check.found.contains("tried and failed, can't be known"),
            "{check:?}"
        );
    }
}
