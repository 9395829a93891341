//! The settings of a connection, from a URL and this process's environment. Pure.
//!
//! `redis://[user[:password]@]host[:port][,host[:port]…][/database][?prefix=NAME]`, `rediss://` for
//! TLS, `redis+unix://[user[:password]@]/path[?db=N]` for a Unix socket; `valkey` in place of
//! `redis` means the same. With `quorum` as a parameter, a majority of three or five servers is the store.

use std::collections::BTreeSet;

use crate::store::net::address::{Address, BadAddress, number};
use crate::store::net::host::Secret;
use crate::store::net::host::{self, Host, Servers};
use crate::store::net::verified_tls::TlsFiles;

/// The schemes, and whether they mean TLS and a Unix socket.
const SCHEMES: [(&str, bool, bool); 6] = [
    ("redis", false, false),
    ("rediss", true, false),
    ("redis+unix", false, true),
    ("valkey", false, false),
    ("valkeys", true, false),
    ("valkey+unix", false, true),
];

const PORT: u16 = 6379;

/// The parameters of a URL.
const PARAMETERS: [&str; 6] = ["db", "prefix", "quorum", "cacert", "cert", "key"];

/// How many servers a quorum has.
const MEMBERS: [usize; 2] = [3, 5];

/// The prefix of keys, without the braces that keep them on one node of a cluster.
const PREFIX: &str = "tokenrun";

/// Everything that a connection needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub servers: Servers,
    /// How the connection goes by TLS, if it does.
    pub tls: Option<TlsFiles>,
    pub user: Option<String>,
    pub database: u32,
    /// All keys begin with this.
    pub prefix: String,
    /// True if a majority of the servers is the store, and not the first one that can be used.
    pub is_quorum: bool,
    /// The connection's name on the server.
    pub application: String,
    pub(super) scheme: &'static str,
}

fn bad<T>(what: impl Into<String>) -> Result<T, BadAddress> {
    Err(BadAddress(what.into()))
}

/// True if a URL's scheme is one of Redis's or Valkey's.
pub fn is_scheme(scheme: &str) -> bool {
    SCHEMES.iter().any(|(known, ..)| *known == scheme)
}

impl Settings {
    /// Reads a URL. `variable` looks an environment variable up. An error says what is wrong with the URL.
    pub fn read(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, BadAddress> {
        let mut settings = parse(text)?;
        if !settings.has_password() {
            let mut names = ["REDISCLI_AUTH", "VALKEYCLI_AUTH"];
            if settings.scheme.starts_with("valkey") {
                names.reverse();
            }
            let given = names.into_iter().find_map(variable);
            let given = given.filter(|text| !text.is_empty()).map(Secret);
            settings.servers.set_password(given.as_ref());
        }
        Ok(settings)
    }

    /// True if a password is given.
    pub fn has_password(&self) -> bool {
        let mut hosts = self.servers.hosts.iter();
        hosts.any(|host| host.password.is_some())
    }

    /// These settings with this name of the connection. The server takes neither blanks nor other than ASCII.
    pub(super) fn named(self, application: &str) -> Self {
        let plain = |c: char| if c.is_ascii_graphic() { c } else { '_' };
        Self {
            application: application.chars().map(plain).collect(),
            ..self
        }
    }

    fn prefix_name(&self) -> &str {
        let inner = self.prefix.strip_prefix('{');
        inner
            .and_then(|it| it.strip_suffix("}:"))
            .unwrap_or(&self.prefix)
    }
}

impl host::Settings for Settings {
    fn servers(&self) -> &Servers {
        &self.servers
    }

    fn servers_mut(&mut self) -> &mut Servers {
        &mut self.servers
    }

    /// The URL without its password and the files of TLS.
    fn name(&self) -> String {
        let user = self.user.as_ref().map(|user| format!("{user}@"));
        let hosts: Vec<String> = self.servers.hosts.iter().map(ToString::to_string).collect();
        let is_unix = self.servers.hosts.first().is_some_and(Host::is_unix);
        let database = match self.database {
            0 => String::new(),
            number if is_unix => format!("?db={number}"),
            number => format!("/{number}"),
        };
        let name = format!(
            "{}://{}{}{database}",
            self.scheme,
            user.unwrap_or_default(),
            hosts.join(",")
        );
        let prefix = Some(self.prefix_name()).filter(|name| *name != PREFIX);
        let prefix = prefix.map(|name| format!("prefix={name}"));
        let quorum = self.is_quorum.then(|| "quorum".to_owned());
        [quorum, prefix]
            .into_iter()
            .flatten()
            .fold(name, |name, it| {
                let joint = if name.contains('?') { '&' } else { '?' };
                format!("{name}{joint}{it}")
            })
    }
}

/// Reads a URL alone. An error says what is wrong with it.
pub fn parse(text: &str) -> Result<Settings, BadAddress> {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
    let Some((scheme, tls, unix)) = SCHEMES.into_iter().find(|(known, ..)| *known == scheme) else {
        return bad("is no URL of Redis or Valkey");
    };
    let address = Address::read(text, |name| PARAMETERS.contains(&name))?;
    let mut settings = Settings {
        servers: Servers::new(Vec::new()),
        tls: tls.then_some(TlsFiles::DEFAULT),
        user: address.user,
        database: 0,
        prefix: format!("{{{PREFIX}}}:"),
        is_quorum: false,
        application: "tokenrun".into(),
        scheme,
    };
    if unix {
        let only = socket(&address.hosts, &address.path)?;
        settings.servers.hosts.push(only);
    } else {
        settings.servers.hosts = address.hosts.into_iter().map(host).collect();
        settings.database = database(&address.path)?;
    }
    let password = address.password.map(Secret);
    settings.servers.set_password(password.as_ref());
    let in_path = !unix && !address.path.is_empty();
    let mut names = BTreeSet::from_iter(in_path.then_some("db"));
    for (name, value) in &address.parameters {
        // Another node's program might take the other one.
        if !names.insert(name) {
            return bad(match name.as_str() {
                "db" => "names its database twice".to_owned(),
                _ => format!("has {name:?} twice"),
            });
        }
        set(&mut settings, name, value)?;
    }
    if !settings.tls.as_ref().is_none_or(TlsFiles::are_complete) {
        return bad("has one of cert and key: give both");
    }
    if settings.is_quorum {
        may_be_quorum(&settings.servers.hosts)?;
    }
    Ok(settings)
}

/// An even number of servers bears no more failures than one less.
fn may_be_quorum(hosts: &[Host]) -> Result<(), BadAddress> {
    if !MEMBERS.contains(&hosts.len()) {
        return bad(format!(
            "names {} servers, and a quorum has 3 or 5",
            hosts.len()
        ));
    }
    let same = |(index, host): (usize, &Host)| hosts.iter().take(index).any(|it| it == host);
    match hosts.iter().enumerate().any(same) {
        true => bad("names a server twice, and each counts once in a quorum"),
        false => Ok(()),
    }
}

fn socket(hosts: &[(String, Option<u16>)], path: &str) -> Result<Host, BadAddress> {
    match hosts {
        [(name, None)] if name.is_empty() && !path.is_empty() => Ok(Host::unix(format!("/{path}"))),
        _ => bad("names no socket by an absolute path: write redis+unix:///run/redis.sock"),
    }
}

fn host((name, port): (String, Option<u16>)) -> Host {
    let name = match name.as_str() {
        "" => "127.0.0.1",
        name => name,
    };
    Host::tcp(name, port.unwrap_or(PORT))
}

fn database(text: &str) -> Result<u32, BadAddress> {
    match text {
        "" => Ok(0),
        text => match number(text) {
            Some(number) => Ok(number),
            None => bad("has a path that is no number of a database"),
        },
    }
}

fn set(settings: &mut Settings, name: &str, value: &str) -> Result<(), BadAddress> {
    match (name, &mut settings.tls) {
        ("db", _) => settings.database = database(value)?,
        ("prefix", _) => {
            let is_wrong = |c: char| c.is_control() || c.is_whitespace() || "{}:*?[]".contains(c);
            if value.is_empty() || value.len() > 100 || value.contains(is_wrong) {
                return bad(
                    "has a prefix that is empty, too long, or has a blank or one of {}:*?[]",
                );
            }
            settings.prefix = format!("{{{value}}}:");
        }
        ("quorum", _) if value.is_empty() => settings.is_quorum = true,
        ("quorum", _) => return bad("has a value for quorum, which takes none"),
        (file, Some(tls)) => tls.set(file, value),
        (_, None) => return bad(format!("has {name}, which needs TLS: write rediss://")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mutated::mutated_text;
    use crate::store::net::host::Settings as _;
    use crate::store::net::tls::{ClientCertificate, Roots};

    fn password_of(settings: &Settings) -> Option<Secret> {
        settings.servers.hosts[0].password.clone()
    }

    fn tcp(name: &str, port: u16) -> Host {
        Host::tcp(name, port)
    }

    #[test]
    fn a_url_names_servers_a_database_a_user_and_a_prefix() {
        let it = parse("redis://etl:s%40cret@db1,db2:7000,[::1]:7001/3?prefix=jobs").unwrap();
        let places = it.servers.hosts.iter().map(|host| &host.place);
        let servers = [tcp("db1", 6379), tcp("db2", 7000), tcp("::1", 7001)];
        assert!(places.eq(servers.iter().map(|host| &host.place)));
        assert_eq!(it.user.as_deref(), Some("etl"));
        assert_eq!(password_of(&it), Some(Secret("s@cret".into())));
        assert_eq!((it.database, it.prefix.as_str()), (3, "{jobs}:"));
        assert_eq!(
            it.name(),
            "redis://etl@db1:6379,db2:7000,[::1]:7001/3?prefix=jobs"
        );
        let least = parse("valkey://").unwrap();
        assert_eq!(least.servers.hosts, [tcp("127.0.0.1", 6379)]);
        assert_eq!((least.tls, least.prefix.as_str()), (None, "{tokenrun}:"));
        let it = parse("redis://h?db=2").unwrap().named("a b\n1-é");
        assert_eq!((it.database, it.application.as_str()), (2, "a_b_1-_"));
        let only_password = parse("redis://:secret@h").unwrap();
        assert_eq!(only_password.user, None);
        assert_eq!(password_of(&only_password), Some(Secret("secret".into())));
    }

    #[test]
    fn a_quorum_has_three_or_five_servers() {
        let it = parse("redis://a,b:7000,c/2?quorum&prefix=jobs").unwrap();
        assert!(it.is_quorum);
        assert_eq!(
            it.name(),
            "redis://a:6379,b:7000,c:6379/2?quorum&prefix=jobs"
        );
        assert!(parse("redis://a,b,c,d,e?quorum").is_ok());
        for url in [
            "redis://a?quorum",
            "redis://a,b?quorum",
            "redis://a,b,c,d?quorum",
            "redis://a,b,a?quorum",
            "redis://a,b,c?quorum=2",
            "redis+unix:///s?quorum",
        ] {
            assert!(parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_socket_has_an_absolute_path() {
        let it = parse("redis+unix:///run/a%20b.sock?db=2").unwrap();
        assert_eq!(it.servers.hosts, [Host::unix("/run/a b.sock")]);
        assert_eq!(it.database, 2);
        assert_eq!(it.name(), "redis+unix:///run/a b.sock?db=2");
        assert!(parse("redis+unix://run/x.sock").is_err());
        assert!(parse("redis+unix://").is_err());
        assert!(parse("valkey+unix://u:p@/run/x.sock").is_ok());
    }

    #[test]
    fn tls_has_its_files() {
        let it = parse("rediss://h?cacert=/ca.pem&cert=/c.pem&key=/k.pem").unwrap();
        let tls = it.tls.unwrap();
        assert_eq!(tls.roots, Roots::File("/ca.pem".into()));
        let client = ClientCertificate {
            certificate: "/c.pem".into(),
            key: "/k.pem".into(),
        };
        assert_eq!(tls.client, Some(client));
        let tls = parse("valkeys://h").unwrap().tls.unwrap();
        assert_eq!(tls.roots, Roots::System);
        assert!(parse("rediss://h?cert=/c.pem").is_err());
        assert!(parse("redis://h?cacert=/ca.pem").is_err());
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for url in [
            "redis://u:secret/more@h",
            "redis://h:secret",
            "redis://h/secret",
            "redis://u:secret@h?passwd=secret",
            "redis://u:%ff@h",
            "redis://h?prefix=a&prefix=b",
            "redis://h/2?db=3",
            "redis+unix:///s?db=2&db=2",
        ] {
            let error = parse(url).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{url}: {error}");
        }
    }

    #[test]
    fn a_prefix_is_one_short_word_without_the_signs_of_patterns() {
        let longest = "p".repeat(100);
        let it = parse(&format!("redis://h?prefix={longest}")).unwrap();
        assert_eq!(it.prefix, format!("{{{longest}}}:"));
        let too_long = format!("{longest}p");
        let wrong = ["", "a%01", "a%20b", "a{", "}", "a:b", "*", "a?", "[", "]"];
        for wrong in wrong.into_iter().chain([too_long.as_str()]) {
            let error = parse(&format!("redis://h?prefix={wrong}")).unwrap_err();
            assert!(error.0.contains("has a prefix that is"), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_password_of_the_environment_is_taken_where_the_url_has_none() {
        let both = |name: &str| match name {
            "REDISCLI_AUTH" => Some("red".to_owned()),
            "VALKEYCLI_AUTH" => Some("valk".to_owned()),
            _ => None,
        };
        let password = |url: &str| password_of(&Settings::read(url, both).unwrap()).unwrap().0;
        assert_eq!(password("redis://h"), "red");
        assert_eq!(password("valkeys://h"), "valk");
        assert_eq!(password("redis://:own@h"), "own");
        let valkey = |name: &str| (name == "VALKEYCLI_AUTH").then(|| "v".to_owned());
        let found = password_of(&Settings::read("redis://h", valkey).unwrap());
        assert_eq!(found, Some(Secret("v".into())));
        assert_eq!(
            password_of(&Settings::read("redis://h", |_| None).unwrap()),
            None
        );
    }

    proptest! {
        #[test]
        fn no_url_panics_or_shows_its_password(text in mutated_text(&[
            "redis://etl:secret@db1,db2:7000,[::1]:7001/3?prefix=jobs",
            "rediss://:secret@h?cacert=/ca.pem&cert=/c.pem&key=/k.pem",
            "redis+unix://u:secret@/run/a%20b.sock?db=2",
            "valkey://a,b:7000,c/2?quorum&prefix=jobs",
        ])) {
            let read = Settings::read(&text, |_| None);
            let said = read.map_or_else(|error| error.to_string(), |it| it.name());
            prop_assert!(!said.contains('\n'), "{said:?}");
            // A text that is doubled has it in another place too.
            let is_once = text.matches('@').count() == 1;
            prop_assert!(!is_once || !said.contains(":secret@"), "{said}");
        }
    }
}
