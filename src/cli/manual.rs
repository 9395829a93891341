//! The manual pages: the command line's own description, and sections written by hand.

use std::io;

use clap_mangen::Man;

/// The day of the release. Not of the build: the pages are kept in the repository.
const DATE: &str = "2026-11-21";

/// The main page's other sections.
const SECTIONS: &str = include_str!("manual.roff");

/// The JSON fields of each command.
const FIELDS: &str = include_str!("fields.txt");

/// The fields come before this section.
const LIMITS: &str = ".SH \"GUARANTEES AND LIMITS\"";

/// The end of a subcommand's page.
const SEE_ALSO: &str = ".SH \"SEE ALSO\"\n\\fBtokenrun\\fR(1)\n";

/// The longest line of a page's source, in bytes: mandoc(1) asks for it.
const WIDTH: usize = 80;

/// A page for the program and one for each subcommand, theirs too: file names and contents.
///
/// # Errors
/// None for a memory buffer.
pub(super) fn pages(command: &mut clap::Command) -> io::Result<Vec<(String, String)>> {
    // Gives each command its name within the others.
    command.build();
    let mut pages = vec![("tokenrun.1".to_owned(), main_page(command)?)];
    add_verbs(command, &mut pages)?;
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
        .source(concat!("tokenrun ", env!("CARGO_PKG_VERSION")))
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
    let (before, after) = SECTIONS.split_at(SECTIONS.find(LIMITS).unwrap_or(SECTIONS.len()));
    text.extend(
        [before, &fields(full_name(command)), after]
            .concat()
            .bytes(),
    );
    Ok(tidied(&String::from_utf8_lossy(&text)))
}

fn verb_page(command: &clap::Command) -> io::Result<String> {
    let mut text = Vec::new();
    begun(command).render(&mut text)?;
    text.extend(fields(full_name(command)).bytes());
    text.extend(SEE_ALSO.as_bytes());
    Ok(tidied(&String::from_utf8_lossy(&text)))
}

/// The section about a command's JSON; empty if it has none.
fn fields(page: &str) -> String {
    let verbs = [
        "pause", "resume", "handoff", "move", "expect", "revoke", "release", "settle", "distrust",
    ];
    let act = verbs
        .into_iter()
        .map(|verb| format!("tokenrun-{verb}"))
        .chain(["tokenrun-once-forget", "tokenrun-fence-raise"].map(str::to_owned))
        .any(|act| act == page);
    let title = format!("[{}]", if act { "act" } else { page });
    let lines = FIELDS.lines().skip_while(|line| *line != title).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    let mut section = String::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let text = match line.split_once(": ") {
            Some((name, meaning)) => format!(".TP\n.B {name}\n{}\n", escaped(meaning)),
            None => format!(".PP\n{}\n", escaped(line)),
        };
        section.push_str(&text);
    }
    match section.as_str() {
        "" => section,
        section => format!(".SH JSON\n{}", section.trim_start_matches(".PP\n")),
    }
}

fn escaped(text: &str) -> String {
    text.replace('-', "\\-")
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(names, ["tokenrun.1", "x-y.1", "x-y-v.1"]);
    }
}
