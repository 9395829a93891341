//! The keys of configuration files, from clap's own description: each option of a run or of an agent that
//! has a variable is a key, and its own parser checks the value.

use std::cell::OnceCell;
use std::error::Error as _;
use std::ffi::OsStr;
use std::path::Path;

use clap::builder::Resettable;
use clap::{Arg, ArgAction, Command};

use crate::config::{Key, Keys, REFUSED, Value};
use crate::store::url;

/// The options of a run and of an agent.
pub(crate) struct Options<'c> {
    /// The command of a line that may be a run's: most keys are among its options.
    own: Option<&'c Command>,
    /// Makes the command that has all keys.
    make: fn() -> Command,
    made: OnceCell<Command>,
}

impl<'c> Options<'c> {
    pub(crate) const fn new(own: Option<&'c Command>, make: fn() -> Command) -> Self {
        Self {
            own,
            make,
            made: OnceCell::new(),
        }
    }

    fn made(&self) -> &Command {
        self.made.get_or_init(|| built((self.make)()))
    }

    fn named(&self, name: &str) -> Option<(&Command, &Arg)> {
        fn of<'c>(command: &'c Command, name: &str) -> Option<(&'c Command, &'c Arg)> {
            option(command, name).map(|option| (command, option))
        }
        let own = self.own.and_then(|command| of(command, name));
        own.or_else(|| of(self.made(), name))
    }
}

impl Keys for Options<'_> {
    fn find(&self, name: &str) -> Option<Key> {
        let (command, option) = self.named(name)?;
        Some(key(command, option))
    }

    fn read(&self, key: &Key, value: Value<'_>) -> Result<Option<String>, String> {
        match self.named(&key.name) {
            Some((command, option)) => read(command, option, value),
            None => Err("is unknown".to_owned()),
        }
    }

    fn names(&self) -> Vec<String> {
        let keys = all(self.made());
        keys.into_iter().filter_map(long).collect()
    }
}

/// A command that knows how many values its options take.
pub fn built(mut command: Command) -> Command {
    command.build();
    command
}

/// The options of a command that may stand in a file, in the order of the help.
pub fn all(command: &Command) -> Vec<&Arg> {
    let mut headings = Vec::new();
    for option in command.get_arguments() {
        if !headings.contains(&option.get_help_heading()) {
            headings.push(option.get_help_heading());
        }
    }
    let mut keys: Vec<&Arg> = command.get_arguments().filter(|it| is_key(it)).collect();
    keys.sort_by_key(|option| {
        let heading = option.get_help_heading();
        let at = headings.iter().position(|it| *it == heading);
        (at, option.get_display_order())
    });
    keys
}

/// The key that an option is.
pub fn key(command: &Command, option: &Arg) -> Key {
    Key {
        name: long(option).unwrap_or_default(),
        instead_of: rival(command, option).and_then(long),
        is_store: value_name(option) == "URL",
    }
}

/// The option of a run with this name, and not another one of the same name: the variable tells.
pub(super) fn option<'c>(command: &'c Command, name: &str) -> Option<&'c Arg> {
    let mut options = command.get_arguments();
    options.find(|it| it.get_long() == Some(name) && is_key(it))
}

fn is_key(option: &Arg) -> bool {
    let Some(long) = option.get_long() else {
        return false;
    };
    let is_read = option.get_env() == Some(OsStr::new(&variable(long)));
    is_read && REFUSED.iter().all(|(refused, _)| *refused != long)
}

/// The variable that is read as an option.
pub(super) fn variable(name: &str) -> String {
    format!("TOKENRUN_{}", name.replace('-', "_").to_uppercase())
}

fn long(option: &Arg) -> Option<String> {
    option.get_long().map(str::to_owned)
}

/// The other option that takes the place of this one: both at once are a conflict.
fn rival<'c>(command: &'c Command, option: &Arg) -> Option<&'c Arg> {
    let conflicts = |one: &Arg, other: &Arg| {
        let rivals = command.get_arg_conflicts_with(one);
        rivals.iter().any(|it| it.get_id() == other.get_id())
    };
    let mut others = command.get_arguments().filter(|it| is_key(it));
    others.find(|other| conflicts(option, other) || conflicts(other, option))
}

/// What the value is, as the help names it.
fn value_name(option: &Arg) -> &str {
    let names = option.get_value_names();
    names.and_then(|it| it.first()).map_or("", |name| name)
}

fn takes_value(option: &Arg) -> bool {
    option.get_action().takes_values()
}

fn is_counted(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::Count)
}

/// The option takes no value, or needs none.
fn is_switch(option: &Arg) -> bool {
    let is_optional = option.get_num_args().is_some_and(|it| it.min_values() == 0);
    is_optional || !takes_value(option)
}

fn takes_text(option: &Arg) -> bool {
    takes_value(option) && value_name(option) != "N"
}

fn takes_number(option: &Arg) -> bool {
    let is_number = matches!(value_name(option), "DURATION" | "SIZE" | "N");
    takes_value(option) && is_number || is_counted(option)
}

/// What is shown of a switch that is off.
pub(super) fn switched_off(option: &Arg) -> Option<String> {
    match is_counted(option) {
        true => Some("0".to_owned()),
        false => is_switch(option).then(|| "false".to_owned()),
    }
}

/// The value as written after the option; `None` is `false`.
fn read(command: &Command, option: &Arg, value: Value<'_>) -> Result<Option<String>, String> {
    let text = match value {
        Value::Switch(false) if is_switch(option) => return Ok(None),
        Value::Number(0) if is_counted(option) => return Ok(None),
        Value::Switch(true) if is_counted(option) => "1".to_owned(),
        Value::Switch(true) if !takes_value(option) => "true".to_owned(),
        // As the option without a value.
        Value::Switch(true) if is_switch(option) => return Ok(alone(command, option, None).ok()),
        Value::Number(number) if takes_number(option) => number.to_string(),
        Value::Text(text) if takes_text(option) => text.to_owned(),
        _ => return Err(format!("must be {}", expected(option))),
    };
    check(command, option, &text)?;
    Ok(Some(text))
}

/// What is wrong with a value, by the option's own parser and by what a file must not have.
fn check(command: &Command, option: &Arg, text: &str) -> Result<(), String> {
    if text.contains('\0') {
        return Err("has a NUL in it".to_owned());
    }
    match value_name(option) {
        "URL" => store(text)?,
        "FILE" => absolute(text)?,
        _ => {}
    }
    let Err(error) = alone(command, option, Some(text)) else {
        return Ok(());
    };
    Err(match error.source() {
        Some(why) if takes_text(option) => why.to_string(),
        None if takes_text(option) => {
            format!("is {text:?}: write one of {}", words(option).join(", "))
        }
        _ => format!("must be {}", expected(option)),
    })
}

/// Reads an option alone, with this value or without one. Returns the value's text.
fn alone(command: &Command, option: &Arg, value: Option<&str>) -> Result<String, clap::Error> {
    let mut line = Command::new("").no_binary_name(true);
    // A conflict needs the other option.
    for rival in command.get_arg_conflicts_with(option) {
        line = line.arg(Arg::new(rival.get_id().clone()));
    }
    let name = option.get_long().unwrap_or_default();
    let option = option.clone().env(Resettable::Reset);
    let (word, option) = match value {
        Some(text) => {
            let option = option.action(ArgAction::Set).num_args(1);
            (format!("--{name}={text}"), option)
        }
        None => (format!("--{name}"), option),
    };
    let id = option.get_id().to_string();
    let matches = line.arg(option).try_get_matches_from([word])?;
    let text = matches.get_raw(&id).and_then(Iterator::last);
    Ok(text.unwrap_or_default().to_string_lossy().into_owned())
}

/// What a value must be, for messages and the reference.
pub fn expected(option: &Arg) -> String {
    let words = words(option);
    let text = match value_name(option) {
        _ if is_counted(option) => "0, 1 or 2 (or true or false)",
        _ if !takes_value(option) => "true or false",
        _ if !words.is_empty() => return format!("one of \"{}\"", words.join("\", \"")),
        "URL" => "a text, as \"postgres://user@host/database\"",
        "FILE" => "a text, as \"/etc/tokenrun/store\"",
        "DURATION" if is_switch(option) => "a duration, as \"5m\", or true or false",
        "DURATION" => "a duration, as \"5m\", or whole seconds",
        "SIZE" => "a size, as \"64k\", whole bytes, or true or false",
        "N" => "a whole number from 0 to 255",
        _ => "a text in \"…\"",
    };
    text.to_owned()
}

/// The words that an option takes, if it takes no others.
fn words(option: &Arg) -> Vec<String> {
    let words = option.get_possible_values();
    words.iter().map(|it| it.get_name().to_owned()).collect()
}

fn absolute(text: &str) -> Result<(), String> {
    if Path::new(text).is_absolute() {
        return Ok(());
    }
    Err(format!(
        "is {text:?}, which would be another file in each directory: write an absolute path"
    ))
}

fn store(text: &str) -> Result<(), String> {
    match url::check(text)? {
        Some(path) => absolute(&path.to_string_lossy()),
        None => Ok(()),
    }
}
