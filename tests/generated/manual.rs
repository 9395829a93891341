//! The manual pages: the command line's own description, and sections written by hand.

use std::io;

use clap_mangen::Man;

use super::reference::{TOPICS, options};
use super::roff;

/// The day of the release. Not of the build: the pages are kept in the repository.
const DATE: &str = "2026-11-21";

/// What the pages belong to.
const SOURCE: &str = concat!("tokenrun ", env!("CARGO_PKG_VERSION"));

/// The main page's other sections.
const SECTIONS: &str = include_str!("manual.roff");

/// The end of a subcommand's page.
const SEE_ALSO: &str = ".SH \"SEE ALSO\"\n\\fBtokenrun\\fR(1)";

/// The longest line of a page's source, in bytes: mandoc(1) asks for it.
const WIDTH: usize = 80;

/// A page for the program, one for each subcommand, theirs too, and one for each topic: file names
/// and contents.
///
/// # Errors
/// None for a memory buffer.
pub(crate) fn pages(command: &mut clap::Command) -> io::Result<Vec<(String, String)>> {
    // Gives each command its name within the others.
    command.build();
    let mut pages = vec![("tokenrun.1".to_owned(), main_page(command)?)];
    add_verbs(command, &mut pages)?;
    // The options stand in the program's own page.
    for (name, topic) in TOPICS.iter().filter(|(name, _)| *name != "options") {
        let text = roff::page(name, &topic(command), DATE, SOURCE);
        pages.push((format!("tokenrun-{name}.7"), tidied(&text)));
    }
    Ok(pages)
}

fn add_verbs(command: &clap::Command, pages: &mut Vec<(String, String)>) -> io::Result<()> {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        pages.push((format!("{}.1", full_name(verb)), verb_page(verb)?));
        add_verbs(verb, pages)?;
    }
    Ok(())
}

/// As `tokenrun-fence-verify`.
fn full_name(command: &clap::Command) -> &str {
    let name = command.get_display_name();
    name.unwrap_or_else(|| command.get_name())
}

/// A command's page, without its sections.
fn begun(command: &clap::Command) -> Man {
    Man::new(command.clone())
        .title(full_name(command).to_uppercase())
        .date(DATE)
        .source(SOURCE)
        .manual("User Commands")
}

fn main_page(command: &clap::Command) -> io::Result<String> {
    let page = begun(command);
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    page.render_subcommands_section(&mut text)?;
    text.extend(roff::parts(&options::rules()).bytes());
    text.extend(SECTIONS.bytes());
    Ok(tidied(&String::from_utf8_lossy(&text)))
}

fn verb_page(command: &clap::Command) -> io::Result<String> {
    let mut text = Vec::new();
    begun(command).render(&mut text)?;
    text.extend(SEE_ALSO.as_bytes());
    if command.get_arguments().any(|it| it.get_id() == "json") {
        text.extend(b", \\fBtokenrun\\-json\\fR(7)");
    }
    text.push(b'\n');
    Ok(tidied(&String::from_utf8_lossy(&text)))
}

/// A page without findings of man(1) and mandoc(1).
fn tidied(text: &str) -> String {
    // An empty line is a space; a break before or after it is one too many.
    let text = text.replace("\n.br\n\n.br\n", "\n.sp\n");
    let mut tidy = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.trim_end();
        if line.starts_with(['.', '\'']) {
            tidy.push_str(line);
        } else {
            tidy.push_str(&wrapped(line));
        }
        tidy.push('\n');
    }
    tidy
}

/// A line of text in lines of at most [`WIDTH`], none of which begins like a request.
fn wrapped(line: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in line.split(' ') {
        let is_request = word.starts_with(['.', '\'']);
        match lines.last_mut() {
            Some(last) if is_request || last.len() + 1 + word.len() < WIDTH => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

#[test]
fn long_lines_are_broken_where_no_request_begins() {
    let words = ["word"; 30].join(" ");
    assert!(wrapped(&words).lines().all(|line| line.len() < WIDTH));
    assert_eq!(wrapped(&words).replace('\n', " "), words);
    let dots = ["...word"; 30].join(" ");
    assert_eq!(wrapped(&dots), dots);
}

#[test]
fn every_page_names_its_section_and_its_release() {
    let inner = clap::Command::new("y")
        .about("z")
        .subcommand(clap::Command::new("v"));
    let mut command = clap::Command::new("x").disable_help_subcommand(true);
    command = command.subcommand(inner.disable_help_subcommand(true));
    let pages = pages(&mut command).unwrap();
    for (_, page) in &pages {
        assert!(page.contains(DATE), "{page}");
    }
    assert!(pages[0].1.contains("GUARANTEES AND LIMITS"));
    assert!(pages[1].1.contains("SEE ALSO"));
    let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[..3], ["tokenrun.1", "x-y.1", "x-y-v.1"]);
    assert!(names[3..].contains(&"tokenrun-exit-codes.7"));
}
