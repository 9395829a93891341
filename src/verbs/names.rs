//! The names of groups and of clients: `tokenrun groups` and `tokenrun clients`, for a shell that
//! completes a line.

use std::collections::BTreeSet;
use std::ffi::OsString;

use anyhow::Result;
use clap::Parser;

use super::shared::options::StoreOptions;
use super::shared::stores::known_store_with_locks;
use super::shared::terminal::print;
use super::shared::{Action, Context};
use crate::exit::Exit;
use crate::store::{RefusalQuery, RunQuery, Store, StoreError};
use crate::token::hidden::is_hidden;
use crate::token::{ClientId, Row};

/// How long a completion waits for a store.
const COMPLETION_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(1);

/// How many runs, and how many refusals, a completion looks at.
const RECENT: u32 = 500;

/// What a shell asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
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

/// The store of a hidden command. It is no verb, so that completions do not offer it.
#[derive(Debug, Parser)]
#[command(name = "tokenrun", disable_help_flag = true)]
pub(super) struct NamesLine {
    #[command(flatten)]
    store: StoreOptions,
}

/// Names in a store.
#[derive(Debug)]
pub(super) struct PrintNames {
    pub(super) names: Names,
    pub(super) line: NamesLine,
}

impl Action for PrintNames {
    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        let timeout = COMPLETION_TIMEOUT;
        let mut opened = known_store_with_locks(&self.line.store, timeout, context.log)?;
        match self.names {
            Names::Groups => groups(opened.store.as_mut()),
            Names::Clients => clients(opened.store.as_mut()),
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

/// Prints the name of each group, a line each, including groups whose token is unreadable. Names
/// that no option accepts are left out.
fn groups(store: &mut dyn Store) -> Result<Exit> {
    let listing = store.list()?;
    let rows = listing.rows.iter().map(|row| row.group.to_string());
    let unreadable = listing.unreadable.iter().map(|row| row.group.clone());
    let names = rows
        .chain(unreadable)
        .filter(|name| !name.contains(is_hidden));
    let names: String = names.map(|name| name + "\n").collect();
    print(&names)
}

/// Prints the id of each client, a line each. Ids that no option accepts are left out.
fn clients(store: &mut dyn Store) -> Result<Exit> {
    let mut all = of_tokens(store)?;
    let query = RunQuery {
        limit: Some(RECENT),
        ..RunQuery::default()
    };
    all.extend(store.runs(&query)?.into_iter().map(|run| run.client));
    all.extend(refused(store, Some(RECENT))?);
    let ids = all.iter().map(ClientId::as_str);
    let ids = ids.filter(|id| !id.contains(is_hidden));
    print(&ids.map(|id| format!("{id}\n")).collect::<String>())
}

/// The store has seen the client: it has or expects a token, waits for one, has run, or was
/// refused. The target of a hand-off need not exist.
pub(super) fn is_known(store: &mut dyn Store, client: &ClientId) -> Result<bool, StoreError> {
    if of_tokens(store)?.contains(client) {
        return Ok(true);
    }
    let query = RunQuery {
        client: Some(client.clone()),
        limit: Some(1),
        ..RunQuery::default()
    };
    Ok(!store.runs(&query)?.is_empty() || refused(store, None)?.contains(client))
}

/// The clients in the tokens and the queues.
fn of_tokens(store: &mut dyn Store) -> Result<BTreeSet<ClientId>, StoreError> {
    let listing = store.list()?;
    let of_row = |row: &Row| {
        let expected = row.expected_client.clone();
        row.client_bound().cloned().into_iter().chain(expected)
    };
    let tokens = listing.rows.iter().flat_map(of_row);
    let waiters = listing.queues.iter();
    let waiters = waiters.map(|(_, entry)| entry.waiter.client.clone());
    Ok(tokens.chain(waiters).collect())
}

fn refused(store: &mut dyn Store, limit: Option<u32>) -> Result<BTreeSet<ClientId>, StoreError> {
    let query = RefusalQuery {
        limit,
        ..RefusalQuery::default()
    };
    let refusals = store.refusals(&query)?;
    Ok(refusals.into_iter().map(|it| it.client).collect())
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
