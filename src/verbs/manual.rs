//! `tokenrun help TOPIC`, `tokenrun man` and `tokenrun completions`: the texts that are generated from the
//! command line's description, as they stand in the repository. A test keeps them current.
//! `tokenrun help VERB` is rewritten to `tokenrun VERB --help` before.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Args, Command, ValueEnum};

use super::shared::failure::not_written;
use super::shared::terminal::print;
use super::shared::{Action, Context};
use crate::cli::generated::{self, TOPICS};
use crate::cli::{Unusable, nearest};
use crate::exit::Exit;
use crate::report::whole_file::write_whole;

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
        TOPICS.contains(&only.as_str()).then_some(only)
    }

    /// The page of a topic.
    fn page(&self, command: &Command) -> Result<String> {
        let only = self.topic().ok_or_else(|| self.unknown())?;
        let topic = generated::topic(only)?;
        Ok(match help_of(only, command) {
            Some(help) => format!("{help}\n\n{topic}"),
            None => topic,
        })
    }

    fn unknown(&self) -> Unusable {
        let asked = self.words.join(" ");
        let near = nearest(&asked, TOPICS.into_iter());
        let meant = near.map(|near| format!(" (did you mean tokenrun help {near}?)"));
        Unusable::usage(format!(
            "there is no command and no topic {asked:?}{}; the topics are {}, and tokenrun --help lists the commands",
            meant.unwrap_or_default(),
            TOPICS.join(", ")
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
    format!("tokenrun help TOPIC: {}", TOPICS.join(", "))
}

/// The command line as completions know it: `help` takes topics and the names of commands.
pub(super) fn with_topics(command: Command) -> Command {
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let verbs = verbs.map(|verb| verb.get_name().to_owned());
    let mut words = TOPICS.map(str::to_owned).to_vec();
    words.extend(verbs.filter(|verb| !TOPICS.contains(&verb.as_str())));
    command.mut_subcommand("help", |help| {
        help.mut_arg("words", |word| {
            word.num_args(1)
                .value_parser(PossibleValuesParser::new(words))
        })
    })
}

/// Print the completion script for a shell
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

/// Write the manual pages
#[derive(Debug, Args)]
pub(super) struct Man {
    /// The directory; if it is called man1, pages of section 7 go to man7 beside it
    directory: PathBuf,
}

impl Action for Completions {
    fn run(&self, _: &mut Context<'_>) -> Result<Exit> {
        print(&generated::text_of("completions", self.shell.script())?)
    }
}

impl Action for Man {
    fn run(&self, _: &mut Context<'_>) -> Result<Exit> {
        write(&self.directory, &generated::files("man")?)
    }
}

/// A shell that has a completion script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Fish,
    Zsh,
}

impl Shell {
    /// The name of the script's file.
    pub const fn script(self) -> &'static str {
        match self {
            Self::Bash => "tokenrun.bash",
            Self::Fish => "tokenrun.fish",
            Self::Zsh => "_tokenrun",
        }
    }
}

/// Writes pages, names and contents, into a directory. If that is `man1`, which man(1) searches for
/// pages of section 1 alone, the pages of section 7 go to `man7` beside it.
fn write(directory: &Path, pages: &[(String, String)]) -> Result<Exit> {
    let failed = |path: &Path, error: &io::Error| not_written(path.display(), error);
    let beside = match directory.ends_with("man1") {
        true => directory.with_file_name("man7"),
        false => directory.to_owned(),
    };
    for (name, text) in pages {
        let directory = match name.ends_with(".7") {
            true => &beside,
            false => directory,
        };
        std::fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
        let path = directory.join(name);
        let written = write_whole(&path, text.as_bytes(), std::process::id());
        written.map_err(|error| failed(&path, &error))?;
    }
    Ok(Exit::OK)
}
