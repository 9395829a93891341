//! The settings of a connection.

use std::fmt;
use std::time::Duration;

pub use crate::store::secret::Secret;
pub use crate::store::tls::{ClientCertificate, Roots};

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// The directory of its Unix socket, or, with @ before it, an abstract name.
    Unix(String),
    /// A name or number to connect to, and the name that its certificate must have.
    Tcp {
        /// The name or address to look up.
        to: String,
        /// The host's name; `None` if only a number was given as hostaddr.
        name: Option<String>,
    },
}

/// One server of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Where it listens.
    pub address: Address,
    /// Its port, or the number in the name of its Unix socket.
    pub port: u16,
    /// The password for it.
    pub password: Option<Secret>,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.port;
        match &self.address {
            Address::Unix(directory) => write!(f, "{directory} port {port}"),
            Address::Tcp { to, name } => match name {
                Some(name) if name != to => write!(f, "{name} ({to}) port {port}"),
                _ => write!(f, "{to} port {port}"),
            },
        }
    }
}

/// `sslmode`, with libpq's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SslMode {
    Disable,
    /// Only if the server refuses anything else.
    Allow,
    /// If the server offers it.
    Prefer,
    Require,
    /// Always, with a certificate of a known authority.
    VerifyCa,
    /// Always, with a certificate of a known authority for this very host.
    VerifyFull,
}

/// Whether SCRAM is bound to the TLS connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelBinding {
    Disable,
    /// If both sides support it.
    Prefer,
    Require,
}

/// How TLS is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Whether TLS is used, and what is verified.
    pub mode: SslMode,
    /// The trusted authorities; `None`: there is no such file, so no chain is verified.
    pub roots: Option<Roots>,
    /// By what the client proves who it is.
    pub client: Option<ClientCertificate>,
    /// Whether the handshake contains the host's name.
    pub sni: bool,
    /// Not TLS 1.2.
    pub only_13: bool,
    /// Not TLS 1.3.
    pub only_12: bool,
}

/// TCP's own detection of a lost peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalives {
    pub on: bool,
    /// After how much silence, in seconds; `None`: the system's default.
    pub idle: Option<u32>,
    /// The pause between two probes, in seconds.
    pub interval: Option<u32>,
    pub count: Option<u32>,
    /// How long sent data may stay unacknowledged.
    pub user_timeout: Option<Duration>,
}

/// Everything that connecting needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The servers, in the order of the attempts. There is at least one.
    pub hosts: Vec<Host>,
    /// The database role.
    pub user: String,
    pub dbname: String,
    /// What the server shows in `pg_stat_activity`.
    pub application_name: String,
    /// `options` for the server.
    pub options: Option<String>,
    /// The longest time for connecting to one address; `None`: the call's own limit.
    pub connect_timeout: Option<Duration>,
    /// TCP's own time-outs.
    pub keepalives: Keepalives,
    pub tls: Tls,
    /// SCRAM's channel binding.
    pub channel_binding: ChannelBinding,
    /// The schema that the tables are in.
    pub schema: String,
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
                Address::Unix(directory) => format!("{directory}:{}", host.port),
                Address::Tcp { to, name } => {
                    let name = name.as_ref().unwrap_or(to);
                    if name.contains(':') {
                        format!("[{name}]:{}", host.port)
                    } else {
                        format!("{name}:{}", host.port)
                    }
                }
            })
            .collect();
        format!(
            "postgres://{}@{}/{}",
            self.user,
            hosts.join(","),
            self.dbname
        )
    }
}
