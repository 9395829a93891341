//! `pg_service.conf`: sections of options, each named by a service.

use super::options::known;
use crate::store::net::options::{BadSettings, Pairs};

/// The options of a service; `None` if the file does not name it.
///
/// # Errors
/// If the service's part of the file can't be read; `file` names it.
pub fn find(text: &str, service: &str, file: &str) -> Result<Option<Pairs>, BadSettings> {
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
