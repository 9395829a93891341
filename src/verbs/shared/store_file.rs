//! The file of `--store-file`: the store, often with its password.

use std::path::Path;

use anyhow::Result;

use super::failure::Failure;
use crate::cli::said_by_variable;
use crate::config::{self, Missing, Refusal, Role};
use crate::store::url::StoreUrl;

const STORE: Role = Role {
    title: "the store file",
    otherwise: ", or name another",
    // No connection string is longer.
    longest: (
        1 << 16,
        "is longer than 64 KiB; name one that holds what --store takes",
    ),
};

/// The file's text: a value of `--store`. Only a file that no other user could have written is
/// believed: it decides which store excludes other nodes.
pub(crate) fn read(path: &Path) -> Result<String> {
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
