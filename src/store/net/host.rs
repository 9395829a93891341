//! The servers of a store, and where each listens.

use std::fmt;
use std::time::Duration;

use crate::sys::socket::Keepalive;

/// How an idle connection is probed: a lost server is noticed within a minute.
pub const PROBES: Keepalive = Keepalive {
    idle: Some(30),
    interval: Some(10),
    count: Some(3),
};

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The path of its Unix socket. A first character `@` stands for the zero byte of abstract names.
    Unix(String),
    Tcp {
        /// The name or address to look up.
        to: String,
        port: u16,
        /// The name that its certificate must have; `None` if only an address is known.
        name: Option<String>,
    },
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// One server of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    pub place: Place,
    /// The password for it.
    pub password: Option<Secret>,
}

impl Host {
    pub fn unix(path: impl Into<String>) -> Self {
        Self {
            place: Place::Unix(path.into()),
            password: None,
        }
    }

    pub fn tcp(name: impl Into<String>, port: u16) -> Self {
        let to: String = name.into();
        Self {
            place: Place::Tcp {
                name: Some(to.clone()),
                to,
                port,
            },
            password: None,
        }
    }

    pub const fn is_unix(&self) -> bool {
        matches!(self.place, Place::Unix(_))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Unix(path) => f.write_str(path),
            Place::Tcp { to, port, name } => match name {
                Some(name) if name != to => write!(f, "{} ({to}):{port}", bracketed(name)),
                _ => write!(f, "{}:{port}", bracketed(to)),
            },
        }
    }
}

/// A name as it stands before a port: an address of IPv6 is in brackets.
pub fn bracketed(name: &str) -> String {
    match name.contains(':') {
        true => format!("[{name}]"),
        false => name.to_owned(),
    }
}

/// The servers of a store, and how their connections are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Servers {
    /// In the order of the attempts. There is at least one.
    pub hosts: Vec<Host>,
    /// The longest time for connecting to one address; `None`: the call's own limit.
    pub connect_timeout: Option<Duration>,
    /// How the kernel probes an idle connection; `None`: not at all.
    pub keepalive: Option<Keepalive>,
    /// How long sent bytes may stay unacknowledged; `None`: as long as the kernel allows.
    pub user_timeout: Option<Duration>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

impl Servers {
    /// Servers with the usual limits.
    pub const fn new(hosts: Vec<Host>) -> Self {
        Self {
            hosts,
            connect_timeout: None,
            keepalive: Some(PROBES),
            user_timeout: None,
            warnings: Vec::new(),
        }
    }

    /// Gives all servers this password.
    pub fn set_password(&mut self, password: Option<&Secret>) {
        for host in &mut self.hosts {
            host.password = password.cloned();
        }
    }
}

/// Everything that the connections of a store need.
pub trait Settings: Clone {
    fn servers(&self) -> &Servers;

    fn servers_mut(&mut self) -> &mut Servers;

    /// The store's name in messages, without a password.
    fn name(&self) -> String;

    /// True if all servers are on this host, by their sockets.
    fn is_near(&self) -> bool {
        self.servers().hosts.iter().all(Host::is_unix)
    }

    /// These settings with this server alone.
    fn only(&self, host: &Host) -> Self {
        let mut only = self.clone();
        only.servers_mut().hosts = vec![host.clone()];
        only
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_shown_as_it_is_written() {
        let mut named = Host::tcp("db1", 7);
        assert_eq!(named.to_string(), "db1:7");
        assert_eq!(Host::tcp("::1", 7).to_string(), "[::1]:7");
        assert_eq!(Host::unix("/run/s").to_string(), "/run/s");
        if let Place::Tcp { to, .. } = &mut named.place {
            *to = "10.0.0.1".into();
        }
        assert_eq!(named.to_string(), "db1 (10.0.0.1):7");
    }

    #[derive(Clone)]
    struct Plain(Servers);

    impl Settings for Plain {
        fn servers(&self) -> &Servers {
            &self.0
        }

        fn servers_mut(&mut self) -> &mut Servers {
            &mut self.0
        }

        fn name(&self) -> String {
            String::new()
        }
    }

    #[test]
    fn servers_are_near_if_each_has_a_socket() {
        let hosts = [Host::unix("/run/s"), Host::tcp("h", 7)];
        let both = Plain(Servers::new(hosts.to_vec()));
        assert!(!both.is_near());
        for host in &hosts {
            let only = both.only(host);
            assert_eq!(only.0, Servers::new(vec![host.clone()]));
            assert_eq!(only.is_near(), host.is_unix());
        }
    }
}
