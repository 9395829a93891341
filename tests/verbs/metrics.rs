//! `metrics`: what Prometheus collects.

use crate::site::{GROUP, Site};
use crate::support::until;

stories!(
    events_are_counted,
    the_last_success_is_reported_although_a_run_has_failed_since,
    a_file_is_written_as_a_whole,
    labels_are_escaped,
);

fn metrics(site: &Site) -> String {
    site.verb(&["metrics"]).end().with_code(0).stdout
}

#[track_caller]
fn assert_has(text: &str, sample: &str) {
    assert!(text.lines().any(|line| line == sample), "{sample}: {text}");
}

/// Each metric has its help and type once, before its samples.
fn assert_well_formed(text: &str) {
    let mut name = "";
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            name = help.split(' ').next().unwrap();
            assert_eq!(text.matches(&format!("# HELP {name} ")).count(), 1);
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (of, kind) = kind.split_once(' ').unwrap();
            assert_eq!(of, name);
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            assert_eq!(sample.split('{').next().unwrap(), name, "{line}");
            value.parse::<f64>().unwrap_or_else(|_| panic!("{line}"));
        }
    }
}

fn events_are_counted(site: &Site) {
    site.run("node-a")
        .with(&["--keep=1ms"])
        .script("exit 3")
        .end()
        .with_code(3);
    until("node-b has it", || {
        let ended = site.run("node-b").job(&["true"]).end();
        (ended.code == Some(0)).then_some(()).ok_or(ended.stderr)
    });
    let run = site.run("node-b").start();
    site.store.until_begun("node-b");
    site.verb(&["pause", "-g", GROUP]).end().with_code(0);
    let text = metrics(site);
    assert_well_formed(&text);
    for sample in [
        "tokenrun_held{group=\"job\"} 1",
        "tokenrun_client_info{group=\"job\",client=\"node-b\"} 1",
        "tokenrun_grants_total{group=\"job\"} 3",
        "tokenrun_runs_total{group=\"job\",outcome=\"failed\"} 1",
        "tokenrun_runs_total{group=\"job\",outcome=\"lost\"} 0",
        "tokenrun_runs_total{group=\"job\",outcome=\"succeeded\"} 1",
        "tokenrun_runs_total{group=\"job\",outcome=\"other\"} 0",
        "tokenrun_takeovers_total{group=\"job\"} 1",
        "tokenrun_losses_total{group=\"job\"} 0",
        "tokenrun_paused{group=\"job\"} 1",
        "tokenrun_takeover_after_seconds{group=\"job\"} 300.000",
        "tokenrun_unreadable_groups 0",
    ] {
        assert_has(&text, sample);
    }
    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(value("tokenrun_heartbeat_age_seconds{") < 60.0, "{text}");
    let now = std::time::SystemTime::now();
    let now = now
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs_f64();
    let success = value("tokenrun_last_success_timestamp_seconds{");
    assert!((now - success).abs() < 120.0, "{text}");
    assert!(
        value("tokenrun_last_run_duration_seconds{") < 60.0,
        "{text}"
    );
    site.store.go(0);
    run.end().with_code(0);
    let text = metrics(site);
    assert_has(&text, "tokenrun_held{group=\"job\"} 0");
    assert_has(
        &text,
        "tokenrun_runs_total{group=\"job\",outcome=\"succeeded\"} 2",
    );
    assert!(!text.contains("tokenrun_heartbeat_age_seconds"), "{text}");
    let unknown = site.verb(&["metrics", "-g", "nigthly"]).end().with_code(78);
    unknown.says(&["no group \"nigthly\""]);
}

fn the_last_success_is_reported_although_a_run_has_failed_since(site: &Site) {
    site.short("node-a").end().with_code(0);
    let failing = site.run("node-b").script("sleep 0.3; exit 3");
    failing.end().with_code(3);
    let runs = site.verb(&["history", "--json"]).end().with_code(0).json();
    let ended = |run: usize| {
        let text = runs[run]["ended_at"].as_str().unwrap().to_owned();
        let at = humantime::parse_rfc3339(&text).unwrap();
        let since = at.duration_since(std::time::UNIX_EPOCH).unwrap();
        (text, since.as_millis())
    };
    let ((last, last_ms), (success, success_ms)) = (ended(0), ended(1));
    assert!(last_ms > success_ms, "{last}, {success}");
    let text = metrics(site);
    let (whole, rest) = (success_ms / 1_000, success_ms % 1_000);
    let name = "tokenrun_last_success_timestamp_seconds";
    assert_has(&text, &format!("{name}{{group=\"job\"}} {whole}.{rest:03}"));
    let name = "tokenrun_last_run_duration_seconds{group=\"job\"} ";
    let took = text.lines().find_map(|line| line.strip_prefix(name));
    assert!(took.unwrap().parse::<f64>().unwrap() >= 0.3, "{text}");
    let words = ["check", "-g", GROUP, "--json", "--succeeded-within=1h"];
    let shown = site.verb(&words).end().with_code(0).json();
    assert_eq!(shown[0]["last_success_at"], success.as_str());
    assert_eq!(shown[0]["client"], "node-a");
}

fn a_file_is_written_as_a_whole(site: &Site) {
    site.short("node-a").end().with_code(0);
    let file = site.file("tokenrun.prom");
    std::fs::write(&file, "old\n").unwrap();
    let words = ["metrics", "--textfile", file.to_str().unwrap()];
    let ended = site.verb(&words).end().with_code(0);
    assert_eq!(ended.stdout, "");
    let text = std::fs::read_to_string(&file).unwrap();
    assert_well_formed(&text);
    assert_has(&text, "tokenrun_grants_total{group=\"job\"} 1");
    let nowhere = site.file("nowhere/tokenrun.prom");
    let words = ["metrics", "--textfile", nowhere.to_str().unwrap()];
    site.verb(&words)
        .end()
        .with_code(77)
        .says(&["nowhere", "can't be written"]);
    let entries = std::fs::read_dir(site.store.path()).unwrap();
    let names: Vec<_> = entries.map(|it| it.unwrap().file_name()).collect();
    let is_draft = |name: &&std::ffi::OsString| name.to_string_lossy().starts_with(".tokenrun");
    assert_eq!(names.iter().filter(is_draft).count(), 0, "{names:?}");
}

fn labels_are_escaped(site: &Site) {
    let line = site.short("node-a").without(&["-g", GROUP]);
    let line = line.with(&["-g", "it's a \"back\\slash\""]);
    line.end().with_code(0);
    let text = metrics(site);
    assert_well_formed(&text);
    assert_has(
        &text,
        "tokenrun_held{group=\"it's a \\\"back\\\\slash\\\"\"} 0",
    );
}
