//! The page as a whole.

use std::time::Duration;

use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::fixture::{act, ago, moved, refusal, run};
use super::*;
use crate::store::conformance::strategies::rows;
use crate::token::rule::tests::fixture::{idle, s, seen};
use crate::token::{ActRecord, Memory, Outcome, Row, RunRecord};

fn view(row: &Row, groups: usize) -> View {
    View {
        now: seen(row.clone()).after(s(1)).now,
        memory: Memory::SOUND,
        calendar: Calendar::new(TimeZone::UTC),
        detail: Detail::of(groups),
    }
}

fn facts<'a>(store: &'a str, unreadable: &'a [(String, String)]) -> Facts<'a> {
    Facts {
        store,
        unreadable,
        is_shortened: false,
        refresh: None,
    }
}

/// A page of one group, of which everything that is foreign is this text.
fn page_of(text: &str) -> String {
    let mut failed = moved("a", run("b", ago(60), Some(ago(50)), Outcome::Failed));
    (failed.label, failed.program) = (Some(text.into()), text.into());
    let mut paused: ActRecord = act(text, ago(30));
    (paused.actor.by, paused.actor.reason) = (text.into(), Some(text.into()));
    let mut refused = refusal("c", ago(20), ago(20), 1);
    refused.reason = text.into();
    let mut row = idle("a");
    (row.document.host, row.document.label) = (Some(text.into()), Some(text.into()));
    row.document.paused = Some(crate::token::Pause {
        by: text.into(),
        reason: text.into(),
        until: None,
        other: crate::token::Others::new(),
    });
    let mut view = view(&row, 1);
    view.now.stamp.wall = super::fixture::NOW;
    let known = Known {
        row: &row,
        waiters: 0,
        past: Past {
            runs: &[&failed],
            cut: None,
            acts: &[&paused],
            refusals: &[&refused],
        },
    };
    let group = Group::of(&known, &view);
    let unreadable = [(text.to_owned(), text.to_owned())];
    page(&facts(text, &unreadable), &[group], &view)
}

/// The tags of a page, without what is between them and without what is quoted in them.
fn tags(page: &str) -> String {
    let (mut tags, mut in_tag, mut quoted) = (String::new(), false, false);
    for c in page.chars() {
        match c {
            '<' => in_tag = true,
            '"' if in_tag => quoted = !quoted,
            _ => {}
        }
        if in_tag && !quoted {
            tags.push(c);
        }
        if c == '>' && !quoted {
            in_tag = false;
        }
    }
    tags
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_foreign_text_becomes_a_tag_or_an_attribute(text in ".*") {
        let page = page_of(&text);
        prop_assert_eq!(tags(&page), tags(&page_of("plain")));
        let odd = page.chars().find(|c| c.is_control() && *c != '\n');
        prop_assert_eq!(odd, None);
    }

    #[test]
    fn any_token_has_a_page(row in rows()) {
        let view = view(&row, 1);
        let past = Past { runs: &[], cut: None, acts: &[], refusals: &[] };
        let known = Known { row: &row, waiters: 1, past };
        let page = page(&facts("t", &[]), &[Group::of(&known, &view)], &view);
        prop_assert!(page.ends_with("</html>\n"));
    }
}

#[test]
fn text_that_looks_like_html_is_escaped() {
    for text in [
        "<script>alert(1)</script>",
        "\"><img src=x>",
        "</title></style><b>",
    ] {
        let page = page_of(text);
        assert_eq!(tags(&page), tags(&page_of("plain")));
        assert!(!page.contains(text), "{text}");
    }
    assert!(page_of("a&amp;b").contains("a&amp;amp;b"));
    assert!(page_of("a\u{202e}b").contains(r"a\u{202e}b"));
}

#[test]
fn a_page_requests_nothing_and_may_execute_nothing() {
    let page = page_of("plain");
    assert!(page.contains("content=\"default-src 'none'; style-src 'unsafe-inline'\""));
    for word in [
        "http:", "https:", "<script", " src=", "url(", "@import", "<link",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(!tags(&page).contains(" on"), "an attribute with a script");
    // Each part that is referred to is there.
    for part in page.split("href=\"#").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(page.contains(&format!("id=\"{name}\"")), "{name}");
    }
}

#[test]
fn a_page_says_what_it_shows() {
    let page = page_of("plain");
    for text in [
        "<html lang=\"en\">",
        "<title>(2) tokenrun</title>",
        "its last run failed ",
        "Last day: 1 run: 1 failed, killed or timed out; 1 failover; 1 refusal; 1 act",
        "a → b (takeover)",
        "1 refusal of c (plain)",
        "plain by plain: plain",
        "paused by plain until it is resumed: plain",
        "can’t be read: plain",
        "as of <time datetime=\"2026-11-21T13:00:13+00:00\">2026-11-21 13:00:13</time> UTC",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("http-equiv=\"refresh\""));
}

#[test]
fn a_page_without_groups_and_one_that_is_loaded_anew_say_so() {
    let row = idle("a");
    let facts = Facts {
        refresh: Some(Duration::from_secs(60)),
        is_shortened: true,
        ..facts("t", &[])
    };
    let page = page(&facts, &[], &view(&row, 0));
    assert!(page.contains("There are none.") && page.contains("Nothing."));
    assert!(page.contains("<meta http-equiv=\"refresh\" content=\"60\">"));
    assert!(page.contains("the oldest are left out"));
}

/// What two runs an hour in a month cost, in each of 500 groups.
#[test]
fn a_group_among_many_is_light() {
    let runs: Vec<RunRecord> = (0..1_440)
        .rev()
        .map(|at| {
            run(
                "a",
                ago(at * 30 + 10),
                Some(ago(at * 30 + 5)),
                Outcome::Succeeded,
            )
        })
        .collect();
    let runs: Vec<&RunRecord> = runs.iter().collect();
    let row = idle("a");
    let mut view = view(&row, 500);
    view.now.stamp.wall = super::fixture::NOW;
    let past = Past {
        runs: &runs,
        cut: None,
        acts: &[],
        refusals: &[],
    };
    let known = Known {
        row: &row,
        waiters: 0,
        past,
    };
    let group = Group::of(&known, &view);
    let groups = vec![group; 500];
    let page = page(&facts("t", &[]), &groups, &view);
    assert!(page.len() < 3_000_000, "{}", page.len());
    assert!(page.contains("1440 succeeded"), "no run is left out");
}
