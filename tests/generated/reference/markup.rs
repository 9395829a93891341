//! Which parts of a text are code: what stands between backticks, and words that can be nothing
//! else, such as `--keep` or `$HOME`.

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    Plain(&'t str),
    Code(&'t str),
}

/// What may stand around a word that is code.
const AROUND: [char; 8] = ['(', ')', ',', ';', ':', '.', '\'', '"'];

/// The pieces of a text, in their order.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    for (at, part) in text.split('`').enumerate() {
        match at % 2 {
            0 => plain(part, &mut found),
            _ => found.push(Piece::Code(part)),
        }
    }
    found
}

/// A text without the marks of its code.
pub(crate) fn unmarked(text: &str) -> String {
    text.replace('`', "")
}

fn plain<'t>(text: &'t str, found: &mut Vec<Piece<'t>>) {
    let mut begin = 0;
    let mut at = 0;
    for word in text.split_inclusive(' ') {
        let start = at + (word.len() - word.trim_start_matches(AROUND).len());
        let core = word.trim_end().trim_matches(AROUND);
        at += word.len();
        if is_code(core) {
            found.extend(
                text.get(begin..start)
                    .filter(|it| !it.is_empty())
                    .map(Piece::Plain),
            );
            found.push(Piece::Code(core));
            begin = start + core.len();
        }
    }
    found.extend(
        text.get(begin..)
            .filter(|it| !it.is_empty())
            .map(Piece::Plain),
    );
}

/// Whether a word is an option, a path, a variable, an address or a name with an underscore.
fn is_code(word: &str) -> bool {
    let mut chars = word.chars();
    let first = chars.next();
    let second = chars.next();
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphabetic());
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match first {
        Some('-') => is_letter(second) || (second == Some('-') && is_letter(chars.next())),
        Some('/' | '$') => is_letter(second),
        Some('~') => second == Some('/'),
        _ => word.contains("://") || (word.contains('_') && word.chars().all(is_name)),
    }
}

#[cfg(test)]
mod tests {
    use super::Piece::{Code, Plain};
    use super::*;

    #[test]
    fn options_paths_and_names_are_code() {
        assert_eq!(
            pieces("With --once: see `tokenrun help json` (timed_out)."),
            [
                Plain("With "),
                Code("--once"),
                Plain(": see "),
                Code("tokenrun help json"),
                Plain(" ("),
                Code("timed_out"),
                Plain(")."),
            ]
        );
        assert_eq!(
            pieces("$HOME/x, ~/y"),
            [Code("$HOME/x"), Plain(", "), Code("~/y")]
        );
        for text in ["a - b", "and/or", "", "5 % -- 3"] {
            assert!(
                !pieces(text).iter().any(|it| matches!(it, Code(_))),
                "{text}"
            );
        }
    }
}
