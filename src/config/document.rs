//! The settings in a configuration file, each with its line.

use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use toml::Spanned;
use toml::de::{DeInteger, DeString, DeTable, DeValue};

use super::Refusal;
use super::file::{FileText, at_line};
use super::keys::{Key, Keys, REFUSED, Value, nearest};
use crate::store::url::{has_password, password_place};
use crate::token::GroupName;

/// A table of keys, each with its place.
type Table<'i> = DeTable<'i>;

/// A setting in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub key: Key,
    /// The value as written after the option; `None` is `false`.
    pub value: Option<String>,
    /// Where it stands.
    pub source: Source,
}

/// The place of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub path: Rc<PathBuf>,
    /// The line, from 1 on.
    pub line: usize,
    /// The group whose table it is; `None` for `[defaults]`.
    pub group: Option<GroupName>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} ", self.path.display(), self.line)?;
        match &self.group {
            None => f.write_str("[defaults]"),
            Some(group) => write!(f, "[groups.{}]", table_name(group.as_str())),
        }
    }
}

/// A name as TOML writes it in a header.
fn table_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match name.chars().all(plain) {
        true => name.to_owned(),
        false => format!("{name:?}"),
    }
}

impl Setting {
    /// This setting, which precedes `other`, replaces it completely.
    pub(super) fn hides(&self, other: &Self) -> bool {
        let other = &other.key.name;
        let replaces = self.key.instead_of.as_ref() == Some(other);
        self.key.name == *other || self.value.is_some() && replaces
    }
}

/// A file's settings.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) defaults: Vec<Setting>,
    groups: Vec<(GroupName, Vec<Setting>)>,
}

impl Document {
    /// Reads a file's text.
    pub(super) fn read(path: &Path, contents: &FileText, keys: &dyn Keys) -> Result<Self, Refusal> {
        let reader = Reader {
            path: Rc::new(path.to_owned()),
            contents,
            keys,
        };
        let root = DeTable::parse(&contents.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            reader.wrong(at, &one_line(error.message()))
        })?;
        let mut document = Self {
            defaults: Vec::new(),
            groups: Vec::new(),
        };
        for (name, value) in in_order(root.get_ref()) {
            match name.get_ref().as_ref() {
                "defaults" => {
                    document.defaults = reader.settings(reader.table(name, value)?, None)?;
                }
                "groups" => {
                    for (name, value) in in_order(reader.table(name, value)?) {
                        document.groups.push(reader.group(name, value)?);
                    }
                }
                other => return Err(reader.misplaced(name, other)),
            }
        }
        Ok(document)
    }

    /// The settings of a group's own table.
    pub(super) fn of_group(&self, group: &str) -> Option<&[Setting]> {
        let mut groups = self.groups.iter();
        let found = groups.find(|(name, _)| name.as_str() == group)?;
        Some(&found.1)
    }
}

/// Entries in the order of the file, so that the first mistake is reported.
fn in_order<'t, 'i>(
    table: &'t Table<'i>,
) -> Vec<(&'t Spanned<DeString<'i>>, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}

/// The parser's error, which may have several lines, in one.
fn one_line(text: &str) -> String {
    let lines = text.split(char::is_control).map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines.join(", ")
}

struct Reader<'a> {
    path: Rc<PathBuf>,
    contents: &'a FileText,
    keys: &'a dyn Keys,
}

impl Reader<'_> {
    fn line_of(&self, at: usize) -> usize {
        let before = self.contents.text.bytes().take(at);
        1 + before.filter(|byte| *byte == b'\n').count()
    }

    fn wrong(&self, at: usize, text: &str) -> Refusal {
        at_line(&self.path, self.line_of(at), text)
    }

    fn table<'t, 'i>(
        &self,
        name: &Spanned<DeString<'i>>,
        value: &'t Spanned<DeValue<'i>>,
    ) -> Result<&'t Table<'i>, Refusal> {
        let table = value.get_ref().as_table();
        table.ok_or_else(|| {
            let text = format!("{:?} must be a table", name.get_ref());
            self.wrong(name.span().start, &text)
        })
    }

    fn group(
        &self,
        name: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(GroupName, Vec<Setting>), Refusal> {
        let at = name.span().start;
        let group = GroupName::given(name.get_ref()).map_err(|error| {
            let text = format!("the group's name in [groups.NAME] {error}");
            self.wrong(at, &text)
        })?;
        if !value.get_ref().is_table() && self.keys.find(group.as_str()).is_some() {
            let text = format!("{group} stands in no group: write [groups.NAME] above it");
            return Err(self.wrong(at, &text));
        }
        let settings = self.settings(self.table(name, value)?, Some(&group))?;
        Ok((group, settings))
    }

    fn settings(
        &self,
        table: &Table<'_>,
        group: Option<&GroupName>,
    ) -> Result<Vec<Setting>, Refusal> {
        let mut settings: Vec<Setting> = Vec::new();
        for (name, value) in in_order(table) {
            let setting = self.setting(name, value, group)?;
            let rival =
                |it: &&Setting| setting.value.is_some() && it.value.is_some() && it.hides(&setting);
            if let Some(rival) = settings.iter().find(rival) {
                let text = format!(
                    "{} takes the place of {} in line {}: keep one of the two",
                    setting.key.name, rival.key.name, rival.source.line
                );
                return Err(self.wrong(name.span().start, &text));
            }
            settings.push(setting);
        }
        Ok(settings)
    }

    fn setting(
        &self,
        name: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        group: Option<&GroupName>,
    ) -> Result<Setting, Refusal> {
        let at = name.span().start;
        let key = self.keys.find(name.get_ref());
        let key = key.ok_or_else(|| self.unknown(name))?;
        let wrong = |text: String| self.wrong(at, &format!("{} {text}", key.name));
        let value = self
            .keys
            .read(&key, taken(value.get_ref()))
            .map_err(wrong)?;
        let text = value.as_deref().unwrap_or_default();
        if self.contents.is_shared && key.is_store && has_password(text) {
            return Err(wrong(format!(
                "holds a password, and others may read this file: chmod 600 {}, or put the \
                 password into {}a file for store-file",
                self.path.display(),
                password_place(text).map_or_else(String::new, |place| format!("{place} or "))
            )));
        }
        Ok(Setting {
            key,
            value,
            source: Source {
                path: Rc::clone(&self.path),
                line: self.line_of(at),
                group: group.cloned(),
            },
        })
    }

    fn unknown(&self, name: &Spanned<DeString<'_>>) -> Refusal {
        let (at, name) = (name.span().start, name.get_ref().as_ref());
        let refused = REFUSED.iter().find(|(refused, _)| *refused == name);
        let text = match (refused, nearest(name, self.keys.names())) {
            (Some((_, instead)), _) => format!("{name} can't stand in a file: {instead}"),
            (None, Some(near)) => format!("unknown key {name:?}; did you mean {near}?"),
            (None, None) => format!(
                "unknown key {name:?}; keys are the long names of a run's options, as takeover-after"
            ),
        };
        self.wrong(at, &text)
    }

    /// The error of a top-level entry that is neither of the two tables.
    fn misplaced(&self, name: &Spanned<DeString<'_>>, text: &str) -> Refusal {
        let at = name.span().start;
        if self.keys.find(text).is_some() {
            let text = format!("{text} stands in no table: write [defaults] above it");
            return self.wrong(at, &text);
        }
        let text = format!("unknown table {text:?}: there are [defaults] and [groups.NAME]");
        self.wrong(at, &text)
    }
}

/// A value, as far as a key can have it.
fn taken<'v>(value: &'v DeValue<'_>) -> Value<'v> {
    match value {
        DeValue::Boolean(value) => Value::Switch(*value),
        DeValue::Integer(number) => whole(number).map_or(Value::Other, Value::Number),
        DeValue::String(text) => Value::Text(text),
        _ => Value::Other,
    }
}

/// A whole number that is not negative, in any notation of TOML.
fn whole(number: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}
