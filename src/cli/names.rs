//! The names of groups and of clients, for a shell that completes a line.

use std::ffi::OsString;

use clap::Parser;

use super::shared::{StoreFlags, StoreRequest};

/// What a shell asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    Groups,
    Clients,
}

impl Names {
    /// What a hidden command prints.
    fn of(command: &OsString) -> Option<Self> {
        match command.to_str()? {
            "groups" => Some(Self::Groups),
            "clients" => Some(Self::Clients),
            _ => None,
        }
    }
}

/// It is no [`super::Verb`], so that completions do not offer it.
#[derive(Debug, Parser)]
#[command(name = "tokenrun", disable_help_flag = true)]
pub(super) struct NamesLine {
    #[command(flatten)]
    store: StoreFlags,
}

/// Names in a store.
#[derive(Debug)]
pub struct NamesRequest {
    pub names: Names,
    pub store: StoreRequest,
}

impl NamesLine {
    pub(super) fn request(self, names: Names) -> NamesRequest {
        NamesRequest {
            names,
            store: self.store.into(),
        }
    }
}

/// Options that say which store, as they are written.
const OPTIONS: [&str; 4] = ["-s", "--store", "--store-file", "--config"];

/// The arguments with the store options of the line that is being completed, if they request
/// names: `groups -- -g x --store S` becomes `--store S`.
pub(super) fn rewritten(arguments: &[OsString]) -> Option<(Names, Vec<OsString>)> {
    let [program, verb, separator, line @ ..] = arguments else {
        return None;
    };
    let names = Names::of(verb).filter(|_| separator == "--")?;
    let mut rewritten = vec![program.clone()];
    let mut words = line.iter().take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        let Some(text) = word.to_str() else { continue };
        if OPTIONS.contains(&text) {
            // The word that is being completed has no value yet.
            if let Some(value) = words.next() {
                rewritten.extend([word.clone(), value.clone()]);
            }
        } else if OPTIONS
            .iter()
            .any(|option| text.starts_with(&format!("{option}=")))
        {
            rewritten.push(word.clone());
        }
    }
    Some((names, rewritten))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_of_a_line_counts() {
        let rewritten = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let (names, words) = rewritten(&words)?;
            assert_eq!(names, Names::Groups);
            let words = words.iter().map(|word| word.to_str().unwrap().to_owned());
            Some(words.collect::<Vec<_>>().join(" "))
        };
        for (line, becomes) in [
            ("tokenrun groups -- status -g", "tokenrun"),
            ("tokenrun groups -- -s /x -g y", "tokenrun -s /x"),
            (
                "tokenrun groups -- --store=/x --store",
                "tokenrun --store=/x",
            ),
            (
                "tokenrun groups -- --config c -g x -- -s y",
                "tokenrun --config c",
            ),
        ] {
            assert_eq!(rewritten(line).as_deref(), Some(becomes), "{line}");
        }
        assert_eq!(rewritten("tokenrun status -- -s /x"), None);
        assert_eq!(rewritten("tokenrun groups"), None);
        let words = ["tokenrun", "clients", "--", "-s", "x"].map(OsString::from);
        assert!(matches!(
            super::rewritten(&words),
            Some((Names::Clients, _))
        ));
    }
}
