//! The settings of a connection.

use std::fmt;
use std::time::Duration;

pub use crate::store::secret::Secret;
pub use crate::store::tls::{ClientCertificate, Roots};

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// The path of its Unix socket.
    Unix(String),
    /// A name or number to connect to.
    Tcp(String),
}

/// One server of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Where it listens.
    pub address: Address,
    /// Its port; unused for a socket.
    pub port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Unix(path) => f.write_str(path),
            Address::Tcp(name) => write!(f, "{name} port {}", self.port),
        }
    }
}

/// `ssl-mode`, with the meaning of MySQL's clients. A Unix socket never has TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    Disabled,
    /// If the server offers it.
    Preferred,
    Required,
    /// Always, with a certificate of a known authority.
    VerifyCa,
    /// Always, with a certificate of a known authority for this very host.
    VerifyIdentity,
}

/// How TLS is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Whether TLS is used, and what is verified.
    pub mode: SslMode,
    /// The trusted authorities; `None`: no chain is verified.
    pub roots: Option<Roots>,
    /// By what the client proves who it is.
    pub client: Option<ClientCertificate>,
}

/// Everything that connecting needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The servers, in the order of the attempts. There is at least one.
    pub hosts: Vec<Host>,
    pub user: String,
    pub password: Option<Secret>,
    /// The database that the tables are in.
    pub database: String,
    /// The connection's name on the server.
    pub application_name: String,
    /// The longest time for connecting to one address; `None`: the call's own limit.
    pub connect_timeout: Option<Duration>,
    pub tls: Tls,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

impl Settings {
    /// Whether all servers are on this host, by their sockets.
    #[must_use]
    pub fn is_near(&self) -> bool {
        let mut hosts = self.hosts.iter();
        hosts.all(|host| matches!(host.address, Address::Unix(_)))
    }

    /// The store's name in messages.
    #[must_use]
    pub fn name(&self) -> String {
        let hosts: Vec<String> = self
            .hosts
            .iter()
            .map(|host| match &host.address {
                Address::Unix(path) => path.clone(),
                Address::Tcp(name) if name.contains(':') => format!("[{name}]:{}", host.port),
                Address::Tcp(name) => format!("{name}:{}", host.port),
            })
            .collect();
        format!(
            "mysql://{}@{}/{}",
            self.user,
            hosts.join(","),
            self.database
        )
    }
}
