//! The syntax of libpq's files: `pg_service.conf`, whose sections of options are named by services, and
//! `~/.pgpass`, with lines of `host:port:database:user:password`.

use super::text::known;
use crate::store::net::options::{BadSettings, Pairs};

/// The options of a service; `None` if the file does not name it.
///
/// # Errors
/// If the service's part of the file can't be read; `file` names it.
pub(super) fn service(text: &str, service: &str, file: &str) -> Result<Option<Pairs>, BadSettings> {
    let mut found: Option<Pairs> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            if found.is_some() {
                break;
            }
            if section.split(']').next() == Some(service) && section.contains(']') {
                found = Some(Pairs::new());
            }
            continue;
        }
        let Some(pairs) = &mut found else {
            continue;
        };
        let wrong = |what: &str| {
            let line = number + 1;
            BadSettings::new(format!("{file}, line {line}: {what}"))
        };
        let (name, value) = line
            .split_once('=')
            .ok_or_else(|| wrong("write option=value"))?;
        if name == "service" {
            return Err(wrong("a service can't name another"));
        }
        if known(name).is_none() {
            return Err(wrong(&format!("the option {name:?} is unknown")));
        }
        // The first value counts, as in libpq.
        if !pairs.iter().any(|(earlier, _)| earlier == name) {
            pairs.push((name.to_owned(), value.to_owned()));
        }
    }
    Ok(found)
}

/// The password for a connection, if a line matches it. `*` matches everything; a backslash escapes
/// a `:` or a backslash.
pub(super) fn password(
    text: &str,
    host: &str,
    port: &str,
    dbname: &str,
    user: &str,
) -> Option<String> {
    let wanted = [host, port, dbname, user];
    text.lines().find_map(|line| {
        if line.starts_with('#') {
            return None;
        }
        let fields = fields(line.trim_end_matches('\r'));
        let (password, names) = fields.split_last().filter(|_| fields.len() == 5)?;
        let fits = |(field, wanted): (&Field, &&str)| field.is_star || field.text == **wanted;
        names
            .iter()
            .zip(&wanted)
            .all(fits)
            .then(|| password.text.clone())
    })
}

#[derive(Default)]
struct Field {
    text: String,
    is_star: bool,
}

/// Five fields at most: the fifth is the rest of the line.
fn fields(line: &str) -> Vec<Field> {
    let mut fields = vec![Field::default()];
    let mut raw = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let count = fields.len();
        let Some(last) = fields.last_mut() else {
            break;
        };
        match c {
            ':' if count < 5 => {
                last.is_star = raw == "*";
                raw.clear();
                fields.push(Field::default());
            }
            '\\' => {
                raw.push('\\');
                last.text.extend(chars.next());
            }
            c => {
                raw.push(c);
                last.text.push(c);
            }
        }
    }
    fields
}
