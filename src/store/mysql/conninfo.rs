//! Connection strings, variables and option files as the `mysql` and `mariadb` clients take them, and the
//! settings that they yield. Pure: callers pass in whatever is read from outside.

pub mod files;
pub mod resolve;
pub mod text;

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::store::net::host::{self, Servers};
use crate::store::net::tls::Tls;

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
    /// A Unix socket never has it.
    pub tls: Tls,
}

impl host::Settings for Settings {
    fn servers(&self) -> &Servers {
        &self.servers
    }

    fn servers_mut(&mut self) -> &mut Servers {
        &mut self.servers
    }

    fn name(&self) -> String {
        let hosts = self.servers.hosts.iter().map(|host| host.to_string());
        let hosts = hosts.collect::<Vec<_>>().join(",");
        format!("mysql://{}@{hosts}/{}", self.user, self.database)
    }
}
