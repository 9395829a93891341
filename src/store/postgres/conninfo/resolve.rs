//! From a connection string to the settings of a connection: the string comes first, then its
//! service, then the variables `PG…`, then libpq's defaults.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::options::{ALL, SCHEMA};
use super::settings::{ChannelBinding, SOCKET, Settings, SslMode, Tls};
use super::{passfile, service};
use crate::store::net::host::{Host, PROBES, Place, Servers};
use crate::store::net::options::{BadSettings, Environment, Fate, Options, Pairs};
use crate::store::net::secret::Secret;
use crate::store::net::tls::{ClientCertificate, Roots};
use crate::sys::socket::Keepalive;

/// The schema that the tables are in, unless the user names another.
pub const DEFAULT_SCHEMA: &str = "tokenrun";

const DEFAULT_PORT: u16 = 5432;

/// Who may read a file with a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrecy {
    /// Only its owner.
    Kept,
    /// It belongs to root, and root's group may read it besides.
    RootsGroup,
    /// Others may read it.
    Open,
    /// It is not a regular file.
    NoFile,
    /// It does not exist.
    Absent,
}

/// Tells who may read a file.
fn secrecy(around: &dyn Environment, path: &Path) -> Secrecy {
    match around.status(path) {
        None => Secrecy::Absent,
        Some(found) if !found.is_file => Secrecy::NoFile,
        Some(found) if found.mode & 0o077 == 0 => Secrecy::Kept,
        Some(found) if found.is_roots && found.mode & 0o037 == 0 => Secrecy::RootsGroup,
        Some(_) => Secrecy::Open,
    }
}

/// A file's text.
fn text_of(around: &dyn Environment, path: &Path) -> io::Result<String> {
    let bytes = around.read(path)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}

/// The values of an option that lists them, in order.
fn list(options: &Options<'_>, name: &str) -> Option<Vec<String>> {
    let value = options.get(name)?;
    let parts = value.split(',').map(|part| part.trim().to_owned());
    Some(parts.collect())
}

fn flag(options: &Options<'_>, name: &str) -> Result<bool, BadSettings> {
    Ok(options.number(name)? != Some(0))
}

/// The settings of a connection string. `application` is the program's name on the server.
///
/// # Errors
/// What is wrong, and where.
pub fn resolve(
    said: Pairs,
    around: &dyn Environment,
    application: &str,
) -> Result<Settings, BadSettings> {
    let mut options = Options {
        table: ALL,
        given: said,
        filed: Pairs::new(),
        around,
    };
    add_service(&mut options)?;
    refuse(&options)?;
    let user = options
        .get("user")
        .or_else(|| around.user())
        .ok_or_else(|| BadSettings::new("this process's user has no name; give user="))?;
    let dbname = options.get("dbname").unwrap_or_else(|| user.clone());
    let mut warnings = Vec::new();
    let mut hosts = hosts(&options)?;
    passwords(&options, &mut hosts, &dbname, &user, &mut warnings);
    let application_name = options
        .get("application_name")
        .or_else(|| options.get("fallback_application_name"))
        .unwrap_or_else(|| application.to_owned());
    let schema = options.get(SCHEMA).unwrap_or_else(|| DEFAULT_SCHEMA.into());
    if schema.len() > 63 || schema.contains('\0') {
        return Err(BadSettings::of(
            SCHEMA,
            "is longer than the 63 bytes of a name",
        ));
    }
    let mut servers = Servers::new(hosts);
    servers.connect_timeout = connect_timeout(&options)?;
    set_keepalives(&options, &mut servers)?;
    Ok(Settings {
        servers,
        user,
        dbname,
        application_name,
        options: options.get("options"),
        tls: tls(&options)?,
        channel_binding: options.word(
            "channel_binding",
            &[
                ("disable", ChannelBinding::Disable),
                ("prefer", ChannelBinding::Prefer),
                ("require", ChannelBinding::Require),
            ],
            ChannelBinding::Prefer,
        )?,
        schema,
        warnings,
    })
}

fn add_service(options: &mut Options<'_>) -> Result<(), BadSettings> {
    let Some(service) = options.get("service") else {
        return Ok(());
    };
    let own = options
        .variable("PGSERVICEFILE")
        .map(PathBuf::from)
        .or_else(|| options.in_home(".pg_service.conf"));
    let directories = options.variable("PGSYSCONFDIR").map_or_else(
        || vec!["/etc/postgresql-common".into(), "/etc".into()],
        |directory| vec![PathBuf::from(directory)],
    );
    let systems = directories.iter().map(|path| path.join("pg_service.conf"));
    for file in own.into_iter().chain(systems) {
        if !options.exists(&file) {
            continue;
        }
        let shown = file.display().to_string();
        let text = text_of(options.around, &file)
            .map_err(|error| BadSettings::new(format!("{shown} can't be read: {error}")))?;
        if let Some(pairs) = service::find(&text, &service, &shown)? {
            options.filed = pairs;
            return Ok(());
        }
    }
    Err(BadSettings::new(format!(
        "there is no service {service:?} in ~/.pg_service.conf, PGSERVICEFILE or the system's pg_service.conf"
    )))
}

/// Refuses options that are not supported, by name, whatever their source.
fn refuse(options: &Options<'_>) -> Result<(), BadSettings> {
    for option in ALL.iter().filter(|known| known.fate == Fate::Refused) {
        if options.get(option.name).is_some() {
            return Err(BadSettings::of(option.name, "is not supported by tokenrun"));
        }
    }
    let needs_primary = options.word(
        "target_session_attrs",
        &[
            ("any", true),
            ("read-write", true),
            ("primary", true),
            ("read-only", false),
            ("standby", false),
            ("prefer-standby", false),
        ],
        true,
    )?;
    if !needs_primary {
        return Err(BadSettings::of(
            "target_session_attrs",
            "asks for a standby, where no token can be written; use read-write",
        ));
    }
    let without_gss = options.word(
        "gssencmode",
        &[("disable", true), ("prefer", true), ("require", false)],
        true,
    )?;
    if !without_gss {
        return Err(BadSettings::of(
            "gssencmode",
            "is require, which tokenrun does not support",
        ));
    }
    let in_order = options.word(
        "load_balance_hosts",
        &[("disable", true), ("random", false)],
        true,
    )?;
    if !in_order {
        return Err(BadSettings::of(
            "load_balance_hosts",
            "is random, which tokenrun does not support",
        ));
    }
    Ok(())
}

fn hosts(options: &Options<'_>) -> Result<Vec<Host>, BadSettings> {
    let names = list(options, "host");
    let numbers = list(options, "hostaddr");
    let ports = list(options, "port").unwrap_or_default();
    let count = numbers.as_ref().or(names.as_ref()).map_or(1, Vec::len);
    let fits = |list: &Option<Vec<String>>| list.as_ref().is_none_or(|l| l.len() == count);
    if !fits(&names) {
        return Err(BadSettings::of(
            "host",
            "names another number of servers than hostaddr",
        ));
    }
    if ports.len() > 1 && ports.len() != count {
        return Err(BadSettings::of(
            "port",
            "names another number of ports than there are hosts",
        ));
    }
    (0..count)
        .map(|index| {
            let of = |list: &Option<Vec<String>>| {
                let item = list.as_ref().and_then(|list| list.get(index).cloned());
                item.filter(|item| !item.is_empty())
            };
            let port = ports.get(index).or_else(|| ports.first());
            let port = port_number(port.map_or("", String::as_str))?;
            Ok(Host {
                place: place(options, of(&names), of(&numbers), port)?,
                password: None,
            })
        })
        .collect()
}

fn place(
    options: &Options<'_>,
    name: Option<String>,
    number: Option<String>,
    port: u16,
) -> Result<Place, BadSettings> {
    if let Some(to) = number {
        if to.parse::<std::net::IpAddr>().is_err() {
            return Err(BadSettings::of(
                "hostaddr",
                &format!("is {to:?}, not an IP address"),
            ));
        }
        return Ok(Place::Tcp { to, port, name });
    }
    let socket = |directory: &str| Place::Unix(format!("{directory}{SOCKET}{port}"));
    Ok(match name {
        None => socket(default_socket(options)),
        Some(path) if path.starts_with(['/', '@']) => socket(&path),
        Some(name) => Place::Tcp {
            to: name.clone(),
            port,
            name: Some(name),
        },
    })
}

/// Debian's directory, if present; otherwise libpq's built-in one.
fn default_socket(options: &Options<'_>) -> &'static str {
    const DEBIAN: &str = "/var/run/postgresql";
    if options.exists(Path::new(DEBIAN)) {
        DEBIAN
    } else {
        "/tmp"
    }
}

fn port_number(text: &str) -> Result<u16, BadSettings> {
    match text {
        "" => Ok(DEFAULT_PORT),
        text => match text.parse() {
            Ok(0) | Err(_) => Err(BadSettings::of(
                "port",
                &format!("is {text:?}; use 1 to 65535"),
            )),
            Ok(port) => Ok(port),
        },
    }
}

fn passwords(
    options: &Options<'_>,
    hosts: &mut [Host],
    dbname: &str,
    user: &str,
    warnings: &mut Vec<String>,
) {
    if let Some(password) = options.get("password") {
        for host in hosts {
            host.password = Some(Secret(password.clone()));
        }
        return;
    }
    let file = options.get("passfile").map(PathBuf::from);
    let Some(file) = file.or_else(|| options.in_home(".pgpass")) else {
        return;
    };
    let shown = file.display();
    match secrecy(options.around, &file) {
        Secrecy::Absent => return,
        Secrecy::Kept => {}
        Secrecy::Open | Secrecy::RootsGroup => {
            warnings.push(format!(
                "the password file {shown} is not used, because others may read it: chmod 600 {shown}"
            ));
            return;
        }
        Secrecy::NoFile => {
            warnings.push(format!("the password file {shown} is no plain file"));
            return;
        }
    }
    // An unreadable file counts as absent, as in libpq.
    let text = text_of(options.around, &file).unwrap_or_default();
    for host in hosts {
        let (name, port) = match &host.place {
            Place::Unix(path) => match path.split_once(SOCKET) {
                Some((directory, port)) if directory == default_socket(options) => {
                    ("localhost", port.to_owned())
                }
                Some((directory, port)) => (directory, port.to_owned()),
                None => continue,
            },
            Place::Tcp { to, port, name } => {
                (name.as_ref().unwrap_or(to).as_str(), port.to_string())
            }
        };
        host.password = passfile::find(&text, name, &port, dbname, user).map(Secret);
    }
}

/// In seconds; 0 and less mean none, 1 means 2, as in libpq.
fn connect_timeout(options: &Options<'_>) -> Result<Option<Duration>, BadSettings> {
    let seconds = options.number("connect_timeout")?.unwrap_or_default();
    let seconds = u64::try_from(seconds).unwrap_or_default();
    Ok((seconds > 0).then(|| Duration::from_secs(seconds.max(2))))
}

/// What an option leaves open is as on every store.
fn set_keepalives(options: &Options<'_>, servers: &mut Servers) -> Result<(), BadSettings> {
    let positive = |name| -> Result<Option<u32>, BadSettings> {
        let number = options.number(name)?.unwrap_or_default();
        Ok(u32::try_from(number).ok().filter(|number| *number > 0))
    };
    let probes = Keepalive {
        idle: positive("keepalives_idle")?.or(PROBES.idle),
        interval: positive("keepalives_interval")?.or(PROBES.interval),
        count: positive("keepalives_count")?.or(PROBES.count),
    };
    servers.keepalive = flag(options, "keepalives")?.then_some(probes);
    let milliseconds = positive("tcp_user_timeout")?;
    servers.user_timeout = milliseconds.map(|ms| Duration::from_millis(ms.into()));
    Ok(())
}

fn tls(options: &Options<'_>) -> Result<Tls, BadSettings> {
    use SslMode::{Allow, Disable, Prefer, Require, VerifyCa, VerifyFull};
    let said = options.get("sslrootcert");
    let system = said.as_deref() == Some("system");
    let default = if system { VerifyFull } else { Prefer };
    let mode = options.word(
        "sslmode",
        &[
            ("disable", Disable),
            ("allow", Allow),
            ("prefer", Prefer),
            ("require", Require),
            ("verify-ca", VerifyCa),
            ("verify-full", VerifyFull),
        ],
        default,
    )?;
    if system && mode != VerifyFull {
        return Err(BadSettings::of(
            "sslmode",
            "must be verify-full where sslrootcert is system",
        ));
    }
    let exists = |path: &PathBuf| options.exists(path);
    let file = said.filter(|_| !system).map(PathBuf::from);
    let file = file.or_else(|| options.in_home(".postgresql/root.crt"));
    let roots = if system {
        Some(Roots::System)
    } else {
        file.clone().filter(exists).map(Roots::File)
    };
    if roots.is_none() && matches!(mode, VerifyCa | VerifyFull) {
        let file = file.map_or_else(
            || "~/.postgresql/root.crt".into(),
            |f| f.display().to_string(),
        );
        return Err(BadSettings::new(format!(
            "the root certificate file {file} does not exist: provide it, use sslrootcert=system, or change sslmode"
        )));
    }
    let (min, max) = (
        version(options, "ssl_min_protocol_version")?,
        version(options, "ssl_max_protocol_version")?,
    );
    if max.is_some_and(|max| max < 2) {
        return Err(BadSettings::of(
            "ssl_max_protocol_version",
            "asks for less than TLSv1.2, which tokenrun does not support",
        ));
    }
    let (only_13, only_12) = (min == Some(3), max == Some(2));
    if only_13 && only_12 {
        return Err(BadSettings::of(
            "ssl_min_protocol_version",
            "is above ssl_max_protocol_version",
        ));
    }
    Ok(Tls {
        mode,
        roots,
        client: client_certificate(options, mode)?,
        sni: flag(options, "sslsni")?,
        only_13,
        only_12,
    })
}

/// The number after `TLSv1.`.
fn version(options: &Options<'_>, name: &str) -> Result<Option<u8>, BadSettings> {
    let words = [
        ("TLSv1", Some(0)),
        ("TLSv1.1", Some(1)),
        ("TLSv1.2", Some(2)),
        ("TLSv1.3", Some(3)),
    ];
    options.word(name, &words, None)
}

fn client_certificate(
    options: &Options<'_>,
    mode: SslMode,
) -> Result<Option<ClientCertificate>, BadSettings> {
    if mode == SslMode::Disable {
        return Ok(None);
    }
    let file = |name: &str, default: &str| {
        let said = options.get(name).map(PathBuf::from);
        said.or_else(|| options.in_home(default))
    };
    let certificate = file("sslcert", ".postgresql/postgresql.crt");
    let Some(certificate) = certificate.filter(|path| options.exists(path)) else {
        return Ok(None);
    };
    let Some(key) = file("sslkey", ".postgresql/postgresql.key") else {
        return Ok(None);
    };
    let shown = key.display();
    match secrecy(options.around, &key) {
        Secrecy::Kept | Secrecy::RootsGroup => Ok(Some(ClientCertificate { certificate, key })),
        Secrecy::Open => Err(BadSettings::new(format!(
            "others may read the private key file {shown}: chmod 600 {shown}"
        ))),
        Secrecy::NoFile | Secrecy::Absent => Err(BadSettings::new(format!(
            "the certificate {} has no private key file {shown}",
            certificate.display()
        ))),
    }
}
