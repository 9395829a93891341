//! Characters that are invisible, or that change how others are displayed.

use unicode_width::UnicodeWidthChar as _;

/// First and last of each range, in order, without control characters: Unicode's Default_Ignorable
/// (zero width, writing direction, variation selectors, fillers, tags), the format controls beside
/// them, the blanks that look like a space, and line ends.
const RANGES: [(char, char); 22] = [
    ('\u{a0}', '\u{a0}'),
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{2000}', '\u{200f}'),
    ('\u{2028}', '\u{202f}'),
    ('\u{205f}', '\u{206f}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3000}', '\u{3000}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// True if a character is invisible or changes how others are displayed: a control character, a
/// change of the writing direction, a blank other than the space.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || RANGES
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&c))
}

/// A name in double quotes, so that it is not read as a word of the sentence around it, with its
/// invisible characters escaped. An accent stays as it is where it belongs to a letter.
pub fn quoted(name: &str) -> String {
    let mut shown = String::from('"');
    let mut after_letter = false;
    for c in name.chars() {
        let is_accent = after_letter && !is_hidden(c) && c.width() == Some(0);
        match c {
            c if is_hidden(c) => shown.extend(c.escape_default()),
            '\'' => shown.push(c),
            c if is_accent => shown.push(c),
            c => shown.extend(c.escape_debug()),
        }
        after_letter = is_accent || c.is_alphanumeric();
    }
    shown.push('"');
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_name_shows_its_accents_and_nothing_that_hides_text() {
        for (name, shown) in [
            ("caf\u{e9}", "\"caf\u{e9}\""),
            ("cafe\u{301}", "\"cafe\u{301}\""),
            ("e\u{301}\u{323}", "\"e\u{301}\u{323}\""),
            ("a\u{200d}\u{301}", "\"a\\u{200d}\\u{301}\""),
            ("it's", "\"it's\""),
            ("\u{301}x", "\"\\u{301}x\""),
            ("a\"b\\", "\"a\\\"b\\\\\""),
            ("a\u{200d}b\n\u{9b}", "\"a\\u{200d}b\\n\\u{9b}\""),
        ] {
            assert_eq!(quoted(name), shown);
        }
    }

    #[test]
    fn invisible_characters_are_hidden() {
        for c in [
            '\n',
            '\u{1b}',
            '\u{7f}',
            '\u{9b}',
            '\u{a0}',
            '\u{200b}',
            '\u{200d}',
            '\u{202e}',
            '\u{2066}',
            '\u{2028}',
            '\u{3000}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{e0041}',
        ] {
            assert!(is_hidden(c), "{c:?}");
        }
        for c in [
            ' ',
            'a',
            'ß',
            'é',
            '\u{301}',
            '‐',
            '—',
            '夜',
            'ا',
            '€',
            '\u{1f319}',
        ] {
            assert!(!is_hidden(c), "{c:?}");
        }
    }

    #[test]
    fn the_ranges_are_in_order() {
        assert!(RANGES.iter().all(|(first, last)| first <= last));
        assert!(RANGES.is_sorted_by(|one, next| one.1 < next.0));
    }
}
