//! The guide as a book: mdBook makes it of the same files, by book.toml and docs/SUMMARY.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::document::{Document, Link, markdown_files, root};
use crate::links::resolve;

const CONTENTS: &str = "docs/README.md";
const DECISIONS: &str = "docs/decisions/README.md";

fn read(name: &str) -> Document {
    Document::read(&root().join(name))
}

/// The pages of the guide that these links of a document lead to, each once, with the number of headings
/// above.
fn pages(document: &Document, links: &[Link]) -> Vec<(String, usize)> {
    let mut pages: Vec<(String, usize)> = Vec::new();
    for link in links {
        let Some(name) = resolve(&document.name, &link.to) else {
            continue;
        };
        let is_page = name.starts_with("docs/") && name.ends_with(".md");
        if is_page && pages.iter().all(|(other, _)| *other != name) {
            pages.push((name, link.below));
        }
    }
    pages
}

/// A chapter's line in the summary.
fn chapter(name: &str) -> String {
    let title = read(name).title().replace(['[', ']'], "");
    format!("- [{title}]({})\n", &name["docs/".len()..])
}

/// docs/SUMMARY.md, as the table of contents has it: its sections, and the pages that they list. The
/// decisions are listed by their own table.
fn summary() -> String {
    let contents = read(CONTENTS);
    let title = contents.title();
    let mut summary = format!("# {title}\n\n[{title}](README.md)\n");
    let mut section = 1;
    for (name, below) in pages(&contents, &contents.links) {
        if below > section {
            section = below;
            write!(summary, "\n# {}\n\n", contents.headings[below - 1].text).unwrap();
        }
        summary.push_str(&chapter(&name));
        if name == DECISIONS {
            let decisions = read(DECISIONS);
            for (name, _) in pages(&decisions, &decisions.links) {
                if name.starts_with("docs/decisions/") {
                    write!(summary, "  {}", chapter(&name)).unwrap();
                }
            }
        }
    }
    summary
}

#[test]
fn the_summary_is_the_table_of_contents() {
    let path = root().join("docs/SUMMARY.md");
    if std::env::var_os("TOKENRUN_GENERATE").is_some() {
        std::fs::write(&path, summary()).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == summary(),
        "docs/SUMMARY.md is not current: run TOKENRUN_GENERATE=1 cargo test --test guide"
    );
}

#[test]
fn every_page_is_in_the_book() {
    let summary = read("docs/SUMMARY.md");
    let listed = pages(&summary, &summary.links);
    let listed: BTreeSet<String> = listed.into_iter().map(|(name, _)| name).collect();
    let files = markdown_files(&root().join("docs"));
    let names = files.iter().map(|path| path.strip_prefix(root()).unwrap());
    let names = names.map(|name| name.to_str().unwrap().to_owned());
    let there: BTreeSet<String> = names.filter(|name| name != "docs/SUMMARY.md").collect();
    assert_eq!(
        listed, there,
        "those that docs/README.md lists, and those that there are"
    );
}

/// A file of the built book: what it links to, and where links can lead in it.
struct Html {
    links: Vec<String>,
    anchors: Vec<String>,
}

impl Html {
    fn parse(text: &str) -> Self {
        let values = |name: &str| -> Vec<String> {
            let begin = format!(" {name}=\"");
            let parts = text.split(begin.as_str()).skip(1);
            let values = parts.filter_map(|part| part.split_once('"'));
            values.map(|(value, _)| value.to_owned()).collect()
        };
        Self {
            links: [values("href"), values("src")].concat(),
            anchors: values("id"),
        }
    }
}

/// The files of the book, each by its path in it; those that are no page have no content here.
fn files(book: &Path, folder: &Path) -> BTreeMap<String, Html> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(book, &path));
            continue;
        }
        let is_page = path.extension().is_some_and(|ending| ending == "html");
        let text = if is_page {
            std::fs::read_to_string(&path).unwrap()
        } else {
            String::new()
        };
        let name = path.strip_prefix(book).unwrap().to_str().unwrap();
        found.insert(name.to_owned(), Html::parse(&text));
    }
    found
}

/// Builds it with the program that tests/run-all installs.
fn build() -> PathBuf {
    let book = Path::new(env!("CARGO_TARGET_TMPDIR")).join("book");
    let mut mdbook = Command::new("mdbook");
    mdbook.args(["build", "--dest-dir"]).arg(&book).arg(root());
    let output = mdbook.output();
    let output = output.unwrap_or_else(|e| panic!("mdbook: {e} (tests/run-all installs it)"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let is_trouble = ["WARN", "ERROR"].iter().any(|word| said.contains(word));
    assert!(!is_trouble, "{said}");
    book
}

/// What is wrong with the links of a page.
fn faults(page: &str, files: &BTreeMap<String, Html>) -> Vec<String> {
    let mut faults = Vec::new();
    for link in &files[page].links {
        let is_elsewhere = link.starts_with("https://") || link.starts_with("data:");
        if is_elsewhere || link == "#" {
            continue;
        }
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = match path {
            "" => Some(page.to_owned()),
            path => resolve(page, path),
        };
        let file = target.and_then(|name| files.get(&name));
        match file {
            None => faults.push(format!("{page}: {link}: there is no such file")),
            Some(file) if anchor.is_empty() || file.anchors.iter().any(|it| it == anchor) => {}
            Some(_) => faults.push(format!("{page}: {link}: there is no such heading")),
        }
    }
    faults
}

#[test]
fn the_book_is_built_and_its_links_lead_to_its_pages() {
    let book = build();
    let files = files(&book, &book);
    let summary = read("docs/SUMMARY.md");
    let chapters = pages(&summary, &summary.links);
    assert!(chapters.len() > 50, "{chapters:?}");
    for (chapter, _) in &chapters {
        let page = chapter["docs/".len()..].replace("README.md", "index.md");
        let page = page.replace(".md", ".html");
        assert!(files.contains_key(&page), "the book has no {page}");
    }
    // A page for what is not found is shown at any depth: its links begin at the site's root.
    let pages = files
        .keys()
        .filter(|name| name.ends_with(".html") && *name != "404.html");
    let faults: Vec<String> = pages.flat_map(|page| faults(page, &files)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_wrong_link_of_the_book_would_be_found() {
    let page = r##"<h1 id="a"><a href="#a"></a></h1><a class="b" href="c/d.html#e">"##;
    let wrong = r#"<h1 id="e"><a href="../../README.md"></a><img src="f.png">"#;
    let files = BTreeMap::from([
        ("a.html".to_owned(), Html::parse(page)),
        ("c/d.html".to_owned(), Html::parse(wrong)),
    ]);
    assert_eq!(faults("a.html", &files), [""; 0]);
    assert_eq!(faults("c/d.html", &files).len(), 2);
}
