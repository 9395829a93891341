//! The options of a connection string, and the two ways to write one: a URL, and `key=value` pairs.

use crate::store::net::address::Address;
use crate::store::net::options::{BadSettings, Known, Pairs, options};

/// The option that names the schema that the tables are in.
pub const SCHEMA: &str = "tokenrun_schema";

/// Every option of libpq, and its treatment here.
pub const ALL: &[Known] = options![
    "service" "PGSERVICE" Used,
    "host" "PGHOST" Used,
    "hostaddr" "PGHOSTADDR" Used,
    "port" "PGPORT" Used,
    "dbname" "PGDATABASE" Used,
    "user" "PGUSER" Used,
    "password" "PGPASSWORD" Used,
    "passfile" "PGPASSFILE" Used,
    "channel_binding" "PGCHANNELBINDING" Used,
    "connect_timeout" "PGCONNECT_TIMEOUT" Used,
    "options" "PGOPTIONS" Used,
    "application_name" "PGAPPNAME" Used,
    "fallback_application_name" "" Used,
    "keepalives" "" Used,
    "keepalives_idle" "" Used,
    "keepalives_interval" "" Used,
    "keepalives_count" "" Used,
    "tcp_user_timeout" "" Used,
    "sslmode" "PGSSLMODE" Used,
    "sslrootcert" "PGSSLROOTCERT" Used,
    "sslcert" "PGSSLCERT" Used,
    "sslkey" "PGSSLKEY" Used,
    "sslsni" "PGSSLSNI" Used,
    "ssl_min_protocol_version" "PGSSLMINPROTOCOLVERSION" Used,
    "ssl_max_protocol_version" "PGSSLMAXPROTOCOLVERSION" Used,
    "target_session_attrs" "PGTARGETSESSIONATTRS" Used,
    "gssencmode" "PGGSSENCMODE" Used,
    "load_balance_hosts" "PGLOADBALANCEHOSTS" Used,
    "tokenrun_schema" "" Used,
    "client_encoding" "PGCLIENTENCODING" Harmless,
    "sslcompression" "PGSSLCOMPRESSION" Harmless,
    "krbsrvname" "PGKRBSRVNAME" Harmless,
    "gsslib" "PGGSSLIB" Harmless,
    "sslpassword" "" Refused,
    "sslcrl" "PGSSLCRL" Refused,
    "sslcrldir" "PGSSLCRLDIR" Refused,
    "sslcertmode" "PGSSLCERTMODE" Refused,
    "sslnegotiation" "PGSSLNEGOTIATION" Refused,
    "requirepeer" "PGREQUIREPEER" Refused,
    "require_auth" "PGREQUIREAUTH" Refused,
    "gssdelegation" "PGGSSDELEGATION" Refused,
    "replication" "" Refused,
];

pub fn known(name: &str) -> Option<&'static Known> {
    ALL.iter().find(|known| known.name == name)
}

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// True if a text is meant as a connection string: a PostgreSQL URL, or pairs that begin with an
/// option of libpq.
pub fn is_conninfo(text: &str) -> bool {
    let text = text.trim_start();
    SCHEMES.iter().any(|scheme| text.starts_with(scheme))
        || text
            .split_once('=')
            .is_some_and(|(key, _)| known(key.trim_end()).is_some())
}

/// Reads a connection string.
///
/// # Errors
/// What is wrong, without the value that is wrong.
pub fn parse(text: &str) -> Result<Pairs, BadSettings> {
    let text = text.trim();
    let is_url = SCHEMES.iter().any(|scheme| text.starts_with(scheme));
    let pairs = if is_url {
        url_pairs(text)?
    } else {
        key_values(text)?
    };
    for (name, _) in &pairs {
        if known(name).is_none() {
            return Err(BadSettings::new(format!(
                "the connection string has an unknown option {name:?}"
            )));
        }
    }
    Ok(pairs)
}

fn key_values(text: &str) -> Result<Pairs, BadSettings> {
    let mut pairs = Pairs::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || c.is_whitespace());
        let (key, after) = rest.split_at(end.unwrap_or(rest.len()));
        let Some(after) = after.trim_start().strip_prefix('=') else {
            // The text here may be a part of a password with a blank in it.
            return Err(BadSettings::new(
                "the connection string has a word without = after it; put values with blanks in '…'",
            ));
        };
        let (value, after) = value(after.trim_start())?;
        pairs.push((key.to_owned(), value));
        rest = after.trim_start();
    }
    Ok(pairs)
}

/// A value, quoted or not, and the rest of the text.
fn value(text: &str) -> Result<(String, &str), BadSettings> {
    let quoted = text.strip_prefix('\'');
    let mut chars = quoted.unwrap_or(text).char_indices();
    let source = quoted.unwrap_or(text);
    let mut value = String::new();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            '\'' if quoted.is_some() => return Ok((value, source.get(at + 1..).unwrap_or(""))),
            c if c.is_whitespace() && quoted.is_none() => {
                return Ok((value, source.get(at..).unwrap_or("")));
            }
            c => value.push(c),
        }
    }
    if quoted.is_some() {
        return Err(BadSettings::new(
            "the connection string has a ' without its end",
        ));
    }
    Ok((value, ""))
}

fn url_pairs(text: &str) -> Result<Pairs, BadSettings> {
    // The form in JDBC's URLs.
    const JDBC_SSL: &str = "ssl";
    let address = Address::read(text, |name| name == JDBC_SSL || known(name).is_some())?;
    let mut pairs = Pairs::new();
    let mut push = |name: &str, value: Option<String>| {
        pairs.extend(value.map(|value| (name.to_owned(), value)));
    };
    push("user", address.user);
    push("password", address.password);
    let is_named = address.hosts.iter().any(|(name, _)| !name.is_empty());
    let has_port = address.hosts.iter().any(|(_, port)| port.is_some());
    let (names, ports): (Vec<_>, Vec<_>) = address.hosts.into_iter().unzip();
    let ports = ports
        .into_iter()
        .map(|port| port.map_or_else(String::new, |it| it.to_string()));
    push("host", is_named.then(|| names.join(",")));
    push(
        "port",
        has_port.then(|| ports.collect::<Vec<_>>().join(",")),
    );
    push("dbname", Some(address.path).filter(|path| !path.is_empty()));
    for (name, value) in address.parameters {
        match (name.as_str(), value.as_str()) {
            (JDBC_SSL, "true") => push("sslmode", Some("require".into())),
            _ => push(&name, Some(value)),
        }
    }
    Ok(pairs)
}
