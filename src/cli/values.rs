//! The parsers of values: each gives the domain's own type.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::duration::DurationError;
pub(crate) use crate::duration::parse as duration;
use crate::run::machine::Wait;
use crate::size::{self, SizeError};
use crate::token::{ClientId, Fence, GroupName, GroupPattern, OnceKey, ResourceName};

/// Why a value is refused. The text reads after the option's name; of an argument without one it is a
/// sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refused(pub(crate) String);

/// The meaning of an option to wait without a duration.
pub(crate) const FOREVER: &str = "forever";

/// The meaning of `--capture` without a size.
pub(crate) const CAPTURED: &str = "64KiB";

/// The longest text that is stored with a run or an act, in characters.
const TEXT_MAX: usize = 1_000;

/// One group's name. Verbs that take several groups read `*` and `?` as a pattern, so a name has none.
pub(crate) fn group(text: &str) -> Result<GroupName, Refused> {
    if text.contains(['*', '?']) {
        return Err(Refused(
            "has a * or a ?, which stand for other characters where several groups can be given; a group's name has none".to_owned(),
        ));
    }
    GroupName::given(text).map_err(because)
}

/// A group's name or a pattern.
pub(crate) fn pattern(text: &str) -> Result<GroupPattern, Refused> {
    GroupPattern::given(text)
        .map_err(|error| Refused(format!("{error}; write for example --group 'etl-*'")))
}

pub(crate) fn client(text: &str) -> Result<ClientId, Refused> {
    ClientId::given(text).map_err(because)
}

/// A client's name as an argument without an option.
pub(crate) fn client_word(text: &str) -> Result<ClientId, Refused> {
    ClientId::given(text).map_err(|error| Refused(format!("the client id {error}")))
}

/// A key of `--once` as an argument without an option.
pub(crate) fn key_word(text: &str) -> Result<OnceKey, Refused> {
    OnceKey::given(text).map_err(|error| Refused(format!("the key {error}")))
}

pub(crate) fn resource_word(text: &str) -> Result<ResourceName, Refused> {
    ResourceName::given(text).map_err(|error| Refused(format!("the resource's name {error}")))
}

/// A key that must not run again.
pub(crate) fn once(text: &str) -> Result<OnceKey, Refused> {
    let key = OnceKey::given(text).map_err(because)?;
    if text.contains("$(") {
        // It would be done by the first run, and then no node would ever run the job.
        return Err(Refused(format!(
            "{text} is a variable or a command that was not expanded, so that each run would have the same key: see how it is quoted, and in Kubernetes that the container has the variable"
        )));
    }
    Ok(key)
}

/// A text that is shown in one line.
pub(crate) fn line(text: &str) -> Result<String, Refused> {
    let length = text.chars().count();
    if length > TEXT_MAX {
        return Err(Refused(format!(
            "has {length} characters; at most {TEXT_MAX} are stored"
        )));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(bad) => Err(Refused(format!(
            "has a control character ({bad:?}); use printable characters"
        ))),
        None => Ok(text.to_owned()),
    }
}

/// An exit code that the user chooses.
pub(crate) fn code(text: &str) -> Result<u8, &'static str> {
    text.parse()
        .map_err(|_| "is not a whole number from 0 to 255")
}

pub(crate) fn wait(text: &str) -> Result<Wait, DurationError> {
    if text == FOREVER {
        return Ok(Wait::Forever);
    }
    duration(text).map(Wait::For)
}

/// How much of a job's output is caught.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Capture(pub(crate) Option<usize>);

pub(crate) fn capture(text: &str) -> Result<Capture, SizeError> {
    let size = match text {
        // As other variables take a yes or no.
        "0" | "false" => None,
        "true" => Some(size::parse(CAPTURED)?),
        text => Some(size::parse(text)?),
    };
    Ok(Capture(size))
}

/// How quiet: the parser of the variable, of the file's key, and of how often the flag was given.
pub(crate) fn quiet(text: &str) -> Result<u8, String> {
    match text {
        "0" | "false" => Ok(0),
        "1" | "true" => Ok(1),
        "2" => Ok(2),
        _ => Err(
            "0 says all, 1 (-q) only what is wrong, 2 (-qq) nothing: the flag can be given twice"
                .to_owned(),
        ),
    }
}

pub(crate) fn fence(text: &str) -> Result<Fence, String> {
    match text.parse::<i64>() {
        Ok(fence @ 1..=Fence::MAX) => Ok(Fence(fence)),
        _ => Err(format!(
            "a fence is a whole number from 1 to {}",
            Fence::MAX
        )),
    }
}

/// A value with its word, and what help says about it.
pub(crate) type Word<T> = (&'static str, T, &'static str);

/// One of these words.
pub(crate) fn one_of<T, const N: usize>(
    words: &'static [Word<T>; N],
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync,
{
    let possible = words.iter().map(|(word, _, help)| {
        let value = PossibleValue::new(*word);
        match help.is_empty() {
            true => value,
            false => value.help(*help),
        }
    });
    let parser = PossibleValuesParser::new(possible);
    parser.try_map(|word| {
        let found = words.iter().find(|(own, ..)| *own == word);
        found.map(|(_, value, _)| *value).ok_or("no such word")
    })
}

fn because(error: impl std::fmt::Display) -> Refused {
    Refused(error.to_string())
}
