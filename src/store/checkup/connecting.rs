//! Connecting to a server: its name, its port, and why there is no connection. The kind of the fault shows how
//! far it got. Pure.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

use super::Check;
use super::rules::Facts;
use crate::store::net::deadline::{Activity, TimedOut};
use crate::store::net::fault::{Fault, Said};
use crate::store::net::host::{Host, Place};

/// What to do about a server that is connected and silent.
const SILENT: &str = "{see} whether the server is stopped, overloaded or out of disk, and whether it is {product} \
                      that listens there";

/// The name of a server, once its addresses are known.
pub(super) fn name(host: &Host, addresses: &[SocketAddr]) -> Option<Check> {
    let Place::Tcp { to, .. } = &host.place else {
        return None;
    };
    if to.parse::<IpAddr>().is_ok() {
        return Some(Check::fine("name", format!("{to} is an address")));
    }
    let ips: Vec<String> = addresses.iter().map(|it| it.ip().to_string()).collect();
    let found = format!("{to} is {}", ips.join(", "));
    (!ips.is_empty()).then(|| Check::fine("name", found))
}

/// The check that a connection was made, to one of these addresses or a Unix socket.
pub(super) fn connected(host: &Host, addresses: &[SocketAddr]) -> Check {
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let to = match addresses.as_slice() {
        [] => host.to_string(),
        several => several.join(" or "),
    };
    Check::fine("port", format!("connected to {to}"))
}

/// The check that failed, after the port's if that is open. `refused`: the step at which a log-in was refused, and
/// what to do.
pub(super) fn failed<S: Said>(
    facts: &mut Facts,
    host: &Host,
    addresses: &[SocketAddr],
    fault: &Fault<S>,
    refused: impl Fn(&S) -> (&'static str, &'static str),
) -> Vec<Check> {
    let (step, remedy) = match fault {
        Fault::Said(said) => refused(said),
        Fault::Tls(why, _) => ("tls", why.remedy(&S::TLS)),
        Fault::Settings(_) => ("tls", "correct the store's settings"),
        Fault::TimedOut(TimedOut { doing, .. }) => unreached(*doing, host, ErrorKind::TimedOut),
        Fault::Io(doing, error) => unreached(*doing, host, error.kind()),
    };
    facts.set("words", fault.words());
    // Several servers are named before each of their checks.
    facts.set(
        "at",
        if facts.has("several") {
            String::new()
        } else {
            format!("{host}: ")
        },
    );
    let found = match (fault, step) {
        (Fault::Said(_), "login" | "authentication") => "as {user} to {database}: {words}",
        (Fault::Tls(..) | Fault::Settings(_), _) => "{words}",
        _ => "{at}{words}",
    };
    let check = Check::fail(step, fault.trouble(), facts.fill(found), facts.fill(remedy));
    let is_open = !["name", "port"].contains(&step) && !matches!(fault, Fault::Settings(_));
    let port = is_open.then(|| connected(host, addresses));
    port.into_iter().chain([check]).collect()
}

/// The step at which a server did not answer, or the connection ended, and what to do.
fn unreached(doing: Activity, host: &Host, kind: ErrorKind) -> (&'static str, &'static str) {
    match (doing, kind) {
        (Activity::LookingUp, _) => (
            "name",
            "correct the host in the store, or {see} whether this host's name servers know it (getent hosts)",
        ),
        (Activity::Connecting, ErrorKind::TimedOut) => (
            "port",
            "{see} whether the host is up and no firewall in between drops what is sent there",
        ),
        (Activity::Connecting, ErrorKind::PermissionDenied) if host.is_unix() => (
            "port",
            "let this user search the directory of the socket and write to it",
        ),
        (Activity::Connecting, _) if host.is_unix() => (
            "port",
            "{see} whether the server runs, and has its socket there {socket}",
        ),
        (Activity::Connecting, ErrorKind::ConnectionRefused) => (
            "port",
            "{see} whether the server runs and listens there ({listens})",
        ),
        (Activity::Connecting, _) => ("port", "{see} whether the host is up and reached from here"),
        (Activity::Securing, _) => ("tls", SILENT),
        (Activity::LoggingIn | Activity::Asking, _) => ("login", SILENT),
    }
}
