//! `tokenrun man`: the manual pages, as files.

use std::path::Path;

use anyhow::Result;

use super::failure::Failure;
use crate::exit::{self, Exit};
use crate::report::whole_file::write_whole;

/// Writes pages, names and contents, into a directory. If that is `man1`, which man(1) searches for
/// pages of section 1 alone, the pages of section 7 go to `man7` beside it.
///
/// # Errors
/// If it can't be written.
pub fn write(directory: &Path, pages: &[(&str, &str)]) -> Result<Exit> {
    let failed = |path: &Path, error: &std::io::Error| {
        let text = format!("{} can't be written: {error}", path.display());
        Failure::new(exit::DENIED, "not_written", text)
    };
    let beside = match directory.ends_with("man1") {
        true => directory.with_file_name("man7"),
        false => directory.to_owned(),
    };
    for (name, text) in pages {
        let directory = match name.ends_with(".7") {
            true => &beside,
            false => directory,
        };
        std::fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
        let path = directory.join(name);
        let written = write_whole(&path, text.as_bytes(), std::process::id());
        written.map_err(|error| failed(&path, &error))?;
    }
    Ok(Exit::OK)
}
