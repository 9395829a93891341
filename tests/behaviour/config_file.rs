//! Settings from files, as a run and the other commands take them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Line, Store};

/// Where the user's own file lies: the tests' HOME is the folder.
const OWN: &str = ".config/tokenrun/config.toml";

fn write(store: &Store, name: &str, text: &str) -> PathBuf {
    let path = store.file(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    path
}

/// A user's file with the tests' store, and these lines after it.
fn own(store: &Store, lines: &str) -> PathBuf {
    let database = store.database();
    let text = format!("[defaults]\nstore = \"{}\"\n{lines}", database.display());
    write(store, OWN, &text)
}

/// The value and the origin of a setting, as `config` shows it.
fn setting(line: Line, name: &str) -> (Value, String) {
    let all = line.with(&["--json"]).end().with_code(0).json();
    let all = all.as_array().unwrap();
    let it = all.iter().find(|it| it["setting"] == name).unwrap();
    (
        it["value"].clone(),
        it["origin"].as_str().unwrap().to_owned(),
    )
}

#[test]
fn every_command_honours_the_file() {
    let store = Store::new();
    own(
        &store,
        "client-id = \"node-a\"\nkeep = 0\n[groups.job]\nlabel = \"from the file\"\n",
    );
    let run = store.bare(&["-g", "job"]).job(&["true"]);
    run.end().with_code(0);
    let status = store.bare(&["status", "--json"]).end().with_code(0).json();
    let token = &status[0];
    assert_eq!(
        (&token["group"], &token["state"], &token["label"]),
        (&"job".into(), &"free".into(), &"from the file".into()),
        "{token}"
    );
    for words in [
        vec!["history"],
        vec!["explain", "-g", "job"],
        vec!["metrics"],
        vec!["page", "--output", "-"],
        vec!["once", "list"],
        vec!["pause", "-g", "job"],
        vec!["resume", "-g", "job"],
        vec!["fence", "raise", "-g", "job"],
        vec!["check", "-g", "job", "--succeeded-within", "1h"],
        vec!["groups", "--"],
        vec!["init"],
    ] {
        store.bare(&words).end().with_code(0);
    }
    let explained = store.bare(&["explain", "-g", "job"]).end();
    assert!(explained.stdout.contains("node-a"), "{explained:?}");
    store
        .bare(&["-g", "job", "-E", "9"])
        .job(&["sh", "-c", "exit 3"])
        .end()
        .with_code(3);
}

#[test]
fn hold_honours_the_file_each_time_that_it_begins() {
    let store = Store::new();
    let runtime = store.file("runtime.json");
    own(
        &store,
        &format!(
            "[groups.job]\nclient-id = \"node-h\"\non-change = \"echo $TOKENRUN_CHANGE > change\"\n\
             runtime-file = \"{}\"\n",
            runtime.display()
        ),
    );
    let agent = store.bare(&["hold", "-g", "job"]).start();
    assert_eq!(store.until_line("change"), "gain\n");
    store.bare(&["check", "-g", "job"]).end().with_code(0);
    assert_eq!(store.status()["client"], "node-h");
    agent.signal(nix::sys::signal::Signal::SIGTERM);
    agent.end().with_code(0);
}

#[test]
fn a_flag_comes_before_a_variable_before_the_file_before_the_default() {
    let store = Store::new();
    let file = own(
        &store,
        "keep = \"1m\"\nwait = true\n[groups.job]\nkeep = \"2m\"\nwait = false\n",
    );
    let file = file.to_str().unwrap().to_owned();
    let config = |words: &[&str]| store.bare(&[&["config"], words].concat());
    let is = |line: Line, value: &str, origin: &str| {
        assert_eq!(setting(line, "keep"), (value.into(), origin.to_owned()));
    };
    is(
        config(&["-g", "job", "--keep", "4m"]).env("TOKENRUN_KEEP", "3m"),
        "4m",
        "flag",
    );
    is(
        config(&["-g", "job"]).env("TOKENRUN_KEEP", "3m"),
        "3m",
        "environment TOKENRUN_KEEP",
    );
    is(
        config(&["-g", "job"]),
        "2m",
        &format!("{file}:6 [groups.job]"),
    );
    is(
        config(&["-g", "other"]),
        "1m",
        &format!("{file}:3 [defaults]"),
    );
    is(config(&["--config", ""]), "5m", "default");
    is(config(&[]).env("TOKENRUN_CONFIG", ""), "5m", "default");
    let (wait, _) = setting(config(&["-g", "other"]), "wait");
    assert_eq!(wait, "forever");
    let (wait, origin) = setting(config(&["-g", "job"]), "wait");
    assert_eq!(
        (wait, origin),
        ("false".into(), format!("{file}:7 [groups.job]"))
    );
    // A store file on the line leaves nothing of the file's store.
    let other = write(&store, "store", "/nowhere/x.db");
    let ended = store
        .bare(&["status", "--store-file", other.to_str().unwrap()])
        .end();
    ended.with_code(78).says(&["/nowhere/x.db"]);
    let (client, origin) = setting(config(&[]).env("CLIENT_ID", "node-c"), "client-id");
    assert_eq!(
        (client, origin),
        ("node-c".into(), "environment CLIENT_ID".to_owned())
    );
}

#[test]
fn a_file_that_is_named_takes_the_place_of_the_others() {
    let store = Store::new();
    own(&store, "keep = \"1m\"\nlabel = \"own\"\n");
    let named = write(&store, "named.toml", "[defaults]\nkeep = \"2m\"\n");
    let named = named.to_str().unwrap();
    for line in [
        store.bare(&["config", "--config", named]),
        store.bare(&["config"]).env("TOKENRUN_CONFIG", named),
    ] {
        assert_eq!(setting(line.clone(), "keep").0, "2m");
        assert_eq!(setting(line, "label").1, "default");
    }
    let missing = store.bare(&["-g", "job", "--config", "missing.toml"]);
    let ended = missing.job(&["touch", "ran"]).end().with_code(78);
    ended.says(&["missing.toml", "can't be read"]);
    assert!(!store.file("ran").exists());
}

#[test]
fn the_users_file_comes_before_the_systems() {
    let store = Store::new();
    own(&store, "keep = \"1m\"\n");
    let system = write(
        &store,
        "system.toml",
        "[defaults]\nkeep = \"2m\"\nhead-start = \"3s\"\n",
    );
    let script = "mount -t tmpfs none /etc && mkdir /etc/tokenrun && \
                  cp \"$0\" /etc/tokenrun/config.toml && exec \"$@\"";
    let line = || {
        let line = store.bare(&["config"]);
        line.under(&[
            "unshare",
            "-rm",
            "sh",
            "-c",
            script,
            system.to_str().unwrap(),
        ])
    };
    assert_eq!(setting(line(), "keep").0, "1m");
    let (value, origin) = setting(line(), "head-start");
    assert_eq!(value, "3s");
    assert_eq!(origin, "/etc/tokenrun/config.toml:3 [defaults]");
}

#[test]
fn a_bad_file_is_one_line_and_78_and_no_job_runs() {
    let store = Store::new();
    for (text, says) in [
        (
            "[defaults]\ntakover-after = \"5m\"\n",
            ":2: unknown key \"takover-after\"; did you mean takeover-after?",
        ),
        ("[defaults]\nkeep = 1\n[groups.job]\nkeep = \n", ":4: "),
        (
            "[defaults]\ntakeover-after = \"20s\"\n",
            "--takeover-after is set in",
        ),
    ] {
        let file = write(&store, OWN, text);
        let line = store.bare(&["-g", "job"]).job(&["touch", "ran"]);
        let ended = line.end().with_code(78);
        let message = ended.message();
        assert!(message.contains(says), "{message}");
        assert!(message.contains(file.to_str().unwrap()), "{message}");
        store.bare(&["config"]).end().with_code(78);
    }
    // A mistake in any group's table counts, whichever group runs.
    write(&store, OWN, "[groups.other]\nxyzzy = 1\n");
    store
        .bare(&["status", "-g", "job"])
        .end()
        .with_code(78)
        .says(&[":2: "]);
    // What needs no store needs no file.
    store.bare(&["completions", "bash"]).end().with_code(0);
    store.bare(&["--version"]).end().with_code(0);
    assert!(!store.file("ran").exists());
    // What is wrong on the line is no file's fault.
    let line = store.bare(&["-g", "job", "--config", "", "--takeover-after", "20s"]);
    line.job(&["true"]).end().with_code(64);
}

#[test]
fn no_password_is_shown_and_none_that_others_can_read_is_used() {
    let store = Store::new();
    let text = "[defaults]\nstore = \"postgres://etl:secret@db.example.org/jobs\"\n";
    let file = write(&store, OWN, text);
    let ended = store.bare(&["config"]).end().with_code(78);
    ended.says(&["password", "chmod 600"]);
    assert!(!ended.stderr.contains("secret"), "{ended:?}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let ended = store.bare(&["config"]).end().with_code(0);
    assert!(ended.stdout.contains("password=***"), "{ended:?}");
    assert!(!ended.stdout.contains("secret"), "{ended:?}");
    let flag = store
        .bare(&["config", "--config", "", "-s", "postgres://u:secret@h/d"])
        .end();
    assert!(!flag.stdout.contains("secret"), "{flag:?}");
}

#[test]
fn needs_root_a_file_of_another_users_is_not_believed() {
    let store = Store::new();
    let file = own(&store, "");
    chown(&file, Some(65534), None).unwrap();
    let ended = store.bare(&["status"]).end().with_code(78);
    ended.says(&["belongs to another user", "uid 65534"]);
    // A user trusts own files, and root's.
    chown(&file, Some(0), None).unwrap();
    let line = store.bare(&["config"]).unprivileged();
    assert_eq!(
        setting(line, "store").1,
        format!("{}:2 [defaults]", file.display())
    );
    // An unreadable file may name a store that others use.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let line = store
        .bare(&["-g", "job"])
        .job(&["touch", "ran"])
        .unprivileged();
    line.end()
        .with_code(77)
        .says(&["can't be read", "--config ''"]);
    // A home that the user can't even enter is not its own.
    let locked = store.file(".config");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o700)).unwrap();
    store.bare(&["config"]).unprivileged().end().with_code(0);
}

#[test]
fn the_file_says_how_quiet_it_is() {
    let store = Store::new();
    let keeping = |client: &str| store.bare(&["-g", "job", "--client-id", client, "--keep=1h"]);
    own(&store, "");
    keeping("node-a").job(&["true"]).end().with_code(0);
    for (value, shown, messages) in [
        ("0", "0", 1),
        ("false", "0", 1),
        ("1", "1", 0),
        ("true", "1", 0),
        ("2", "2", 0),
    ] {
        own(&store, &format!("quiet = {value}\n"));
        let ended = keeping("node-b").job(&["true"]).end().with_code(75);
        assert_eq!(ended.messages().len(), messages, "{value}: {ended:?}");
        let (value, _) = setting(store.bare(&["config"]), "quiet");
        assert_eq!(value, shown);
    }
    // Only the last one silences a warning too.
    for (value, warnings) in [("1", 1), ("2", 0)] {
        own(&store, &format!("quiet = {value}\n"));
        let line = keeping("node-a").env("TOKENRUN_KEEPP", "5m");
        let ended = line.job(&["true"]).end().with_code(0);
        assert_eq!(ended.messages().len(), warnings, "{value}: {ended:?}");
    }
    own(&store, "quiet = 3\n");
    let ended = keeping("node-a").job(&["true"]).end().with_code(78);
    ended.says(&["config.toml:3", "quiet", "0, 1 or 2"]);
}
