//! The guide as a book: mdBook makes it of the same files, by book.toml and docs/SUMMARY.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use crate::document::{Document, Link, markdown_files, resolve, root};

const CONTENTS: &str = "docs/README.md";
const DECISIONS: &str = "docs/decisions/README.md";

fn read(name: &str) -> Document {
    Document::read(&root().join(name))
}

/// The pages of the guide that these links of a document lead to, each once.
fn pages<'a>(name: &str, links: impl IntoIterator<Item = &'a Link>) -> Vec<(String, &'a Link)> {
    let mut pages: Vec<(String, &Link)> = Vec::new();
    for link in links {
        let Some(name) = resolve(name, &link.to) else {
            continue;
        };
        let is_page = name.starts_with("docs/") && name.ends_with(".md");
        if is_page && pages.iter().all(|(other, _)| *other != name) {
            pages.push((name, link));
        }
    }
    pages
}

/// A chapter's line in the summary.
fn chapter(title: &str, name: &str) -> String {
    let title = title.replace(['[', ']'], "");
    format!("- [{title}]({})\n", &name["docs/".len()..])
}

/// docs/SUMMARY.md, as the table of contents has it: its sections, and the pages that they list. The
/// decisions are listed by their own table.
fn summary() -> String {
    let contents = read(CONTENTS);
    let mut summary = format!("# Summary\n\n[{}](README.md)\n", contents.title());
    let mut section = 1;
    let listed = contents.links.iter().filter(|link| link.below > 1);
    for (name, link) in pages(CONTENTS, listed) {
        if link.below > section {
            section = link.below;
            write!(summary, "\n# {}\n\n", contents.headings[section - 1].text).unwrap();
        }
        summary.push_str(&chapter(&link.text, &name));
        if name == DECISIONS {
            for (name, _) in pages(DECISIONS, &read(DECISIONS).links) {
                if name.starts_with("docs/decisions/") {
                    let title = read(&name).title().to_owned();
                    write!(summary, "  {}", chapter(&title, &name)).unwrap();
                }
            }
        }
    }
    summary
}

/// The summary as it is committed.
fn current_summary() -> Document {
    static WRITTEN: Once = Once::new();
    let path = root().join("docs/SUMMARY.md");
    WRITTEN.call_once(|| {
        if std::env::var_os("TOKENRUN_GENERATE").is_some() {
            std::fs::write(&path, summary()).unwrap();
        }
    });
    Document::read(&path)
}

#[test]
fn the_summary_is_the_table_of_contents() {
    let current = current_summary();
    let found = std::fs::read_to_string(root().join(&current.name)).unwrap();
    assert!(
        found == summary(),
        "{} is not current: run TOKENRUN_GENERATE=1 cargo test --test guide",
        current.name
    );
}

#[test]
fn every_page_is_in_the_book() {
    let summary = current_summary();
    let listed = pages(&summary.name, &summary.links)
        .into_iter()
        .map(|(name, _)| name);
    let listed: BTreeSet<String> = listed.collect();
    let files = markdown_files(&root().join("docs"));
    let names = files.iter().map(|path| path.strip_prefix(root()).unwrap());
    let names = names.map(|name| name.to_str().unwrap().to_owned());
    let there: BTreeSet<String> = names.filter(|name| name != "docs/SUMMARY.md").collect();
    let missing: Vec<&String> = there.difference(&listed).collect();
    assert!(missing.is_empty(), "{CONTENTS} does not list {missing:?}");
    let more: Vec<&String> = listed.difference(&there).collect();
    assert!(
        more.is_empty(),
        "{CONTENTS} lists what is not there: {more:?}"
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
    let summary = current_summary();
    let book = build();
    let files = files(&book, &book);
    let chapters = pages(&summary.name, &summary.links);
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
