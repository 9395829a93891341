//! A connection string: `mysql://user:password@host:port,host:port/database?option=value`.

use super::ConninfoError;
use crate::store::net::address::Address;

const SCHEMES: [&str; 2] = ["mysql://", "mariadb://"];

/// The options of a connection string and of an option file, with `-` in their names.
pub const OPTIONS: [&str; 17] = [
    "user",
    "password",
    "host",
    "port",
    "socket",
    "database",
    "ssl",
    "ssl-mode",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-verify-server-cert",
    "skip-ssl",
    "connect-timeout",
    "connect-attributes",
    "default-character-set",
    "protocol",
];

/// The option that names another database for the tables. In a connection string only.
pub const SCHEMA: &str = "tokenrun_schema";

/// What a connection string says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// Names and ports, in order. An empty name stands for the default.
    pub hosts: Vec<(String, Option<u16>)>,
    /// The options, with their names as in [`OPTIONS`]; the later of two values counts.
    pub options: Vec<(String, String)>,
}

impl Given {
    /// The value of an option.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        let found = self.options.iter().rfind(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Whether a text is meant as a connection string of MySQL or MariaDB.
#[must_use]
pub fn is_url(text: &str) -> bool {
    let text = text.trim_start();
    SCHEMES.iter().any(|scheme| text.starts_with(scheme))
}

/// Reads a connection string.
///
/// # Errors
/// What is wrong, without the value that is wrong.
pub fn parse(text: &str) -> Result<Given, ConninfoError> {
    let is_known = |name: &str| name == SCHEMA || OPTIONS.contains(&&*name.replace('_', "-"));
    let address = Address::read(text, is_known)?;
    let login = [("user", address.user), ("password", address.password)];
    let database = Some(address.path).filter(|path| !path.is_empty());
    let mut options: Vec<(String, String)> = login
        .into_iter()
        .chain([("database", database)])
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect();
    for (name, value) in address.parameters {
        let name = match name.as_str() {
            SCHEMA => name,
            _ => name.replace('_', "-"),
        };
        options.push((name, value));
    }
    Ok(Given {
        hosts: address.hosts,
        options,
    })
}

/// A connection string without its password.
#[must_use]
pub fn without_password(text: &str) -> String {
    if parse(text).is_err() {
        return "(what can't be read is not shown)".to_owned();
    }
    let text = text.trim();
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = match rest.split_once('/') {
        Some((authority, path)) => (authority, format!("/{path}")),
        None => (rest, String::new()),
    };
    let authority = match authority.rsplit_once('@') {
        Some((login, hosts)) => match login.split_once(':') {
            Some((user, _)) => format!("{user}:***@{hosts}"),
            None => authority.to_owned(),
        },
        None => authority.to_owned(),
    };
    let options = query.split('&').map(|pair| match pair.split_once('=') {
        Some(("password", _)) => "password=***".to_owned(),
        _ => pair.to_owned(),
    });
    let mark = if query.is_empty() { "" } else { "?" };
    let options = options.collect::<Vec<_>>().join("&");
    format!("{scheme}://{authority}{path}{mark}{options}")
}

/// Whether a connection string holds a password.
#[must_use]
pub fn has_password(text: &str) -> bool {
    parse(text).is_ok_and(|given| given.option("password").is_some())
}
