//! man/, docs/reference/ and completions/ are generated from the program, and current.
//!
//! `TOKENRUN_GENERATE=1 cargo test --test generated` writes them anew.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use std::fs;
use std::path::Path;

fn check(folder: &str, name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(folder)
        .join(name);
    if std::env::var_os("TOKENRUN_GENERATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "{} is not current: run TOKENRUN_GENERATE=1 cargo test --test generated",
        path.display()
    );
}

/// Nothing lies there that is not generated.
fn check_folder(folder: &str, names: &[String]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    for entry in fs::read_dir(path).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(names.contains(&name), "{folder}/{name} is not generated");
    }
}

#[test]
fn the_manual_is_current() {
    let pages = tokenrun::cli::manual().unwrap();
    for (name, text) in &pages {
        check("man", name, text);
    }
    let names: Vec<String> = pages.into_iter().map(|(name, _)| name).collect();
    check_folder("man", &names);
}

#[test]
fn the_completions_are_current() {
    let files = tokenrun::cli::completion_files();
    for (name, text) in &files {
        check("completions", name, text);
    }
    let names: Vec<String> = files.into_iter().map(|(name, _)| name.to_owned()).collect();
    check_folder("completions", &names);
}

#[test]
fn the_reference_is_current() {
    let pages = tokenrun::cli::reference_pages();
    for (name, text) in &pages {
        check("docs/reference", name, text);
    }
    let names: Vec<String> = pages.into_iter().map(|(name, _)| name).collect();
    check_folder("docs/reference", &names);
}
