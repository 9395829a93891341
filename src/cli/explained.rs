//! The error of a command line, in one line, or the requested help.

use std::error::Error as _;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::foreign;
use super::unusable::{Unusable, set_by};
use super::values::Refused;

/// One screen: the answer to `-h`, and to a command line without arguments.
const SHORT: &str = include_str!("short.txt");

/// The screen for an empty command line.
pub(crate) fn nothing_asked() -> Unusable {
    Unusable {
        is_page: true,
        ..Unusable::usage(format!(
            "tokenrun: no group, and no command to run\n\n{SHORT}"
        ))
    }
}

/// One line for an error of clap's: what, where, and what to write instead.
pub(crate) fn explained(
    error: &clap::Error,
    arguments: &[OsString],
    command: clap::Command,
) -> Unusable {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Unusable {
            asked_for: true,
            is_page: true,
            code: 0,
            ..Unusable::usage(match asks_for_short_help(error, arguments) {
                true => SHORT.to_owned(),
                false => error.render().to_string(),
            })
        },
        _ => Unusable::usage(one_line(error, arguments, command)),
    }
}

/// The line asks for the help of a run, and not for all of it.
fn asks_for_short_help(error: &clap::Error, arguments: &[OsString]) -> bool {
    let mut own = arguments.iter().skip(1).take_while(|word| *word != "--");
    let first = arguments.get(1).map(|word| word.to_string_lossy());
    let is_run = first.is_some_and(|word| word.starts_with('-'));
    error.kind() == ErrorKind::DisplayHelp && is_run && !own.any(|word| word == "--help")
}

fn one_line(error: &clap::Error, arguments: &[OsString], mut command: clap::Command) -> String {
    command.build();
    if let Some(said) = foreign_verb(arguments, &command) {
        return said;
    }
    let command = innermost(&command, arguments);
    let example = format!("as in {}", example_of(command));
    match (error.kind(), invalid(error)) {
        (ErrorKind::UnknownArgument, Some(word)) if word.starts_with('-') => {
            let is_run = full_name(command) == "tokenrun";
            let meant = is_run.then(|| foreign::option_meant(arguments, &word));
            if let Some(theirs) = meant.flatten() {
                let line = theirs.line(command);
                let line = line.unwrap_or_else(|| theirs.example(&example_of(command)));
                return format!(
                    "unknown option {word}: {}; did you mean: {line}",
                    theirs.why
                );
            }
            match near_option(command, &word) {
                Some(near) => {
                    let near = with_value(command, &near);
                    format!("unknown option {word}; did you mean {near}? {example}")
                }
                None => format!(
                    "unknown option {word}; {} --help lists all, {example}",
                    full_name(command)
                ),
            }
        }
        (ErrorKind::UnknownArgument, Some(word)) if takes_equals(command, arguments, &word) => {
            let option = before(arguments, &word).unwrap_or_default();
            format!("{option} takes its value after an equals sign: {option}={word}; {example}")
        }
        (
            ErrorKind::UnknownArgument
            | ErrorKind::InvalidSubcommand
            | ErrorKind::ArgumentConflict
            | ErrorKind::MissingSubcommand,
            Some(word),
        ) if !word.starts_with('-') && !arguments.iter().any(|it| it == "--") => {
            unexpected(command, &word)
        }
        _ => {
            let variables = variables_in(error, command, arguments);
            match refused(error) {
                Some(said) => format!("{said}{variables}"),
                None => format!("{}{variables}; {example}", problem(error)),
            }
        }
    }
}

/// What is said to a verb of another tool.
fn foreign_verb(arguments: &[OsString], command: &clap::Command) -> Option<String> {
    let word = arguments.get(1)?.to_str()?;
    let verb = command.find_subcommand(foreign::verb_meant(word)?)?;
    let line = foreign::line_with_verb(arguments, command);
    let line = line.unwrap_or_else(|| example_of(verb));
    Some(format!("unknown command {word:?}; did you mean: {line}"))
}

/// The word before this one.
fn before<'a>(arguments: &'a [OsString], word: &str) -> Option<&'a str> {
    let at = arguments.iter().position(|it| it == word)?;
    arguments.get(at.checked_sub(1)?)?.to_str()
}

/// The word before this one is an option that takes its value after an equals sign.
fn takes_equals(command: &clap::Command, arguments: &[OsString], word: &str) -> bool {
    let option = before(arguments, word).and_then(|it| it.strip_prefix("--"));
    let mut all = command.get_arguments();
    option
        .is_some_and(|long| all.any(|it| it.get_long() == Some(long) && it.is_require_equals_set()))
}

/// The options that a variable has set, and not the command line, of those that an error is about.
fn variables_in(error: &clap::Error, command: &clap::Command, arguments: &[OsString]) -> String {
    let own = || arguments.iter().skip(1).take_while(|word| *word != "--");
    let is_written = |word: &str| own().any(|it| it.to_string_lossy().starts_with(word));
    let mut about = words_of(error, ContextKind::InvalidArg);
    about.extend(words_of(error, ContextKind::PriorArg));
    let mut said = String::new();
    for option in command.get_arguments() {
        let (Some(long), Some(variable)) = (option.get_long(), option.get_env()) else {
            continue;
        };
        let (long, variable) = (format!("--{long}"), variable.to_string_lossy());
        let short = option.get_short().map(|short| format!("-{short}"));
        if about.contains(&option.to_string())
            && !is_written(&long)
            && !short.is_some_and(|short| is_written(&short))
            && std::env::var_os(&*variable).is_some()
        {
            said.push_str(&set_by(&long, &variable));
        }
    }
    said
}

/// What is wrong with a value whose parser has said it in full.
fn refused(error: &clap::Error) -> Option<String> {
    let why = error.source()?.downcast_ref::<Refused>()?;
    let argument = text_in(error, ContextKind::InvalidArg)?;
    let option = argument.split(' ').next().filter(|it| it.starts_with("--"));
    Some(option.map_or_else(|| why.to_string(), |option| format!("{option} {why}")))
}

/// What is wrong, by the kind of clap's error and what it knows of it.
fn problem(error: &clap::Error) -> String {
    let option = words_of(error, ContextKind::InvalidArg).join(", ");
    let value = words_of(error, ContextKind::InvalidValue).join(", ");
    match error.kind() {
        ErrorKind::InvalidValue if value.is_empty() => {
            format!("'{option}' needs a value{}", possible_values(error))
        }
        ErrorKind::InvalidValue => format!(
            "invalid value '{value}' for '{option}'{}",
            possible_values(error)
        ),
        ErrorKind::ValueValidation => {
            let source = error.source().map(|why| format!(": {why}"));
            let why = source.unwrap_or_default();
            format!("invalid value '{value}' for '{option}'{why}")
        }
        ErrorKind::NoEquals => format!("'{option}' takes its value after an equals sign"),
        ErrorKind::TooManyValues => format!("'{option}' takes no value '{value}'"),
        ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => {
            format!("'{option}' needs another number of values")
        }
        ErrorKind::MissingRequiredArgument => format!("missing {option}"),
        ErrorKind::UnknownArgument => format!("unexpected argument '{option}'"),
        ErrorKind::ArgumentConflict => match words_of(error, ContextKind::PriorArg) {
            prior if prior.is_empty() || prior == [option.as_str()] => {
                format!("'{option}' cannot be used multiple times")
            }
            prior => format!("'{option}' cannot be used with '{}'", prior.join("', '")),
        },
        kind => kind.as_str().unwrap_or("it can't be read").to_owned(),
    }
}

/// The values of an option, and the likely one.
fn possible_values(error: &clap::Error) -> String {
    let values = words_of(error, ContextKind::ValidValue);
    let mut said = String::new();
    if !values.is_empty() {
        said.push_str(&format!("; it takes {}", values.join(", ")));
    }
    if let [meant, ..] = words_of(error, ContextKind::SuggestedValue).as_slice() {
        said.push_str(&format!("; did you mean '{meant}'?"));
    }
    said
}

/// The command that a line asks for, the innermost.
fn innermost<'c>(command: &'c clap::Command, arguments: &[OsString]) -> &'c clap::Command {
    let mut here = command;
    for word in arguments.iter().skip(1) {
        match word.to_str().and_then(|word| here.find_subcommand(word)) {
            Some(inner) => here = inner,
            None => break,
        }
    }
    here
}

fn full_name(command: &clap::Command) -> &str {
    let name = command.get_bin_name();
    name.unwrap_or_else(|| command.get_name())
}

/// A line of a command that works.
fn example_of(command: &clap::Command) -> String {
    let name = full_name(command);
    if name == "tokenrun" {
        return "tokenrun --group nightly -- /opt/etl/run.sh".to_owned();
    }
    if let Some(verb) = command.get_subcommands().next() {
        return example_of(verb);
    }
    let mut line = name.to_owned();
    let mut shown_ids = Vec::new();
    for option in command.get_arguments() {
        let is_shell = option.get_id() == "shell";
        let value = match option.get_value_names() {
            _ if is_shell => "bash",
            Some([first, ..]) => first,
            _ => "VALUE",
        };
        let shown = match value {
            "NAME" => "nightly",
            "ID" => "node-b",
            other => other,
        };
        // The client of `expect` may be left out for another option.
        let is_client = option.is_positional() && value == "ID";
        match option.get_long() {
            Some("group") => {
                line.push_str(" --group nightly");
                shown_ids.push(option.get_id());
            }
            Some(long) if option.is_required_set() => {
                line.push_str(&format!(" --{long} {shown}"));
            }
            None if option.is_required_set() || is_client => line.push_str(&format!(" {shown}")),
            _ => {}
        }
    }
    // Of several options one must be given.
    for group in command.get_groups().filter(|it| it.is_required_set()) {
        let first = group.get_args().next().filter(|_| {
            let mut all = group.get_args();
            !all.any(|id| shown_ids.contains(&id))
        });
        let first = first.and_then(|id| command.get_arguments().find(|it| it.get_id() == id));
        if let Some(long) = first.and_then(clap::Arg::get_long) {
            line.push_str(&format!(" --{long} node-b"));
        }
    }
    line
}

/// An option as it is written: with its value.
fn with_value(command: &clap::Command, option: &str) -> String {
    let long = option.trim_start_matches('-');
    let found = command
        .get_arguments()
        .find(|it| it.get_long() == Some(long));
    match found.and_then(|it| {
        it.get_value_names()
            .filter(|_| it.get_action().takes_values())
    }) {
        Some([value, ..]) => format!("{option} {value}"),
        _ => option.to_owned(),
    }
}

/// Verbs of former versions, and what is written now.
const FORMER: [(&str, &str); 1] = [(
    "handoff",
    "handoff is an option of move: tokenrun move --group nightly --to node-b --when-idle",
)];

/// A word that is not a subcommand here.
fn unexpected(command: &clap::Command, word: &str) -> String {
    if let Some((_, now)) = FORMER.iter().find(|(former, _)| *former == word) {
        return (*now).to_owned();
    }
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let verbs: Vec<&str> = verbs.map(clap::Command::get_name).collect();
    let near = nearest(word, verbs.iter().copied());
    let near = near.or_else(|| foreign::verb_meant(word));
    let name = full_name(command);
    if verbs.is_empty() {
        return format!("unexpected {word:?}; as in {}", example_of(command));
    }
    let meant = near.map_or_else(String::new, |near| format!("; did you mean {name} {near}?"));
    let all = verbs.join(", ");
    match name {
        "tokenrun" => format!(
            "unexpected {word:?}{meant} a job goes after --, as in tokenrun --group nightly -- {word} …; other commands are {all}",
            meant = if meant.is_empty() {
                ":".to_owned()
            } else {
                meant
            },
        ),
        _ => format!(
            "unexpected {word:?}{meant}; the commands are {all}, as in {}",
            example_of(command)
        ),
    }
}

/// The wrong word.
fn invalid(error: &clap::Error) -> Option<String> {
    let option = match error.kind() {
        ErrorKind::ArgumentConflict => None,
        _ => text_in(error, ContextKind::InvalidArg),
    };
    option.or_else(|| text_in(error, ContextKind::InvalidSubcommand))
}

/// The option of this command that a word is most like, if it is like one.
fn near_option(command: &clap::Command, word: &str) -> Option<String> {
    let options = command.get_arguments().filter(|it| !it.is_hide_set());
    let longs = options.filter_map(clap::Arg::get_long);
    let name = word.split('=').next()?.trim_start_matches('-');
    nearest(name, longs).map(|near| format!("--{near}"))
}

fn text_in(error: &clap::Error, kind: ContextKind) -> Option<String> {
    words_of(error, kind).into_iter().next()
}

/// What an error knows of this kind, as words.
fn words_of(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(word)) => vec![word.clone()],
        Some(ContextValue::Strings(words)) => words.clone(),
        _ => Vec::new(),
    }
}

/// The word that differs from this one by the fewest edits, if those are few for its length.
pub(crate) fn nearest<'w>(word: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let edits = |other: &&str| strsim::damerau_levenshtein(word, other);
    let near = words.min_by_key(edits)?;
    (edits(&near) <= (word.len() / 3).max(1)).then_some(near)
}
