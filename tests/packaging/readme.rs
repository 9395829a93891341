//! The README's recipes are the examples' own text.

use std::fs;

use crate::repository;

/// A file without its comments and the empty lines around them.
fn without_comments(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let text = lines.collect::<Vec<_>>().join("\n");
    text.trim().to_owned()
}

#[test]
fn recipes_are_the_examples() {
    let readme = fs::read_to_string(repository("README.md")).unwrap();
    for file in ["cron/nightly", "systemd/nightly.timer"] {
        let example = fs::read_to_string(repository("examples").join(file)).unwrap();
        let recipe = format!("```text\n{}\n```", without_comments(&example));
        assert!(readme.contains(&recipe), "README.md has no more:\n{recipe}");
    }
    // Of longer files it shows a part, line by line.
    for (file, begin) in [
        ("systemd/nightly.service", "[Service]\n"),
        ("kubernetes/nightly.yaml", "          containers:\n"),
    ] {
        let example = fs::read_to_string(repository("examples").join(file)).unwrap();
        let whole = without_comments(&example);
        let part = readme.split(&format!("```text\n{begin}")).nth(1);
        let part = part.unwrap_or_else(|| panic!("README.md shows nothing of {file}"));
        let part = format!("{begin}{}", part.split("\n```").next().unwrap());
        assert!(whole.contains(&part), "{file} has no more:\n{part}");
    }
    for folder in ["cron", "systemd", "kubernetes"] {
        assert!(readme.contains(&format!("(examples/{folder}/)")));
    }
}
