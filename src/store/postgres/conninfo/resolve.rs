//! From a connection string to the settings of a connection: the string comes first, then its
//! service, then the variables `PG…`, then libpq's defaults.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ConninfoError;
use super::options::{ALL, Fate, SCHEMA, known};
use super::settings::{ChannelBinding, SOCKET, Settings, SslMode, Tls};
use super::text::Pairs;
use super::{passfile, service};
use crate::store::net::host::{Host, PROBES, Place, Servers};
use crate::store::net::secret::Secret;
use crate::store::net::tls::{ClientCertificate, Roots};
use crate::sys::tcp::Keepalive;

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

/// The surroundings of a connection string: variables, files, the user.
pub trait Environment {
    /// A variable's value; `None` if it is not set.
    fn variable(&self, name: &str) -> Option<String>;
    /// A file's text.
    ///
    /// # Errors
    /// If it can't be read.
    fn text(&self, path: &Path) -> std::io::Result<String>;
    /// Whether a file keeps a secret.
    fn secrecy(&self, path: &Path) -> Secrecy;
    /// Whether a file or directory exists.
    fn exists(&self, path: &Path) -> bool;
    /// The name of this process's user.
    fn user(&self) -> Option<String>;
    /// That user's home directory.
    fn home(&self) -> Option<PathBuf>;
}

struct Options<'a> {
    said: Pairs,
    around: &'a dyn Environment,
}

fn wrong(option: &str, what: &str) -> ConninfoError {
    ConninfoError::new(format!("the option {option} {what}"))
}

impl Options<'_> {
    /// An option's value; an empty one counts as absent.
    fn get(&self, name: &str) -> Option<String> {
        let said = self.said.iter().rev().find(|(said, _)| said == name);
        if let Some((_, value)) = said {
            return Some(value.clone()).filter(|value| !value.is_empty());
        }
        let variable = known(name)?.variable;
        if variable.is_empty() {
            return None;
        }
        self.around
            .variable(variable)
            .filter(|value| !value.is_empty())
    }

    fn number(&self, name: &str) -> Result<Option<i64>, ConninfoError> {
        self.get(name)
            .map(|text| {
                text.trim()
                    .parse::<i32>()
                    .map(i64::from)
                    .map_err(|_| wrong(name, &format!("is {text:?}, not a whole number")))
            })
            .transpose()
    }

    fn flag(&self, name: &str) -> Result<bool, ConninfoError> {
        Ok(self.number(name)? != Some(0))
    }

    fn list(&self, name: &str) -> Option<Vec<String>> {
        let value = self.get(name)?;
        Some(
            value
                .split(',')
                .map(|part| part.trim().to_owned())
                .collect(),
        )
    }

    /// An option with an enumerated value.
    fn word<T: Copy>(
        &self,
        name: &str,
        words: &[(&str, T)],
        default: T,
    ) -> Result<T, ConninfoError> {
        let Some(value) = self.get(name) else {
            return Ok(default);
        };
        let found = words.iter().find(|(word, _)| *word == value);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            wrong(name, &format!("is {value:?}; use {}", all.join(", ")))
        })
    }

    fn in_home(&self, name: &str) -> Option<PathBuf> {
        Some(self.around.home()?.join(name))
    }
}

/// The settings of a connection string. `application` is the program's name on the server.
///
/// # Errors
/// What is wrong, and where.
pub fn resolve(
    said: Pairs,
    around: &dyn Environment,
    application: &str,
) -> Result<Settings, ConninfoError> {
    let mut options = Options { said, around };
    add_service(&mut options)?;
    refuse(&options)?;
    let user = options
        .get("user")
        .or_else(|| around.user())
        .ok_or_else(|| ConninfoError::new("this process's user has no name; give user="))?;
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
        return Err(wrong(SCHEMA, "is longer than the 63 bytes of a name"));
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

fn add_service(options: &mut Options<'_>) -> Result<(), ConninfoError> {
    let Some(service) = options.get("service") else {
        return Ok(());
    };
    let variable = |name| options.around.variable(name).filter(|v| !v.is_empty());
    let own = variable("PGSERVICEFILE")
        .map(PathBuf::from)
        .or_else(|| options.in_home(".pg_service.conf"));
    let directories = variable("PGSYSCONFDIR").map_or_else(
        || vec!["/etc/postgresql-common".into(), "/etc".into()],
        |directory| vec![PathBuf::from(directory)],
    );
    let systems = directories.iter().map(|path| path.join("pg_service.conf"));
    for file in own.into_iter().chain(systems) {
        if !options.around.exists(&file) {
            continue;
        }
        let shown = file.display().to_string();
        let text = options
            .around
            .text(&file)
            .map_err(|error| ConninfoError::new(format!("{shown} can't be read: {error}")))?;
        if let Some(mut pairs) = service::find(&text, &service, &shown)? {
            // The string's own options come last, and so have precedence.
            pairs.append(&mut options.said);
            options.said = pairs;
            return Ok(());
        }
    }
    Err(ConninfoError::new(format!(
        "there is no service {service:?} in ~/.pg_service.conf, PGSERVICEFILE or the system's pg_service.conf"
    )))
}

/// Refuses options that are not supported, by name, whatever their source.
fn refuse(options: &Options<'_>) -> Result<(), ConninfoError> {
    for option in ALL.iter().filter(|known| known.fate == Fate::Refused) {
        if options.get(option.name).is_some() {
            return Err(wrong(option.name, "is not supported by tokenrun"));
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
        return Err(wrong(
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
        return Err(wrong(
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
        return Err(wrong(
            "load_balance_hosts",
            "is random, which tokenrun does not support",
        ));
    }
    Ok(())
}

fn hosts(options: &Options<'_>) -> Result<Vec<Host>, ConninfoError> {
    let names = options.list("host");
    let numbers = options.list("hostaddr");
    let ports = options.list("port").unwrap_or_default();
    let count = numbers.as_ref().or(names.as_ref()).map_or(1, Vec::len);
    let fits = |list: &Option<Vec<String>>| list.as_ref().is_none_or(|l| l.len() == count);
    if !fits(&names) {
        return Err(wrong(
            "host",
            "names another number of servers than hostaddr",
        ));
    }
    if ports.len() > 1 && ports.len() != count {
        return Err(wrong(
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
) -> Result<Place, ConninfoError> {
    if let Some(to) = number {
        if to.parse::<std::net::IpAddr>().is_err() {
            return Err(wrong("hostaddr", &format!("is {to:?}, not an IP address")));
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
    if options.around.exists(Path::new(DEBIAN)) {
        DEBIAN
    } else {
        "/tmp"
    }
}

fn port_number(text: &str) -> Result<u16, ConninfoError> {
    match text {
        "" => Ok(DEFAULT_PORT),
        text => match text.parse() {
            Ok(0) | Err(_) => Err(wrong("port", &format!("is {text:?}; use 1 to 65535"))),
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
    match options.around.secrecy(&file) {
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
    let text = options.around.text(&file).unwrap_or_default();
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
fn connect_timeout(options: &Options<'_>) -> Result<Option<Duration>, ConninfoError> {
    let seconds = options.number("connect_timeout")?.unwrap_or_default();
    let seconds = u64::try_from(seconds).unwrap_or_default();
    Ok((seconds > 0).then(|| Duration::from_secs(seconds.max(2))))
}

/// What an option leaves open is as on every store.
fn set_keepalives(options: &Options<'_>, servers: &mut Servers) -> Result<(), ConninfoError> {
    let positive = |name| -> Result<Option<u32>, ConninfoError> {
        let number = options.number(name)?.unwrap_or_default();
        Ok(u32::try_from(number).ok().filter(|number| *number > 0))
    };
    let probes = Keepalive {
        idle: positive("keepalives_idle")?.or(PROBES.idle),
        interval: positive("keepalives_interval")?.or(PROBES.interval),
        count: positive("keepalives_count")?.or(PROBES.count),
    };
    servers.keepalive = options.flag("keepalives")?.then_some(probes);
    let milliseconds = positive("tcp_user_timeout")?;
    servers.user_timeout = milliseconds.map(|ms| Duration::from_millis(ms.into()));
    Ok(())
}

fn tls(options: &Options<'_>) -> Result<Tls, ConninfoError> {
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
        return Err(wrong(
            "sslmode",
            "must be verify-full where sslrootcert is system",
        ));
    }
    let exists = |path: &PathBuf| options.around.exists(path);
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
        return Err(ConninfoError::new(format!(
            "the root certificate file {file} does not exist: provide it, use sslrootcert=system, or change sslmode"
        )));
    }
    let (min, max) = (
        version(options, "ssl_min_protocol_version")?,
        version(options, "ssl_max_protocol_version")?,
    );
    if max.is_some_and(|max| max < 2) {
        return Err(wrong(
            "ssl_max_protocol_version",
            "asks for less than TLSv1.2, which tokenrun does not support",
        ));
    }
    let (only_13, only_12) = (min == Some(3), max == Some(2));
    if only_13 && only_12 {
        return Err(wrong(
            "ssl_min_protocol_version",
            "is above ssl_max_protocol_version",
        ));
    }
    Ok(Tls {
        mode,
        roots,
        client: client_certificate(options, mode)?,
        sni: options.flag("sslsni")?,
        only_13,
        only_12,
    })
}

/// The number after `TLSv1.`.
fn version(options: &Options<'_>, name: &str) -> Result<Option<u8>, ConninfoError> {
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
) -> Result<Option<ClientCertificate>, ConninfoError> {
    if mode == SslMode::Disable {
        return Ok(None);
    }
    let file = |name: &str, default: &str| {
        let said = options.get(name).map(PathBuf::from);
        said.or_else(|| options.in_home(default))
    };
    let certificate = file("sslcert", ".postgresql/postgresql.crt");
    let Some(certificate) = certificate.filter(|path| options.around.exists(path)) else {
        return Ok(None);
    };
    let Some(key) = file("sslkey", ".postgresql/postgresql.key") else {
        return Ok(None);
    };
    let shown = key.display();
    match options.around.secrecy(&key) {
        Secrecy::Kept | Secrecy::RootsGroup => Ok(Some(ClientCertificate { certificate, key })),
        Secrecy::Open => Err(ConninfoError::new(format!(
            "others may read the private key file {shown}: chmod 600 {shown}"
        ))),
        Secrecy::NoFile | Secrecy::Absent => Err(ConninfoError::new(format!(
            "the certificate {} has no private key file {shown}",
            certificate.display()
        ))),
    }
}
