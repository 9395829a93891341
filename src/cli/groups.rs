//! The names of groups, for a shell that completes a line.

use std::ffi::OsString;

use clap::Parser;

use super::shared::{StoreFlags, StoreRequest};

/// The command's hidden name.
const NAME: &str = "groups";

/// It is no [`super::Verb`], so that completions do not offer it.
#[derive(Debug, Parser)]
#[command(name = "tokenrun", disable_help_flag = true)]
pub(super) struct GroupsLine {
    #[command(flatten)]
    store: StoreFlags,
}

/// The names of a store's groups.
#[derive(Debug)]
pub struct GroupsRequest {
    pub store: StoreRequest,
}

impl From<GroupsLine> for GroupsRequest {
    fn from(line: GroupsLine) -> Self {
        Self {
            store: line.store.into(),
        }
    }
}

/// Options that say which store, as they are written.
const OPTIONS: [&str; 4] = ["-s", "--store", "--store-file", "--config"];

/// The arguments with the store options of the line that is being completed, if they request
/// groups: `groups -- -g x --store S` becomes `--store S`.
pub(super) fn rewritten(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let [program, verb, separator, line @ ..] = arguments else {
        return None;
    };
    if verb != NAME || separator != "--" {
        return None;
    }
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
    Some(rewritten)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_of_a_line_counts() {
        let rewritten = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let words = rewritten(&words)?;
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
    }
}
