//! The reference: a topic for each question that is answered by a table, made of the data that the
//! program itself uses. `tokenrun help`, the manual and the guide show the same topics.

mod configuration;
mod environment;
mod exit_codes;
mod json;
pub(crate) mod markup;
mod metrics;
pub(crate) mod options;
mod text;
pub(crate) mod topic;

use clap::Command;

use self::topic::Topic;

/// Makes a topic from the description of the command line.
pub(crate) type Make = fn(&Command) -> Topic;

/// The topics, by the name that `tokenrun help` takes.
pub(crate) const TOPICS: [(&str, Make); 6] = [
    ("exit-codes", exit_codes::topic),
    ("environment", environment::topic),
    ("json", json::topic),
    ("configuration", configuration::topic),
    ("options", options::topic),
    ("metrics", metrics::topic),
];

/// The names of all topics.
pub(crate) fn names() -> Vec<&'static str> {
    TOPICS.iter().map(|(name, _)| *name).collect()
}

/// A topic for a terminal; `None` if no topic has this name.
pub(crate) fn text_of(name: &str, command: &Command) -> Option<String> {
    let (_, topic) = TOPICS.iter().find(|(other, _)| *other == name)?;
    Some(text::rendered(&topic(command)))
}

#[cfg(test)]
#[path = "topics_tests.rs"]
mod tests;
