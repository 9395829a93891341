//! The settings of a connection.

use std::time::Duration;

use crate::store::net::host::{self, Servers};
use crate::store::net::tls::{ClientCertificate, Roots};

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
    pub servers: Servers,
    pub user: String,
    /// The database that the tables are in.
    pub database: String,
    /// False for a connection to no database.
    pub takes_database: bool,
    /// The connection's name on the server.
    pub application_name: String,
    /// How long a statement may take in the server.
    pub timeout: Duration,
    pub tls: Tls,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

impl host::Settings for Settings {
    fn servers(&self) -> &Servers {
        &self.servers
    }

    fn servers_mut(&mut self) -> &mut Servers {
        &mut self.servers
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn name(&self) -> String {
        let hosts = self.servers.hosts.iter().map(|host| host.to_string());
        let hosts = hosts.collect::<Vec<_>>().join(",");
        format!("mysql://{}@{hosts}/{}", self.user, self.database)
    }
}
