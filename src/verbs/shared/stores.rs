//! Opening the store that a command line names, by its URL or by a file that holds it.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::failure::{Failure, code_of, warn};
use super::node::{node_environment, state};
use super::options::StoreOptions;
use crate::cli::said_by_variable;
use crate::config::{self, Missing, Refusal, Role};
use crate::report::log::Log;
use crate::run::machine::Wait;
use crate::store::Store;
use crate::store::open::{OpenError, Opened, Opening};
use crate::store::url::StoreUrl;
use crate::sys::clock::LocalClock;
use crate::{cli, exit};

/// How long a listing waits for a store.
pub(crate) const LISTING_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause before the next try to open a store, and the least time of a try.
const SHORTEST_OPENING: Duration = Duration::from_millis(20);

/// The value of `--store`, or the text of `--store-file`.
pub(crate) fn given(store: &StoreOptions) -> Result<Option<String>> {
    match &store.store_file {
        Some(path) => file_text(path).map(Some),
        None => Ok(store.store.clone()),
    }
}

pub(crate) fn store_url(store: &StoreOptions) -> Result<StoreUrl> {
    let url = match given(store)? {
        Some(text) => StoreUrl::parse(&text),
        None => StoreUrl::default_for(&node_environment()),
    };
    url.map_err(|error| {
        let variable = match &store.store_file {
            Some(path) => cli::said_by_variable("store-file", Some(path)),
            None => cli::said_by_variable("store", store.store.as_ref()),
        };
        Failure::new(exit::CONFIG, "no_store", format!("{error}{variable}")).into()
    })
}

/// The store of a run.
pub(crate) struct StoreOfRun<'a> {
    pub(crate) url: &'a StoreUrl,
    /// How long a call may take.
    pub(crate) timeout: Duration,
    /// The name that the server shows.
    pub(crate) application: &'a str,
    /// For how long the run may wait, from the start of its clock on.
    pub(crate) wait: Wait,
    pub(crate) clock: LocalClock,
}

/// Opens the store of a run. A run that may wait in the queue also waits for the store. A stop signal ends this
/// process by itself meanwhile.
pub(crate) fn open_in_time(
    store: &StoreOfRun<'_>,
    log: &mut Log,
    mut at_work: impl FnMut(),
) -> Result<Opened> {
    let timeout = store.timeout;
    let left = || match store.wait {
        Wait::No => None,
        Wait::Forever => Some(Duration::MAX),
        Wait::For(limit) => Some(limit.saturating_sub(store.clock.now().0)),
    };
    loop {
        at_work();
        let opening = left().map_or(timeout, |left| timeout.min(left).max(SHORTEST_OPENING));
        let opened = open(store.url, timeout, opening, store.application, log);
        // Only now: the attempt has taken some of it.
        match (opened, left()) {
            (Err(error), Some(left)) if code_of(&error) == exit::UNAVAILABLE && !left.is_zero() => {
                std::thread::sleep(SHORTEST_OPENING.min(left));
            }
            (opened, _) => return opened,
        }
    }
}

/// The store that this URL names. A call takes at most `timeout`, its opening at most `limit`.
pub(crate) fn open(
    url: &StoreUrl,
    timeout: Duration,
    limit: Duration,
    application: &str,
    log: &mut Log,
) -> Result<Opened> {
    let mut warn = |text: &str| warn(log, "store_settings", text.to_owned());
    open_with(url, timeout, limit, application, &mut warn)
}

fn open_with(
    url: &StoreUrl,
    timeout: Duration,
    limit: Duration,
    application: &str,
    warn: &mut dyn FnMut(&str),
) -> Result<Opened> {
    let state = state();
    let opening = Opening {
        timeout,
        limit,
        application,
        state: state.as_deref(),
    };
    url.open(&opening, warn).map_err(not_opened)
}

pub(crate) fn not_opened(error: OpenError) -> anyhow::Error {
    match error {
        OpenError::Store(error) => error.into(),
        OpenError::Settings { error, text } => {
            let variable = cli::said_by_variable("store", Some(&text.0));
            Failure::new(exit::CONFIG, "no_store", format!("{error}{variable}")).into()
        }
    }
}

/// A store that must exist already: the requests on it make none.
pub(crate) fn known_store(store: &StoreOptions, log: &mut Log) -> Result<Box<dyn Store>> {
    Ok(known_store_with_locks(store, LISTING_TIMEOUT, log)?.store)
}

/// A store that must exist already, for a verb that writes a file: `option` is refused if it names a
/// file of the store.
pub(crate) fn known_store_beside(
    store: &StoreOptions,
    option: &str,
    output: Option<&Path>,
    log: &mut Log,
) -> Result<Box<dyn Store>> {
    let url = store_url(store)?;
    output.map_or(Ok(()), |path| keep_apart(&url, option, path))?;
    Ok(open_known(&url, LISTING_TIMEOUT, log)?.store)
}

/// Refuses to write a file of the store: that would replace its tokens.
pub(crate) fn keep_apart(url: &StoreUrl, option: &str, path: &Path) -> Result<()> {
    if !url.has_file(path) {
        return Ok(());
    }
    let text = format!(
        "{option} {} names a file of the store; give another path",
        path.display()
    );
    Err(Failure::new(exit::USAGE, "usage", text).into())
}

/// A store that must exist already, with the directory for the locks of its runs on this host.
pub(crate) fn known_store_with_locks(
    store: &StoreOptions,
    timeout: Duration,
    log: &mut Log,
) -> Result<Opened> {
    open_known(&store_url(store)?, timeout, log)
}

/// A store that must exist already, without a word of its settings.
pub(crate) fn open_quietly(url: &StoreUrl, timeout: Duration) -> Result<Box<dyn Store>> {
    check_exists(url)?;
    Ok(open_with(url, timeout, timeout, "tokenrun", &mut |_| {})?.store)
}

fn open_known(url: &StoreUrl, timeout: Duration, log: &mut Log) -> Result<Opened> {
    check_exists(url)?;
    open(url, timeout, timeout, "tokenrun", log)
}

fn check_exists(url: &StoreUrl) -> Result<()> {
    if let Some(path) = url.file()
        && !path.exists()
    {
        let text = format!(
            "there is no store {}: nothing has run with it yet, or --store names another",
            path.display()
        );
        return Err(Failure::new(exit::CONFIG, "no_store", text).into());
    }
    Ok(())
}

const STORE: Role = Role {
    title: "the store file",
    otherwise: ", or name another",
    // No connection string is longer.
    longest: 1 << 16,
    too_long: "is longer than 64 KiB; name one that holds what --store takes",
};

/// The file's text: a value of `--store`. Only a file that no other user could have written is
/// believed: it decides which store excludes other nodes.
pub(super) fn file_text(path: &Path) -> Result<String> {
    let failed = |refusal: Refusal| {
        let variable = said_by_variable("store-file", Some(path));
        Failure::new(refusal.code, "no_store", refusal.text + &variable)
    };
    let read = config::read(path, &STORE, Missing::Refused).map_err(failed)?;
    let text = read.map(|read| read.text).unwrap_or_default();
    match objection(text.trim()) {
        Some(why) => Err(failed(STORE.refused(path, why)).into()),
        None => Ok(text.trim().to_owned()),
    }
}

/// The text may be a password alone: it is not repeated.
fn objection(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some(
            "is empty; write into it what --store takes, as in postgres://etl@db.example.org/jobs",
        );
    }
    let url = StoreUrl::parse(text);
    let is_file = url.as_ref().is_ok_and(|url| url.file().is_some());
    if text.contains(char::is_control) && (is_file || text.contains("://")) {
        // It would name another store than its first line does.
        return Some("has more than one line; write what --store takes into it, in one line");
    }
    let is_whole = match url {
        // A relative path would be another file in each directory.
        Ok(url) => url.file().is_none_or(Path::is_absolute),
        // What is wrong with a URL is said where it is used.
        Err(_) => text.contains("://"),
    };
    (!is_whole).then_some(
        "holds neither a URL nor an absolute path; write into it what --store takes, as in \
         postgres://etl@db.example.org/jobs",
    )
}
