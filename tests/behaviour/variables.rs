//! Options from the environment, and what is never read from there.

use crate::support::Store;

#[test]
fn options_are_read_from_the_environment() {
    let store = Store::new();
    let line = store.bare(&["-g", "job"]).job(&["true"]);
    let line = line
        .env("TOKENRUN_STORE", store.database())
        .env("TOKENRUN_CLIENT_ID", "node-e")
        .env("TOKENRUN_KEEP", "2h")
        .env("TOKENRUN_HEARTBEAT", "11s")
        .env("TOKENRUN_TAKEOVER_AFTER", "10m")
        .env("TOKENRUN_HEAD_START", "12")
        .env("TOKENRUN_AT_LEAST", "1ms")
        .env("TOKENRUN_LABEL", "from the environment")
        .env("TOKENRUN_EXPECTED", "node-e")
        .env("TOKENRUN_VERBOSE", "true");
    let ended = line.end().with_code(0);
    assert!(ended.stderr.contains("looked at"), "{ended:?}");
    assert_eq!(store.field::<i64>("keep_ms"), 7_200_000);
    assert_eq!(store.field::<i64>("takeover_after_ms"), 600_000);
    assert_eq!(store.field::<i64>("head_start_ms"), 12_000);
    assert_eq!(store.field::<i64>("not_before_ms"), 1);
    let status = store.status();
    assert_eq!(status["client"], "node-e");
    assert_eq!(status["expected_client"], "node-e");
    assert_eq!(status["label"], "from the environment");
}

#[test]
fn a_flag_beats_a_variable() {
    let store = Store::new();
    let line = store.run("node-a").with(&["--keep=1h"]).job(&["true"]);
    let line = line
        .env("TOKENRUN_KEEP", "2h")
        .env("TOKENRUN_CLIENT_ID", "node-e");
    line.env("TOKENRUN_STORE", "mongodb://x").end().with_code(0);
    assert_eq!(store.field::<i64>("keep_ms"), 3_600_000);
    assert_eq!(store.status()["client"], "node-a");
}

/// Of two options one of which takes the place of the other, too.
#[test]
fn a_flag_beats_the_variable_of_another_option() {
    let store = Store::new();
    let line = store.free_run("node-a").job(&["true"]);
    let line = line.env("TOKENRUN_STORE_FILE", "/nowhere");
    let verbose = line.env("TOKENRUN_QUIET", "true").with(&["-v"]);
    assert!(verbose.end().with_code(0).stderr.contains("looked at"));
    let words = ["status", "--json"];
    let status = store.verb(&words).env("TOKENRUN_STORE_FILE", "/nowhere");
    assert_eq!(status.end().with_code(0).json()[0]["group"], "job");

    let file = store.file("store");
    std::fs::write(&file, store.database().as_os_str().as_encoded_bytes()).unwrap();
    let words = ["-g", "job", "--store-file", "store", "--client-id=node-a"];
    let line = store.bare(&words).job(&["true"]);
    line.env("TOKENRUN_STORE", "mongodb://x").end().with_code(0);
    let words = ["config", "-g", "job", "--store-file", "store", "--json"];
    let line = store.bare(&words).env("TOKENRUN_STORE", "mongodb://x");
    let settings = line.end().with_code(0).json();
    let setting = |name: &str| {
        let mut all = settings.as_array().unwrap().iter();
        all.find(|it| it["setting"] == name).unwrap()
    };
    assert_eq!(setting("store")["value"], serde_json::Value::Null);
    assert_eq!(setting("store-file")["origin"], "flag");
}

#[test]
fn a_bad_variable_is_refused_like_a_bad_option_and_named() {
    let store = Store::new();
    let run = || store.bare(&["-g", "job"]).job(&["true"]);
    let ended = run().env("TOKENRUN_KEEP", "5M").end().with_code(64);
    ended.says(&["--keep", "months", "set by the variable TOKENRUN_KEEP"]);
    let both = run()
        .env("TOKENRUN_STORE", "a.db")
        .env("TOKENRUN_STORE_FILE", "b");
    both.end().with_code(64).says(&[
        "--store is set by the variable TOKENRUN_STORE)",
        "--store-file is set by the variable TOKENRUN_STORE_FILE)",
    ]);
    // Of what stands on the line no variable is blamed.
    let line = run().with(&["--keep=5M"]).env("TOKENRUN_KEEP", "5m");
    let ended = line.end().with_code(64);
    assert!(!ended.stderr.contains("variable"), "{ended:?}");
}

/// Each variable, and a value that can't be right: by itself, or with the others' defaults.
const BAD: [(&str, &str); 32] = [
    ("TOKENRUN_AT_LEAST", "soon"),
    ("TOKENRUN_CAPTURE", "2M"),
    ("TOKENRUN_CLIENT_ID", " "),
    ("TOKENRUN_CLOSE_LOCK", "maybe"),
    ("TOKENRUN_MOVE_ON_FAILURE", "maybe"),
    ("TOKENRUN_CONFIG", "/nowhere"),
    ("TOKENRUN_CONFLICT_EXIT_CODE", "256"),
    ("TOKENRUN_DONE_EXIT_CODE", "-1"),
    ("TOKENRUN_EXPECTED", "a\nb"),
    ("TOKENRUN_FAILBACK", "maybe"),
    ("TOKENRUN_HEAD_START", "5M"),
    ("TOKENRUN_HEARTBEAT", "0"),
    ("TOKENRUN_HISTORY_RETAIN", "1y"),
    ("TOKENRUN_HOOK_TIMEOUT", "0"),
    ("TOKENRUN_KEEP", "soon"),
    ("TOKENRUN_KILL_GRACE", "1h"),
    ("TOKENRUN_LABEL", "a\tb"),
    ("TOKENRUN_LEFTOVERS", "eat"),
    ("TOKENRUN_LOG_FORMAT", "xml"),
    ("TOKENRUN_ONCE", "$(JOB_NAME)"),
    ("TOKENRUN_ONCE_RETAIN", "soon"),
    ("TOKENRUN_OUTPUT_COUNT", "many"),
    ("TOKENRUN_OUTPUT_RETAIN", "soon"),
    ("TOKENRUN_QUIET", "maybe"),
    ("TOKENRUN_REPORT", "/nowhere/report"),
    ("TOKENRUN_STORE", "mongodb://x"),
    ("TOKENRUN_STORE_FILE", "/nowhere"),
    ("TOKENRUN_STORE_TIMEOUT", "1h"),
    ("TOKENRUN_TAKEOVER_AFTER", "20s"),
    ("TOKENRUN_TIMEOUT", "0"),
    ("TOKENRUN_VERBOSE", "maybe"),
    ("TOKENRUN_WAIT", "soon"),
];

#[test]
fn every_bad_variable_is_named() {
    let store = Store::new();
    let agents = ["TOKENRUN_ON_CHANGE", "TOKENRUN_RUNTIME_FILE"];
    // Every text is a command.
    let commands = [
        "TOKENRUN_ON_SUCCESS",
        "TOKENRUN_ON_FAILURE",
        "TOKENRUN_ON_REFUSED",
    ];
    for variable in tokenrun::cli::variables(&tokenrun::verbs::command()) {
        let is_tried = BAD.iter().any(|(name, _)| *name == variable);
        assert!(
            is_tried
                || agents.contains(&variable.as_str())
                || commands.contains(&variable.as_str()),
            "{variable}"
        );
    }
    let database = store.database();
    for (variable, value) in BAD {
        let line = store.bare(&["-g", "job"]).job(&["true"]);
        let line = match variable {
            "TOKENRUN_STORE" | "TOKENRUN_STORE_FILE" => line,
            _ => line.env("TOKENRUN_STORE", &database),
        };
        let ended = line.env(variable, value).end();
        assert!(matches!(ended.code, Some(64 | 77 | 78)), "{ended:?}");
        ended.says(&[&format!("set by the variable {variable})")]);
    }
    let agent = store.bare(&["hold", "-g", "job"]);
    let agent = agent.env("TOKENRUN_STORE", &database);
    for (variable, value) in [
        ("TOKENRUN_WAIT", "soon"),
        ("TOKENRUN_EXPECTED", ""),
        ("TOKENRUN_RUNTIME_FILE", "/nowhere/x"),
    ] {
        let ended = agent.clone().env(variable, value).end();
        ended.says(&[&format!("set by the variable {variable})")]);
    }
}

#[test]
fn the_client_is_the_variable_client_id_and_else_the_host_name() {
    let store = Store::new();
    let run = || {
        let database = store.database();
        let line = store.bare(&["-s", database.to_str().unwrap(), "-g", "job"]);
        line.script("echo $TOKENRUN_CLIENT_ID")
    };
    let named = run().env("CLIENT_ID", "node-c").end().with_code(0);
    assert_eq!(named.stdout, "node-c\n");
    let store_of_host = Store::new();
    let database = store_of_host.database();
    let line = store_of_host.bare(&["-s", database.to_str().unwrap(), "-g", "job"]);
    let named = line.script("echo $TOKENRUN_CLIENT_ID; uname -n").end();
    let named = named.with_code(0);
    let lines: Vec<&str> = named.stdout.lines().collect();
    assert_eq!(lines[0], lines[1]);
}

#[test]
fn the_group_is_never_read_from_the_environment() {
    let store = Store::new();
    let database = store.database();
    let line = store
        .bare(&["-s", database.to_str().unwrap()])
        .job(&["true"]);
    let ended = line.env("TOKENRUN_GROUP", "job").end().with_code(64);
    ended.says(&["no group"]);
}
