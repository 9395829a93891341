//! Other ways to write a line: `tokenrun help VERB`, `tokenrun version`, and options before the
//! verb. Each is rewritten to the way that the parser knows.

use std::ffi::OsString;

use clap::{Arg, Command};

use super::generated::TOPICS;

/// The line as the parser knows it; `None` if it is one already.
pub(crate) fn rewritten(arguments: &[OsString], command: fn() -> Command) -> Option<Vec<OsString>> {
    let (program, words) = arguments.split_first()?;
    let line = |words: Vec<OsString>| Some([vec![program.clone()], words].concat());
    match words.first()?.to_str()? {
        "help" if is_topic(&words[1..], command) => None,
        "help" => line([&words[1..], &["--help".into()]].concat()),
        "version" if words.len() == 1 => line(vec!["--version".into()]),
        first if first.starts_with('-') && !words.iter().any(|word| word == "--") => {
            let command = command();
            let options = leading_options(&command, words);
            let verb = verb_at(&command, &words[options..]);
            let (options, rest) = words.split_at(options);
            // A verb has no version of its own.
            let asks_version = options.iter().any(|it| it == "--version" || it == "-V");
            let (verb, rest) = rest.split_at(verb);
            match verb.is_empty() || asks_version {
                true => None,
                false => line([verb, options, rest].concat()),
            }
        }
        _ => None,
    }
}

/// What follows `help` is for the parser, which knows the topics: no option, and no verb
/// without a topic of its name.
fn is_topic(words: &[OsString], command: fn() -> Command) -> bool {
    let first = words.first().and_then(|word| word.to_str());
    first.is_some_and(|word| {
        let is_verb = || command().find_subcommand(word).is_some();
        !word.starts_with('-') && (TOPICS.contains(&word) || !is_verb())
    })
}

/// How many words at the begin are options with their values.
fn leading_options(command: &Command, words: &[OsString]) -> usize {
    let mut at = 0;
    while let Some(word) = words.get(at).and_then(|word| word.to_str()) {
        if !word.starts_with('-') {
            break;
        }
        at += if takes_the_next_word(command, word) {
            2
        } else {
            1
        };
    }
    at.min(words.len())
}

/// The word after this option is its value.
fn takes_the_next_word(command: &Command, word: &str) -> bool {
    let find = |is_it: &dyn Fn(&Arg) -> bool| {
        let all = command.get_subcommands().flat_map(Command::get_arguments);
        command.get_arguments().chain(all).find(|it| is_it(it))
    };
    let option = match word.strip_prefix("--") {
        Some(long) => find(&|it| it.get_long() == Some(long)),
        // A value may follow the letter at once.
        None => match word.chars().collect::<Vec<_>>()[..] {
            ['-', short] => find(&|it| it.get_short() == Some(short)),
            _ => None,
        },
    };
    option.is_some_and(|it| it.get_action().takes_values() && !it.is_require_equals_set())
}

/// How many words name a verb, and one within it.
fn verb_at(command: &Command, words: &[OsString]) -> usize {
    let mut here = command;
    let mut count = 0;
    for word in words {
        match word.to_str().and_then(|word| here.find_subcommand(word)) {
            Some(inner) => here = inner,
            None => break,
        }
        count += 1;
    }
    count
}

#[cfg(test)]
#[path = "rewriting_tests.rs"]
mod tests;
