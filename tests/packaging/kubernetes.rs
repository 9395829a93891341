//! `examples/kubernetes/`: valid by the published schemas, and right in what no schema says.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::{output_of, repository};

/// A program of the Python environment that tests/run-all makes.
pub(crate) fn tool(name: &str) -> PathBuf {
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

/// The first object of a manifest.
fn manifest(name: &str) -> Value {
    let script =
        "import json, sys, yaml; print(json.dumps(next(yaml.safe_load_all(open(sys.argv[1])))))";
    let file = repository("examples/kubernetes").join(name);
    let mut python = Command::new(tool("python"));
    let json = output_of(python.args(["-c", script]).arg(file));
    serde_json::from_str(&json).unwrap()
}

/// What a manifest says of a container, as the kubelet starts it.
pub(crate) struct Container {
    /// Command and arguments.
    pub(crate) command: Vec<String>,
    /// The variables that it has in this cluster.
    pub(crate) environment: Vec<(String, String)>,
}

/// The Job that a CronJob makes for one night: its name ends with the minute that it was
/// scheduled for, and so is the same in every cluster.
const JOB_NAME: &str = "nightly-29728920";

impl Container {
    fn read(container: &Value, cluster: &str) -> Self {
        let entries = container["env"].as_array().unwrap().iter();
        let environment: Vec<(String, String)> = entries
            .map(|entry| (text(&entry["name"]), value(entry, cluster)))
            .collect();
        let words = container["command"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        let expand = |word: &Value| {
            let known = environment.iter();
            let word = known.fold(text(word), |word, (name, value)| {
                word.replace(&format!("$({name})"), value)
            });
            assert!(!word.contains("$("), "{word} names no variable");
            word
        };
        Self {
            command: words.iter().map(expand).collect(),
            environment,
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The value of a variable.
fn value(entry: &Value, cluster: &str) -> String {
    let source = &entry["valueFrom"];
    if let Some(key) = source["configMapKeyRef"]["key"].as_str() {
        let map = manifest(&format!("cluster-{cluster}.yaml"));
        return text(&map["data"][key]);
    }
    if !source["fieldRef"].is_null() {
        // The label that the controller of Jobs gives to a Job's pods.
        let label = "metadata.labels['batch.kubernetes.io/job-name']";
        assert_eq!(source["fieldRef"]["fieldPath"], label);
        return JOB_NAME.to_owned();
    }
    text(&entry["value"])
}

/// The pod of nightly.yaml.
fn pod() -> Value {
    manifest("nightly.yaml")["spec"]["jobTemplate"]["spec"]["template"]["spec"].take()
}

/// The pod of a Deployment.
fn deployed(file: &str) -> Value {
    manifest(file)["spec"]["template"]["spec"].take()
}

/// The container of nightly.yaml in this cluster.
pub(crate) fn nightly(cluster: &str) -> Container {
    Container::read(&pod()["containers"][0], cluster)
}

/// The container of scheduler.yaml.
pub(crate) fn scheduler() -> Container {
    Container::read(&deployed("scheduler.yaml")["containers"][0], "east")
}

/// The agent of sidecar.yaml, and the service beside it; the service's command is what its
/// comment says of it.
pub(crate) fn sidecar() -> (Container, Container) {
    let pod = deployed("sidecar.yaml");
    let agent = Container::read(&pod["initContainers"][0], "east");
    let mut service = Container::read(&pod["containers"][0], "east");
    let file = fs::read_to_string(repository("examples/kubernetes/sidecar.yaml")).unwrap();
    let mut lines = file.lines().map(|line| line.trim_start_matches([' ', '#']));
    let asks = lines.find(|line| line.starts_with("tokenrun check "));
    service.command = asks.unwrap().split(' ').map(str::to_owned).collect();
    service.command[0] = "/usr/local/bin/tokenrun".to_owned();
    (agent, service)
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
            12,
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

/// Every container of the manifests, with its pod.
fn containers() -> Vec<(Value, Value)> {
    let others = ["scheduler.yaml", "sidecar.yaml", "serve.yaml"].map(deployed);
    let mut all = Vec::new();
    for pod in others.into_iter().chain([pod()]) {
        for list in ["initContainers", "containers"] {
            let containers = pod[list].as_array().cloned().unwrap_or_default();
            all.extend(containers.into_iter().map(|it| (pod.clone(), it)));
        }
    }
    all
}

#[test]
fn pods_have_time_to_end_and_no_rights() {
    for (pod, container) in containers() {
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        let profile = &pod["securityContext"]["seccompProfile"]["type"];
        assert_eq!(profile, "RuntimeDefault");
        let own = &container["securityContext"];
        assert_eq!(own["readOnlyRootFilesystem"], true);
        assert_eq!(own["allowPrivilegeEscalation"], false);
        assert_eq!(own["capabilities"]["drop"][0], "ALL");
        let command = Container::read(&container, "east").command;
        // A service's own command, and a server that holds no token.
        if command.is_empty() || command[1] == "serve" {
            continue;
        }
        let needed = seconds(&command, "--kill-grace") + 6 * seconds(&command, "--store-timeout");
        assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() > needed);
    }
}

#[test]
fn a_night_has_the_same_key_in_every_cluster_and_clients_have_not_the_pods_name() {
    for cluster in ["east", "west"] {
        let container = nightly(cluster);
        let key = format!("--once={JOB_NAME}");
        assert!(container.command.contains(&key), "{:?}", container.command);
        let client = ("TOKENRUN_CLIENT_ID".to_owned(), cluster.to_owned());
        assert!(container.environment.contains(&client));
    }
    // A held token after such a wait means that the holder is alive.
    let wait = nightly("east").command;
    let wait = wait.iter().find_map(|word| word.strip_prefix("--wait="));
    assert_eq!(wait, Some("10m"));
}

/// The address in a Secret.
pub(crate) fn address(store: &str) -> String {
    text(&manifest(store)["stringData"]["store"])
}

/// Every container finds its store in this Secret.
fn fits(secret: &Value) {
    for (pod, container) in containers() {
        assert_eq!(pod["volumes"][0]["name"], "store");
        let name = &pod["volumes"][0]["secret"]["secretName"];
        // A server that only reads has a user of the database of its own.
        let own = container["command"][1] == "serve";
        let expected = if own {
            &json!("tokenrun-viewer")
        } else {
            &secret["metadata"]["name"]
        };
        assert_eq!(name, expected);
        let file = text(&container["env"][0]["value"]);
        assert_eq!(container["volumeMounts"][0]["name"], "store");
        let mount = text(&container["volumeMounts"][0]["mountPath"]);
        let key = file.strip_prefix(&mount).unwrap().trim_start_matches('/');
        assert!(secret["stringData"][key].is_string());
    }
}

#[test]
fn the_manifests_fit_each_other() {
    for store in [
        "store.yaml",
        "store-mysql.yaml",
        "store-redis.yaml",
        "store-etcd.yaml",
        "store-zookeeper.yaml",
    ] {
        fits(&manifest(store));
    }
    for cluster in ["east", "west"] {
        let map = manifest(&format!("cluster-{cluster}.yaml"));
        let reference = &pod()["containers"][0]["env"][2]["valueFrom"]["configMapKeyRef"];
        assert_eq!(map["metadata"]["name"], reference["name"]);
        assert_eq!(map["data"][text(&reference["key"])], cluster);
    }
}

#[test]
fn the_agent_and_its_service_fit_each_other() {
    let pod = deployed("sidecar.yaml");
    let (agent, asker) = sidecar();
    let file = format!("--runtime-file={}", asker.environment[1].1);
    assert!(agent.command.contains(&file));
    assert_eq!(asker.environment[1].0, "TOKENRUN_RUNTIME_FILE");
    assert_eq!(asker.environment[0], agent.environment[0]);
    // It begins before the service, and ends after it.
    assert_eq!(pod["initContainers"][0]["restartPolicy"], "Always");
    for container in [&pod["initContainers"][0], &pod["containers"][0]] {
        assert_eq!(container["volumeMounts"][1]["mountPath"], "/run/tokenrun");
        assert_eq!(container["volumeMounts"][1]["name"], "runtime");
    }
}
