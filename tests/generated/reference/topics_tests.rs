//! What holds for every topic.

use super::topic::Part;
use super::*;
use tokenrun::store::mysql::conninfo::text as mysql;
use tokenrun::store::net::options::Fate;
use tokenrun::store::postgres::conninfo::text as postgres;
use tokenrun::verbs::command;

fn shown(name: &str) -> String {
    text_of(name, &command()).unwrap()
}

#[test]
fn every_topic_fits_eighty_columns() {
    for name in names() {
        let text = shown(name);
        for line in text.lines() {
            let width = unicode_width::UnicodeWidthStr::width(line);
            assert!(width <= 80, "{name}: {line}");
        }
        assert!(!text.contains('`'), "{name}");
    }
    assert_eq!(text_of("nothing", &command()), None);
}

#[test]
fn every_row_has_all_its_columns() {
    for (name, topic) in TOPICS {
        for part in topic(&command()).parts {
            let Part::Table(table) = part else { continue };
            assert!(!table.rows.is_empty(), "{name}");
            for row in &table.rows {
                assert_eq!(row.len(), table.columns.len(), "{name}: {row:?}");
                let texts = [row.first(), row.last()];
                assert!(
                    texts
                        .iter()
                        .all(|text| text.is_some_and(|it| !it.is_empty()))
                );
            }
        }
    }
}

#[test]
fn the_exit_codes_of_the_help_are_those_of_the_topic() {
    let topic = shown("exit-codes");
    let help = command().render_long_help().to_string();
    let codes = help
        .split("Exit codes: ")
        .nth(1)
        .unwrap()
        .split(';')
        .skip(1);
    let codes = codes.filter_map(|code| code.split_whitespace().next());
    let codes: Vec<&str> = codes
        .filter(|it| it.starts_with(char::is_numeric))
        .collect();
    assert!(codes.len() > 5, "{codes:?}");
    for code in codes {
        let begin = format!("\n  {code} ");
        assert!(topic.contains(&begin), "{code}: {topic}");
    }
}

/// The names that the sources give to what reads a variable.
fn read_in(source: &str) -> Vec<String> {
    let calls = ["var(\"", "var_os(\"", "variable(\"", "number(\"", "set(\""];
    let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
    let after = |call: &&str| -> Vec<String> {
        let texts = source
            .split(*call)
            .skip(1)
            .filter_map(|rest| rest.split_once('"'));
        let names = texts.map(|(name, _)| name.to_owned());
        names
            .filter(|name| name.len() > 1 && name.chars().all(is_name))
            // Those are options, which clap knows, or of tests.
            .filter(|name| !name.starts_with("TOKENRUN_"))
            .collect()
    };
    calls.iter().flat_map(after).collect()
}

fn sources(folder: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), entry.file_name());
        if name.to_string_lossy().contains("test") {
            continue;
        }
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(std::fs::read_to_string(path).unwrap());
        }
    }
    found
}

#[test]
fn no_variable_is_read_that_is_not_explained() {
    let environment = shown("environment");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let read: Vec<String> = sources(&root).iter().flat_map(|it| read_in(it)).collect();
    let tables = postgres::ALL.iter().chain(mysql::ALL);
    let tables = tables.filter(|known| known.fate == Fate::Used);
    let tables = tables.map(|known| known.variable.to_owned());
    let tables: Vec<String> = tables.filter(|name| !name.is_empty()).collect();
    assert!(tables.len() > 20, "{tables:?}");
    assert!(read.len() > 10, "{read:?}");
    for name in read
        .into_iter()
        .chain(tables)
        .chain(tokenrun::cli::variables(&command()))
    {
        assert!(environment.contains(&name), "{name}");
    }
}
