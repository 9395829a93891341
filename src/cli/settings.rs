//! Options that the command line and the variables leave open, from the configuration files:
//! they become the options' defaults, so that the precedence is flag, variable, file, default.

use std::ffi::{OsStr, OsString};

use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches, Id};

use super::keys::{self, Options, variable};
use super::unusable::{Unusable, set_by};
use crate::config::{Config, Home, Key, Setting};
use crate::exit;
use crate::report::settings::{Effective, Origin};
use crate::store::url::without_password;

/// A parsed command line, with the settings of the files.
pub(crate) struct Parsed<P> {
    pub(crate) options: P,
    /// Where they come from.
    pub(crate) origins: Origins,
}

/// Where each setting comes from.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    matches: ArgMatches,
    /// What the command has options for. Only a build with debug assertions distinguishes in its matches an
    /// option that a command does not have from one that is not given.
    options: Vec<Id>,
    /// The files' settings for this line's group, used or not.
    settings: Vec<Setting>,
    /// The names of the used ones.
    used: Vec<String>,
}

/// Why a line could not be parsed.
pub(crate) enum Misread {
    /// An error, or a request for help.
    Line(clap::Error),
    /// An error in a file.
    File(Unusable),
}

impl From<clap::Error> for Misread {
    fn from(error: clap::Error) -> Self {
        Self::Line(error)
    }
}

/// Parses a line, and reads the files if the command uses a store.
pub(crate) fn read<P>(
    arguments: &[OsString],
    settable: fn() -> Command,
) -> Result<Parsed<P>, Misread>
where
    P: CommandFactory + FromArgMatches,
{
    let mut command = P::command();
    let mut hidden = Vec::new();
    let mut matches = match command.try_get_matches_from_mut(arguments) {
        Err(error) if error.kind() == ErrorKind::ArgumentConflict => {
            hidden = rivals_of_flags::<P>(arguments, settable);
            command = without_variables(P::command(), &hidden);
            command.try_get_matches_from_mut(arguments)?
        }
        read => read?,
    };
    let path = names(&matches);
    let known = inner(&command, &path).map(Command::get_arguments);
    let ids = known.into_iter().flatten().map(Arg::get_id);
    let ids: Vec<Id> = ids.cloned().collect();
    let settings = match ids.iter().any(|id| id == "config") {
        true => {
            let own = Some(&command).filter(|_| path.is_empty());
            let keys = Options::new(own, settable);
            of_files(innermost(&matches), &keys).map_err(Misread::File)?
        }
        false => Vec::new(),
    };
    let used = left_open(inner(&command, &path), innermost(&matches), &settings);
    if !used.is_empty() {
        let fresh = without_variables(P::command(), &hidden);
        command = with_defaults(fresh, &path, &used);
        matches = command.try_get_matches_from_mut(arguments)?;
    }
    let used_names = used.iter().map(|it| it.key.name.clone()).collect();
    let options = P::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    Ok(Parsed {
        options,
        origins: Origins {
            matches,
            options: ids,
            settings,
            used: used_names,
        },
    })
}

/// The options whose variables are ignored, because a flag replaces them: `--store` also replaces
/// `TOKENRUN_STORE_FILE`.
fn rivals_of_flags<P: CommandFactory>(
    arguments: &[OsString],
    settable: fn() -> Command,
) -> Vec<String> {
    let command = keys::built(settable());
    let all = keys::all(&command).into_iter();
    let all = all.map(|option| keys::key(&command, option));
    let rivals: Vec<(String, String)> = all
        .filter_map(|key| Some((key.name, key.instead_of?)))
        .collect();
    let names: Vec<String> = rivals.iter().map(|(name, _)| name.clone()).collect();
    let mut flags = without_variables(P::command(), &names);
    match flags.try_get_matches_from_mut(arguments) {
        Err(_) => Vec::new(),
        Ok(flags) => rivals
            .into_iter()
            .filter(|(_, rival)| is_given(innermost(&flags), rival))
            .map(|(name, _)| name)
            .collect(),
    }
}

/// A command that does not read the variables of these options.
fn without_variables(mut command: Command, names: &[String]) -> Command {
    for name in names {
        if keys::option(&command, name).is_some() {
            command = command.mut_arg(id(name), |option| option.env(Resettable::Reset));
        }
    }
    let inner = command.get_subcommands().map(|it| it.get_name().to_owned());
    for name in inner.collect::<Vec<_>>() {
        command = command.mut_subcommand(name, |inner| without_variables(inner, names));
    }
    command
}

/// The names of the commands on a line, one within the other.
fn names(matches: &ArgMatches) -> Vec<String> {
    let mut names = Vec::new();
    let mut here = matches;
    while let Some((name, inner)) = here.subcommand() {
        names.push(name.to_owned());
        here = inner;
    }
    names
}

fn innermost(matches: &ArgMatches) -> &ArgMatches {
    matches
        .subcommand()
        .map_or(matches, |(_, inner)| innermost(inner))
}

/// The command that `path` names.
fn inner<'c>(command: &'c Command, path: &[String]) -> Option<&'c Command> {
    path.iter().try_fold(command, Command::find_subcommand)
}

/// The files' settings for the group on the line of a command that has `--config`.
fn of_files(matches: &ArgMatches, keys: &Options<'_>) -> Result<Vec<Setting>, Unusable> {
    let given = value::<OsString>(matches, "config");
    let home = Home {
        xdg_config_home: std::env::var_os("XDG_CONFIG_HOME"),
        home: std::env::var_os("HOME"),
    };
    let config = Config::load(given.map(OsString::as_os_str), &home, keys);
    let config = config.map_err(|refusal| Unusable {
        code: refusal.code,
        ..Unusable::usage(refusal.text + &said_by_variable("config", given))
    })?;
    let groups = matches.try_get_raw("group").ok().flatten();
    // An act on several groups has the defaults of none.
    let mut groups = groups.into_iter().flatten();
    let only = groups.next().filter(|_| groups.next().is_none());
    let settings = config.settings(only.and_then(OsStr::to_str));
    Ok(settings.into_iter().cloned().collect())
}

/// The name that clap knows an option by.
fn id(name: &str) -> String {
    name.replace('-', "_")
}

/// That an option's value, which can't be used, is its variable's; nothing if it is not.
pub(crate) fn said_by_variable(name: &str, value: Option<impl AsRef<OsStr>>) -> String {
    let variable = variable(name);
    let set = std::env::var_os(&variable);
    match (set, value) {
        (Some(set), Some(value)) if set == value.as_ref() => {
            set_by(&format!("--{name}"), &variable)
        }
        _ => String::new(),
    }
}

/// The line, or a variable, gives the option.
fn is_given(matches: &ArgMatches, name: &str) -> bool {
    let id = id(name);
    if !matches!(matches.try_contains_id(&id), Ok(true)) {
        return false;
    }
    let source = matches.value_source(&id);
    matches!(
        source,
        Some(ValueSource::CommandLine | ValueSource::EnvVariable)
    )
}

/// The settings that the line and the variables leave open to a command.
fn left_open<'s>(
    command: Option<&Command>,
    matches: &ArgMatches,
    settings: &'s [Setting],
) -> Vec<&'s Setting> {
    let is_open = |setting: &&Setting| {
        let key = &setting.key;
        let is_option = command.is_some_and(|it| keys::option(it, &key.name).is_some());
        let rival = key.instead_of.as_ref();
        let has_rival = rival.is_some_and(|other| is_given(matches, other));
        is_option && !has_rival && !is_given(matches, &key.name)
    };
    settings.iter().filter(is_open).collect()
}

/// The line's command, with these settings as the defaults of the command that `path` names.
fn with_defaults(mut command: Command, path: &[String], settings: &[&Setting]) -> Command {
    if let Some((name, rest)) = path.split_first() {
        return command.mut_subcommand(name, |inner| with_defaults(inner, rest, settings));
    }
    for setting in settings {
        if let Some(value) = setting.value.clone() {
            command = command.mut_arg(id(&setting.key.name), |option| option.default_value(value));
        }
    }
    command
}

impl Origins {
    /// Adds to the message of an unusable line which variable or file has set the option.
    pub(crate) fn blame(&self, mut unusable: Unusable) -> Unusable {
        if unusable.asked_for || unusable.code != exit::USAGE {
            return unusable;
        }
        let options = std::mem::take(&mut unusable.options);
        let is_named = |option: &str| options.iter().any(|it| it == option);
        for id in innermost(&self.matches).ids() {
            let name = id.as_str().replace('_', "-");
            let option = format!("--{name}");
            if is_named(&option) && self.is_of_variable(id.as_str()) {
                unusable.text.push_str(&set_by(&option, &variable(&name)));
            }
        }
        let named = |setting: &&Setting| {
            let name = &setting.key.name;
            self.used.contains(name) && is_named(&format!("--{name}"))
        };
        let named = self.settings.iter().filter(named);
        let places = named.map(|it| format!("--{} is set in {}", it.key.name, it.source));
        let places: Vec<String> = places.collect();
        if !places.is_empty() {
            unusable.text.push_str(&format!(" ({})", places.join("; ")));
            unusable.code = exit::CONFIG;
        }
        unusable
    }

    /// The value of an option; `None` if it is not given, or if the command has no such option.
    pub(crate) fn value<T: Clone + Send + Sync + 'static>(&self, id: &str) -> Option<&T> {
        value(innermost(&self.matches), id)
    }

    fn is_of_variable(&self, id: &str) -> bool {
        innermost(&self.matches).value_source(id) == Some(ValueSource::EnvVariable)
    }

    /// Each setting that a file may have, its value and where it comes from. What this command
    /// has no option for is given by the others' variables and the files alone.
    pub(crate) fn all(&self, settable: fn() -> Command) -> Vec<Effective> {
        let command = keys::built(settable());
        let all = keys::all(&command).into_iter();
        all.map(|option| self.one(option, &keys::key(&command, option)))
            .collect()
    }

    fn one(&self, option: &Arg, key: &Key) -> Effective {
        let matches = innermost(&self.matches);
        let (id, variable) = (option.get_id().as_str(), variable(&key.name));
        let is_option = self.options.iter().any(|own| own == id);
        let origin = match is_option.then(|| matches.value_source(id)).flatten() {
            Some(ValueSource::CommandLine) => Origin::Flag,
            Some(ValueSource::EnvVariable) => Origin::Environment(variable.clone()),
            _ if !is_option && std::env::var_os(&variable).is_some() => {
                Origin::Environment(variable.clone())
            }
            _ => self.of_file(key, is_option),
        };
        let value = match (&origin, is_option) {
            (Origin::Default, _) => {
                let value = option.get_default_values().first();
                value.map(|text| text.to_string_lossy().into_owned())
            }
            (Origin::File(_), _) => self.setting(key).and_then(|it| it.value.clone()),
            (_, true) => given_value(matches, option),
            (_, false) => std::env::var_os(&variable).map(|it| it.to_string_lossy().into_owned()),
        };
        let value = match key.is_store {
            true => value.map(|text| without_password(&text)),
            false => value.or_else(|| keys::switched_off(option)),
        };
        Effective {
            setting: key.name.clone(),
            value,
            origin,
        }
    }

    fn setting(&self, key: &Key) -> Option<&Setting> {
        self.settings.iter().find(|it| it.key.name == key.name)
    }

    fn of_file(&self, key: &Key, is_option: bool) -> Origin {
        let is_used = !is_option || self.used.contains(&key.name);
        let setting = self.setting(key).filter(|_| is_used);
        setting.map_or(Origin::Default, |it| Origin::File(it.source.to_string()))
    }
}

/// A value as it was given; of a flag, as it was understood.
fn given_value(matches: &ArgMatches, option: &Arg) -> Option<String> {
    let id = option.get_id().as_str();
    match option.get_action() {
        ArgAction::SetTrue => return value::<bool>(matches, id).map(ToString::to_string),
        ArgAction::Count => return value::<u8>(matches, id).map(ToString::to_string),
        _ => {}
    }
    let raw = matches.try_get_raw(id).ok().flatten()?.next_back();
    raw.map(|text| text.to_string_lossy().into_owned())
}

/// A value as it was understood; `None` also for an option that the command does not have.
fn value<'m, T: Clone + Send + Sync + 'static>(matches: &'m ArgMatches, id: &str) -> Option<&'m T> {
    matches.try_get_one(id).ok().flatten()
}
