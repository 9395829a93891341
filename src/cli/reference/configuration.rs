//! The keys of configuration files.

use clap::Command;

use super::options::described;
use super::topic::{Part, Table, Topic, heading, paragraph};
use crate::config::{KEYS, Key, REFUSED, SYSTEM_FILE};

const EXAMPLE: &str = "\
[defaults]
store = \"postgres://etl@db.example.org/jobs\"
conflict-exit-code = 0

[groups.nightly]
takeover-after = \"10m\"
wait = true
";

pub(super) fn topic(command: &Command) -> Topic {
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
                rows: KEYS.iter().map(|key| row(key, command)).collect(),
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

fn row(key: &Key, command: &Command) -> Vec<String> {
    let meaning = described(command, key.name);
    let instead = key.instead_of.map(|other| format!(" Replaces `{other}`."));
    vec![
        key.name.to_owned(),
        key.kind.expected(),
        format!("--{}: {meaning}.{}", key.name, instead.unwrap_or_default()),
    ]
}
