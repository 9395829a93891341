//! Connection strings in libpq's syntax: URLs, `key=value`, the variables `PG…`, service files and
//! password files; and the settings that they yield. Pure: callers pass in whatever is read from outside.

pub mod resolve;
pub mod text;

mod files;
mod tls;

#[cfg(test)]
mod tests;

use tokio_postgres::config::ChannelBinding;

use crate::store::net::host::{self, Host, Place, Servers, bracketed};
use crate::store::net::tls::Tls;

/// What stands between the directory of a Unix socket and its number.
pub const SOCKET: &str = "/.s.PGSQL.";

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
    /// The binding of SCRAM to the TLS connection.
    pub channel_binding: ChannelBinding,
    /// The schema that the tables are in.
    pub schema: String,
}

impl host::Settings for Settings {
    fn servers(&self) -> &Servers {
        &self.servers
    }

    fn servers_mut(&mut self) -> &mut Servers {
        &mut self.servers
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
