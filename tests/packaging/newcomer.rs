//! A newcomer: an ordinary user with an empty home, on a machine without tokenrun, who installs the
//! package and types what README.md shows, from "Install" to the end of "Sixty seconds".

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::blocks::Page;
use crate::document::{documents, resolve};
use crate::machine::Machine;
use crate::release::package;
use crate::repository;
use crate::typing::{BASH, type_in};

const README: &str = "/usr/share/doc/tokenrun/README.md";

/// From one heading to the end of another.
fn sections<'a>(text: &'a str, first: &str, last: &str) -> &'a str {
    let begin = |heading: &str| {
        let found = text.find(&format!("\n## {heading}\n"));
        found.unwrap_or_else(|| panic!("README.md has no {heading:?}"))
    };
    let last = begin(last);
    let end = text[last + 1..].find("\n## ").map(|at| last + 1 + at);
    &text[begin(first)..end.unwrap_or(text.len())]
}

/// What the pages link to and the package leaves in the repository: what is about the code, and what Debian
/// has in files of its own (licence and changelog).
const NOT_INSTALLED: [&str; 5] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "LICENSE",
    "docs/decisions/",
    "src/",
];

/// The links of the installed pages lead to what is installed.
fn links_lead_to_files(machine: &Machine) {
    let there = machine.shell("cd /usr/share/doc/tokenrun && find . -printf '%P\\n'");
    let there: BTreeSet<&str> = there.lines().collect();
    let documents = documents();
    let installed = documents.values().filter(|it| there.contains(&*it.name));
    let mut looked_at = 0;
    for document in installed {
        for link in &document.links {
            let path = link.to.split('#').next().unwrap();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            let name = resolve(&document.name, path).unwrap();
            let is_left_out = NOT_INSTALLED.iter().any(|it| name.starts_with(it));
            let is_there = there.contains(name.trim_end_matches('/'));
            assert!(is_there || is_left_out, "{}: {path}", document.name);
            looked_at += 1;
        }
    }
    assert!(looked_at > 50, "only {looked_at} links were found");
}

/// A shell of the user's, as after a login.
fn login(machine: &Machine) -> Command {
    let mut command = machine.command("runuser");
    command.args(["--login", "newcomer", "--shell", "/bin/bash", "-c", BASH]);
    command
}

#[test]
fn needs_root_a_newcomer_does_what_the_readme_says() {
    let package = package();
    let machine = Machine::start_bare("laptop", package.parent().unwrap());
    machine.shell(&format!("dpkg --install {}", package.display()));
    // A home lies on a disk.
    machine.shell("mount -t tmpfs home /home; useradd --create-home newcomer");

    let installed = machine.shell(&format!("cat {README}"));
    assert_eq!(
        installed,
        fs::read_to_string(repository("README.md")).unwrap()
    );
    let page = Page {
        name: "README.md".to_owned(),
        text: sections(&installed, "Install", "Sixty seconds").to_owned(),
    };
    assert!(type_in(&page, login(&machine)) >= 4);
    links_lead_to_files(&machine);
    // It is where the page says, and nothing needed root.
    let found = machine.shell("find /home/newcomer -name '*.db' -user newcomer");
    assert!(found.lines().count() >= 2, "{found}");
}

#[test]
fn sections_end_where_the_next_begins() {
    let text = "# T\n\n## A\na\n\n## B\nb\n\n## C\nc\n\n## D\nd\n";
    assert_eq!(sections(text, "B", "C"), "\n## B\nb\n\n## C\nc\n");
    assert_eq!(sections(text, "C", "D"), "\n## C\nc\n\n## D\nd\n");
}
