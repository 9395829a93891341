//! From a connection string, option files and variables to settings: what the string says counts first,
//! then the files, then the variables.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ConninfoError;
use super::files::{Line, lines};
use super::text::{Given, OPTIONS, SCHEMA};
use crate::store::mysql::settings::{Settings, SslMode, Tls};
use crate::store::net::host::{Host, Servers};
use crate::store::net::secret::Secret;
use crate::store::net::tls::{ClientCertificate, Roots};

/// The files of the clients, before that of the user.
const FILES: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];

/// The groups of the files that count.
const GROUPS: [&str; 4] = ["client", "client-server", "client-mariadb", "tokenrun"];

/// How deep files may include others.
const DEEPEST: u32 = 10;

const DEFAULT_PORT: u16 = 3306;

const DEFAULT_SOCKET: &str = "/run/mysqld/mysqld.sock";

/// What is read from outside.
pub trait Environment {
    /// The value of a variable.
    fn variable(&self, name: &str) -> Option<String>;

    /// The text of an option file, a character U+FFFD in the place of bytes that are not UTF-8; `None` if
    /// there is no such file.
    ///
    /// # Errors
    /// Why it can't be read.
    fn text(&self, path: &Path) -> Result<Option<String>, String>;

    /// Whether everybody may write a file: such a file is not believed.
    fn is_for_all(&self, path: &Path) -> bool;

    /// The files of a directory, in order.
    fn files(&self, directory: &Path) -> Vec<PathBuf>;

    /// The name of this user.
    fn user(&self) -> Option<String>;

    /// This user's home directory.
    fn home(&self) -> Option<PathBuf>;
}

/// The options of the files, and what is wrong with the files.
#[derive(Debug, Default)]
struct Filed {
    options: Vec<(String, String)>,
    warnings: Vec<String>,
}

impl Filed {
    fn read(
        &mut self,
        path: &Path,
        environment: &dyn Environment,
        depth: u32,
    ) -> Result<(), ConninfoError> {
        let shown = path.display();
        let text = match environment.text(path) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(()),
            Err(why) => {
                let warning = format!("the option file {shown} is left out: {why}");
                self.warnings.push(warning);
                return Ok(());
            }
        };
        if environment.is_for_all(path) {
            self.warnings.push(format!(
                "the option file {shown} is left out: everybody may write it"
            ));
            return Ok(());
        }
        let wrong = |what: &str| ConninfoError::new(format!("the option file {shown}: {what}"));
        for line in lines(&text).map_err(|why| wrong(&why))? {
            match line {
                Line::Option { group, name, value }
                    if GROUPS.contains(&group.as_str()) && OPTIONS.contains(&name.as_str()) =>
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

/// The options, by where they come from.
struct Sources<'a> {
    given: &'a Given,
    filed: Filed,
    environment: &'a dyn Environment,
}

impl Sources<'_> {
    /// What the string says, or the files.
    fn stated(&self, name: &str) -> Option<String> {
        let filed = || {
            let found = self.filed.options.iter().rfind(|(found, _)| found == name);
            found.map(|(_, value)| value.clone())
        };
        self.given.option(name).map(str::to_owned).or_else(filed)
    }

    fn variable(&self, name: &str) -> Option<String> {
        let value = self.environment.variable(name);
        value.filter(|value| !value.is_empty())
    }

    fn port(&self) -> Result<u16, ConninfoError> {
        let stated = self
            .stated("port")
            .or_else(|| self.variable("MYSQL_TCP_PORT"));
        let port = stated.map(|text| text.parse()).transpose();
        let port = port.map_err(|_| ConninfoError::new("the port is not a number below 65536"))?;
        Ok(port.unwrap_or(DEFAULT_PORT))
    }

    fn hosts(&self) -> Result<Vec<Host>, ConninfoError> {
        let port = self.port()?;
        let socket = self.given.option("socket");
        if let Some(path) = socket {
            return Ok(vec![Host::unix(path)]);
        }
        let default = self
            .stated("host")
            .or_else(|| self.variable("MYSQL_HOST"))
            .unwrap_or_else(|| "localhost".to_owned());
        let is_tcp = self
            .stated("protocol")
            .is_some_and(|protocol| protocol.eq_ignore_ascii_case("tcp"));
        let hosts = self.given.hosts.iter().map(|(name, own_port)| {
            let name = if name.is_empty() { &default } else { name };
            // As the clients do: this name means the socket, unless a port is given with it.
            if name == "localhost" && own_port.is_none() && !is_tcp {
                let path = self
                    .stated("socket")
                    .or_else(|| self.variable("MYSQL_UNIX_PORT"));
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
    fn ssl_mode(&self) -> Result<SslMode, ConninfoError> {
        let given = Demanded::by(&|name| self.given.option(name).map(str::to_owned))?;
        let filed = Demanded::by(&|name| match self.given.option(name) {
            Some(_) => None,
            None => self.stated(name),
        })?;
        let mode = match given.named {
            Some(_) => given.mode(),
            None => given.mode().max(filed.mode()),
        };
        Ok(mode.unwrap_or(SslMode::Preferred))
    }

    fn tls(&self) -> Result<Tls, ConninfoError> {
        for name in ["ssl-ca", "ssl-cert", "ssl-key"] {
            if self.stated(name).is_some_and(|path| path.is_empty()) {
                return Err(ConninfoError::new(format!(
                    "{name} names no file: name one, or leave it out"
                )));
            }
        }
        let mode = self.ssl_mode()?;
        let ca = self.stated("ssl-ca");
        let roots = match (mode, ca) {
            (SslMode::VerifyCa | SslMode::VerifyIdentity, Some(path)) => {
                Some(Roots::File(PathBuf::from(path)))
            }
            (SslMode::VerifyCa | SslMode::VerifyIdentity, None) => Some(Roots::System),
            _ => None,
        };
        let client = match (self.stated("ssl-cert"), self.stated("ssl-key")) {
            (Some(certificate), Some(key)) => Some(ClientCertificate {
                certificate: certificate.into(),
                key: key.into(),
            }),
            (None, None) => None,
            _ => {
                return Err(ConninfoError::new(
                    "ssl-cert and ssl-key belong together: give both",
                ));
            }
        };
        Ok(Tls {
            mode,
            roots,
            client,
        })
    }
}

/// What one place says about TLS: the string, or the files.
struct Demanded {
    /// The mode that it names.
    named: Option<SslMode>,
    /// The mode that its other options imply.
    implied: Option<SslMode>,
}

impl Demanded {
    fn by(option: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConninfoError> {
        let is_on = |name: &str| {
            let value = option(name);
            value.map(|value| !["0", "off", "false", "no"].contains(&&*value.to_lowercase()))
        };
        let mode = option("ssl-mode").map(|mode| mode_of(&mode)).transpose()?;
        let skips = is_on("skip-ssl") == Some(true) || is_on("ssl") == Some(false);
        let named = mode.or(skips.then_some(SslMode::Disabled));
        let verifies = is_on("ssl-verify-server-cert") == Some(true);
        if verifies && named == Some(SslMode::Disabled) {
            return Err(ConninfoError::new(
                "skip-ssl (or ssl-mode=DISABLED) and ssl-verify-server-cert exclude each other: leave one out",
            ));
        }
        let implied = match () {
            () if verifies => Some(SslMode::VerifyIdentity),
            () if option("ssl-ca").is_some() => Some(SslMode::VerifyCa),
            () if is_on("ssl") == Some(true) => Some(SslMode::Required),
            () => None,
        };
        Ok(Self { named, implied })
    }

    /// Of two settings in one place the stricter counts.
    fn mode(&self) -> Option<SslMode> {
        self.named.max(self.implied)
    }
}

fn mode_of(text: &str) -> Result<SslMode, ConninfoError> {
    match text.to_uppercase().replace('-', "_").as_str() {
        "DISABLED" => Ok(SslMode::Disabled),
        "PREFERRED" => Ok(SslMode::Preferred),
        "REQUIRED" => Ok(SslMode::Required),
        "VERIFY_CA" => Ok(SslMode::VerifyCa),
        "VERIFY_IDENTITY" => Ok(SslMode::VerifyIdentity),
        _ => Err(ConninfoError::new(format!(
            "ssl-mode {text:?} is none of DISABLED, PREFERRED, REQUIRED, VERIFY_CA, VERIFY_IDENTITY"
        ))),
    }
}

/// The settings that follow.
///
/// # Errors
/// What is wrong, and where.
pub fn resolve(
    given: &Given,
    environment: &dyn Environment,
    application: &str,
) -> Result<Settings, ConninfoError> {
    let mut filed = Filed::default();
    let home = environment.home().map(|home| home.join(".my.cnf"));
    for path in FILES.iter().map(PathBuf::from).chain(home) {
        filed.read(&path, environment, 0)?;
    }
    let sources = Sources {
        given,
        filed,
        environment,
    };
    let database = given
        .option(SCHEMA)
        .map(str::to_owned)
        .or_else(|| sources.stated("database"));
    let database = database.filter(|name| !name.is_empty()).ok_or_else(|| {
        ConninfoError::new("the store names no database: write mysql://user@host/database")
    })?;
    let user = sources
        .stated("user")
        .or_else(|| environment.user())
        .ok_or_else(|| ConninfoError::new("the store names no user, and this one has no name"))?;
    let password = sources
        .stated("password")
        .or_else(|| sources.variable("MYSQL_PWD"));
    let connect_timeout = sources.stated("connect-timeout").map(|text| {
        let seconds = text.parse::<u64>();
        seconds.map_err(|_| ConninfoError::new("connect-timeout is not a number of seconds"))
    });
    let connect_timeout = connect_timeout.transpose()?.filter(|seconds| *seconds > 0);
    let mut servers = Servers::new(sources.hosts()?);
    servers.set_password(password.map(Secret).as_ref());
    servers.connect_timeout = connect_timeout.map(Duration::from_secs);
    Ok(Settings {
        servers,
        user,
        database,
        takes_database: true,
        application_name: application.to_owned(),
        timeout: Duration::ZERO,
        tls: sources.tls()?,
        warnings: sources.filed.warnings,
    })
}
