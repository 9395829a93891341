//! Scripts that tests execute.

use std::path::Path;
use std::process::Command;

/// Writes an executable script. Another process writes it: what this one has open for writing, a test that forks just
/// now has too, and then the kernel executes it for no one (ETXTBSY).
pub(crate) fn script(file: &Path, text: &str) {
    let write = "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\"";
    let mut writer = Command::new("sh");
    let done = writer.args(["-c", write]).arg(file).arg(text).status();
    assert!(done.unwrap().success(), "{} is not written", file.display());
}
