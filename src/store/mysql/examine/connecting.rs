//! Connecting to a server: its name, its port, TLS, and the login. The kinds of the faults and the
//! server's numbers identify a failure.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

use super::super::fault::{Fault, Said, code};
use super::super::link::Session;
use super::super::settings::{Settings, SslMode};
use crate::store::checkup::Check;
use crate::store::net::deadline::{Activity, TimedOut};
use crate::store::net::dial::ends;
use crate::store::net::fault::Said as _;
use crate::store::net::host::{Host, Place};

/// The name of a server, once its addresses are known.
pub(super) fn name(host: &Host, addresses: &[SocketAddr]) -> Option<Check> {
    let Place::Tcp { to: name, .. } = &host.place else {
        return None;
    };
    if name.parse::<IpAddr>().is_ok() {
        return Some(Check::fine("name", format!("{name} is an address")));
    }
    let addresses: Vec<String> = addresses.iter().map(|it| it.ip().to_string()).collect();
    let found = format!("{name} is {}", addresses.join(", "));
    (!addresses.is_empty()).then(|| Check::fine("name", found))
}

/// The check that a connection was made.
pub(super) fn connected(host: &Host, connection: &Session) -> Check {
    let peer = connection
        .link()
        .and_then(|link| Some(ends(&link.socket)?.peer));
    let to = peer.map_or_else(|| host.to_string(), |peer| peer.to_string());
    Check::fine("port", format!("connected to {to}"))
}

/// Whether others can read the traffic, and who the server is.
pub(super) fn tls(settings: &Settings, host: &Host, connection: &Session) -> Check {
    const STEP: &str = "tls";
    const VERIFY: &str = "have ssl-mode=VERIFY_IDENTITY with ssl-ca, the file of the authority that \
                          signed the server's certificate";
    if host.is_unix() {
        return Check::fine(STEP, "a Unix socket, which no other host can read");
    }
    let peer = connection
        .link()
        .and_then(|link| Some(ends(&link.socket)?.peer));
    let is_loopback = peer.is_some_and(|peer| peer.ip().is_loopback());
    let is_secured = connection.link().is_some_and(|link| link.secured);
    match (is_secured, settings.tls.mode) {
        (true, SslMode::VerifyCa | SslMode::VerifyIdentity) => {
            Check::fine(STEP, "on, and the server's certificate is verified")
        }
        _ if is_loopback => Check::fine(STEP, "the connection does not leave this host"),
        (true, _) => Check::warn(
            STEP,
            "on, but the server's certificate is not verified: any server in between could read \
             and change everything",
            VERIFY,
        ),
        (false, _) => Check::warn(
            STEP,
            "off: everybody in between can read and change everything",
            VERIFY,
        ),
    }
}

/// The check that failed, after those that passed: the kind of fault shows how far it got.
pub(super) fn failed(settings: &Settings, host: &Host, fault: &Fault) -> Vec<Check> {
    let check = failure(settings, host, fault);
    let got_far = match fault {
        Fault::TimedOut(TimedOut { doing, .. }) | Fault::Io(doing, _) => {
            !matches!(doing, Activity::LookingUp | Activity::Connecting)
        }
        Fault::Settings(_) => false,
        Fault::Said(_) | Fault::Tls(..) => true,
    };
    let connected = got_far.then(|| Check::fine("port", format!("connected to {host}")));
    connected.into_iter().chain([check]).collect()
}

fn failure(settings: &Settings, host: &Host, fault: &Fault) -> Check {
    // Several servers are named before each of their checks.
    let words = match settings.servers.hosts.len() {
        1 => format!("{host}: {}", fault.words()),
        _ => fault.words(),
    };
    let (step, remedy) = match fault {
        Fault::TimedOut(TimedOut {
            doing: Activity::LookingUp,
            ..
        })
        | Fault::Io(Activity::LookingUp, _) => (
            "name",
            "correct the host in the store, or see whether this host's name servers know it (getent hosts)",
        ),
        Fault::TimedOut(TimedOut {
            doing: Activity::Connecting,
            ..
        }) => (
            "port",
            "see whether the host is up and no firewall in between drops what is sent there",
        ),
        Fault::Io(Activity::Connecting, error) => ("port", port_remedy(host, error.kind())),
        Fault::TimedOut(..) | Fault::Io(..) => (
            "login",
            "see whether the server is stopped, overloaded or out of disk, and whether it is MySQL or \
             MariaDB that listens there",
        ),
        Fault::Tls(why, _) => ("tls", why.remedy(&Said::TLS)),
        Fault::Settings(_) => ("tls", "correct the store's settings"),
        Fault::Said(Said::ReadOnly) => ("server", "name the server that accepts writes"),
        Fault::Said(Said::Login(_)) => (
            "authentication",
            "connect with TLS (ssl-mode) or over a Unix socket, or have another plugin for the user",
        ),
        Fault::Said(Said::Server { code, .. }) => match *code {
            code::UNKNOWN_DATABASE => (
                "login",
                "make the database, or correct its name in the store",
            ),
            1044 => ("login", "GRANT the user rights on the database"),
            number if code::NO_CONNECTION.contains(&number) => {
                ("login", "raise max_connections, or the limit of the user")
            }
            number if code::DENIED.contains(&number) => (
                "authentication",
                "correct the user and the password (~/.my.cnf, MYSQL_PWD, --store-file), or have the \
                 user let in from this host",
            ),
            _ => ("login", "see the server's log"),
        },
    };
    let found = match step {
        "login" | "authentication" => {
            format!("as {} to {}: {words}", settings.user, settings.database)
        }
        _ => words,
    };
    Check::fail(step, fault.trouble(), found, remedy)
}

fn port_remedy(host: &Host, kind: ErrorKind) -> &'static str {
    let is_unix = host.is_unix();
    match kind {
        ErrorKind::PermissionDenied if is_unix => {
            "let this user search the directory of the socket and write to it"
        }
        _ if is_unix => {
            "see whether the server runs, and has its socket there (socket); a name other than \
             localhost, or a port, connects by TCP"
        }
        ErrorKind::ConnectionRefused => {
            "see whether the server runs and listens there (bind-address, port)"
        }
        _ => "see whether the host is up and reached from here",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::checkup::pinned::pin;
    use crate::store::net::tls::Insecure;
    use std::io::Error;
    use std::time::Duration;

    fn faults() -> Vec<(&'static str, Fault)> {
        let late = |doing| {
            let after = Duration::from_secs(10);
            Fault::TimedOut(TimedOut { doing, after })
        };
        let broken = |doing, kind| Fault::Io(doing, Error::from(kind));
        let said = |code| {
            Fault::Said(Said::Server {
                code,
                state: None,
                message: "no".into(),
            })
        };
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
            (
                "cut",
                broken(Activity::LoggingIn, ErrorKind::ConnectionReset),
            ),
            ("no TLS", Fault::Tls(Insecure::NotOffered, "none".into())),
            ("untrusted", Fault::Tls(Insecure::Untrusted, "bad".into())),
            ("settings", Fault::Settings("impossible".into())),
            ("database", said(code::UNKNOWN_DATABASE)),
            ("rights", said(1044)),
            ("full", said(1040)),
            ("password", said(1045)),
            ("another", said(1)),
            ("plugin", Fault::Said(Said::Login("no way".into()))),
        ]
    }

    #[test]
    fn what_is_said_of_a_connection_that_failed_is_pinned() {
        let mut cases = Vec::new();
        for url in [
            "mysql://etl@db1:7/jobs",
            "mysql://etl@/jobs?socket=/run/mysql.sock",
            "mysql://etl@db1:7,db2:7/jobs",
        ] {
            let settings = crate::store::mysql::settings(url, "test").unwrap();
            let host = settings.servers.hosts[0].clone();
            for (name, fault) in faults() {
                cases.push((format!("{url}: {name}"), failed(&settings, &host, &fault)));
            }
        }
        pin("mysql_connecting", cases);
    }
}
