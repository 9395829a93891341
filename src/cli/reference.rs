//! The reference: a topic for each question that is answered by a table, made of the data that the
//! program itself uses. `tokenrun help`, the manual and the guide show the same topics.

mod configuration;
mod environment;
mod exit_codes;
mod json;
mod markdown;
mod markup;
mod metrics;
mod options;
mod roff;
mod text;
mod topic;

use clap::Command;

use self::topic::Topic;

/// Makes a topic from the description of the command line.
type Make = fn(&Command) -> Topic;

/// The topics, by the name that `tokenrun help` takes.
const TOPICS: [(&str, Make); 6] = [
    ("exit-codes", exit_codes::topic),
    ("environment", environment::topic),
    ("json", json::topic),
    ("configuration", configuration::topic),
    ("options", options::topic),
    ("metrics", metrics::topic),
];

/// The names of all topics.
pub(super) fn names() -> Vec<&'static str> {
    TOPICS.iter().map(|(name, _)| *name).collect()
}

/// A topic for a terminal; `None` if no topic has this name.
pub(super) fn text_of(name: &str, command: &Command) -> Option<String> {
    let (_, topic) = TOPICS.iter().find(|(other, _)| *other == name)?;
    Some(text::rendered(&topic(command)))
}

/// The manual pages of the topics: file names, and contents without preamble. The options stand in
/// the program's own page.
pub(super) fn manual(command: &Command, date: &str, source: &str) -> Vec<(String, String)> {
    let all = TOPICS.iter().filter(|(name, _)| *name != "options");
    let page = |name: &str, topic: &Topic| {
        let text = roff::page(name, topic, date, source);
        (format!("tokenrun-{name}.7"), text)
    };
    all.map(|(name, topic)| page(name, &topic(command)))
        .collect()
}

/// What the options' topic says before and after its tables, for the program's manual page.
pub(super) fn rules_of_options() -> String {
    roff::parts(&options::rules())
}

/// The pages of the guide: file names and contents.
pub(super) fn guide(command: &Command) -> Vec<(String, String)> {
    let all = TOPICS.iter();
    let all =
        all.map(|(name, topic)| (format!("{name}.md"), markdown::page(name, &topic(command))));
    all.collect()
}

#[cfg(test)]
mod tests;
