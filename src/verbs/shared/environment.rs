//! Warnings about the environment of this process.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::Context;
use super::failure::warn;
use super::options::StoreOptions;
use super::stores::file_text;
use crate::cli::{self, Origins};
use crate::report::log::Log;
use crate::report::message::{Level, Message};
use crate::run::environment;
use crate::store::filesystem;
use crate::store::url::StoreUrl;
use crate::store::url::{has_password, password_place};

/// Warns of a password on the command line, which is in every listing of processes, and of one in a
/// file that every user may read.
pub(crate) fn warn_of_visible_password(arguments: &[OsString], origins: &Origins, log: &mut Log) {
    if let Some(path) = origins.value::<PathBuf>("store_file") {
        warn_if_shared(path, log);
    }
    let visible = |text: &&String| {
        let own = arguments.iter().take_while(|word| *word != "--");
        own.into_iter()
            .any(|word| word.to_string_lossy().contains(text.as_str()))
    };
    let visible = origins.value::<String>("store").filter(visible);
    if let Some(text) = visible.filter(|text| has_password(text)) {
        let places = match password_place(text) {
            Some(place) => format!("TOKENRUN_STORE, --store-file or {place}"),
            None => "TOKENRUN_STORE or --store-file".to_owned(),
        };
        let text = format!(
            "the password on the command line can be read by every user of this host; give {places} instead"
        );
        warn(log, "visible_password", text);
    }
}

/// Warns if every user of this host may read a password in it. That is no refusal, unlike for a
/// configuration file: a Secret that Kubernetes mounts is often so, where there is no other user. A
/// group may read it: that is how a job's user gets access.
fn warn_if_shared(path: &Path, log: &mut Log) {
    let is_open = |it: &fs::Metadata| it.is_file() && it.mode() & 0o004 != 0;
    if !fs::metadata(path).is_ok_and(|it| is_open(&it)) {
        return;
    }
    if file_text(path).is_ok_and(|text| has_password(&text)) {
        let path = path.display();
        let text = format!(
            "the password in the store file {path} can be read by every user of this host; \
             chmod o= {path} (in Kubernetes: fsGroup, and defaultMode: 0440)"
        );
        warn(log, "visible_password", text);
    }
}

/// Warns of variables that look like tokenrun's and are not: they are probably misspelt.
pub(crate) fn warn_of_unknown_variables(context: &mut Context<'_>) {
    let ours = |name: &OsString| name.to_string_lossy().starts_with("TOKENRUN_");
    let mut names = std::env::vars_os()
        .map(|(name, _)| name)
        .filter(ours)
        .peekable();
    if names.peek().is_none() {
        return;
    }
    let known = cli::variables(&(context.command)());
    for name in names {
        let name = name.to_string_lossy();
        let is_known = known.iter().any(|known| *known == name)
            || environment::CHANGE == name
            || environment::JOB_VARIABLES.contains(&name.as_ref())
            || environment::HOOK_VARIABLES.contains(&name.as_ref());
        if !is_known {
            warn(
                context.log,
                "unknown_variable",
                format!("the variable {name:?} is unknown and has no effect"),
            );
        }
    }
}

/// Warns of a file on overlayfs: it is gone with its container, and excludes no other container.
pub(crate) fn warn_of_overlay(url: &StoreUrl, log: &mut Log) {
    let Some(path) = url.file() else {
        return;
    };
    // On the first run the file does not exist yet.
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let existing = absolute.ancestors().find(|path| path.exists());
    if existing.is_some_and(|path| filesystem::is_overlay(path).unwrap_or(false)) {
        let text = format!(
            "the store {} is on overlayfs: it excludes only runs in this container",
            path.display()
        );
        warn(log, "store_on_overlay", text);
    }
}

/// The file of the default store, if no store is given and it does not exist yet.
pub(crate) fn default_file_to_make<'a>(
    store: &StoreOptions,
    url: &'a StoreUrl,
) -> Option<&'a Path> {
    url.file()
        .filter(|path| !store.is_given() && !path.exists())
}

/// Says once what the default store excludes: other hosts have files of their own.
pub(crate) fn tell_of_made_file(path: &Path, log: &mut Log) {
    let text = format!(
        "made the store {}, which excludes runs of this user on this host only; for several hosts, \
         give the address of a database (--store, --store-file or TOKENRUN_STORE)",
        path.display()
    );
    log.write(&Message::new(Level::Info, "store_made", text), false);
}
