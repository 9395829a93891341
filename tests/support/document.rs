//! A Markdown file as the forge shows it: its headings with their anchors, and its links.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{BrokenLink, Event, Options, Parser, Tag, TagEnd, TextMergeStream};

pub(crate) struct Document {
    /// From the repository's root: `docs/cron.md`.
    pub(crate) name: String,
    pub(crate) headings: Vec<Heading>,
    pub(crate) links: Vec<Link>,
}

pub(crate) struct Heading {
    pub(crate) level: usize,
    pub(crate) text: String,
    pub(crate) anchor: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) to: String,
    pub(crate) text: String,
    /// How many headings stand before it.
    pub(crate) below: usize,
}

/// The repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Markdown files below a folder, by name.
pub(crate) fn markdown_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(markdown_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "md") {
            files.push(path);
        }
    }
    files.sort();
    files
}

impl Document {
    pub(crate) fn read(path: &Path) -> Self {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(path);
        let text = text.unwrap_or_else(|error| panic!("{name}: {error}"));
        Self::parse(name, &text)
    }

    pub(crate) fn parse(name: &str, text: &str) -> Self {
        let mut document = Self {
            name: name.to_owned(),
            headings: Vec::new(),
            links: Vec::new(),
        };
        let mut undefined = Vec::new();
        let mut note = |link: BrokenLink<'_>| {
            // `[word]` alone is text, `[word][label]` was meant as a link.
            let source = &text[link.span.clone()];
            if source.contains("][") {
                undefined.push(source.to_owned());
            }
            None
        };
        let parser =
            Parser::new_with_broken_link_callback(text, Options::ENABLE_TABLES, Some(&mut note));
        document.take(TextMergeStream::new(parser));
        assert!(undefined.is_empty(), "{name}: no target: {undefined:?}");
        document
    }

    fn take<'a>(&mut self, events: impl Iterator<Item = Event<'a>>) {
        let mut heading: Option<String> = None;
        let mut is_code = false;
        let mut link: Option<Link> = None;
        for event in events {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(level)) => {
                    let text = heading.take().unwrap();
                    self.add_heading(level as usize, text);
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    link = Some(self.link(&dest_url));
                }
                Event::End(TagEnd::Link | TagEnd::Image) => self.links.extend(link.take()),
                Event::Start(Tag::CodeBlock(_)) => is_code = true,
                Event::End(TagEnd::CodeBlock) => is_code = false,
                Event::Text(text) | Event::Code(text) if heading.is_some() => {
                    heading.as_mut().unwrap().push_str(&text);
                }
                Event::Text(text) | Event::Code(text) if link.is_some() => {
                    link.as_mut().unwrap().text.push_str(&text);
                }
                Event::Text(text) if !is_code => self.take_addresses(&text),
                _ => {}
            }
        }
    }

    fn link(&self, to: &str) -> Link {
        Link {
            to: to.to_owned(),
            text: String::new(),
            below: self.headings.len(),
        }
    }

    /// The forge makes a link of an address in a sentence.
    fn take_addresses(&mut self, text: &str) {
        let words = text.split_whitespace();
        for word in words.filter(|word| word.starts_with("http") && word.contains("://")) {
            self.links
                .push(self.link(word.trim_end_matches(['.', ',', ')'])));
        }
    }

    fn add_heading(&mut self, level: usize, text: String) {
        let plain = slug(&text);
        let same = |heading: &&Heading| slug(&heading.text) == plain;
        let anchor = match self.headings.iter().filter(same).count() {
            0 => plain,
            earlier => format!("{plain}-{earlier}"),
        };
        self.headings.push(Heading {
            level,
            text,
            anchor,
        });
    }

    /// Its first heading.
    pub(crate) fn title(&self) -> &str {
        match self.headings.first() {
            Some(first) if first.level == 1 => &first.text,
            _ => panic!("{}: it begins with no title", self.name),
        }
    }
}

/// The anchor that the forge gives a heading: small letters, a hyphen for each blank, no punctuation.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ => c.is_alphanumeric().then_some(c),
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// All documents whose links are checked, by name.
pub(crate) fn documents() -> BTreeMap<String, Document> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "md") {
            files.push(path);
        }
    }
    files.extend(markdown_files(&root().join("docs")));
    files.extend(markdown_files(&root().join("examples")));
    let documents = files.iter().map(|path| Document::read(path));
    documents
        .map(|document| (document.name.clone(), document))
        .collect()
}

/// The path from the repository's root, if it is in there.
pub(crate) fn resolve(from: &str, path: &str) -> Option<String> {
    let mut resolved = PathBuf::from(from).parent()?.to_owned();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => resolved.push(name),
            Component::ParentDir if resolved.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    resolved.to_str().map(str::to_owned)
}
