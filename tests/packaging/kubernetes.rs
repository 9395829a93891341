//! `examples/kubernetes/`: valid by the published schemas, and right in what no schema says.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::{output_of, repository};

/// A program of the Python environment that tests/run-all makes.
fn tool(name: &str) -> PathBuf {
    let path = repository("target/tools/bin").join(name);
    assert!(
        path.exists(),
        "{} is missing: run tests/run-all",
        path.display()
    );
    path
}

/// The manifests, by their file names.
fn manifests() -> Vec<PathBuf> {
    let files = fs::read_dir(repository("examples/kubernetes")).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == "yaml"));
    files.sort();
    files
}

/// A manifest with a single object in it.
fn manifest(name: &str) -> Value {
    let script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let file = repository("examples/kubernetes").join(name);
    let mut python = Command::new(tool("python"));
    let json = output_of(python.args(["-c", script]).arg(file));
    serde_json::from_str(&json).unwrap()
}

/// What a manifest says of its container.
pub(crate) struct Container {
    /// Command and arguments.
    pub(crate) command: Vec<String>,
    /// Variables; those without a value here have the cluster's name.
    pub(crate) environment: Vec<(String, Option<String>)>,
}

/// The pod of nightly.yaml.
fn pod() -> Value {
    manifest("nightly.yaml")["spec"]["jobTemplate"]["spec"]["template"]["spec"].take()
}

/// The container of nightly.yaml.
pub(crate) fn nightly() -> Container {
    let container = pod()["containers"][0].take();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let command = container["command"].as_array().unwrap();
    let environment = container["env"].as_array().unwrap();
    Container {
        command: command.iter().map(text).collect(),
        environment: environment
            .iter()
            .map(|it| (text(&it["name"]), it["value"].as_str().map(str::to_owned)))
            .collect(),
    }
}

/// An option of the command, in seconds.
fn seconds(command: &[String], option: &str) -> u64 {
    let begin = format!("{option}=");
    let value = command.iter().find_map(|word| word.strip_prefix(&begin));
    value.unwrap().trim_end_matches('s').parse().unwrap()
}

#[test]
fn manifests_are_valid_by_the_published_schemas() {
    for version in ["1.28", "1.37"] {
        let mut validate = Command::new(tool("kubernetes-validate"));
        validate.args(["--strict", "-k", version]).args(manifests());
        let output = output_of(&mut validate);
        assert_eq!(
            output.matches(" passed for resource ").count(),
            5,
            "{output}"
        );
    }
}

#[test]
fn a_manifest_with_a_mistake_is_not_valid() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(repository("examples/kubernetes/nightly.yaml")).unwrap();
    let wrong = folder.path().join("wrong.yaml");
    fs::write(&wrong, text.replace("backoffLimit", "backofLimit")).unwrap();
    let mut validate = Command::new(tool("kubernetes-validate"));
    let output = validate.arg("--strict").arg(wrong).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
}

#[test]
fn the_pod_has_time_to_end_and_no_rights() {
    let pod = pod();
    let command = nightly().command;
    let needed = seconds(&command, "--kill-grace") + 6 * seconds(&command, "--store-timeout");
    assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() > needed);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(
        pod["securityContext"]["seccompProfile"]["type"],
        "RuntimeDefault"
    );
    let own = &pod["containers"][0]["securityContext"];
    assert_eq!(own["readOnlyRootFilesystem"], true);
    assert_eq!(own["allowPrivilegeEscalation"], false);
    assert_eq!(own["capabilities"]["drop"][0], "ALL");
}

#[test]
fn the_manifests_fit_each_other() {
    let pod = pod();
    let secret = manifest("store.yaml");
    assert_eq!(
        pod["volumes"][0]["secret"]["secretName"],
        secret["metadata"]["name"]
    );
    let container = &pod["containers"][0];
    let file = container["env"][0]["value"].as_str().unwrap();
    let mount = container["volumeMounts"][0]["mountPath"].as_str().unwrap();
    let key = file.strip_prefix(mount).unwrap().trim_start_matches('/');
    assert!(secret["stringData"][key].is_string());
    let reference = &container["env"][1]["valueFrom"]["configMapKeyRef"];
    for cluster in ["east", "west"] {
        let map = manifest(&format!("cluster-{cluster}.yaml"));
        assert_eq!(map["metadata"]["name"], reference["name"]);
        assert_eq!(map["data"][reference["key"].as_str().unwrap()], cluster);
    }
}

#[test]
fn the_agent_and_who_asks_it_fit_each_other() {
    let mut scheduler = manifest("scheduler.yaml");
    let pod = scheduler["spec"]["template"]["spec"].take();
    let (agent, asker) = (&pod["containers"][0], &pod["containers"][1]);
    let command: Vec<String> = serde_json::from_value(agent["command"].clone()).unwrap();
    let needed = seconds(&command, "--kill-grace") + 6 * seconds(&command, "--store-timeout");
    assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() > needed);
    // The durations fit: tokenrun would say so before anything else.
    let mut tokenrun = Command::new(crate::support::TOKENRUN);
    let words = command[1..].iter();
    tokenrun.args(words.filter(|word| !word.starts_with("--runtime-file")));
    tokenrun.args(["--runtime-file=/nowhere/at/all"]);
    let output = tokenrun.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(78), "{said}");
    assert!(said.contains("/nowhere/at/all"), "{said}");
    let file = format!(
        "--runtime-file={}",
        asker["env"][1]["value"].as_str().unwrap()
    );
    assert!(command.contains(&file));
    assert_eq!(asker["env"][1]["name"], "TOKENRUN_RUNTIME_FILE");
    assert_eq!(asker["env"][0], agent["env"][0]);
    assert_eq!(
        pod["volumes"][0]["secret"]["secretName"],
        manifest("store.yaml")["metadata"]["name"]
    );
    for container in [agent, asker] {
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
        assert_eq!(container["volumeMounts"][1]["mountPath"], "/run/tokenrun");
        assert_eq!(container["volumeMounts"][1]["name"], "runtime");
    }
}
