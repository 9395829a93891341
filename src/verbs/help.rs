//! `tokenrun help TOPIC`. `tokenrun help VERB` is rewritten to `tokenrun VERB --help` before.

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Args, Command};

use super::shared::action::{Action, Context};
use super::shared::printing::print;
use crate::cli::nearest::nearest;
use crate::cli::{Unusable, topics};
use crate::exit::Exit;

/// Explain a command or a topic: exit-codes, environment, json, configuration, options, metrics
#[derive(Debug, Args)]
pub(super) struct Help {
    /// A topic or a command; without one, the help of tokenrun
    #[arg(value_name = "TOPIC", num_args = 1.., required = true)]
    words: Vec<String>,
}

impl Action for Help {
    fn check(&self) -> Result<(), Unusable> {
        match self.topic() {
            Some(_) => Ok(()),
            None => Err(self.unknown()),
        }
    }

    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        print(&self.page(&(context.command)())?)
    }
}

impl Help {
    fn topic(&self) -> Option<&str> {
        let [only] = self.words.as_slice() else {
            return None;
        };
        topics::names().contains(&only.as_str()).then_some(only)
    }

    /// The page of a topic.
    fn page(&self, command: &Command) -> Result<String, Unusable> {
        let only = self.topic().ok_or_else(|| self.unknown())?;
        let topic = topics::text_of(only).ok_or_else(|| self.unknown())?;
        Ok(match help_of(only, command) {
            Some(help) => format!("{help}\n\n{topic}"),
            None => topic.to_owned(),
        })
    }

    fn unknown(&self) -> Unusable {
        let asked = self.words.join(" ");
        let names = topics::names();
        let near = nearest(&asked, names.iter().copied());
        let meant = near.map(|near| format!(" (did you mean tokenrun help {near}?)"));
        Unusable::usage(format!(
            "there is no command and no topic {asked:?}{}; the topics are {}, and tokenrun --help lists the commands",
            meant.unwrap_or_default(),
            names.join(", ")
        ))
    }
}

/// The help of a verb that has the name of a topic.
fn help_of(name: &str, command: &Command) -> Option<String> {
    let mut command = command.clone();
    command.build();
    let verb = command.find_subcommand_mut(name)?;
    Some(verb.render_long_help().to_string())
}

/// What the full help says at its end.
pub(super) fn topics_line() -> String {
    format!("tokenrun help TOPIC: {}", topics::names().join(", "))
}

/// The command line as completions know it: `help` takes topics and the names of commands.
pub(super) fn with_topics(command: Command) -> Command {
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let verbs = verbs.map(|verb| verb.get_name().to_owned());
    let names = topics::names().into_iter().map(str::to_owned);
    let mut words: Vec<String> = names.collect();
    words.extend(verbs.filter(|verb| topics::names().iter().all(|topic| topic != verb)));
    command.mut_subcommand("help", |help| {
        help.mut_arg("words", |word| {
            word.num_args(1)
                .value_parser(PossibleValuesParser::new(words))
        })
    })
}
