//! Which files a source has compiled or read into it by their paths.

use std::path::{Component, Path, PathBuf};

/// What names a file in the code, and what ends the name.
const INCLUSIONS: [(&str, char); 4] = [
    ("#[path", ']'),
    ("include!", ';'),
    ("include_str!", ';'),
    ("include_bytes!", ';'),
];

/// The files that code names, which lies in this file of the package at `root`.
pub(crate) fn included(code: &str, file: &Path, root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (begin, end) in INCLUSIONS {
        for text in code.split(begin).skip(1) {
            let text = text.split(end).next().unwrap_or_default();
            // Each second part is between two quotation marks; `concat!` may have several.
            let parts = text.split('"').skip(1).step_by(2);
            let parts = parts.filter(|part| *part != "CARGO_MANIFEST_DIR");
            let named: String = parts.collect();
            let path = match text.contains("CARGO_MANIFEST_DIR") {
                true => root.join(named.trim_start_matches('/')),
                false => file.with_file_name(named),
            };
            found.push(plain(&path));
        }
    }
    found
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}
