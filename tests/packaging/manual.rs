//! The manual pages, as two formatters see them.

use std::fs;
use std::process::Command;

use crate::repository;

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
