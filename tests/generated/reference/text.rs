//! A topic for a terminal of 80 columns.

use unicode_width::UnicodeWidthStr as _;

use super::markup::unmarked;
use super::topic::{Part, Table, Topic};

const WIDTH: usize = 80;

/// The widest first column that has its explanation beside it, and not below.
const WIDEST: usize = 28;

pub(crate) fn rendered(topic: &Topic) -> String {
    let mut text = format!("{}\n", topic.title.to_uppercase());
    let mut after_heading = false;
    for part in &topic.parts {
        if !after_heading {
            text.push('\n');
        }
        after_heading = matches!(part, Part::Heading(_));
        match part {
            Part::Heading(heading) => {
                text.push_str(&format!("{}\n", unmarked(heading).to_uppercase()))
            }
            Part::Paragraph(paragraph) => {
                text.push_str(&wrapped(&unmarked(paragraph), 0));
                text.push('\n');
            }
            Part::Example(example) => {
                for line in example.lines() {
                    text.push_str(format!("    {line}").trim_end());
                    text.push('\n');
                }
            }
            Part::Table(table) => text.push_str(&of_table(table)),
        }
    }
    text
}

fn of_table(table: &Table) -> String {
    let terms: Vec<String> = table.rows.iter().map(|row| term(table, row)).collect();
    let widest = terms.iter().map(|term| term.width()).max().unwrap_or(0);
    let mut text = String::new();
    for (term, row) in terms.iter().zip(&table.rows) {
        let meaning = row.last().map(|text| unmarked(text)).unwrap_or_default();
        let (indent, begin) = match widest <= WIDEST {
            true => {
                let blanks = " ".repeat(widest - term.width());
                (widest + 4, format!("  {term}{blanks}  "))
            }
            false => (8, format!("{}\n        ", wrapped(&format!("  {term}"), 4))),
        };
        let meaning = wrapped(&format!("{}{meaning}", " ".repeat(indent)), indent);
        text.push_str(&begin);
        text.push_str(meaning.trim_start());
        text.push('\n');
    }
    text
}

/// What is explained, with the columns between it and the explanation: `--keep [default: 5m]`.
fn term(table: &Table, row: &[String]) -> String {
    let mut term = row.first().map(|text| unmarked(text)).unwrap_or_default();
    let between = row.len().saturating_sub(2);
    let columns = table.columns.iter().zip(row).skip(1).take(between);
    for (column, value) in columns.filter(|(_, value)| !value.is_empty()) {
        term.push_str(&format!(" [{column}: {}]", unmarked(value)));
    }
    term
}

/// A text in lines of at most [`WIDTH`] columns, all but the first indented. The text's own blanks
/// at its begin stay.
fn wrapped(text: &str, indent: usize) -> String {
    let begin: String = text.chars().take_while(|c| *c == ' ').collect();
    let mut lines = vec![begin];
    let mut is_empty = true;
    for word in text.split_whitespace() {
        let Some(last) = lines.last_mut() else { break };
        if is_empty {
            last.push_str(word);
        } else if last.width() + 1 + word.width() <= WIDTH {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(format!("{}{word}", " ".repeat(indent)));
        }
        is_empty = false;
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_term_has_its_meaning_beside_it_and_a_long_one_above_it() {
        let table = |term: &str| Table {
            columns: vec!["option", "default", "meaning"],
            rows: vec![vec![
                term.to_owned(),
                "5m".to_owned(),
                "how long `x`".to_owned(),
            ]],
        };
        assert_eq!(
            of_table(&table("--keep D")),
            "  --keep D [default: 5m]  how long x\n"
        );
        assert_eq!(
            of_table(&table("--takeover-after D")),
            "  --takeover-after D [default: 5m]\n        how long x\n"
        );
    }

    #[test]
    fn lines_are_broken_between_words() {
        let text = ["word"; 40].join(" ");
        let lines = wrapped(&text, 4);
        assert!(lines.lines().all(|line| line.len() <= WIDTH));
        assert!(
            lines
                .lines()
                .skip(1)
                .all(|line| line.starts_with("    word"))
        );
        assert_eq!(lines.split_whitespace().count(), 40);
    }
}
