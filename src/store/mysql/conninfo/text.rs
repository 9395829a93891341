//! A connection string: `mysql://user:password@host:port,host:port/database?option=value`.

use crate::store::net::address::Address;
use crate::store::net::options::{BadSettings, Known, Pairs, last, options};

const SCHEMES: [&str; 2] = ["mysql://", "mariadb://"];

pub const SCHEMA: &str = "tokenrun_schema";

/// The options that count.
pub const ALL: &[Known] = options![
    "user" "" Used,
    "password" "MYSQL_PWD" Used,
    "host" "MYSQL_HOST" Used,
    "port" "MYSQL_TCP_PORT" Used,
    "socket" "MYSQL_UNIX_PORT" Used,
    "database" "" Used,
    "tokenrun_schema" "" Used,
    "ssl" "" Used,
    "ssl-mode" "" Used,
    "ssl-ca" "" Used,
    "ssl-cert" "" Used,
    "ssl-key" "" Used,
    "ssl-verify-server-cert" "" Used,
    "skip-ssl" "" Used,
    "connect-timeout" "" Used,
    "connect-attributes" "" Harmless,
    "default-character-set" "" Harmless,
    "protocol" "" Used,
];

/// What a connection string says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// Names and ports, in order. An empty name stands for the default.
    pub hosts: Vec<(String, Option<u16>)>,
    /// The options, with their names as in [`ALL`]; the later of two values counts.
    pub options: Pairs,
}

/// True if a text is meant as a connection string of MySQL or MariaDB.
pub fn is_url(text: &str) -> bool {
    let text = text.trim_start();
    SCHEMES.iter().any(|scheme| text.starts_with(scheme))
}

/// Reads a connection string.
///
/// # Errors
/// What is wrong, without the value that is wrong.
pub fn parse(text: &str) -> Result<Given, BadSettings> {
    let is_known = |name: &str| ALL.iter().any(|known| known.name == name_of(name));
    let address = Address::read(text, is_known)?;
    let login = [("user", address.user), ("password", address.password)];
    let database = Some(address.path).filter(|path| !path.is_empty());
    let mut options: Pairs = login
        .into_iter()
        .chain([("database", database)])
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect();
    for (name, value) in address.parameters {
        options.push((name_of(&name), value));
    }
    Ok(Given {
        hosts: address.hosts,
        options,
    })
}

/// The name of an option: `_` stands for `-`, but in tokenrun's own.
fn name_of(text: &str) -> String {
    match text {
        SCHEMA => text.to_owned(),
        _ => text.replace('_', "-"),
    }
}

/// A connection string without its password.
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

/// True if a connection string holds a password.
pub fn has_password(text: &str) -> bool {
    parse(text).is_ok_and(|given| last(&given.options, "password").is_some())
}
