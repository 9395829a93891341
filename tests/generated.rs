//! man/, docs/reference/, completions/ and src/cli/topics/ are generated from the program, and current.
//!
//! `TOKENRUN_GENERATE=1 cargo test --test generated` writes them anew.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "generated/completions.rs"]
mod completions;
#[path = "generated/manual.rs"]
mod manual;
#[path = "generated/markdown.rs"]
mod markdown;
#[path = "generated/reference/topics.rs"]
mod reference;
#[path = "generated/roff.rs"]
mod roff;

use std::fs;
use std::path::Path;

use reference::{TOPICS, text_of};
use tokenrun::cli::generated;
use tokenrun::verbs::manual::Shell;
use tokenrun::verbs::{command, command_for_completions};

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

/// The program holds the files of the folder as they are.
fn check_program(folder: &str, names: &[String]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut held = generated::files(folder).unwrap().into_iter();
    let mut names = names.to_vec();
    names.sort();
    for name in names {
        let text = fs::read_to_string(path.join(&name)).unwrap();
        assert_eq!(held.next(), Some((name, text)));
    }
    assert_eq!(held.next(), None);
}

#[test]
fn the_manual_is_current_and_the_program_has_all_of_it() {
    let pages = manual::pages(&mut command()).unwrap();
    for (name, text) in &pages {
        check("man", name, text);
    }
    let names: Vec<String> = pages.into_iter().map(|(name, _)| name).collect();
    check_folder("man", &names);
    check_program("man", &names);
}

#[test]
fn the_completions_are_current() {
    let mut names = Vec::new();
    for (shell, generator) in [
        (Shell::Bash, clap_complete::Shell::Bash),
        (Shell::Fish, clap_complete::Shell::Fish),
        (Shell::Zsh, clap_complete::Shell::Zsh),
    ] {
        let name = shell.script();
        let text = completions::script(generator, &mut command_for_completions());
        check("completions", name, &text);
        names.push(name.to_owned());
    }
    check_folder("completions", &names);
    check_program("completions", &names);
}

#[test]
fn the_reference_is_current() {
    let mut names = Vec::new();
    for (name, topic) in TOPICS {
        let file = format!("{name}.md");
        check(
            "docs/reference",
            &file,
            &markdown::page(name, &topic(&command())),
        );
        names.push(file);
    }
    check_folder("docs/reference", &names);
}

#[test]
fn the_topics_of_the_help_are_current_and_the_program_has_all_of_them() {
    let mut names = Vec::new();
    for (name, _) in TOPICS {
        let file = format!("{name}.txt");
        check("src/cli/topics", &file, &text_of(name, &command()).unwrap());
        names.push(file);
    }
    check_folder("src/cli/topics", &names);
    check_program("src/cli/topics", &names);
    assert_eq!(generated::TOPICS, TOPICS.map(|(name, _)| name));
}
