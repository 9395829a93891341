//! Fences: whether one is current, what guards a resource, and an operator's raise.

use serde_json::Value;

use crate::site::{GROUP, Site};
use crate::support::Line;

stories!(
    a_fence_is_current_until_the_next_grant,
    a_job_need_not_name_its_group_or_fence,
    an_invalid_fence_is_a_usage_error,
    a_resource_takes_no_lower_fence_than_it_has_seen,
    a_store_that_has_not_granted_the_fence_marks_nothing,
    an_operator_raises_the_fence_while_no_job_runs,
    ;
    about tables:
    where_nothing_has_run_no_store_is_made,
);

fn fence_of(site: &Site, client: &str) -> i64 {
    let ended = site.short(client).script("echo $TOKENRUN_FENCE").end();
    ended.with_code(0).stdout.trim().parse().unwrap()
}

fn verify(site: &Site, fence: i64) -> Line {
    let fence = fence.to_string();
    site.verb(&["fence", "verify", "-g", GROUP, "--fence", &fence])
}

fn advance(site: &Site, resource: &str, fence: i64) -> Line {
    site.verb(&["fence", "advance", resource, &fence.to_string()])
}

fn a_fence_is_current_until_the_next_grant(site: &Site) {
    let first = fence_of(site, "node-a");
    let good = verify(site, first).end().with_code(0);
    good.says(&[&first.to_string(), "is the current one"]);
    // Whether higher or lower, another fence is not this run's.
    verify(site, first + 1).end().with_code(76);
    let second = fence_of(site, "node-b");
    let stale = verify(site, first).end().with_code(76);
    stale.says(&[&first.to_string(), "is stale", &second.to_string(), "end"]);
    verify(site, second).end().with_code(0);
    let quiet = verify(site, second).with(&["-q"]).end().with_code(0);
    assert_eq!(quiet.messages(), Vec::<&str>::new());
    let quiet = verify(site, first).with(&["-q"]).end().with_code(76);
    quiet.says(&["is stale"]);
    let silent = verify(site, first).with(&["-qq"]).end().with_code(76);
    assert_eq!(silent.stderr, "");
}

fn a_job_need_not_name_its_group_or_fence(site: &Site) {
    let program = crate::support::TOKENRUN;
    let script =
        format!("'{program}' fence verify -q && '{program}' fence advance -q bucket && echo good");
    let run = site.short("node-a").script(&script);
    let ended = run.env("TOKENRUN_STORE", &site.url).end().with_code(0);
    assert_eq!(ended.stdout, "good\n");
    advance(site, "bucket", 1).end().with_code(76);
}

fn an_invalid_fence_is_a_usage_error(site: &Site) {
    fence_of(site, "node-a");
    for fence in ["0", "-1", "x", "", "9007199254740992", "1.5"] {
        let words = ["fence", "verify", "-g", GROUP, &format!("--fence={fence}")];
        site.verb(&words).end().with_code(64);
    }
    site.verb(&["fence", "verify", "-g", GROUP])
        .end()
        .with_code(64)
        .says(&["--fence"]);
    site.verb(&["fence", "verify", "-g", "nobody", "--fence=1"])
        .end()
        .with_code(78);
    site.verb(&["fence", "advance", "a\nb", "1"])
        .end()
        .with_code(64);
}

fn a_resource_takes_no_lower_fence_than_it_has_seen(site: &Site) {
    let first = fence_of(site, "node-a");
    let second = fence_of(site, "node-b");
    let bucket = "s3://bucket/o'neil";
    let stored = advance(site, bucket, first).end().with_code(0);
    stored.says(&[bucket, &first.to_string()]);
    advance(site, bucket, first).end().with_code(0);
    advance(site, bucket, second).end().with_code(0);
    let stale = advance(site, bucket, first).end().with_code(76);
    stale.says(&["is stale", bucket, &second.to_string()]);
    advance(site, bucket, second).end().with_code(0);
    advance(site, "another", first).end().with_code(0);
}

fn a_store_that_has_not_granted_the_fence_marks_nothing(site: &Site) {
    let fence = fence_of(site, "node-a");
    for (group, fence) in [(GROUP, fence + 1), ("unknown", fence)] {
        let other = advance(site, "bucket", fence).with(&["-g", group]);
        other
            .end()
            .with_code(78)
            .says(&["has not granted the fence", "TOKENRUN_STORE"]);
    }
    advance(site, "bucket", 1).end().with_code(0);
    // A later grant is no reason to refuse: whether the fence is stale is for the mark.
    let second = fence_of(site, "node-b");
    for fence in [fence, second] {
        let line = advance(site, "bucket", fence).with(&["-g", GROUP]);
        line.end().with_code(0);
    }
}

fn where_nothing_has_run_no_store_is_made(site: &Site) {
    let no_store = advance(site, "bucket", 1).end().with_code(78);
    no_store.says(&["there is no store"]);
    verify(site, 1).end().with_code(78);
}

fn an_operator_raises_the_fence_while_no_job_runs(site: &Site) {
    let held = site.run("node-a").start();
    site.store.until_begun("node-a");
    let raise = |words: &[&str]| {
        let line = site.verb(&["fence", "raise", "-g", GROUP]);
        line.with(words).end()
    };
    raise(&[]).with_code(75).says(&[
        "is running on node-a",
        "its fence was not raised",
        "tokenrun revoke",
    ]);
    site.store.go(0);
    held.end().with_code(0);
    let first = fence_of(site, "node-a");
    let raised = raise(&["--reason", "restored a backup", "--json"]).with_code(0);
    let act = raised.json()[0].take();
    let second = act["fence"].as_i64().unwrap();
    assert!(second >= first + 60_000, "{act}");
    verify(site, first).end().with_code(76);
    verify(site, second).end().with_code(0);
    // To what a resource has seen; not down.
    let to = second + 1_000_000;
    raise(&["--to", &to.to_string()])
        .with_code(0)
        .says(&[&to.to_string()]);
    raise(&["--to", "1"])
        .with_code(0)
        .says(&["that high already", "nothing was changed"]);
    assert!(fence_of(site, "node-b") > to);
    let history = site.verb(&["history", "--json"]).end().with_code(0).json();
    let entries = history.as_array().unwrap().iter();
    let acts: Vec<&Value> = entries
        .filter(|entry| entry["act"] == "fence_raise")
        .collect();
    assert_eq!(acts.len(), 2, "{history}");
    assert_eq!(acts[1]["reason"], "restored a backup");
    raise(&["--to", "0"]).with_code(64);
    site.verb(&["history"]).end().with_code(0);
}
