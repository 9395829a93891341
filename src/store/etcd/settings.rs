//! The settings of a connection, from a URL and this process's environment. Pure.
//!
//! `etcd://[user[:password]@]host[:port][,host[:port]…][/prefix]`, `etcds://` for TLS. The variables of etcdctl
//! give what the URL leaves out.

use crate::store::net::address::{Address, BadAddress, port_number};
use crate::store::net::host::{self, Host, Secret, Servers};
use crate::store::net::verified_tls::TlsFiles;

const PORT: u16 = 2379;

/// The keys' prefix, if a URL names none.
const PREFIX: &str = "tokenrun";

/// Everything that a connection needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub servers: Servers,
    /// How the connection goes by TLS, if it does.
    pub tls: Option<TlsFiles>,
    pub user: Option<String>,
    /// All keys begin with this and a slash.
    pub prefix: String,
}

fn bad<T>(what: impl Into<String>) -> Result<T, BadAddress> {
    Err(BadAddress(what.into()))
}

/// True if a URL's scheme is one of etcd's.
pub fn is_scheme(scheme: &str) -> bool {
    matches!(scheme, "etcd" | "etcds")
}

impl Settings {
    /// Reads a URL. `variable` looks an environment variable up. An error says what is wrong with the URL.
    pub fn read(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, BadAddress> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let address = Address::read(text, |name| TlsFiles::NAMES.contains(&name))?;
        if !is_scheme(address.scheme) {
            return bad("is no URL of etcd");
        }
        let file = |name: &str| variable(&format!("ETCDCTL_{}", name.to_uppercase()));
        let tls = TlsFiles::read(&address, "etcds", file)?;
        let given = variable("ETCDCTL_USER").unwrap_or_default();
        let (user, password) = given.split_once(':').unwrap_or((&given, ""));
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let is_named = address.user.is_some();
        let others = || {
            some(password)
                .filter(|_| !is_named)
                .or_else(|| variable("ETCDCTL_PASSWORD"))
        };
        let password = address.password.clone().or_else(others).map(Secret);
        let mut settings = Self {
            servers: Servers::new(hosts(&address, variable("ETCDCTL_ENDPOINTS"))?),
            tls,
            user: address.user.or_else(|| some(user)),
            prefix: prefix(&address.path)?,
        };
        settings.servers.set_password(password.as_ref());
        Ok(settings)
    }
}

impl Settings {
    /// True if a password is given.
    pub fn has_password(&self) -> bool {
        let mut hosts = self.servers.hosts.iter();
        hosts.any(|host| host.password.is_some())
    }
}

/// The servers of the URL; those of the variable, if it names none.
fn hosts(address: &Address<'_>, endpoints: Option<String>) -> Result<Vec<Host>, BadAddress> {
    let is_empty = address
        .hosts
        .iter()
        .all(|(name, port)| name.is_empty() && port.is_none());
    if let Some(endpoints) = endpoints.filter(|_| is_empty) {
        return endpoints.split(',').map(endpoint).collect();
    }
    let host = |(name, port): &(String, Option<u16>)| {
        let name = if name.is_empty() { "127.0.0.1" } else { name };
        Host::tcp(name, port.unwrap_or(PORT))
    };
    Ok(address.hosts.iter().map(host).collect())
}

/// A server in etcdctl's words: `https://host:port`.
fn endpoint(text: &str) -> Result<Host, BadAddress> {
    let text = text.trim();
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port_number(port)?),
        _ => (text, PORT),
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    if name.is_empty() {
        return bad("names no server, and ETCDCTL_ENDPOINTS has an empty one");
    }
    Ok(Host::tcp(name, port))
}

fn prefix(path: &str) -> Result<String, BadAddress> {
    let path = path.trim_matches('/');
    let is_wrong = |c: char| c.is_control() || c.is_whitespace();
    if path.len() > 200 || path.contains(is_wrong) {
        return bad("has a prefix that is too long, or has a blank");
    }
    Ok(if path.is_empty() { PREFIX } else { path }.to_owned())
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
        let scheme = if self.tls.is_some() { "etcds" } else { "etcd" };
        let user = self.user.as_ref().map(|user| format!("{user}@"));
        let hosts: Vec<String> = self.servers.hosts.iter().map(ToString::to_string).collect();
        let prefix = match self.prefix.as_str() {
            PREFIX => String::new(),
            other => format!("/{other}"),
        };
        format!(
            "{scheme}://{}{}{prefix}",
            user.unwrap_or_default(),
            hosts.join(",")
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mutated::mutated_text;
    use crate::store::net::host::Settings as _;
    use crate::store::net::tls::Roots;

    fn parse(text: &str) -> Result<Settings, BadAddress> {
        Settings::read(text, |_| None)
    }

    #[test]
    fn a_url_names_servers_a_user_and_a_prefix() {
        let it = parse("etcd://etl:s%40cret@a,b:7000,[::1]:7001/jobs/x").unwrap();
        let hosts = ["a", "b", "::1"].into_iter().zip([2379, 7000, 7001]);
        let hosts: Vec<Host> = hosts.map(|(name, port)| Host::tcp(name, port)).collect();
        assert!(
            it.servers
                .hosts
                .iter()
                .map(|host| &host.place)
                .eq(hosts.iter().map(|it| &it.place))
        );
        assert_eq!(
            (it.user.as_deref(), it.prefix.as_str()),
            (Some("etl"), "jobs/x")
        );
        assert_eq!(it.servers.hosts[0].password, Some(Secret("s@cret".into())));
        assert_eq!(it.name(), "etcd://etl@a:2379,b:7000,[::1]:7001/jobs/x");
        let least = parse("etcd://").unwrap();
        assert_eq!(least.name(), "etcd://127.0.0.1:2379");
        assert!(it.has_password() && !least.has_password());
        assert_eq!((least.tls, least.prefix.as_str()), (None, PREFIX));
        let longest = "p".repeat(200);
        let it = parse(&format!("etcd://h/{longest}")).unwrap();
        assert_eq!(it.prefix, longest);
        assert!(parse(&format!("etcd://h/{longest}p")).is_err());
    }

    #[test]
    fn the_variables_of_etcdctl_give_what_the_url_leaves_out() {
        let variable = |name: &str| {
            let value = match name {
                "ETCDCTL_ENDPOINTS" => "https://e1:99, e2,[::1]:3",
                "ETCDCTL_USER" => "root:of-variable",
                "ETCDCTL_CACERT" => "/ca.pem",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let it = Settings::read("etcds:///p", variable).unwrap();
        assert_eq!(it.name(), "etcds://root@e1:99,e2:2379,[::1]:3/p");
        assert_eq!(
            it.servers.hosts[0].password,
            Some(Secret("of-variable".into()))
        );
        assert_eq!(it.tls.unwrap().roots, Roots::File("/ca.pem".into()));
        let own = Settings::read("etcds://me@h?cacert=/own.pem", variable).unwrap();
        assert_eq!(own.name(), "etcds://me@h:2379");
        assert_eq!(own.servers.hosts[0].password, None, "that of another user");
        assert_eq!(own.tls.unwrap().roots, Roots::File("/own.pem".into()));
        let port = Settings::read("etcds://:99", variable).unwrap();
        assert_eq!(port.name(), "etcds://root@127.0.0.1:99");
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for text in [
            "etcd://h?cacert=/c",
            "etcds://h?cert=/c",
            "etcd://h/a%20b",
            "etcds://h?key=/k&key=/l",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_url_panics_or_shows_its_password(text in mutated_text(&[
            "etcd://etl:secret@e1,e2:2479,[::1]:2379/jobs",
            "etcds://e1,e2?cacert=/ca.pem&cert=/c.pem&key=/k.pem",
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
