//! Metrics as Prometheus reads them, alert rules, and a dashboard.

use std::fs;
use std::process::Command;

use crate::support::Store;
use crate::{output_of, repository};

/// The metrics of a store in which a job has run.
fn metrics() -> String {
    let store = Store::new();
    let run = store.bare(&["-q", "--group", "g", "--store"]);
    let database = store.database();
    let run = run.with(&[database.to_str().unwrap(), "--", "true"]);
    run.end().with_code(0);
    store.verb(&["metrics"]).end().with_code(0).stdout
}

#[test]
fn promtool_finds_nothing_wrong_with_the_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("metrics");
    fs::write(&file, metrics()).unwrap();
    let check = format!("promtool check metrics < {}", file.display());
    let said = output_of(Command::new("sh").args(["-c", &check]));
    assert_eq!(said, "");
}

#[test]
fn the_alert_rules_fire_when_they_should_and_not_before() {
    let folder = repository("examples/prometheus");
    let said = output_of(
        Command::new("promtool")
            .args(["check", "rules", "alerts.yml"])
            .current_dir(&folder),
    );
    assert!(said.contains("SUCCESS"), "{said}");
    let said = output_of(
        Command::new("promtool")
            .args(["test", "rules", "alerts_test.yml"])
            .current_dir(&folder),
    );
    assert!(said.contains("SUCCESS"), "{said}");
}

#[test]
fn rules_and_dashboard_name_metrics_that_there_are() {
    let metrics = metrics();
    let is_known = |name: &str| metrics.contains(&format!("# TYPE {name} "));
    // Only while a session holds the token.
    let only_held = ["tokenrun_heartbeat_age_seconds"];
    for file in ["alerts.yml", "dashboard.json"] {
        let text = fs::read_to_string(repository("examples/prometheus").join(file)).unwrap();
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let names: Vec<&str> = words.filter(|word| word.starts_with("tokenrun_")).collect();
        assert!(names.len() > 5, "{file}: {names:?}");
        for name in names {
            assert!(
                is_known(name) || only_held.contains(&name),
                "{file}: {name}"
            );
        }
    }
    let dashboard = fs::read(repository("examples/prometheus/dashboard.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_slice(&dashboard).unwrap();
    assert_eq!(dashboard["panels"].as_array().unwrap().len(), 8);
}
