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

/// Reads the text of an option file. What can't be read is left out, as the clients do.
#[must_use]
pub fn lines(text: &str) -> Vec<Line> {
    let mut group = String::new();
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(directory) = line.strip_prefix("!includedir") {
            found.push(Line::IncludeDirectory(directory.trim().to_owned()));
        } else if let Some(file) = line.strip_prefix("!include") {
            found.push(Line::Include(file.trim().to_owned()));
        } else if let Some(name) = line.strip_prefix('[') {
            let name = name.split_once(']').map_or(name, |(name, _)| name);
            name.trim().clone_into(&mut group);
        } else {
            let (name, value) = match line.split_once('=') {
                Some((name, value)) => (name, Some(value_of(value.trim()))),
                None => (without_comment(line), None),
            };
            let name = name.trim().replace('_', "-");
            let name = name.strip_prefix("loose-").unwrap_or(&name).to_owned();
            let group = group.clone();
            found.push(Line::Option { group, name, value });
        }
    }
    found
}

/// A comment begins with a `#` after a blank.
fn without_comment(text: &str) -> &str {
    let ends = text.match_indices('#').map(|(at, _)| at);
    let is_comment = |at: &usize| {
        let before = text.get(..*at).unwrap_or_default();
        before.is_empty() || before.ends_with(char::is_whitespace)
    };
    let end = ends.into_iter().find(is_comment);
    text.get(..end.unwrap_or(text.len())).unwrap_or(text).trim()
}

/// A value without its quotation marks, and with its escapes replaced.
fn value_of(text: &str) -> String {
    let mut marks = text.chars();
    let inner = match marks.next() {
        Some(mark @ ('\'' | '"')) => {
            let rest = marks.as_str();
            rest.find(mark).and_then(|end| rest.get(..end))
        }
        _ => None,
    };
    let text = inner.unwrap_or_else(|| without_comment(text));
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
            Some('\\') => value.push('\\'),
            Some(other) => value.extend(['\\', other]),
            None => value.push('\\'),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

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
                    loose-foo\n[ mysqld ]\nport=1\n!include /etc/x.cnf\n!includedir /etc/d\n";
        assert_eq!(
            lines(text),
            [
                option("client", "user", Some("etl")),
                option("client", "password", Some("a b#c")),
                option("client", "ssl-ca", Some("/x")),
                option("client", "foo", None),
                option("mysqld", "port", Some("1")),
                Line::Include("/etc/x.cnf".into()),
                Line::IncludeDirectory("/etc/d".into()),
            ]
        );
    }

    #[test]
    fn a_value_has_escapes() {
        for (text, value) in [
            (r"a\sb", "a b"),
            (r"a\\b", r"a\b"),
            (r"C:\x", r"C:\x"),
            ("'it#s'", "it#s"),
            ("a#b", "a#b"),
            ("a #b", "a"),
            ("", ""),
        ] {
            assert_eq!(value_of(text), value, "{text}");
        }
    }
}
