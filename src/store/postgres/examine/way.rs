//! The way to a server: its name, its port, TLS, and being let in.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::is_unix;
use crate::store::Trouble;
use crate::store::checkup::Check;
use crate::store::postgres::conninfo::settings::{Address, Host, Settings, SslMode};
use crate::store::postgres::fault::{Doing, Fault};
use crate::store::postgres::witness::{Asked, Seen, Shown};

/// A certificate is to be renewed in time.
const RENEW_BEFORE: Duration = Duration::from_secs(14 * 24 * 3_600);

const VERIFY: &str =
    "have sslmode=verify-full with sslrootcert, the file of the authority that signed (or system)";

/// What was met, and what ended it, if anything did.
pub(super) fn checks(
    settings: &Settings,
    host: &Host,
    seen: &Seen,
    fault: Option<&Fault>,
) -> Vec<Check> {
    let mut checks = Vec::new();
    checks.extend(name(host, seen));
    if let Some(to) = &seen.connected {
        checks.push(Check::fine(
            "port",
            format!("connected to {to}{}", before(seen)),
        ));
    }
    match fault {
        Some(fault) => {
            let check = failed(settings, host, seen, fault);
            if check.step == "authentication" {
                checks.push(tls(settings, host, seen));
            }
            checks.push(check);
        }
        None => {
            checks.push(tls(settings, host, seen));
            checks.push(authentication(settings, host, seen));
            let (user, database) = (&settings.user, &settings.dbname);
            checks.push(Check::fine("login", format!("as {user} to {database}")));
        }
    }
    checks
}

/// The addresses that came before the one that is told.
fn before(seen: &Seen) -> String {
    let told = match (&seen.connected, seen.failed.last()) {
        (Some(to), _) => to.clone(),
        (None, Some((last, _))) => last.to_string(),
        (None, None) => return String::new(),
    };
    let others = seen.failed.iter();
    others
        .filter(|(address, _)| address.to_string() != told)
        .map(|(address, why)| format!("; before it {address}: {why}"))
        .collect()
}

fn name(host: &Host, seen: &Seen) -> Option<Check> {
    let Address::Tcp { to, .. } = &host.address else {
        return None;
    };
    if to.parse::<IpAddr>().is_ok() {
        return Some(Check::fine("name", format!("{to} is an address")));
    }
    let addresses: Vec<String> = seen
        .addresses
        .iter()
        .map(|address| address.ip().to_string())
        .collect();
    let found = format!("{to} is {}", addresses.join(", "));
    (!addresses.is_empty()).then(|| Check::fine("name", found))
}

fn failed(settings: &Settings, host: &Host, seen: &Seen, fault: &Fault) -> Check {
    let trouble = fault.trouble();
    let words = fault.words();
    // Among several the server is told with every check.
    let host_words = match settings.hosts.len() {
        1 => format!("{host}: "),
        _ => String::new(),
    };
    match fault {
        Fault::TimedOut(Doing::LookingUp, _) | Fault::Io(Doing::LookingUp, _) => Check::fail(
            "name",
            trouble,
            format!("{host_words}{words}"),
            "correct the host in the store, or see whether this host's name servers know it (getent hosts)",
        ),
        Fault::TimedOut(Doing::Connecting, _) => Check::fail(
            "port",
            trouble,
            format!("{host_words}{words}{}", before(seen)),
            "see whether the host is up and no firewall in between drops what is sent there",
        ),
        Fault::Io(_, error) => Check::fail(
            "port",
            trouble,
            format!("{host_words}{words}{}", before(seen)),
            port_remedy(host, error.kind()),
        ),
        Fault::TimedOut(..) => hanging(seen, &format!("{host_words}{words}"), trouble),
        Fault::Tls(_) => Check::fail(
            "tls",
            trouble,
            format!("{words}{}", certificate_of(seen)),
            tls_remedy(&words, seen),
        ),
        Fault::Settings(_) => Check::fail("tls", trouble, words, "correct the store's settings"),
        Fault::Standby => Check::fail("server", trouble, words, "name the primary"),
        Fault::Driver(_) => refused(settings, seen, fault),
    }
}

fn port_remedy(host: &Host, kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::PermissionDenied if is_unix(host) => {
            "let this user search the directory of the socket and write to it"
        }
        _ if is_unix(host) => {
            "see whether the server runs, and has its socket there (unix_socket_directories, port)"
        }
        ErrorKind::ConnectionRefused => {
            "see whether the server runs and listens there (listen_addresses, port)"
        }
        _ => "see whether the host is up and reached from here",
    }
}

fn hanging(seen: &Seen, words: &str, trouble: Trouble) -> Check {
    let said = match (seen.spoke, seen.protocol) {
        (false, None) => "it said nothing at all",
        (_, None) => "it spoke, but did not come to an end",
        (_, Some(_)) => "TLS was set up before",
    };
    Check::fail(
        "login",
        trouble,
        format!("{words}; {said}"),
        "see whether the server is stopped, overloaded or out of disk, and whether it is PostgreSQL \
         that listens there",
    )
}

/// The server or the driver said no.
fn refused(settings: &Settings, seen: &Seen, fault: &Fault) -> Check {
    let trouble = fault.trouble();
    let words = fault.words();
    let code = fault.code().map_or("", |code| code.code());
    let (step, remedy) = match code {
        "28P01" => (
            "authentication",
            "correct the password (~/.pgpass, PGPASSWORD, --store-file)",
        ),
        _ if code.starts_with("28") => (
            "authentication",
            "have the role made, or let it in from here in the server's pg_hba.conf",
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
        "" if trouble == Trouble::Denied => (
            "authentication",
            "give a password in ~/.pgpass, PGPASSWORD or --store-file, and a method that tokenrun \
             knows (scram-sha-256) in pg_hba.conf",
        ),
        "" => (
            "login",
            "see whether it is PostgreSQL that listens there, and the server's log",
        ),
        _ => ("login", "see the server's log"),
    };
    let asked = seen.asked.map_or_else(String::new, |asked| {
        format!("; it asked {}", asked_words(asked))
    });
    let who = format!("as {} to {}: ", settings.user, settings.dbname);
    Check::fail(step, trouble, format!("{who}{words}{asked}"), remedy)
}

fn certificate_of(seen: &Seen) -> String {
    seen.certificate.as_ref().map_or_else(String::new, |shown| {
        let Shown {
            subject,
            issuer,
            until,
            ..
        } = shown;
        format!("; its certificate is of {subject:?}, signed by {issuer:?}, good until {until}")
    })
}

fn tls_remedy(words: &str, seen: &Seen) -> String {
    let has = |part: &str| words.contains(part);
    if has("does not support TLS") {
        return "set ssl = on and a certificate on the server; sslmode=prefer does without".into();
    }
    if has("not valid for name") || has("NotValidForName") {
        return "connect by a name that the certificate has, or have one made for this name".into();
    }
    if has("expired") || has("Expired") {
        return "renew the server's certificate, or correct this host's clock".into();
    }
    match &seen.certificate {
        Some(shown) => format!(
            "give the certificate of {:?} as sslrootcert, or have the server's signed by who is in there",
            shown.issuer
        ),
        None => {
            "correct the files of sslrootcert, sslcert and sslkey, or the server's TLS versions"
                .into()
        }
    }
}

fn is_loopback(seen: &Seen) -> bool {
    let to = seen
        .connected
        .as_deref()
        .and_then(|to| to.parse::<SocketAddr>().ok());
    to.is_some_and(|to| to.ip().is_loopback())
}

fn tls(settings: &Settings, host: &Host, seen: &Seen) -> Check {
    const STEP: &str = "tls";
    if is_unix(host) {
        return Check::fine(STEP, "none: a Unix socket needs none");
    }
    let Some(protocol) = seen.protocol else {
        if seen.certificate.is_some() {
            return Check::warn(
                STEP,
                format!(
                    "none, because TLS was tried and failed{}",
                    certificate_of(seen)
                ),
                format!("correct sslrootcert or the server's pg_hba.conf, and {VERIFY}"),
            );
        }
        if is_loopback(seen) {
            return Check::fine(STEP, "none; the connection does not leave this host");
        }
        return Check::warn(
            STEP,
            "none: what is sent can be read and changed on its way",
            format!("set ssl = on on the server, and {VERIFY}"),
        );
    };
    let found = format!("{protocol}{}", certificate_of(seen));
    let soon = seen.certificate.as_ref().is_some_and(|shown| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        shown.until_unix < now.unwrap_or_default() + RENEW_BEFORE
    });
    match settings.tls.mode {
        _ if settings.tls.roots.is_none() => Check::warn(
            STEP,
            format!("{found}, which nobody has checked: anybody could have answered"),
            VERIFY,
        ),
        _ if soon => Check::warn(STEP, found, "renew the server's certificate"),
        SslMode::VerifyFull => Check::fine(STEP, format!("{found}; it was checked, and the name")),
        SslMode::VerifyCa | SslMode::Require => Check::fine(
            STEP,
            format!("{found}; it was checked, but not whose name it has"),
        ),
        SslMode::Prefer | SslMode::Allow | SslMode::Disable => Check::warn(
            STEP,
            format!("{found}; it was checked, but a connection without TLS would do as well"),
            VERIFY,
        ),
    }
}

fn asked_words(asked: Asked) -> String {
    match asked {
        Asked::Password => "for the password as it is (password, ldap, pam or radius)".into(),
        Asked::Md5 => "by md5".into(),
        Asked::Scram { bindable: true } => "by scram-sha-256, bound to TLS if wanted".into(),
        Asked::Scram { bindable: false } => "by scram-sha-256".into(),
        Asked::Other(number) => format!("in a way that tokenrun does not know (number {number})"),
    }
}

fn authentication(settings: &Settings, host: &Host, seen: &Seen) -> Check {
    const STEP: &str = "authentication";
    let is_private = is_unix(host) || seen.protocol.is_some() || is_loopback(seen);
    let Some(asked) = seen.asked else {
        if is_unix(host) {
            return Check::fine(STEP, "the server asked for nothing (peer or trust)");
        }
        if seen.protocol.is_some() && settings.tls.client.is_some() {
            return Check::fine(
                STEP,
                "the server asked for no password (the client's certificate, or trust)",
            );
        }
        return Check::warn(
            STEP,
            "the server asked for nothing (trust): whoever reaches it is let in",
            "have scram-sha-256 in the server's pg_hba.conf, and a password in ~/.pgpass",
        );
    };
    let found = format!("the server asked {}", asked_words(asked));
    match asked {
        Asked::Scram { .. } => Check::fine(STEP, found),
        Asked::Password if is_private => Check::fine(STEP, found),
        Asked::Password => Check::warn(
            STEP,
            format!("{found}, and it was sent where it can be read"),
            "have scram-sha-256 in the server's pg_hba.conf, or TLS",
        ),
        Asked::Md5 | Asked::Other(_) => Check::warn(
            STEP,
            found,
            "set password_encryption = scram-sha-256, set the password anew, and have \
             scram-sha-256 in pg_hba.conf",
        ),
    }
}
