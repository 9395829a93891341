//! The file after `--store-file`: which store, and often its password.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::environment::warn;
use crate::cli::said_by_variable;
use crate::commands::Failure;
use crate::exit;
use crate::report::log::Log;
use crate::store::open::has_password;

/// No connection string is longer, in bytes.
const LONGEST: u64 = 1 << 16;

/// What is in it: what would be written after `--store`. It need not be a regular file: a
/// shell's `<(…)` is a pipe.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
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
        return Err(refused(exit::CONFIG, path, text));
    }
    match text.trim() {
        "" => {
            let text = "is empty; write into it what --store takes, as in \
                        postgres://etl@db.example.org/jobs";
            Err(refused(exit::CONFIG, path, text))
        }
        text => Ok(text.to_owned()),
    }
}

fn refused(code: u8, path: &Path, text: &str) -> Failure {
    let variable = said_by_variable("store-file", Some(path));
    let text = format!("the store file {} {text}{variable}", path.display());
    Failure::new(code, "no_store", text)
}

/// Warns if everybody on this host may read a password in it. That is no refusal, as it is
/// for a configuration file: a Secret that Kubernetes mounts is often so, where no other
/// user is there to read it. A group may read it: that is how a job's user is let in.
pub(crate) fn warn_if_shared(path: &Path, log: &mut Log) {
    let is_open = |it: &fs::Metadata| it.is_file() && it.mode() & 0o004 != 0;
    if !fs::metadata(path).is_ok_and(|it| is_open(&it)) {
        return;
    }
    if read(path).is_ok_and(|text| has_password(&text)) {
        let path = path.display();
        let text = format!(
            "the password in the store file {path} can be read by everybody on this host; \
             chmod o= {path} (in Kubernetes: fsGroup, and defaultMode: 0440)"
        );
        warn(log, "visible_password", text);
    }
}
