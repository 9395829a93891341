//! The options of a run and of `hold`, from clap.

use clap::{Arg, Command};

use super::topic::{Part, Table, Topic, heading, paragraph};

pub(crate) fn topic(command: &Command) -> Topic {
    let mut parts = vec![paragraph(
        "A run is `tokenrun [OPTIONS] --group NAME -- CMD [ARG]...`. Every option but --group can be given as a variable, --takeover-after as TOKENRUN_TAKEOVER_AFTER, and almost all of them in a configuration file: see `tokenrun help environment` and `tokenrun help configuration`.",
    )];
    let mut headings: Vec<&str> = Vec::new();
    for heading in shown(command).filter_map(Arg::get_help_heading) {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    for title in headings {
        let mut all: Vec<&Arg> = shown(command)
            .filter(|it| it.get_help_heading() == Some(title))
            .collect();
        all.sort_by_key(|option| option.get_display_order());
        parts.extend([heading(title), table(all.into_iter())]);
    }
    if let Some(hold) = command.find_subcommand("hold") {
        let is_own = |option: &&Arg| shown(command).all(|it| it.get_id() != option.get_id());
        parts.push(heading("Options of tokenrun hold alone"));
        parts.push(table(shown(hold).filter(is_own)));
    }
    parts.extend(rules());
    Topic {
        title: "Options",
        about: "the options of a run",
        parts,
    }
}

/// What holds for the values of several options.
pub(crate) fn rules() -> Vec<Part> {
    vec![
        heading("Names"),
        paragraph(
            "A group, a client, a key and a resource have names of 1 to 200 characters. None of the characters is invisible, and no blank is at either end: two names that look equal would be two jobs. A group's name has no `*` and no `?`, which stand for other characters where several groups can be given.",
        ),
        heading("Durations"),
        paragraph(
            "A duration is written 90s, 5m or 2h 30m. A plain number is a number of seconds.",
        ),
        paragraph(
            "The durations must fit together: `heartbeat + 2 * store-timeout + kill-grace + margin` must be less than takeover-after. The margin is a tenth of takeover-after, at least a second. If they do not fit, the message names the least takeover-after that does.",
        ),
    ]
}

/// The first sentence about an option of a run or of `hold`.
pub(crate) fn described(command: &Command, name: &str) -> String {
    let hold = command.find_subcommand("hold");
    let all = command.get_arguments();
    let mut all = all.chain(hold.into_iter().flat_map(Command::get_arguments));
    let option = all.find(|it| it.get_long() == Some(name));
    let help = option.and_then(Arg::get_help).map(ToString::to_string);
    split_default(&help.unwrap_or_default()).1
}

/// The options of a command, without the program of a run.
fn shown(command: &Command) -> impl Iterator<Item = &Arg> {
    let options = command.get_arguments();
    options.filter(|it| !it.is_positional() && !it.is_hide_set())
}

fn table<'a>(options: impl Iterator<Item = &'a Arg>) -> Part {
    Part::Table(Table {
        columns: vec!["option", "default", "meaning"],
        rows: options.map(row).collect(),
    })
}

fn row(option: &Arg) -> Vec<String> {
    let (default, meaning) = meaning(option);
    vec![written(option), default, meaning]
}

/// As `-g, --group NAME`.
fn written(option: &Arg) -> String {
    let short = option.get_short().map(|short| format!("-{short}, "));
    let long = option.get_long().map(|long| format!("--{long}"));
    let value = option.get_value_names().and_then(|names| names.first());
    let value = value.filter(|_| option.get_action().takes_values());
    let value = value.map(|value| match option.is_require_equals_set() {
        true => format!("[={value}]"),
        false => format!(" {value}"),
    });
    [short, long, value].into_iter().flatten().collect()
}

/// The default, and what the full help says but for that.
fn meaning(option: &Arg) -> (String, String) {
    let help = option.get_long_help().or(option.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let (first, rest) = help.split_once("\n\n").unwrap_or((&help, ""));
    let (default, first) = split_default(first);
    let (later_default, rest) = split_default(rest);
    let values = option.get_default_values().first();
    let value = values.map(|value| value.to_string_lossy().into_owned());
    let default = [default, later_default]
        .into_iter()
        .find(|it| !it.is_empty());
    let mut meaning = format!("{first}. {rest}").trim().to_owned();
    let words = option.get_possible_values();
    let words = words
        .iter()
        .filter_map(|it| Some((it.get_name(), it.get_help()?)));
    for (word, help) in words.filter(|_| option.get_action().takes_values()) {
        meaning.push_str(&format!(" `{word}`: {help}."));
    }
    (default.or(value).unwrap_or_default(), meaning)
}

/// Takes `[default: X]` out of a text.
fn split_default(text: &str) -> (String, String) {
    let found = text.split_once("[default: ").and_then(|(before, rest)| {
        let (default, after) = rest.split_once(']')?;
        let after = after.trim_start_matches('.').trim_start();
        Some((
            default.to_owned(),
            format!("{before}{after}").trim().to_owned(),
        ))
    });
    found.unwrap_or_else(|| (String::new(), text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_is_taken_out_of_its_sentence() {
        let split = |text: &str| {
            let (default, rest) = split_default(text);
            format!("{default}|{rest}")
        };
        assert_eq!(split("Time [default: 10s]"), "10s|Time");
        assert_eq!(split("[default: none]. For scripts."), "none|For scripts.");
        assert_eq!(split("No word of it"), "|No word of it");
    }
}
