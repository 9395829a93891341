//! The tests' own programs, which are written in C: a job that is to be a nuisance
//! must not need an interpreter's time for it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The program that does not want to end; tests/programs/unruly.c tells its modes.
pub(crate) fn unruly() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("unruly"))
}

/// Builds one of them. Not to be called twice at once for the same.
pub(crate) fn build(name: &str) -> PathBuf {
    build_as(name, &["-static"])
}

/// The same, of another kind than a static program.
pub(crate) fn build_as(name: &str, kind: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // Several test programs may build it at once.
    let new = folder.join(format!("{name}-{}", std::process::id()));
    let built = Command::new("cc")
        .args(["-O2", "-Wall", "-Werror"])
        .args(kind)
        .arg("-o")
        .arg(&new)
        .arg(source.join(format!("{name}.c")))
        .status();
    let built = built.expect("these tests need a C compiler: install gcc and libc6-dev");
    assert!(built.success(), "{name}.c can't be built");
    let program = folder.join(name);
    std::fs::rename(new, &program).expect("the program can be renamed");
    program
}
