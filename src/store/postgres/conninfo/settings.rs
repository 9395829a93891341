//! The settings of a connection.

use crate::store::net::host::{self, Host, Place, Servers, bracketed};
use crate::store::net::tls::{ClientCertificate, Roots};

/// What stands between the directory of a Unix socket and its number.
pub const SOCKET: &str = "/.s.PGSQL.";

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

/// Everything that connecting needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub servers: Servers,
    /// The database role.
    pub user: String,
    pub dbname: String,
    /// What the server shows in `pg_stat_activity`.
    pub application_name: String,
    /// `options` for the server.
    pub options: Option<String>,
    pub tls: Tls,
    /// SCRAM's channel binding.
    pub channel_binding: ChannelBinding,
    /// The schema that the tables are in.
    pub schema: String,
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
        let hosts = self.servers.hosts.iter().map(named).collect::<Vec<_>>();
        format!(
            "postgres://{}@{}/{}",
            self.user,
            hosts.join(","),
            self.dbname
        )
    }
}

/// A server as it stands in a URL.
fn named(host: &Host) -> String {
    match &host.place {
        Place::Unix(path) => path.replacen(SOCKET, ":", 1),
        Place::Tcp { to, port, name } => {
            format!("{}:{port}", bracketed(name.as_ref().unwrap_or(to)))
        }
    }
}
