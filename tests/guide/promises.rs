//! Each promise of docs/guarantees.md names tests, and they are there.

use std::fs;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, TextMergeStream};

use crate::blocks::pages;
use crate::document::root;

const HEADING: &str = "What is promised";

/// What is listed below the heading: the words of each item, or row of a table, and its code.
fn promises(text: &str) -> Vec<(String, Vec<String>)> {
    let mut promises: Vec<(String, Vec<String>)> = Vec::new();
    let (mut heading, mut is_below) = (None::<String>, false);
    for event in TextMergeStream::new(Parser::new_ext(text, Options::ENABLE_TABLES)) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => is_below = heading.take().unwrap() == HEADING,
            Event::Text(text) if heading.is_some() => heading.as_mut().unwrap().push_str(&text),
            Event::Start(Tag::Item | Tag::TableRow) if is_below => {
                promises.push((String::new(), Vec::new()));
            }
            Event::Text(text) if is_below => {
                if let Some((words, _)) = promises.last_mut() {
                    words.push_str(&text);
                }
            }
            Event::Code(code) if is_below => {
                if let Some((_, codes)) = promises.last_mut() {
                    codes.push(code.to_string());
                }
            }
            _ => {}
        }
    }
    promises
}

/// The file and the function, if it is written as a test is.
fn as_test(code: &str) -> Option<(&str, &str)> {
    let (file, name) = code.split_once("::")?;
    let is_source = ["src/", "tests/"].iter().any(|it| file.starts_with(it));
    (is_source && file.ends_with(".rs")).then_some((file, name))
}

/// Whether the function is there with the attribute of a test, and is not left out.
fn has_attribute(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let begin = format!("fn {name}(");
    let Some(at) = lines.iter().position(|line| line.starts_with(&begin)) else {
        return false;
    };
    let above = lines[..at].iter().rev();
    let attributes: Vec<_> = above.take_while(|line| line.starts_with("#[")).collect();
    attributes.iter().any(|line| **line == "#[test]")
        && !attributes.iter().any(|line| line.starts_with("#[ignore"))
}

/// The lists of which a macro, or a suite with its own main, makes tests.
const LISTS: [(&str, &str); 5] = [
    ("\nstories!(", ");"),
    ("\nsuite!(", ");"),
    ("\nsearches! {", "\n}"),
    ("\nmutants! {", "\n}"),
    ("TESTS: &[Test] = &[", "\n];"),
];

fn is_listed(text: &str, name: &str) -> bool {
    LISTS.iter().any(|(begin, end)| {
        let lists = text.split(begin).skip(1);
        let mut lists = lists.filter_map(|rest| rest.split_once(end));
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        lists.any(|(list, _)| list.split(|c| !is_name(c)).any(|word| word == name))
    })
}

/// The file's own text, and that of the file whose module it is.
fn texts(file: &str) -> Vec<String> {
    let parent = file
        .rsplit_once('/')
        .map(|(folder, _)| format!("{folder}.rs"));
    let files = [Some(file.to_owned()), parent].into_iter().flatten();
    let texts = files.map(|name| fs::read_to_string(root().join(name)));
    texts.map_while(Result::ok).collect()
}

/// The fault suite has one test for each store, with locks and without.
const FAULTS: [&str; 6] = [
    "faults_on_sqlite",
    "faults_on_sqlite_by_the_lease_alone",
    "faults_on_postgres",
    "faults_on_postgres_by_the_lease_alone",
    "faults_on_mysql",
    "faults_on_mysql_by_the_lease_alone",
];

fn is_test(file: &str, name: &str) -> bool {
    if file == "tests/faults.rs" {
        return FAULTS.contains(&name);
    }
    let texts = texts(file);
    let Some(own) = texts.first() else {
        return false;
    };
    has_attribute(own, name) || texts.iter().any(|text| is_listed(text, name))
}

#[test]
fn each_promise_names_a_test() {
    let text = fs::read_to_string(root().join("docs/guarantees.md")).unwrap();
    let promises = promises(&text);
    assert!(promises.len() > 10, "{promises:?}");
    for (words, codes) in &promises {
        let named = codes.iter().any(|code| as_test(code).is_some());
        assert!(named, "no test is named for: {words}");
    }
}

#[test]
fn each_test_that_a_page_names_is_there() {
    let pages = pages();
    let named = pages.iter().flat_map(|page| page.inline_code());
    let named: Vec<String> = named.filter(|code| as_test(code).is_some()).collect();
    assert!(named.len() > 10, "{named:?}");
    let is_missing = |code: &&String| as_test(code).is_some_and(|(f, name)| !is_test(f, name));
    let missing: Vec<_> = named.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "there is no test {missing:#?}");
}

#[test]
fn a_promise_without_a_test_would_be_found() {
    let text = "# G\n- a\n## What is promised\nOne:\n\n- b: `tests/b.rs::c`,\n  `d`\n- e\n\n\
                | x | y |\n|---|---|\n| f | `src/f.rs::g` |\n\n## More\n- h\n";
    let found = promises(text);
    let codes: Vec<usize> = found
        .iter()
        .map(|(_, codes)| codes.iter().filter_map(|it| as_test(it)).count())
        .collect();
    assert_eq!(codes, [1, 0, 1], "{found:?}");
    for (file, name) in [
        ("tests/guide/promises.rs", "each_promise_names_a_test"),
        (
            "src/token/rule_tests/properties.rs",
            "no_numbers_make_it_panic",
        ),
        ("tests/verbs/rule.rs", "clause_5_the_silent_are_taken_over"),
        (
            "tests/guard/unruly.rs",
            "a_whole_tree_does_not_outlive_its_lease",
        ),
        (
            "src/store/conformance/swaps.rs",
            "a_conflict_changes_nothing",
        ),
        ("src/run/search.rs", "the_power_fails"),
        ("tests/faults.rs", "faults_on_sqlite"),
    ] {
        assert!(is_test(file, name), "{file} {name}");
    }
    for (file, name) in [
        ("tests/guide/promises.rs", "is_test"),
        ("tests/guide/missing.rs", "is_test"),
        ("tests/verbs/rule.rs", "clause_99"),
        ("tests/verbs/rule.rs", "hasty"),
        ("tests/faults.rs", "main"),
    ] {
        assert!(!is_test(file, name), "{file} {name}");
    }
    let left_out = "#[test]\n#[ignore = \"slow\"]\nfn a() {}\n";
    assert!(!has_attribute(left_out, "a"));
}
