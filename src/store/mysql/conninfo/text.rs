//! A connection string: `mysql://user:password@host:port,host:port/database?option=value`.

use super::ConninfoError;

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
    let text = text.trim();
    let rest = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme));
    let rest = rest.ok_or_else(|| ConninfoError::new("the store is no mysql:// URL"))?;
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, query),
        None => (rest, ""),
    };
    let (authority, database) = match rest.split_once('/') {
        Some((authority, path)) => (authority, path),
        None => (rest, ""),
    };
    let mut given = Given::default();
    let hosts = match authority.rsplit_once('@') {
        None => authority,
        Some((login, hosts)) => {
            let (user, password) = match login.split_once(':') {
                Some((user, password)) => (user, Some(password)),
                None => (login, None),
            };
            push(&mut given, "user", user)?;
            if let Some(password) = password {
                push(&mut given, "password", password)?;
            }
            hosts
        }
    };
    for host in hosts.split(',') {
        given.hosts.push(of_host(host)?);
    }
    push(&mut given, "database", database)?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(ConninfoError::new(
                "the connection string has an option without = and a value",
            ));
        };
        let known = match name {
            SCHEMA => SCHEMA.to_owned(),
            _ => name.replace('_', "-"),
        };
        if known != SCHEMA && !OPTIONS.contains(&known.as_str()) {
            return Err(ConninfoError::new(format!(
                "the connection string has an unknown option {name:?}"
            )));
        }
        given.options.push((known, decoded(value)?));
    }
    Ok(given)
}

fn push(given: &mut Given, name: &str, value: &str) -> Result<(), ConninfoError> {
    if !value.is_empty() {
        given.options.push((name.to_owned(), decoded(value)?));
    }
    Ok(())
}

fn of_host(text: &str) -> Result<(String, Option<u16>), ConninfoError> {
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let closed = rest.split_once(']');
            let (name, after) = closed
                .ok_or_else(|| ConninfoError::new("the connection string has a [ without its ]"))?;
            (name, after.strip_prefix(':'))
        }
        None => match text.rsplit_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        },
    };
    let port = port.filter(|port| !port.is_empty());
    let port = port.map(str::parse).transpose();
    let port =
        port.map_err(|_| ConninfoError::new("the connection string has a port that is none"))?;
    Ok((decoded(name)?, port))
}

/// Replaces `%41` and the like.
fn decoded(text: &str) -> Result<String, ConninfoError> {
    let bad = || ConninfoError::new("the connection string has a % without two hexadecimal digits");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let digits = after.get(..2).and_then(|it| std::str::from_utf8(it).ok());
        let byte = digits.and_then(|it| u8::from_str_radix(it, 16).ok());
        bytes.push(byte.ok_or_else(bad)?);
        rest = after.get(2..).unwrap_or_default();
    }
    String::from_utf8(bytes).map_err(|_| ConninfoError::new("the connection string is not UTF-8"))
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
