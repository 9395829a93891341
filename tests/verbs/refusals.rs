//! Refused runs leave records, and `explain --at` tells what happened then.

use serde_json::Value;

use crate::site::{GROUP, Site};
use crate::support::Line;

stories!(
    each_refusal_is_recorded_with_its_reason,
    a_wait_that_ends_in_vain_is_recorded,
    the_story_says_that_no_client_came,
    a_time_that_makes_no_sense_is_a_usage_error,
    ;
    about tables:
    a_loop_is_recorded_once_a_minute_and_counted_for_good,
    a_refusal_that_can_not_be_recorded_is_a_refusal,
    the_story_says_whether_the_job_ran,
);

fn run(site: &Site, client: &str) -> Line {
    site.run(client).with(&["--keep=1h", "--heartbeat=300ms"])
}

fn explain(site: &Site, words: &[&str]) -> Line {
    site.verb(&["explain", "-g", GROUP]).with(words)
}

fn story(site: &Site) -> Value {
    let ended = explain(site, &["--since=1h", "--json"]).end().with_code(0);
    ended.json()[0].take()
}

/// The recorded refusals, the oldest first: reason, client, the client in the way, number.
fn refusals(site: &Site) -> Vec<String> {
    let story = story(site);
    let refusals = story["refusals"].as_array().unwrap().iter();
    let words = refusals.map(|it| {
        let text = |field: &str| it[field].as_str().unwrap_or("-").to_owned();
        let names = [text("refused"), text("client"), text("holder")].join(" ");
        format!("{names} {}", it["count"])
    });
    words.collect()
}

fn each_refusal_is_recorded_with_its_reason(site: &Site) {
    let held = run(site, "node-a").start();
    site.store.until_begun("node-a");
    run(site, "node-b").job(&["true"]).end().with_code(75);
    site.store.go(0);
    held.end().with_code(0);
    run(site, "node-b").job(&["true"]).end().with_code(75);
    let soon = ["--at-least=1h", "--keep=1h"];
    site.short("node-a").with(&soon).end().with_code(0);
    site.short("node-a").with(&soon).end().with_code(75);
    let pause = ["pause", "-g", GROUP, "--for=1h", "--reason=kernel upgrade"];
    site.verb(&pause).end().with_code(0);
    run(site, "node-b").job(&["true"]).end().with_code(75);
    assert_eq!(
        refusals(site),
        [
            "held node-b node-a 1",
            "bound node-b node-a 1",
            "too_soon node-a - 1",
            "paused node-b - 1"
        ]
    );
    let story = story(site);
    let paused = &story["refusals"][3];
    assert_eq!(paused["paused_reason"], "kernel upgrade");
    assert!(paused["paused_by"].is_string() && paused["paused_until"].is_string());
    assert!(paused["host"].is_string(), "{paused}");
    assert_eq!(paused["fence"], story["runs"][1]["fence"]);
    let history = site.verb(&["history", "--refusals", "--json"]).end();
    let history = history.with_code(0).json();
    let entries = history.as_array().unwrap().iter().rev();
    let words = entries.map(|it| {
        let kinds = ["outcome", "refused", "act"];
        let found = kinds.iter().find_map(|kind| it.get(kind)?.as_str());
        found.unwrap().to_owned()
    });
    assert_eq!(
        words.collect::<Vec<_>>(),
        [
            "succeeded",
            "held",
            "bound",
            "succeeded",
            "too_soon",
            "pause",
            "paused"
        ]
    );
    let text = site.verb(&["history", "--refusals", "-n1"]).end();
    let text = text.with_code(0).stdout;
    assert!(text.contains("node-b was refused: paused by "), "{text}");
    let odd = site
        .verb(&["history", "--refusals", "--outcome=lost"])
        .end();
    odd.with_code(64).says(&["--refusals", "--outcome"]);
    let metrics = site.verb(&["metrics"]).end().with_code(0).stdout;
    for reason in ["held", "bound", "too_soon", "paused"] {
        let line = format!("tokenrun_refusals_total{{group=\"{GROUP}\",reason=\"{reason}\"}} 1\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
}

fn a_wait_that_ends_in_vain_is_recorded(site: &Site) {
    let held = run(site, "node-a").start();
    site.store.until_begun("node-a");
    let waits = run(site, "node-b").with(&["--wait=2s"]).job(&["true"]);
    waits.end().with_code(75);
    assert_eq!(refusals(site), ["held node-b node-a 1"]);
    let fence = story(site)["refusals"][0]["fence"].clone();
    site.store.go(0);
    held.end().with_code(0);
    assert_eq!(fence, story(site)["runs"][0]["fence"]);
}

fn a_loop_is_recorded_once_a_minute_and_counted_for_good(site: &Site) {
    site.short("node-a").with(&["--keep=1h"]).end().with_code(0);
    let refused = || site.short("node-b").end().with_code(75);
    for _ in 0..3 {
        refused();
    }
    assert_eq!(refusals(site), ["bound node-b node-a 1"]);
    let earlier = |minutes: i64| {
        let times = ["first_at", "last_at"].map(|column| match site.url.starts_with('/') {
            _ if site.is_mysql() => format!("{column} = {column} - INTERVAL {minutes} MINUTE"),
            true => {
                format!("{column} = strftime('%Y-%m-%dT%H:%M:%fZ', {column}, '-{minutes} minutes')")
            }
            false => format!("{column} = {column} - interval '{minutes} minutes'"),
        });
        site.sql(&format!("UPDATE refusals SET {}", times.join(", ")));
    };
    earlier(2);
    refused();
    assert_eq!(refusals(site), ["bound node-b node-a 2"]);
    earlier(61);
    refused();
    let found = site
        .verb(&["explain", "-g", GROUP, "--since=3h", "--json"])
        .end();
    let counts = found.json()[0]["refusals"].clone();
    let counts = counts
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["count"].as_u64());
    assert_eq!(counts.collect::<Vec<_>>(), [Some(2), Some(1)]);
    let metrics = site.verb(&["metrics"]).end().with_code(0).stdout;
    assert!(metrics.contains("reason=\"bound\"} 3\n"), "{metrics}");
}

fn a_refusal_that_can_not_be_recorded_is_a_refusal(site: &Site) {
    site.short("node-a").with(&["--keep=1h"]).end().with_code(0);
    let refused = || {
        site.short("node-b")
            .end()
            .with_code(75)
            .message()
            .to_owned()
    };
    let before = refused();
    site.sql("DROP TABLE refusals");
    let after = refused();
    let begin = |text: &str| text.split(" other clients can").next().unwrap().to_owned();
    assert_eq!(begin(&after), begin(&before));
}

fn the_story_says_whether_the_job_ran(site: &Site) {
    let shown = |words: &[&str]| explain(site, words).end().with_code(0).stdout;
    let held = run(site, "node-a").start();
    site.store.until_begun("node-a");
    run(site, "node-b").job(&["true"]).end().with_code(75);
    site.store.go(3);
    held.end().with_code(3);
    let text = shown(&["--at=now"]);
    assert!(text.starts_with("\"job\", 20"), "{text}");
    for words in [
        "It ran: node-a at ",
        "failed with exit code 3 after",
        " was refused: node-a held the token\n",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    site.sql("DELETE FROM runs");
    let text = shown(&["--since=1h"]);
    let answer = "It did not run: node-b came and was refused: node-a held the token.\n";
    assert!(text.contains(answer), "{text}");
}

fn the_story_says_that_no_client_came(site: &Site) {
    site.short("node-a").end().with_code(0);
    let text = explain(site, &["--at=2026-01-01 02:00", "--utc"]).end();
    let text = text.with_code(0).stdout;
    for words in [
        "\"job\", 2026-01-01T01:45:00.000Z to 2026-01-01T02:15:00.000Z:\n",
        "It did not run, and no refusal is recorded",
        "History has nothing this old",
        "The run after: 20",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let unknown = site.verb(&["explain", "-g", "else", "--since=1h"]).end();
    unknown.with_code(78).says(&["has no group \"else\""]);
}

fn a_time_that_makes_no_sense_is_a_usage_error(site: &Site) {
    site.short("node-a").end().with_code(0);
    let at = explain(site, &["--at=25:00"]).end();
    at.with_code(64).says(&["--at", "25:00", "for example"]);
    let alone = explain(site, &["--until=02:00"]).end();
    alone.with_code(64).says(&["--since"]);
    let both = explain(site, &["--at=02:00", "--since=yesterday"]).end();
    both.with_code(64).says(&["--at", "--since"]);
    let words = ["--since=2026-10-25 03:00", "--until=2026-10-25 01:00"];
    let ended = explain(site, &words).end().with_code(64);
    ended.says(&["--until", "lies before --since"]);
    let ended = site.verb(&["history"]).with(&words).end().with_code(64);
    ended.says(&["--until", "lies before --since"]);
    let future = explain(site, &["--at=2999-01-01 02:00"]).end();
    future.with_code(64).says(&["2999", "lies ahead"]);
}
