//! The fields of everything that is written as JSON: the text beside this file.

use clap::Command;

use super::topic::{Part, Table, Topic, heading, paragraph};

/// Sections in brackets, fields with their meaning, and sentences between them.
const FIELDS: &str = include_str!("fields.txt");

pub(crate) fn topic(_: &Command) -> Topic {
    let mut parts = vec![
        paragraph(
            "Every command with --json prints an array of objects. --report writes a file with one object. --log-format json writes an object per line to stderr.",
        ),
        paragraph(
            "Fields are stable: a new release can add a field, but it removes and renames none. Times are in UTC (RFC 3339), by the clock of the store unless the field says otherwise.",
        ),
    ];
    let mut rows = Vec::new();
    let lines = FIELDS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        if let Some((name, meaning)) = line.split_once(": ") {
            rows.push((name, meaning));
            continue;
        }
        parts.extend(fields(&mut rows));
        parts.push(
            match line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
                Some(section) => heading(section),
                None => paragraph(line),
            },
        );
    }
    parts.extend(fields(&mut rows));
    Topic {
        title: "JSON",
        about: "the fields of the JSON that tokenrun writes",
        parts,
    }
}

/// The fields so far, which are taken.
fn fields(rows: &mut Vec<(&'static str, &'static str)>) -> Option<Part> {
    let rows = std::mem::take(rows);
    (!rows.is_empty()).then(|| Table::of(["field", "meaning"], rows))
}
