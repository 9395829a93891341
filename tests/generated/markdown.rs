//! A topic as a page of the guide.

use super::reference::markup::{Piece, pieces};
use super::reference::topic::{Part, Table, Topic};

/// A page. It says where else the topic is shown.
pub(crate) fn page(name: &str, topic: &Topic) -> String {
    let mut text = format!("# {}\n", topic.title);
    for part in &topic.parts {
        text.push('\n');
        text.push_str(&match part {
            Part::Heading(heading) => format!("## {}\n", marked(heading)),
            Part::Paragraph(paragraph) => format!("{}\n", marked(paragraph)),
            Part::Example(example) => format!("```toml\n{}\n```\n", example.trim_end()),
            Part::Table(table) => of_table(table),
        });
    }
    let manual = match name {
        "options" => "tokenrun(1)".to_owned(),
        name => format!("tokenrun-{name}(7)"),
    };
    text.push_str(&format!(
        "\nThis page is also printed by `tokenrun help {name}`, and is in the manual as {manual}.\n\
         \n<!-- Made from the program: TOKENRUN_GENERATE=1 cargo test --test generated -->\n"
    ));
    text
}

fn of_table(table: &Table) -> String {
    let mut text = format!("| {} |\n", table.columns.join(" | "));
    text.push_str(&format!("|{}\n", "---|".repeat(table.columns.len())));
    for row in &table.rows {
        let cells = row.iter().enumerate().map(|(column, cell)| match column {
            0 => code(cell),
            _ => marked(cell),
        });
        let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|")).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

/// What is explained: code as a whole, unless its code is marked.
fn code(text: &str) -> String {
    match text.contains('`') {
        true => marked(text),
        false => format!("`{text}`"),
    }
}

fn marked(text: &str) -> String {
    let mut shown = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Plain(text) => shown.push_str(&escaped(text)),
            Piece::Code(text) => shown.push_str(&format!("`{text}`")),
        }
    }
    shown
}

/// A text of which no character is Markdown's.
fn escaped(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        if "\\*_<>[]~$#".contains(c) {
            shown.push('\\');
        }
        shown.push(c);
    }
    shown
}

#[test]
fn no_text_is_taken_for_markdown() {
    assert_eq!(
        marked("[groups.NAME] of a*b, --keep"),
        "\\[groups.NAME\\] of a\\*b, `--keep`"
    );
    let table = Table {
        columns: vec!["a", "b"],
        rows: vec![vec!["x|y".to_owned(), "z".to_owned()]],
    };
    assert_eq!(of_table(&table), "| a | b |\n|---|---|\n| `x\\|y` | z |\n");
}
