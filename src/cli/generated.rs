//! The texts that are generated from the program's own data: the manual, the completions, and the topics of
//! `tokenrun help`. The program holds them packed, as they stand in the repository.

use std::io;

use flate2::read::DeflateDecoder;

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/generated"));

/// The topics of `tokenrun help`, in the order of its list.
pub const TOPICS: [&str; 6] = [
    "exit-codes",
    "environment",
    "json",
    "configuration",
    "options",
    "metrics",
];

/// The files of a folder of the repository, `man` or `completions`: names and texts, sorted by name.
///
/// # Errors
/// None for a program as it was built.
pub fn files(folder: &str) -> io::Result<Vec<(String, String)>> {
    let all: Vec<(String, String)> = serde_json::from_reader(DeflateDecoder::new(PACKED))?;
    let inside = |(path, text): (String, String)| {
        let name = path.strip_prefix(folder)?.strip_prefix('/')?;
        Some((name.to_owned(), text))
    };
    Ok(all.into_iter().filter_map(inside).collect())
}

/// The text of a file; empty if the folder has no such file.
///
/// # Errors
/// As [`files`].
pub fn text_of(folder: &str, name: &str) -> io::Result<String> {
    let mut files = files(folder)?.into_iter();
    let found = files.find(|(other, _)| other == name);
    Ok(found.map(|(_, text)| text).unwrap_or_default())
}

/// The text of a topic, for a terminal of 80 columns.
///
/// # Errors
/// As [`files`].
pub(crate) fn topic(name: &str) -> io::Result<String> {
    text_of("src/cli/topics", &format!("{name}.txt"))
}
