//! `tokenrun man`: the manual pages, as files.

use std::path::Path;

use anyhow::Result;

use super::failure::Failure;
use crate::exit::{self, Exit};

/// Writes pages, names and contents, into a directory.
///
/// # Errors
/// If it can't be written.
pub fn write(directory: &Path, pages: &[(String, String)]) -> Result<Exit> {
    let failed = |path: &Path, error: &std::io::Error| {
        let text = format!("{} can't be written: {error}", path.display());
        Failure::new(exit::DENIED, "not_written", text)
    };
    std::fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
    for (name, text) in pages {
        let path = directory.join(name);
        std::fs::write(&path, text).map_err(|error| failed(&path, &error))?;
    }
    Ok(Exit::OK)
}
