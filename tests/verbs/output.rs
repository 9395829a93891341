//! `output`: what jobs have printed.

use serde_json::Value;

use crate::site::{GROUP, Site};
use crate::support::{Line, until};

stories!(
    the_newest_is_shown_and_each_by_its_fence,
    a_cut_output_has_a_head,
    a_run_is_meant_by_its_time_or_because_it_failed,
    nothing_kept_is_an_answer_of_its_own,
    a_run_without_capture_keeps_nothing_and_hides_no_older,
    outputs_have_limits_of_their_own_and_a_removed_one_says_which,
);

fn printing(site: &Site, script: &str) -> Line {
    site.run("node-a").with(&["--capture=1k"]).script(script)
}

fn fences(site: &Site) -> Vec<String> {
    let history = site.verb(&["history", "--json", "-g", GROUP]).end();
    let runs = history.with_code(0).json();
    let fences = runs
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["fence"].to_string());
    fences.collect()
}

fn the_newest_is_shown_and_each_by_its_fence(site: &Site) {
    printing(site, "echo one; exit 3").end().with_code(3);
    printing(site, "echo two").end().with_code(0);
    let newest = site.verb(&["output", "-g", GROUP]).end().with_code(0);
    assert_eq!((&*newest.stdout, newest.messages().len()), ("two\n", 0));
    for (fence, printed) in fences(site).iter().zip(["two\n", "one\n"]) {
        let words = ["output", "-g", GROUP, "--run", fence];
        let ended = site.verb(&words).end().with_code(0);
        assert_eq!(ended.stdout, printed);
        let shown = site.verb(&words).with(&["--json"]).end().with_code(0);
        let object = &shown.json()[0];
        assert_eq!(object["fence"].to_string(), *fence);
        assert_eq!(object["output"], printed);
        assert_eq!(object["group"], GROUP);
        assert!(object["written_at"].as_str().unwrap().ends_with('Z'));
    }
}

fn a_run_is_meant_by_its_time_or_because_it_failed(site: &Site) {
    let output = |words: &[&str]| site.verb(&["output", "-g", GROUP]).with(words).end();
    printing(site, "echo well").end().with_code(0);
    output(&["--failed"])
        .with_code(1)
        .says(&["no run failed", "history -g"]);
    printing(site, "echo broken; exit 3").end().with_code(3);
    printing(site, "echo again").end().with_code(0);
    assert_eq!(output(&["--failed"]).with_code(0).stdout, "broken\n");
    assert_eq!(output(&["--at", "0"]).with_code(0).stdout, "again\n");
    let history = site
        .verb(&["history", "--json", "-g", GROUP])
        .end()
        .with_code(0)
        .json();
    // The last run until then, to the millisecond.
    let began = history[1]["started_at"].as_str().unwrap();
    assert_eq!(output(&["--at", began]).with_code(0).stdout, "broken\n");
    assert_eq!(
        output(&["--at", began, "--failed"]).with_code(0).stdout,
        "broken\n"
    );
    output(&["--at", "3h"])
        .with_code(1)
        .says(&["no run began until "]);
    output(&["--at", "1h", "--run", "7"]).with_code(64);
}

fn a_cut_output_has_a_head(site: &Site) {
    printing(site, "seq 1000").end().with_code(0);
    let ended = site.verb(&["output", "-g", GROUP]).end().with_code(0);
    ended.says(&["on node-a printed 3893 bytes; the last 1024 are stored"]);
    assert_eq!(ended.stdout.len(), 1_024);
    assert!(ended.stdout.ends_with("\n999\n1000\n"));
}

fn nothing_kept_is_an_answer_of_its_own(site: &Site) {
    site.short("node-a").end().with_code(0);
    let none = site.verb(&["output", "-g", GROUP]).end().with_code(1);
    none.says(&["no output of any run of"]);
    let words = ["output", "-g", GROUP, "--run=7", "--json"];
    let none = site.verb(&words).end().with_code(1);
    none.says(&["no output of run 7 of"]);
    assert_eq!(none.json(), Value::Array(Vec::new()));
    let unknown = site.verb(&["output", "-g", "other"]).end().with_code(78);
    unknown.says(&["has no group"]);
    let bad = site.verb(&["output", "-g", GROUP, "--run=0"]).end();
    bad.with_code(64).says(&["--run", "whole number"]);
}

fn a_run_without_capture_keeps_nothing_and_hides_no_older(site: &Site) {
    printing(site, "echo one").end().with_code(0);
    site.short("node-a").end().with_code(0);
    let ended = site.verb(&["output", "-g", GROUP]).end().with_code(0);
    assert_eq!(ended.stdout, "one\n");
    ended.says(&["printed 4 bytes; no newer run has stored output"]);
    let fences = fences(site);
    let words = ["output", "-g", GROUP, "--run", &fences[0]];
    site.verb(&words).end().with_code(1);
}

/// Runs after which old outputs are removed, because they take longer than a second.
fn slow(site: &Site, option: &str) {
    let line = printing(site, "sleep 1.2; echo slow").with(&[option]);
    line.end().with_code(0);
}

fn outputs_have_limits_of_their_own_and_a_removed_one_says_which(site: &Site) {
    printing(site, "echo one").end().with_code(0);
    printing(site, "echo two").end().with_code(0);
    let (two, one) = (fences(site)[0].clone(), fences(site)[1].clone());
    let asked = |fence: &str| site.verb(&["output", "-g", GROUP, "--run", fence]).end();
    assert_eq!(asked(&one).with_code(0).stdout, "one\n");
    let gone = |option: &str, fence: &str| {
        until("the output is removed", || {
            slow(site, option);
            let ended = asked(fence);
            match ended.code {
                Some(0) => Err(ended.stdout),
                _ => Ok(ended.with_code(1)),
            }
        })
    };
    // The limit that counts is that of the later run. What the record says is that of its own run.
    gone("--output-count=2", &one).says(&["a run with other limits has removed it"]);
    assert_eq!(asked(&fences(site)[0]).with_code(0).stdout, "slow\n");
    let run = printing(site, "echo three").with(&["--output-retain=500ms"]);
    run.end().with_code(0);
    let three = fences(site)[0].clone();
    gone("--output-retain=500ms", &three).says(&["removed after 0.5s (--output-retain)"]);
    let run = printing(site, "echo four").with(&["--output-count=1"]);
    run.end().with_code(0);
    let four = fences(site)[0].clone();
    gone("--output-count=1", &four).says(&["at most 1 of a group are kept (--output-count)"]);
    // The history is still there.
    assert!(fences(site).contains(&one) && fences(site).contains(&two));
}
