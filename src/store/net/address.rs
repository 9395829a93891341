//! The URL of a server: `scheme://user:password@host:port,host:port/path?name=value`. Pure.
//!
//! All schemes have one reader: a URL that one store refuses reaches no other server of another store.

use percent_encoding::percent_decode_str;

/// A URL in its parts, each with its escapes resolved.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Address<'a> {
    pub scheme: &'a str,
    pub user: Option<String>,
    pub password: Option<String>,
    /// Names and ports, in order; one with an empty name if the URL names none.
    pub hosts: Vec<(String, Option<u16>)>,
    /// The text after the first slash; empty without one.
    pub path: String,
    /// The parameters after the `?`, in order.
    pub parameters: Vec<(String, String)>,
}

/// What is wrong with a URL, without any part that may be a password; reads after "the store's URL".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadAddress(pub String);

fn bad<T>(what: impl Into<String>) -> Result<T, BadAddress> {
    Err(BadAddress(what.into()))
}

const ESCAPES: &str = "in a user or a password, write / as %2F, ? as %3F, @ as %40, : as %3A";

impl<'a> Address<'a> {
    /// Reads a URL. `known` is true for the names of parameters that the scheme has.
    ///
    /// # Errors
    /// What is wrong with the URL.
    pub fn read(text: &'a str, known: impl Fn(&str) -> bool) -> Result<Self, BadAddress> {
        let text = text.trim();
        let Some((scheme, rest)) = text.split_once("://") else {
            return bad("has no scheme");
        };
        let (place, query) = match rest.split_once('?') {
            Some((place, query)) => (place, query),
            None => (rest, ""),
        };
        let (authority, path) = place.split_once('/').unwrap_or((place, ""));
        let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        // A login that ends at a / or a ? of its own leaves its @ behind it.
        let has_login = |text: &str| {
            let before = text.rsplit_once('@').map(|(login, _)| login);
            before.is_some_and(|login| login.contains(':'))
        };
        let is_in_query = place == authority && authority.contains(':') && query.contains('@');
        if !authority.contains('@') && (has_login(place) || is_in_query) {
            return bad(format!(
                "has an @ after a / or a ? ({ESCAPES}; in a path, write @ as %40)"
            ));
        }
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let mut parameters = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = match pair.split_once('=') {
                Some(both) => both,
                None if FLAGS.contains(&pair) => (pair, ""),
                None => return bad(format!("has a parameter without = and a value ({ESCAPES})")),
            };
            if value.contains('=') {
                return bad("has a parameter with two =; write %3D for one in a value");
            }
            let name = decoded(name)?;
            if !known(&name) {
                return bad(unknown(&name, query));
            }
            parameters.push((name, decoded(value)?));
        }
        Ok(Self {
            scheme,
            user: some(shown(user)?),
            password: some(decoded(password)?),
            hosts: hosts.split(',').map(host).collect::<Result<_, _>>()?,
            path: shown(path)?,
            parameters,
        })
    }

    /// The value of a parameter; the last one counts.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().rfind(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A name that may be a part of a password is not repeated.
fn unknown(name: &str, query: &str) -> String {
    if query.contains('@') || name.len() > 40 {
        format!("has an unknown parameter ({ESCAPES})")
    } else {
        format!("has an unknown parameter {name:?}")
    }
}

fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// The parameters without a value.
const FLAGS: [&str; 1] = ["quorum"];

/// A host's name and port. A name with colons, an address of IPv6, is in brackets.
fn host(text: &str) -> Result<(String, Option<u16>), BadAddress> {
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            None => return bad("has a [ without its ]"),
            Some(("", _)) => return bad("has nothing between [ and ]"),
            Some((name, "")) => (name, ""),
            Some((name, after)) => match after.strip_prefix(':') {
                Some(port) => (name, port),
                None => return bad("has something else than a port after ]"),
            },
        },
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let port = decoded(port)?;
    let port = match port.as_str() {
        "" => None,
        port => Some(port_number(port)?),
    };
    Ok((shown(name)?, port))
}

/// A port's number.
///
/// # Errors
/// If the text is none.
pub fn port_number(text: &str) -> Result<u16, BadAddress> {
    match number::<u16>(text) {
        Some(port) if port != 0 => Ok(port),
        _ => bad(format!(
            "has a port that is no number from 1 to 65535 (an address of IPv6 is in [ ]; {ESCAPES})"
        )),
    }
}

/// A number in plain digits: no sign and no blank.
pub fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

/// Resolves `%XX` in what messages show: it is one line.
fn shown(text: &str) -> Result<String, BadAddress> {
    let text = decoded(text)?;
    match text.contains(char::is_control) {
        true => bad("has a control character, such as a line break, in a user, a host or a path"),
        false => Ok(text),
    }
}

/// Resolves `%XX`.
fn decoded(text: &str) -> Result<String, BadAddress> {
    let is_hex = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' && !(is_hex(bytes.next()) && is_hex(bytes.next())) {
            return bad(
                "has a % without two hexadecimal digits after it; write %25 for a % of its own",
            );
        }
    }
    match percent_decode_str(text).decode_utf8() {
        Ok(text) if text.contains('\0') => bad("has a %00"),
        Ok(text) => Ok(text.into_owned()),
        Err(_) => bad("has %XX that are no text in UTF-8"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// URLs that no scheme accepts, without the scheme, and a part of what is said of them.
    pub(crate) const BAD: [(&str, &str); 26] = [
        ("u\nv@h", "line break"),
        ("u@h%0A/4", "line break"),
        ("u@[::1]9999/4", "after ]"),
        ("[::1]9999", "after ]"),
        ("u@[::1/4", "without its ]"),
        ("u@[]:1/4", "between [ and ]"),
        ("u@::1/4", "in [ ]"),
        ("u@h:0/4", "1 to 65535"),
        ("u@h:65536/4", "1 to 65535"),
        ("u@h:+4/4", "1 to 65535"),
        ("u@h:%2B4/4", "1 to 65535"),
        ("u@h:4x/4", "1 to 65535"),
        ("u@h:1:2/4", "1 to 65535"),
        ("u@h,i:0/4", "1 to 65535"),
        ("u%+4@h/4", "hexadecimal"),
        ("u%zz@h/4", "hexadecimal"),
        ("u:p%@h/4", "hexadecimal"),
        ("u:p%f@h/4", "hexadecimal"),
        ("u%00@h/4", "%00"),
        ("u:%ff@h/4", "UTF-8"),
        ("u@h/4?hots=x", "\"hots\""),
        ("u@h/4?hots", "without ="),
        ("u:4?secret=x@h/4", "%3F"),
        ("u:4/secret@h/4", "%2F"),
        ("u/:secret@h/4", "%2F"),
        ("/u:secret@h/4", "%2F"),
    ];

    /// The names of servers, with their ports.
    type Servers = &'static [(&'static str, Option<u16>)];

    /// URLs that all schemes accept, without the scheme, and their servers.
    pub(crate) const GOOD: [(&str, Servers); 9] = [
        ("u@h/4", &[("h", None)]),
        ("u:p@h:99/4", &[("h", Some(99))]),
        ("u:p%2F%3F%40%3A%25@h/4", &[("h", None)]),
        ("u@[::1]/4", &[("::1", None)]),
        ("u@[::1]:9999/4", &[("::1", Some(9999))]),
        ("u@h:/4", &[("h", None)]),
        ("u@h:%34/4", &[("h", Some(4))]),
        (
            "u@a:1,b,[::2]:3/4",
            &[("a", Some(1)), ("b", None), ("::2", Some(3))],
        ),
        ("u%20v@h/4?", &[("h", None)]),
    ];

    fn read(text: &str) -> Result<Address<'_>, BadAddress> {
        Address::read(text, |name| name == "known")
    }

    #[test]
    fn a_url_has_its_parts() {
        let text = " x://u%3A:p%40:q@a:1,[::2]/d%2Fe/f?known=1&&known=%26 ";
        let found = read(text).unwrap();
        assert_eq!(found.scheme, "x");
        assert_eq!(found.user.as_deref(), Some("u:"));
        assert_eq!(found.password.as_deref(), Some("p@:q"));
        assert_eq!(found.hosts, [("a".into(), Some(1)), ("::2".into(), None)]);
        assert_eq!(found.path, "d/e/f");
        assert_eq!(found.parameter("known"), Some("&"));
        let least = read("x://").unwrap();
        assert_eq!(least.hosts, [(String::new(), None)]);
        assert_eq!((least.user, least.password), (None, None));
    }

    #[test]
    fn an_at_sign_may_stand_in_a_path_or_a_value() {
        for text in [
            "x:///run/a@b",
            "x://h/d?known=a@b",
            "x://h:1/d?known=a@b",
            "x://u:p@h:1/a@b",
        ] {
            assert!(read(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_bad_url_is_refused_without_its_password() {
        for (text, says) in BAD {
            let error = read(&format!("x://{text}")).err().unwrap_or_else(|| {
                panic!("{text} is accepted");
            });
            assert!(error.0.contains(says), "{text}: {error}");
            assert!(!error.0.contains("secret"), "{text}: {error}");
        }
        for text in [
            "x://:123?secret@h",
            "x://u:1?secret&k=v@h",
            "x://u:1?known=secret@h",
            "x://h?known=1&secret=2@h",
        ] {
            let error = read(text).err().unwrap_or_else(|| panic!("{text}"));
            assert!(!error.0.contains("secret"), "{text}: {error}");
        }
    }

    #[test]
    fn an_unknown_parameter_is_named_if_it_is_short() {
        for (length, is_named) in [(40, true), (41, false)] {
            let name = "n".repeat(length);
            let text = format!("x://h?{name}=1");
            let error = read(&text).err().unwrap();
            assert_eq!(error.0.contains(&name), is_named, "{error}");
        }
    }

    #[test]
    fn a_good_url_names_its_servers() {
        for (text, servers) in GOOD {
            let text = format!("x://{text}");
            let found = read(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let servers: Vec<_> = servers.iter().map(|(n, p)| ((*n).to_owned(), *p)).collect();
            assert_eq!(found.hosts, servers, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(x://)?[a\\[\\]:,/@%0?=&'é]{0,30}") {
            let _ = read(&text);
        }

        /// Every text is a user and a password once it is escaped; a user is in one line.
        #[test]
        fn a_login_survives_its_escapes(
            login in "[^\\x00-\\x1f\\x7f-\\x9f]{1,20}",
            password in "[^\\x00]{1,20}",
        ) {
            let escaped = |text: &str| -> String {
                text.bytes().map(|byte| format!("%{byte:02X}")).collect()
            };
            let text = format!("x://{}:{}@h/4", escaped(&login), escaped(&password));
            let found = read(&text).map_err(|error| TestCaseError::fail(error.0))?;
            prop_assert_eq!(found.user.as_ref(), Some(&login));
            prop_assert_eq!(found.password.as_ref(), Some(&password));
        }
    }
}
