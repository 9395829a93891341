//! The manual pages, as two formatters see them.

use std::fs;
use std::process::Command;

use crate::repository;

/// The pages of ours that a page names, as files: what ends in `(1)` or `(7)`, without the
/// formatter's marks.
fn named(page: &str) -> Vec<String> {
    let plain = ["\\fB", "\\fI", "\\fR", "\\"];
    let text = plain
        .iter()
        .fold(page.to_owned(), |text, mark| text.replace(mark, ""));
    let text = text.replace(" (", "(");
    let words = text.split(|c: char| c.is_whitespace() || c == ',');
    let names = words.filter_map(|word| {
        let (name, rest) = word.split_once('(')?;
        let section = rest.split_once(')')?.0;
        ["1", "7"]
            .contains(&section)
            .then(|| format!("{name}.{section}"))
    });
    names.filter(|name| name.starts_with("tokenrun")).collect()
}

#[test]
fn no_page_names_one_that_is_not_there() {
    let mut looked_at = 0;
    for page in fs::read_dir(repository("man")).unwrap() {
        let page = page.unwrap().path();
        for name in named(&fs::read_to_string(&page).unwrap()) {
            let there = repository("man").join(&name);
            assert!(there.exists(), "{} names {name}", page.display());
            looked_at += 1;
        }
    }
    assert!(looked_at > 40, "only {looked_at} names were found");
    assert!(repository("man/tokenrun-fence-verify.1").exists());
    assert!(repository("man/tokenrun-exit-codes.7").exists());
}

#[test]
fn man_and_mandoc_find_nothing_wrong() {
    let mut looked_at = 0;
    for page in fs::read_dir(repository("man")).unwrap() {
        let page = page.unwrap().path();
        let mut man = Command::new("man");
        man.args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"]);
        let output = man
            .arg(&page)
            .output()
            .expect("man is missing: install man-db");
        assert!(
            output.status.success() && !output.stdout.is_empty(),
            "{output:?}"
        );
        let warnings = String::from_utf8_lossy(&output.stderr);
        assert_eq!(warnings, "", "{}", page.display());
        let mut mandoc = Command::new("mandoc");
        let output = mandoc.arg("-Tlint").arg(&page).output();
        let output = output.expect("mandoc is missing: install mandoc");
        let warnings = String::from_utf8_lossy(&output.stdout);
        // Pages of other packages may not be installed here.
        let ours = |line: &&str| !line.contains("referenced manual not found");
        let warnings: Vec<&str> = warnings.lines().filter(ours).collect();
        assert!(warnings.is_empty(), "{}: {warnings:#?}", page.display());
        looked_at += 1;
    }
    assert!(looked_at > 4);
}
