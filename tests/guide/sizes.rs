//! A page answers one question. README is read in five minutes.

use crate::blocks::pages;

const README: usize = 8_192;
const PAGE: usize = 6_144;

#[test]
fn pages_are_short() {
    let mut too_long = Vec::new();
    for page in pages() {
        let most = match page.name.as_str() {
            "README.md" => README,
            // A list, and measurements.
            "docs/SUMMARY.md" | "docs/benchmarks.md" => continue,
            _ => PAGE,
        };
        if page.text.len() > most {
            too_long.push(format!("{}: {} of {most}", page.name, page.text.len()));
        }
    }
    assert!(too_long.is_empty(), "bytes: {}", too_long.join("\n"));
}
