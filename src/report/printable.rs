//! Makes foreign text safe to display. Host names, labels and reasons come from other machines and
//! other users: here they lose the power to control a terminal, to begin a line, and to imitate
//! another text.

use crate::token::hidden::is_hidden;
pub use crate::token::hidden::quoted;

/// A text in one line, with its invisible characters escaped: `\n`, `\u{1b}`, `\u{202e}`. JSON and
/// Prometheus' format escape in their own ways.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// JSON without control characters that a terminal might obey: serde leaves those from U+007F to
/// U+009F as they are. They can stand in texts alone, where an escape means the same.
pub fn json(text: String) -> String {
    let is_control = |c: char| ('\u{7f}'..='\u{9f}').contains(&c);
    if !text.contains(is_control) {
        return text;
    }
    let escaped = |c: char| match is_control(c) {
        true => format!("\\u{:04x}", u32::from(c)),
        false => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

/// The lines of an output, which may have any bytes, with their invisible characters escaped: newlines
/// and tabs stay, and a byte that is no text is escaped too: `\xff`.
pub fn printable_lines(output: &[u8]) -> String {
    let mut shown = String::with_capacity(output.len());
    for chunk in output.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' | '\t' => shown.push(c),
                c if is_hidden(c) => shown.extend(c.escape_default()),
                c => shown.push(c),
            }
        }
        for byte in chunk.invalid() {
            shown.extend(byte.escape_ascii().map(char::from));
        }
    }
    shown
}

/// A word as it can be typed into a shell.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::report::details::details;
    use crate::report::explain::Explanation;
    use crate::report::group::{Group, LastRun, Snapshot};
    use crate::report::history::{Entry, history};
    use crate::report::overview::overview;
    use crate::report::records::marks;
    use crate::report::screen::Screen;
    use crate::report::settings::{Effective, Origin, settings};
    use crate::store::conformance::strategies::{records, rows};
    use crate::token::rule::tests::fixture::claim;
    use crate::token::{
        Clause, Decision, Memory, OnceMark, Refusal, Row, RunRecord, StoreTime, Verdict,
    };

    /// Asserts that the text has visible characters only, in this many lines.
    #[track_caller]
    fn assert_seen(text: &str, lines: usize) {
        let hidden = text.chars().find(|c| *c != '\n' && is_hidden(*c));
        assert_eq!(hidden, None, "{text:?}");
        assert_eq!(text.matches('\n').count(), lines, "{text}");
    }

    fn now(row: &Row) -> StoreTime {
        let (epoch, stamp) = (row.stamped.epoch.clone(), row.created_at());
        StoreTime { epoch, stamp }
    }

    fn mark(run: &RunRecord) -> OnceMark {
        OnceMark {
            group: run.group.clone(),
            key: run.once_key.clone().unwrap_or_default(),
            done_at: run.started_at,
            fence: run.fence,
            session: run.session.clone(),
            client: run.client.clone(),
        }
    }

    #[test]
    fn invisible_characters_are_escaped() {
        assert_eq!(
            printable("a\nb\u{1b}[31m\u{202e}c"),
            r"a\nb\u{1b}[31m\u{202e}c"
        );
        assert_eq!(
            printable("Nächtlich, 夜 'x' \\ \u{1f319}"),
            "Nächtlich, 夜 'x' \\ \u{1f319}"
        );
    }

    #[test]
    fn json_has_no_control_characters_and_means_the_same() {
        let text = "a\u{9b}31mb\u{7f} \u{e9}\u{1b}";
        let shown = json(serde_json::to_string(text).unwrap());
        assert_eq!(shown, "\"a\\u009b31mb\\u007f \u{e9}\\u001b\"");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
    }

    #[test]
    fn a_quoted_name_ends_at_its_last_quote() {
        assert_eq!(quoted("the job"), r#""the job""#);
        assert_eq!(quoted(r#"a" is free; "b"#), r#""a\" is free; \"b""#);
        assert_eq!(quoted("Nächtlich 夜"), r#""Nächtlich 夜""#);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_text_is_one_line_of_visible_characters(text in any::<String>()) {
            assert_seen(&printable(&text), 0);
        }

        #[test]
        fn any_output_is_lines_of_visible_characters(output in vec(any::<u8>(), 0..200)) {
            let lines = output.iter().filter(|byte| **byte == b'\n').count();
            assert_seen(&printable_lines(&output).replace('\t', " "), lines);
        }

        #[test]
        fn any_token_is_a_line_or_its_details(row in rows()) {
            let now = now(&row);
            let at = Snapshot { store: "a\u{1b}[31mstore", memory: &Memory::SOUND, now: &now };
            let group = Group::new(&row, None, Vec::new(), at);
            for wide in [false, true] {
                let groups = std::slice::from_ref(&group);
                assert_seen(&overview(groups, &[], at, wide, &Screen::plain()), 3);
            }
            let mut plain = row.clone();
            let document = &mut plain.document;
            (document.label, document.host) = (None, None);
            (document.paused, document.handoff) = (None, None);
            let plain = Group::new(&plain, None, Vec::new(), at);
            let lines = details(&plain, at, &Screen::plain()).lines().count();
            assert_seen(&details(&group, at, &Screen::plain()), lines);
        }

        #[test]
        fn any_run_is_a_line_with_its_sentences_and_a_lane(runs in vec(records(), 1..4), row in rows()) {
            let now = now(&row);
            let entries: Vec<_> = runs.iter().cloned().map(Box::new).map(Entry::Run).collect();
            let sentences = |run: &RunRecord| usize::from(run.reason.is_some()) + usize::from(run.moved_on);
            let sentences: usize = runs.iter().map(sentences).sum();
            assert_seen(&history(&entries, &now, &Screen::plain()), 1 + runs.len() + sentences);
            for run in &runs {
                assert_seen(&LastRun::of(run).text(now.stamp.wall), 0);
            }
            let all: Vec<_> = runs.iter().map(mark).collect();
            assert_seen(&marks(&all, &Screen::plain()), 1 + runs.len());
        }

        #[test]
        fn any_refusal_is_explained_in_four_lines(row in rows()) {
            let now = now(&row);
            let mut whys = vec![Refusal::AliveHere(vec![row.document.label.clone().unwrap_or_default()])];
            whys.extend(row.document.paused.clone().map(Refusal::Paused));
            for why in whys {
                let claim = claim("a");
                let verdict = Verdict::Refused(why);
                let decided = Decision { clause: Clause::Paused, verdict };
                let explained = Explanation::of(&claim, Some(&row), &now, &decided, None, None);
                // A pause has an end, and a command that ends it.
                let lines = 3 + usize::from(explained.command.is_some());
                assert_seen(&explained.text(), lines);
            }
        }

        #[test]
        fn any_setting_is_a_line(value in any::<String>(), origin in any::<String>()) {
            let shown = Effective { setting: "label".to_owned(), value: Some(value), origin: Origin::File(origin) };
            assert_seen(&settings(&[shown]), 2);
        }
    }
}
