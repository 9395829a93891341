//! The two ways to write a connection string: a URL, and `key=value` pairs.

use super::ConninfoError;
use super::options::known;

/// The options of a connection string; the later of two values of one option counts.
pub type Pairs = Vec<(String, String)>;

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Whether a text is meant as a connection string: a PostgreSQL URL, or pairs that begin with an
/// option of libpq.
#[must_use]
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
pub fn parse(text: &str) -> Result<Pairs, ConninfoError> {
    let text = text.trim();
    let url = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme));
    let pairs = url.map_or_else(|| key_values(text), url_pairs)?;
    for (name, _) in &pairs {
        if known(name).is_none() {
            return Err(ConninfoError::new(format!(
                "the connection string has an unknown option {name:?}"
            )));
        }
    }
    Ok(pairs)
}

fn key_values(text: &str) -> Result<Pairs, ConninfoError> {
    let mut pairs = Pairs::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || c.is_whitespace());
        let (key, after) = rest.split_at(end.unwrap_or(rest.len()));
        let Some(after) = after.trim_start().strip_prefix('=') else {
            // The text here may be a part of a password with a blank in it.
            return Err(ConninfoError::new(
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
fn value(text: &str) -> Result<(String, &str), ConninfoError> {
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
        return Err(ConninfoError::new(
            "the connection string has a ' without its end",
        ));
    }
    Ok((value, ""))
}

fn url_pairs(rest: &str) -> Result<Pairs, ConninfoError> {
    let mut pairs = Pairs::new();
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    };
    let (authority, path) = match rest.split_once('/') {
        Some((authority, path)) => (authority, Some(path)),
        None => (rest, None),
    };
    let hosts = match authority.rsplit_once('@') {
        None => authority,
        Some((login, hosts)) => {
            let (user, password) = match login.split_once(':') {
                Some((user, password)) => (user, Some(password)),
                None => (login, None),
            };
            push(&mut pairs, "user", user)?;
            push(&mut pairs, "password", password.unwrap_or_default())?;
            hosts
        }
    };
    url_hosts(hosts, &mut pairs)?;
    push(&mut pairs, "dbname", path.unwrap_or_default())?;
    for pair in query.into_iter().flat_map(|query| query.split('&')) {
        let Some((name, value)) = pair.split_once('=') else {
            if pair.is_empty() && query == Some("") {
                continue;
            }
            return Err(ConninfoError::new(
                "the URL has an option without = after the ?",
            ));
        };
        if value.contains('=') {
            return Err(ConninfoError::new(
                "the URL has an option with two = after the ?; write %3D for one in a value",
            ));
        }
        let (name, value) = (decoded(name)?, decoded(value)?);
        // The form in JDBC's URLs.
        if (name.as_str(), value.as_str()) == ("ssl", "true") {
            pairs.push(("sslmode".into(), "require".into()));
        } else {
            pairs.push((name, value));
        }
    }
    Ok(pairs)
}

/// An empty value counts as absent.
fn push(pairs: &mut Pairs, name: &str, encoded: &str) -> Result<(), ConninfoError> {
    if !encoded.is_empty() {
        pairs.push((name.into(), decoded(encoded)?));
    }
    Ok(())
}

fn url_hosts(hosts: &str, pairs: &mut Pairs) -> Result<(), ConninfoError> {
    let (mut names, mut ports) = (Vec::new(), Vec::new());
    for host in hosts.split(',') {
        let (name, port) = if let Some(bracketed) = host.strip_prefix('[') {
            let Some((name, after)) = bracketed.split_once(']') else {
                return Err(ConninfoError::new("the URL has a [ without its ]"));
            };
            if name.is_empty() {
                return Err(ConninfoError::new("the URL has nothing between [ and ]"));
            }
            match after.strip_prefix(':') {
                Some(port) => (name, port),
                None if after.is_empty() => (name, ""),
                None => {
                    return Err(ConninfoError::new(
                        "the URL has something else than a port after ]",
                    ));
                }
            }
        } else {
            host.split_once(':').unwrap_or((host, ""))
        };
        names.push(decoded(name)?);
        ports.push(decoded(port)?);
    }
    if names.iter().any(|name| !name.is_empty()) {
        pairs.push(("host".into(), names.join(",")));
    }
    if ports.iter().any(|port| !port.is_empty()) {
        pairs.push(("port".into(), ports.join(",")));
    }
    Ok(())
}

/// Resolves `%XX`.
fn decoded(text: &str) -> Result<String, ConninfoError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|b| char::from(b).to_digit(16));
        match (digit(rest.next()), digit(rest.next())) {
            (Some(0), Some(0)) => return Err(ConninfoError::new("the URL has a %00")),
            (Some(high), Some(low)) => bytes.extend(u8::try_from(high * 16 + low)),
            _ => {
                return Err(ConninfoError::new(
                    "the URL has a % without two hexadecimal digits after it; write %25 for a %",
                ));
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| ConninfoError::new("the URL has %XX that are no UTF-8"))
}
