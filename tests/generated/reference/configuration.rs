//! The keys of configuration files.

use clap::{Arg, Command};

use super::options::described;
use super::topic::{Part, Table, Topic, heading, paragraph};
use tokenrun::cli::keys;
use tokenrun::config::{REFUSED, SYSTEM_FILE};

const EXAMPLE: &str = "\
[defaults]
store = \"postgres://etl@db.example.org/jobs\"
conflict-exit-code = 0

[groups.nightly]
takeover-after = \"10m\"
wait = true
";

pub(crate) fn topic(command: &Command) -> Topic {
    let refused = REFUSED.iter().map(|(name, why)| (*name, *why));
    Topic {
        title: "Configuration files",
        about: "the keys of configuration files for tokenrun",
        parts: vec![
            paragraph(format!(
                "Options that many command lines share can be set in a file in TOML: {SYSTEM_FILE} for all users, `$XDG_CONFIG_HOME/tokenrun/config.toml` (or ~/.config/tokenrun/config.toml) for one user. --config FILE reads that file instead of both; --config '' reads no file."
            )),
            Part::Example(EXAMPLE),
            paragraph(
                "A key is the long name of an option. The first of these that sets an option wins: the command line, a variable, the table of the group, `[defaults]`, the default of tokenrun. Between two tables of the same kind, the file of the user wins. `tokenrun config` shows every setting and where it comes from.",
            ),
            heading("Keys"),
            Part::Table(Table {
                columns: vec!["key", "value", "option"],
                rows: rows(command),
            }),
            heading("What a file can't set"),
            Table::of(["option", "instead"], refused),
            heading("Which files are refused"),
            paragraph(
                "Files are read strictly. A key that is unknown, or a value that can't be right, ends every command with exit code 78 and the line of the file. So does a file that belongs to another user than root and the caller, that others can write, or that holds a password and can be read by others. A file that the caller may not read ends it with 77.",
            ),
        ],
    }
}

/// The keys of a run, then those of `hold` alone.
fn rows(command: &Command) -> Vec<Vec<String>> {
    let run = keys::built(command.clone());
    let is_own = |option: &&Arg| run.get_arguments().all(|it| it.get_id() != option.get_id());
    let of_run = keys::all(&run).into_iter();
    let mut rows: Vec<_> = of_run.map(|option| row(&run, option)).collect();
    if let Some(hold) = run.find_subcommand("hold") {
        let of_hold = keys::all(hold).into_iter().filter(is_own);
        rows.extend(of_hold.map(|option| row(hold, option)));
    }
    rows
}

fn row(command: &Command, option: &Arg) -> Vec<String> {
    let key = keys::key(command, option);
    let meaning = described(command, &key.name);
    let instead = key.instead_of.map(|other| format!(" Replaces `{other}`."));
    vec![
        key.name.clone(),
        keys::expected(option),
        format!("--{}: {meaning}.{}", key.name, instead.unwrap_or_default()),
    ]
}
