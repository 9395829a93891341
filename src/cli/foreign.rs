//! Words of other tools: what tokenrun has for each, as a whole line to type. None is an alias: nothing is
//! done until a person has read the line.

use std::ffi::OsString;

use crate::report::printable::shell_word;

/// Verbs of other tools, and those that do the same here.
const VERBS: [(&str, &str); 8] = [
    ("stop", "revoke"),
    ("kill", "revoke"),
    ("cancel", "revoke"),
    ("ps", "status"),
    ("ls", "status"),
    ("logs", "output"),
    ("drain", "move"),
    ("unlock", "release"),
];

/// The verb that does here what a word does elsewhere.
pub(super) fn verb_meant(word: &str) -> Option<&'static str> {
    let found = VERBS.iter().find(|(theirs, _)| *theirs == word);
    found.map(|(_, ours)| *ours)
}

/// The line with tokenrun's verb in place of its first word, if it is one of another tool; `None` also if
/// that is no line.
pub(super) fn line_with_verb(arguments: &[OsString], command: &clap::Command) -> Option<String> {
    let words = words_of(arguments)?;
    let (first, rest) = words.split_first()?;
    let as_it_is = [&[verb_meant(first)?], rest].concat();
    let mut with_group = as_it_is.clone();
    // `stop NAME` gives the group as other tools take it, and `drain NAME` the node.
    if let Some(at) = rest.iter().position(|word| !word.starts_with('-')) {
        match *first {
            "drain" => {
                with_group.insert(at + 1, "--from");
                with_group.push("--any");
            }
            _ => with_group.insert(at + 1, "-g"),
        }
    }
    let lines = [as_it_is, with_group];
    lines.iter().find_map(|line| checked(line, command))
}

/// An option of `flock` or `consul lock`.
pub(super) struct Theirs<'a> {
    /// Why there is none here, or what is like it.
    pub(super) why: &'static str,
    /// The option of tokenrun's, if it needs one.
    pub(super) ours: Option<String>,
    words: Vec<&'a str>,
}

/// What `-n` and `-w` of other tools are here.
pub(super) fn option_meant<'a>(arguments: &'a [OsString], word: &str) -> Option<Theirs<'a>> {
    let words = words_of(arguments)?;
    let own = words.iter().position(|it| *it == "--");
    let own = own.unwrap_or(words.len());
    let at = words[..own].iter().position(|it| it.starts_with(word))?;
    let attached = words[at][word.len()..].trim_start_matches('=');
    let follows = words
        .get(at + 1)
        .filter(|_| attached.is_empty() && at + 1 < own);
    let is_number = |it: &&&str| it.starts_with(|c: char| c.is_ascii_digit());
    let follows = follows.filter(is_number).copied();
    let value = follows.unwrap_or(attached);
    let (why, ours) = match (word, value) {
        ("-n" | "--nonblock" | "--nb", "") => ("without --wait no run waits", None),
        ("-n", _) => ("one node runs the job at a time, without a number", None),
        ("-w", "") => ("--wait waits", Some("--wait".to_owned())),
        ("-w", seconds) => (
            "--wait waits",
            Some(format!("--wait={}", in_seconds(seconds))),
        ),
        _ => return None,
    };
    let after = if follows.is_some() { at + 2 } else { at + 1 };
    let words = [&words[..at], &words[after..]].concat();
    Some(Theirs { why, ours, words })
}

impl Theirs<'_> {
    /// The line with what tokenrun has in place of the option; `None` if that is no line.
    pub(super) fn line(&self, command: &clap::Command) -> Option<String> {
        let own: Vec<&str> = self.ours.iter().map(String::as_str).collect();
        let job = self.words.iter().position(|word| *word == "--")?;
        let (options, job) = self.words.split_at(job);
        checked(&[options, &own, job].concat(), command)
    }

    /// An example of a line, with that.
    pub(super) fn example(&self, line: &str) -> String {
        let ours = self.ours.as_deref().map(|ours| format!("{ours} -- "));
        line.replacen("-- ", ours.as_deref().unwrap_or("-- "), 1)
    }
}

/// A bare number is one of seconds, as `flock` counts.
fn in_seconds(value: &str) -> String {
    match value.ends_with(|c: char| c.is_ascii_digit()) {
        true => format!("{value}s"),
        false => value.to_owned(),
    }
}

/// The words after the program's name; `None` if one is no text.
fn words_of(arguments: &[OsString]) -> Option<Vec<&str>> {
    arguments.iter().skip(1).map(|it| it.to_str()).collect()
}

/// A line as it can be typed, if the parser takes it.
fn checked(words: &[&str], command: &clap::Command) -> Option<String> {
    let line: Vec<&str> = [&["tokenrun"], words].concat();
    let mut command = command.clone();
    command.try_get_matches_from_mut(&line).ok()?;
    let shown: Vec<String> = line.into_iter().map(shown).collect();
    Some(shown.join(" "))
}

/// A word for a shell, without what may be a password: messages go to logs.
fn shown(word: &str) -> String {
    let is_secret = word.contains("password") || (word.contains("://") && word.contains('@'));
    match is_secret {
        true => "…".to_owned(),
        false => shell_word(word),
    }
}
