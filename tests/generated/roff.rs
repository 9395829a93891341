//! A topic as a page of the manual, in section 7.

use clap_mangen::roff::{Inline, Roff, bold, roman};

use super::reference::markup::{Piece, pieces, unmarked};
use super::reference::topic::{Part, Table, Topic};

/// A page, without the preamble that `tokenrun.1` has.
pub(crate) fn page(name: &str, topic: &Topic, date: &str, source: &str) -> String {
    let full = format!("tokenrun-{name}");
    let mut roff = Roff::new();
    roff.control(
        "TH",
        [full.to_uppercase().as_str(), "7", date, source, "tokenrun"],
    );
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("{full} - {}", topic.about))]);
    roff.control("SH", ["DESCRIPTION"]);
    add(&topic.parts, "SS", &mut roff);
    roff.control("SH", ["SEE ALSO"]);
    roff.text([bold("tokenrun"), roman("(1)")]);
    roff.to_roff()
}

/// Parts of a topic, for another page.
pub(crate) fn parts(parts: &[Part]) -> String {
    let mut roff = Roff::new();
    add(parts, "SH", &mut roff);
    roff.to_roff()
}

/// `section` is the request for a heading.
fn add(parts: &[Part], section: &str, roff: &mut Roff) {
    let mut after_heading = true;
    for part in parts {
        match part {
            Part::Heading(heading) => {
                let heading = match section {
                    "SH" => unmarked(heading).to_uppercase(),
                    _ => unmarked(heading),
                };
                roff.control(section, [heading.as_str()]);
            }
            Part::Paragraph(paragraph) => {
                if !after_heading {
                    roff.control("PP", []);
                }
                roff.text(inlines(paragraph));
            }
            Part::Example(example) => {
                roff.control("PP", []).control("nf", []).control("RS", []);
                for line in example.lines() {
                    roff.text([roman(line)]);
                }
                roff.control("RE", []).control("fi", []);
            }
            Part::Table(table) => add_table(table, roff),
        }
        after_heading = matches!(part, Part::Heading(_));
    }
}

fn add_table(table: &Table, roff: &mut Roff) {
    let between = table.columns.len().saturating_sub(2);
    for row in &table.rows {
        let mut term = vec![bold(row.first().map(|it| unmarked(it)).unwrap_or_default())];
        let columns = table.columns.iter().zip(row).skip(1).take(between);
        for (column, value) in columns.filter(|(_, value)| !value.is_empty()) {
            term.push(roman(format!(" [{column}: {}]", unmarked(value))));
        }
        roff.control("TP", []);
        roff.text(term);
        roff.text(row.last().map(|text| inlines(text)).unwrap_or_default());
    }
}

fn inlines(text: &str) -> Vec<Inline> {
    let inline = |piece: Piece<'_>| match piece {
        Piece::Plain(text) => roman(text),
        Piece::Code(text) => bold(text),
    };
    pieces(text).into_iter().map(inline).collect()
}
