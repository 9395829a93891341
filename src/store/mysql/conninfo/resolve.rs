//! From a connection string, option files and variables to settings: what the string says counts first,
//! then the files, then the variables.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Settings;
use super::files::{Line, lines};
use super::text::{ALL, Given, SCHEMA};
use crate::store::net::host::{Host, Secret, Servers};
use crate::store::net::options::{BadSettings, Environment, Options, Pairs, Status, last};
use crate::store::net::tls::{ClientCertificate, Roots, SslMode, Tls};

/// The files of the clients, before that of the user.
const FILES: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];

/// The groups of the files that count.
const GROUPS: [&str; 4] = ["client", "client-server", "client-mariadb", "tokenrun"];

/// How deep files may include others.
const DEEPEST: u32 = 10;

const DEFAULT_PORT: u16 = 3306;

const DEFAULT_SOCKET: &str = "/run/mysqld/mysqld.sock";

/// The options of the files, and what is wrong with the files.
#[derive(Debug, Default)]
struct OptionFiles {
    options: Pairs,
    warnings: Vec<String>,
}

/// The text of an option file, a character U+FFFD in the place of bytes that are not UTF-8; `None` if there is no
/// such file.
fn text_of(path: &Path, environment: &dyn Environment) -> Result<Option<String>, String> {
    if !environment.status(path).is_some_and(|found| found.is_file) {
        return Ok(None);
    }
    match environment.read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        // The files of the system may be for others alone; this user's own is meant for it.
        Err(error)
            if environment
                .home()
                .is_some_and(|home| path.starts_with(home)) =>
        {
            Err(error.to_string())
        }
        Err(_) => Ok(None),
    }
}

impl OptionFiles {
    fn read(
        &mut self,
        path: &Path,
        environment: &dyn Environment,
        depth: u32,
    ) -> Result<(), BadSettings> {
        let shown = path.display();
        let text = match text_of(path, environment) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(()),
            Err(why) => {
                let warning = format!("the option file {shown} is left out: {why}");
                self.warnings.push(warning);
                return Ok(());
            }
        };
        let is_for_all = |found: Status| found.is_file && found.mode & 0o002 != 0;
        if environment.status(path).is_some_and(is_for_all) {
            self.warnings.push(format!(
                "the option file {shown} is left out: everybody may write it"
            ));
            return Ok(());
        }
        let wrong = |what: &str| BadSettings::new(format!("the option file {shown}: {what}"));
        for line in lines(&text).map_err(|why| wrong(&why))? {
            match line {
                Line::Option { group, name, value }
                    if GROUPS.contains(&group.as_str())
                        && name != SCHEMA
                        && ALL.iter().any(|known| known.name == name) =>
                {
                    let value = value.unwrap_or_default();
                    if value.contains(char::REPLACEMENT_CHARACTER) {
                        return Err(wrong(&format!("the value of {name} is not UTF-8")));
                    }
                    self.options.push((name, value));
                }
                Line::Include(file) if depth < DEEPEST => {
                    self.read(Path::new(&file), environment, depth + 1)?;
                }
                Line::IncludeDirectory(directory) if depth < DEEPEST => {
                    let files = environment.files(Path::new(&directory)).into_iter();
                    for file in files.filter(|it| it.extension().is_some_and(|it| it == "cnf")) {
                        self.read(&file, environment, depth + 1)?;
                    }
                }
                Line::Option { .. } | Line::Include(_) | Line::IncludeDirectory(_) => {}
            }
        }
        Ok(())
    }
}

fn port(options: &Options<'_>) -> Result<u16, BadSettings> {
    let port = options.get("port").map(|text| text.parse());
    let port = port.transpose();
    let port = port.map_err(|_| BadSettings::new("the port is not a number below 65536"))?;
    Ok(port.unwrap_or(DEFAULT_PORT))
}

/// The servers. `named`: those of the string, with their ports.
fn hosts(options: &Options<'_>, named: &[(String, Option<u16>)]) -> Result<Vec<Host>, BadSettings> {
    let port = port(options)?;
    if let Some(path) = last(&options.given, "socket") {
        return Ok(vec![Host::unix(path)]);
    }
    let default = options.get("host");
    let default = default.unwrap_or_else(|| "localhost".to_owned());
    let is_tcp = options
        .get("protocol")
        .is_some_and(|protocol| protocol.eq_ignore_ascii_case("tcp"));
    let hosts = named.iter().map(|(name, own_port)| {
        let name = if name.is_empty() { &default } else { name };
        // As the clients do: this name means the socket, unless a port is given with it.
        if name == "localhost" && own_port.is_none() && !is_tcp {
            let path = options.get("socket");
            return Host::unix(path.as_deref().unwrap_or(DEFAULT_SOCKET));
        }
        match name.starts_with('/') {
            true => Host::unix(name),
            false => Host::tcp(name, own_port.unwrap_or(port)),
        }
    });
    Ok(hosts.collect())
}

/// The mode of TLS. A mode that the string names counts, whatever the files say. Otherwise the stricter of
/// what the two demand: no file weakens the string.
fn ssl_mode(options: &Options<'_>) -> Result<SslMode, BadSettings> {
    let given = |name: &str| last(&options.given, name);
    let filed = Demanded::by(&|name| match given(name) {
        Some(_) => None,
        None => options.stated(name),
    })?;
    let given = Demanded::by(&given)?;
    let mode = match given.named {
        Some(_) => given.mode(),
        None => given.mode().max(filed.mode()),
    };
    Ok(mode.unwrap_or(SslMode::Prefer))
}

fn tls(options: &Options<'_>) -> Result<Tls, BadSettings> {
    for name in ["ssl-ca", "ssl-cert", "ssl-key"] {
        if options.stated(name) == Some("") {
            return Err(BadSettings::new(format!(
                "{name} names no file: name one, or leave it out"
            )));
        }
    }
    let mode = ssl_mode(options)?;
    let ca = options.get("ssl-ca");
    let roots = match (mode, ca) {
        (SslMode::VerifyCa | SslMode::VerifyFull, Some(path)) => {
            Some(Roots::File(PathBuf::from(path)))
        }
        (SslMode::VerifyCa | SslMode::VerifyFull, None) => Some(Roots::System),
        _ => None,
    };
    let client = match (options.get("ssl-cert"), options.get("ssl-key")) {
        (Some(certificate), Some(key)) => Some(ClientCertificate {
            certificate: certificate.into(),
            key: key.into(),
        }),
        (None, None) => None,
        _ => {
            return Err(BadSettings::new(
                "ssl-cert and ssl-key belong together: give both",
            ));
        }
    };
    Ok(Tls {
        roots,
        client,
        ..Tls::new(mode)
    })
}

/// What one place says about TLS: the string, or the files.
struct Demanded {
    /// The mode that it names.
    named: Option<SslMode>,
    /// The mode that its other options imply.
    implied: Option<SslMode>,
}

impl Demanded {
    fn by<'a>(option: &dyn Fn(&str) -> Option<&'a str>) -> Result<Self, BadSettings> {
        let is_on = |name: &str| {
            let value = option(name);
            value.map(|value| !["0", "off", "false", "no"].contains(&&*value.to_lowercase()))
        };
        let mode = option("ssl-mode").map(mode_of).transpose()?;
        let skips = is_on("skip-ssl") == Some(true) || is_on("ssl") == Some(false);
        let named = mode.or(skips.then_some(SslMode::Disable));
        let verifies = is_on("ssl-verify-server-cert") == Some(true);
        if verifies && named == Some(SslMode::Disable) {
            return Err(BadSettings::new(
                "skip-ssl (or ssl-mode=DISABLED) and ssl-verify-server-cert exclude each other: leave one out",
            ));
        }
        let implied = match () {
            () if verifies => Some(SslMode::VerifyFull),
            () if option("ssl-ca").is_some() => Some(SslMode::VerifyCa),
            () if is_on("ssl") == Some(true) => Some(SslMode::Require),
            () => None,
        };
        Ok(Self { named, implied })
    }

    /// Of two settings in one place the stricter counts.
    fn mode(&self) -> Option<SslMode> {
        self.named.max(self.implied)
    }
}

fn mode_of(text: &str) -> Result<SslMode, BadSettings> {
    match text.to_uppercase().replace('-', "_").as_str() {
        "DISABLED" => Ok(SslMode::Disable),
        "PREFERRED" => Ok(SslMode::Prefer),
        "REQUIRED" => Ok(SslMode::Require),
        "VERIFY_CA" => Ok(SslMode::VerifyCa),
        "VERIFY_IDENTITY" => Ok(SslMode::VerifyFull),
        _ => Err(BadSettings::new(format!(
            "ssl-mode {text:?} is none of DISABLED, PREFERRED, REQUIRED, VERIFY_CA, VERIFY_IDENTITY"
        ))),
    }
}

/// The settings that follow.
///
/// # Errors
/// What is wrong, and where.
pub fn resolve(
    given: Given,
    environment: &dyn Environment,
    application: &str,
) -> Result<Settings, BadSettings> {
    let mut files = OptionFiles::default();
    let home = environment.home().map(|home| home.join(".my.cnf"));
    for path in FILES.iter().map(PathBuf::from).chain(home) {
        files.read(&path, environment, 0)?;
    }
    let OptionFiles { options, warnings } = files;
    let options = Options {
        table: ALL,
        given: given.options,
        from_files: options,
        around: environment,
    };
    let database = options.get(SCHEMA).or_else(|| options.get("database"));
    let database = database.ok_or_else(|| {
        BadSettings::new("the store names no database: write mysql://user@host/database")
    })?;
    let user = options.get("user").or_else(|| environment.user());
    let user =
        user.ok_or_else(|| BadSettings::new("the store names no user, and this one has no name"))?;
    let connect_timeout = options.get("connect-timeout").map(|text| {
        let seconds = text.parse::<u64>();
        seconds.map_err(|_| BadSettings::new("connect-timeout is not a number of seconds"))
    });
    let connect_timeout = connect_timeout.transpose()?.filter(|seconds| *seconds > 0);
    let mut servers = Servers::new(hosts(&options, &given.hosts)?);
    servers.set_password(options.get("password").map(Secret).as_ref());
    servers.warnings = warnings;
    servers.connect_timeout = connect_timeout.map(Duration::from_secs);
    Ok(Settings {
        servers,
        user,
        database,
        takes_database: true,
        application_name: application.to_owned(),
        timeout: Duration::ZERO,
        tls: tls(&options)?,
    })
}
