//! The keys of a configuration file: the long names of options, and the types of their values.

use std::path::Path;

use crate::duration;
use crate::size;
use crate::store::open;
use crate::token::ClientId;

/// A key of a configuration file.
#[derive(Debug, PartialEq, Eq)]
pub struct Key {
    /// The option's long name.
    pub name: &'static str,
    /// The type of its value.
    pub kind: Kind,
    /// The setting that it replaces.
    pub instead_of: Option<&'static str>,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A store; it may hold a password.
    Store,
    /// An absolute path.
    Path,
    /// A client's name.
    Client,
    /// A text that is shown in one line.
    Line,
    /// A command for a shell.
    Command,
    /// A duration: a text, or whole seconds.
    Duration,
    /// The same, or whether to.
    Wait,
    /// A size: a text, or whole bytes; or whether to.
    Size,
    /// `true` or `false`.
    Switch,
    /// How quiet: a number, or whether to.
    Quiet,
    /// An exit status.
    Status,
    /// One of these words.
    Word(&'static [&'static str]),
}

const fn key(name: &'static str, kind: Kind) -> Key {
    Key {
        name,
        kind,
        instead_of: None,
    }
}

const fn instead(name: &'static str, kind: Kind, other: &'static str) -> Key {
    Key {
        name,
        kind,
        instead_of: Some(other),
    }
}

/// Every key, in the order in which they are shown.
pub static KEYS: &[Key] = &[
    instead("store", Kind::Store, "store-file"),
    instead("store-file", Kind::Path, "store"),
    key("client-id", Kind::Client),
    key("expected", Kind::Client),
    key("failback", Kind::Switch),
    key("wait", Kind::Wait),
    key("heartbeat", Kind::Duration),
    key("takeover-after", Kind::Duration),
    key("keep", Kind::Duration),
    key("head-start", Kind::Duration),
    key("at-least", Kind::Duration),
    key("kill-grace", Kind::Duration),
    key("store-timeout", Kind::Duration),
    key("once-retain", Kind::Duration),
    key("history-retain", Kind::Duration),
    key("timeout", Kind::Duration),
    key("leftovers", Kind::Word(&["kill", "leave"])),
    key("close-lock", Kind::Switch),
    key("capture", Kind::Size),
    key("conflict-exit-code", Kind::Status),
    key("done-exit-code", Kind::Status),
    key("on-success", Kind::Command),
    key("on-failure", Kind::Command),
    key("on-refused", Kind::Command),
    key("hook-timeout", Kind::Duration),
    key("on-change", Kind::Command),
    key("runtime-file", Kind::Path),
    key("label", Kind::Line),
    instead("quiet", Kind::Quiet, "verbose"),
    instead("verbose", Kind::Switch, "quiet"),
    key("log-format", Kind::Word(&["text", "json"])),
];

/// Options that make no sense in a file, with the alternative.
pub static REFUSED: &[(&str, &str)] = &[
    ("group", "a group's settings stand in a table [groups.NAME]"),
    ("command", "the job stands on the command line, after --"),
    ("once", "a key belongs to one run: give it as --once"),
    (
        "report",
        "each run would replace the last one's: give it as --report",
    ),
    ("config", "a file can't name another"),
    ("json", "give it as --json"),
];

/// The key of this name.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// How similar two names must be (1 is equal) for a suggestion.
const LEAST_LIKENESS: f64 = 0.8;

/// The most similar name, if one is similar enough.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase().replace('_', "-");
    let likeness = |key: &'static Key| (strsim::jaro(key.name, &name), key.name);
    let near = KEYS.iter().map(likeness);
    let near = near.filter(|(likeness, _)| *likeness >= LEAST_LIKENESS);
    near.max_by(|a, b| a.0.total_cmp(&b.0)).map(|it| it.1)
}

impl Kind {
    /// What is wrong with a value; reads after the name.
    pub(super) fn check(self, text: &str) -> Result<(), String> {
        match self {
            Self::Store => store(text),
            Self::Path => absolute(text),
            Self::Client => ClientId::given(text)
                .map(drop)
                .map_err(|error| error.to_string()),
            Self::Line => match text.chars().find(|c| c.is_control()) {
                Some(bad) => Err(format!("has a control character ({bad:?})")),
                None => Ok(()),
            },
            Self::Command if text.contains('\0') => Err("has a NUL in it".to_owned()),
            Self::Command => Ok(()),
            Self::Duration | Self::Wait => duration::parse(text)
                .map(drop)
                .map_err(|error| error.to_string()),
            Self::Size => size::parse(text)
                .map(drop)
                .map_err(|error| error.to_string()),
            Self::Word(words) if words.contains(&text) => Ok(()),
            Self::Word(words) => Err(format!("is {text:?}: write one of {}", words.join(", "))),
            Self::Switch | Self::Quiet | Self::Status => {
                Err(format!("must be {}", self.expected()))
            }
        }
    }

    /// What a value must be, for messages and the reference.
    #[must_use]
    pub fn expected(self) -> String {
        match self {
            Self::Store => "a text, as \"postgres://user@host/database\"".to_owned(),
            Self::Path => "a text, as \"/etc/tokenrun/store\"".to_owned(),
            Self::Client | Self::Line | Self::Command => "a text in \"…\"".to_owned(),
            Self::Duration => "a duration, as \"5m\", or whole seconds".to_owned(),
            Self::Wait => "a duration, as \"5m\", or true or false".to_owned(),
            Self::Size => "a size, as \"64k\", whole bytes, or true or false".to_owned(),
            Self::Switch => "true or false".to_owned(),
            Self::Quiet => "0, 1 or 2 (or true or false)".to_owned(),
            Self::Status => "a whole number from 0 to 255".to_owned(),
            Self::Word(words) => format!("one of \"{}\"", words.join("\", \"")),
        }
    }
}

fn absolute(text: &str) -> Result<(), String> {
    if text.contains('\0') {
        return Err("has a NUL in it".to_owned());
    }
    if Path::new(text).is_absolute() {
        return Ok(());
    }
    Err(format!(
        "is {text:?}, which would be another file in each directory: write an absolute path"
    ))
}

fn store(text: &str) -> Result<(), String> {
    match open::check(text)? {
        Some(path) => absolute(&path.to_string_lossy()),
        None => Ok(()),
    }
}
