//! `output`: what jobs have printed.

use serde_json::Value;

use crate::site::{GROUP, Site};
use crate::support::Line;

stories!(
    the_newest_is_shown_and_each_by_its_fence,
    a_cut_output_has_a_head,
    nothing_kept_is_an_answer_of_its_own,
    a_run_without_capture_keeps_nothing_and_hides_no_older,
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
