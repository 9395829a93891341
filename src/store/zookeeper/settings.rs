//! The settings of a connection, from a URL. Pure.
//!
//! `zk://[user:password@]host[:port][,host[:port]…][/path]`, `zks://` for TLS.

use std::time::Duration;

use crate::store::net::address::{Address, BadAddress};
use crate::store::net::host::{self, Host, Secret, Servers};
use crate::store::net::verified_tls::TlsFiles;

/// The client's port, and the one for TLS.
const PORTS: [u16; 2] = [2181, 2281];

/// The path, if a URL names none.
const PATH: &str = "/tokenrun";

/// Everything that a connection needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub servers: Servers,
    /// How the connection goes by TLS, if it does.
    pub tls: Option<TlsFiles>,
    pub user: Option<String>,
    /// The node that all others are under.
    pub path: String,
    /// How long a session lives without a word, in milliseconds. The servers' own limits come first.
    pub session_ms: i32,
}

fn bad<T>(what: impl Into<String>) -> Result<T, BadAddress> {
    Err(BadAddress(what.into()))
}

/// True if a URL's scheme is one of ZooKeeper's.
pub fn is_scheme(scheme: &str) -> bool {
    matches!(scheme, "zk" | "zks")
}

impl Settings {
    /// Reads a URL. An error says what is wrong with it.
    pub fn read(text: &str) -> Result<Self, BadAddress> {
        let address = Address::read(text, |name| TlsFiles::NAMES.contains(&name))?;
        if !is_scheme(address.scheme) {
            return bad("is no URL of ZooKeeper");
        }
        let tls = TlsFiles::read(&address, "zks", |_| None)?;
        let usual = PORTS[usize::from(tls.is_some())];
        let host = |(name, port): &(String, Option<u16>)| {
            let name = if name.is_empty() { "127.0.0.1" } else { name };
            Host::tcp(name, port.unwrap_or(usual))
        };
        let mut settings = Self {
            servers: Servers::new(address.hosts.iter().map(host).collect()),
            tls,
            user: address.user,
            path: path(&address.path)?,
            session_ms: i32::MAX,
        };
        let password = address.password.map(Secret);
        settings.servers.set_password(password.as_ref());
        Ok(settings)
    }

    /// The settings for calls of this length: their sessions live for as long.
    pub(super) fn with_session(self, timeout: Duration) -> Self {
        let session_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        Self { session_ms, ..self }
    }

    /// True if a password is given.
    pub fn has_password(&self) -> bool {
        let mut hosts = self.servers.hosts.iter();
        hosts.any(|host| host.password.is_some())
    }
}

fn path(path: &str) -> Result<String, BadAddress> {
    let path = path.trim_matches('/');
    let is_wrong = |c: char| c.is_control() || c.is_whitespace();
    let mut names = path.split('/');
    if path.len() > 200 || path.contains(is_wrong) {
        return bad("has a path that is too long, or has a blank");
    }
    if path.is_empty() {
        return Ok(PATH.to_owned());
    }
    if names.any(|name| matches!(name, "" | "." | "..")) || path.starts_with("zookeeper") {
        return bad("has a path that no node has");
    }
    Ok(format!("/{path}"))
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
        let scheme = if self.tls.is_some() { "zks" } else { "zk" };
        let user = self.user.as_ref().map(|user| format!("{user}@"));
        let hosts: Vec<String> = self.servers.hosts.iter().map(ToString::to_string).collect();
        let path = match self.path.as_str() {
            PATH => "",
            other => other,
        };
        format!(
            "{scheme}://{}{}{path}",
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

    #[test]
    fn a_url_names_servers_a_user_and_a_path() {
        let it = Settings::read("zk://etl:s%40cret@a,b:7000,[::1]:7001/jobs/x/").unwrap();
        assert_eq!(it.name(), "zk://etl@a:2181,b:7000,[::1]:7001/jobs/x");
        assert_eq!(it.servers.hosts[1].password, Some(Secret("s@cret".into())));
        let least = Settings::read("zk://").unwrap();
        assert_eq!(
            (least.name().as_str(), least.path.as_str()),
            ("zk://127.0.0.1:2181", PATH)
        );
        assert!(it.has_password() && !least.has_password());
        assert_eq!(Settings::read("zks://h").unwrap().name(), "zks://h:2281");
        let longest = format!("/{}", "p".repeat(200));
        let it = Settings::read(&format!("zk://h{longest}")).unwrap();
        assert_eq!(it.path, longest);
        assert!(Settings::read(&format!("zk://h{longest}p")).is_err());
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for text in [
            "zk://h?cacert=/c",
            "zks://h?cert=/c",
            "zk://h/a%20b",
            "zk://h/a//b",
            "zk://h/a/../b",
            "zk://h/zookeeper/config",
        ] {
            assert!(Settings::read(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_url_panics_or_shows_its_password(text in mutated_text(&[
            "zk://etl:secret@z1:2181,z2,[::1]:2182/jobs/nightly",
            "zks://z1,z2?cacert=/ca.pem&cert=/c.pem&key=/k.pem",
        ])) {
            let read = Settings::read(&text);
            let said = read.map_or_else(|error| error.to_string(), |it| it.name());
            prop_assert!(!said.contains('\n'), "{said:?}");
            // A text that is doubled has it in another place too.
            let is_once = text.matches('@').count() == 1;
            prop_assert!(!is_once || !said.contains(":secret@"), "{said}");
        }
    }
}
