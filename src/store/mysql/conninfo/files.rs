//! Option files in MySQL's syntax: groups of lines, and the inclusion of other files.

/// A line of an option file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// An option of a group; without a value, `None`.
    Option {
        group: String,
        /// With `-` in its name.
        name: String,
        value: Option<String>,
    },
    /// Another file.
    Include(String),
    /// All files of a directory whose names end with `.cnf`.
    IncludeDirectory(String),
}

/// Reads the text of an option file.
///
/// # Errors
/// What the clients refuse, with the number of its line.
pub fn lines(text: &str) -> Result<Vec<Line>, String> {
    let mut group = None;
    let mut found = Vec::new();
    for (number, line) in text.lines().map(str::trim).enumerate() {
        let number = number + 1;
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(directory) = line.strip_prefix("!includedir") {
            found.push(Line::IncludeDirectory(directory.trim().to_owned()));
        } else if let Some(file) = line.strip_prefix("!include") {
            found.push(Line::Include(file.trim().to_owned()));
        } else if let Some(name) = line.strip_prefix('[') {
            let Some((name, _)) = name.split_once(']') else {
                return Err(format!("line {number}: the name of a group has no ]"));
            };
            group = Some(name.trim_end().to_owned());
        } else {
            let Some(group) = group.clone() else {
                return Err(format!(
                    "line {number}: an option stands before the first group"
                ));
            };
            let line = without_comment(line);
            let (name, value) = match line.split_once('=') {
                Some((name, value)) => (name, Some(value_of(value.trim()))),
                None => (line, None),
            };
            let (name, value) = plain(name_of(name.trim()), value);
            found.push(Line::Option { group, name, value });
        }
    }
    Ok(found)
}

/// The name of an option: clients take `_` for `-`, capitals, and the beginning of this name.
fn name_of(text: &str) -> String {
    let name = text.to_ascii_lowercase().replace('_', "-");
    let name = name.strip_prefix("loose-").unwrap_or(&name);
    let is_password = name.len() >= 4 && "password".starts_with(name);
    if is_password { "password" } else { name }.to_owned()
}

/// An option without the beginnings that clients also take for what is on or off: `enable-`, `disable-`, `skip-`.
fn plain(name: String, value: Option<String>) -> (String, Option<String>) {
    let (name, value) = match (name.as_str(), &value) {
        ("enable-ssl", None) => ("ssl", "1"),
        ("disable-ssl", None) => ("skip-ssl", "1"),
        ("enable-ssl-verify-server-cert", None) => ("ssl-verify-server-cert", "1"),
        ("disable-ssl-verify-server-cert" | "skip-ssl-verify-server-cert", None) => {
            ("ssl-verify-server-cert", "0")
        }
        _ => return (name, value),
    };
    (name.to_owned(), Some(value.to_owned()))
}

/// A comment begins with a `#` outside quotation marks.
fn without_comment(text: &str) -> &str {
    let (mut mark, mut escaped) = (None, false);
    for (at, c) in text.char_indices() {
        match mark {
            None if c == '#' => return text.get(..at).unwrap_or_default().trim_end(),
            None if matches!(c, '\'' | '"') && !escaped => mark = Some(c),
            Some(open) if c == open && !escaped => mark = None,
            _ => {}
        }
        escaped = mark.is_some() && c == '\\' && !escaped;
    }
    text
}

/// A value without its quotation marks, and with its escapes replaced.
fn value_of(text: &str) -> String {
    let quoted = |mark: char| text.strip_prefix(mark)?.strip_suffix(mark);
    let text = quoted('\'').or_else(|| quoted('"')).unwrap_or(text);
    let mut value = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            value.push(c);
            continue;
        }
        match chars.next() {
            Some('b') => value.push('\u{8}'),
            Some('t') => value.push('\t'),
            Some('n') => value.push('\n'),
            Some('r') => value.push('\r'),
            Some('s') => value.push(' '),
            Some(mark @ ('\\' | '\'' | '"')) => value.push(mark),
            Some(other) => value.extend(['\\', other]),
            None => value.push('\\'),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mutated::mutated_text;

    fn option(group: &str, name: &str, value: Option<&str>) -> Line {
        Line::Option {
            group: group.into(),
            name: name.into(),
            value: value.map(str::to_owned),
        }
    }

    #[test]
    fn a_file_has_groups_options_and_other_files() {
        let text = "# a\n; b\n[client]\nuser = etl # who\npassword=\"a b#c\"\nssl_ca=/x\n\
                    loose-foo\n[mysqld ]\nPASS=1\n!include /etc/x.cnf\n!includedir /etc/d\n";
        assert_eq!(
            lines(text).unwrap(),
            [
                option("client", "user", Some("etl")),
                option("client", "password", Some("a b#c")),
                option("client", "ssl-ca", Some("/x")),
                option("client", "foo", None),
                option("mysqld", "password", Some("1")),
                Line::Include("/etc/x.cnf".into()),
                Line::IncludeDirectory("/etc/d".into()),
            ]
        );
    }

    #[test]
    fn a_switch_has_several_spellings() {
        for (spelling, name, value) in [
            ("disable_ssl", "skip-ssl", "1"),
            ("loose-enable-ssl", "ssl", "1"),
            (
                "Enable_SSL_verify_server_cert",
                "ssl-verify-server-cert",
                "1",
            ),
            (
                "disable-ssl-verify-server-cert",
                "ssl-verify-server-cert",
                "0",
            ),
            ("SKIP_ssl_verify_server_cert", "ssl-verify-server-cert", "0"),
        ] {
            let found = lines(&format!("[client]\n{spelling}\n")).unwrap();
            assert_eq!(found, [option("client", name, Some(value))], "{spelling}");
        }
    }

    #[test]
    fn a_comment_begins_outside_quotation_marks() {
        for (text, left) in [
            ("a#b", "a"),
            ("a # b", "a"),
            ("a='b#c' #d", "a='b#c'"),
            (r##"a="b\"#c""##, r##"a="b\"#c""##),
        ] {
            assert_eq!(without_comment(text), left, "{text}");
        }
    }

    #[test]
    fn what_the_clients_refuse_is_an_error() {
        assert!(lines("[client").is_err());
        assert!(lines("user=etl\n[client]\n").is_err());
        assert!(lines("\u{feff}[client]\n").is_err());
    }

    #[test]
    fn a_value_has_escapes() {
        for (text, value) in [
            (r"a\sb", "a b"),
            (r"a\\b", r"a\b"),
            (r"C:\x", r"C:\x"),
            ("'it#s'", "it#s"),
            (r#""x\"y""#, "x\"y"),
            (r"'x\'y'", "x'y"),
            (r#"x\"y"#, "x\"y"),
            ("'open", "'open"),
            ("", ""),
        ] {
            assert_eq!(value_of(text), value, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_file_panics(text in mutated_text(&[
            "[client]\nuser = etl\npassword = \"a#b\\tc\"\n!include /etc/x.cnf\n[mysql]\nssl-mode=REQUIRED # c\n",
        ]), any in "[\\[\\]!#;=\"'\\\\a-z\n\r\t -]{0,80}") {
            for text in [text, any] {
                if let Err(said) = lines(&text) {
                    prop_assert!(!said.contains('\n'), "{said:?}");
                }
            }
        }
    }
}
