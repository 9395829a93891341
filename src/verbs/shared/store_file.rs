//! The file of `--store-file`: the store, often with its password.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use anyhow::Result;

use super::failure::Failure;
use crate::cli::said_by_variable;

use crate::exit;

/// No connection string is longer, in bytes.
const LONGEST: u64 = 1 << 16;

/// The file's text: a value of `--store`. It need not be a regular file: a shell's `<(…)` is a
/// pipe.
pub(crate) fn read(path: &Path) -> Result<String> {
    let mut text = String::new();
    let file = File::open(path);
    let read = file.and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
    read.map_err(|error| {
        let (code, remedy) = match error.kind() {
            ErrorKind::PermissionDenied => (exit::DENIED, "let this user read it"),
            ErrorKind::NotFound => (exit::CONFIG, "put it there, or name another"),
            _ => (exit::CONFIG, "name one that holds what --store takes"),
        };
        refused(code, path, &format!("can't be read: {error}; {remedy}"))
    })?;
    if text.len() as u64 > LONGEST {
        let text = "is longer than 64 KiB; name one that holds what --store takes";
        return Err(refused(exit::CONFIG, path, text).into());
    }
    match text.trim() {
        "" => {
            let text = "is empty; write into it what --store takes, as in \
                        postgres://etl@db.example.org/jobs";
            Err(refused(exit::CONFIG, path, text).into())
        }
        text => Ok(text.to_owned()),
    }
}

fn refused(code: u8, path: &Path, text: &str) -> Failure {
    let variable = said_by_variable("store-file", Some(path));
    let text = format!("the store file {} {text}{variable}", path.display());
    Failure::new(code, "no_store", text)
}
