//! The recipes of README.md and the guide are the examples' own text.

use std::fs;

use crate::blocks::{By, pages};
use crate::repository;

/// A file without its comments and the empty lines around them.
fn without_comments(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let text = lines.collect::<Vec<_>>().join("\n");
    text.trim().to_owned()
}

/// Short examples are shown whole, of longer ones a part, line by line.
#[test]
fn recipes_are_the_examples() {
    let mut count = 0;
    let pages = pages();
    let of_pages = pages.iter().flat_map(|page| {
        let blocks = page.blocks();
        blocks.into_iter().map(move |block| (page, block))
    });
    for (page, block) in of_pages {
        let By::Example(file) = block.by else {
            continue;
        };
        let example = fs::read_to_string(repository("examples").join(file)).unwrap();
        let (whole, shown) = (without_comments(&example), block.text().trim_end());
        let is_whole = ["cron/nightly", "systemd/nightly.timer"].contains(&file);
        assert!(!is_whole || whole == shown, "{file} is:\n{whole}");
        assert!(whole.contains(shown), "{file} has no more:\n{shown}");
        let folder = file.split('/').next().unwrap();
        assert!(
            page.text.contains(&format!("examples/{folder}/")),
            "{}",
            page.name
        );
        count += 1;
    }
    assert!(count >= 4);
}
