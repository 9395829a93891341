//! `--store-file`: what may be in it, who may read it, and what to do if it can't be used.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::support::{Line, Store};

/// Nothing listens there.
const WITH_PASSWORD: &str = "postgres://etl:s3cret@127.0.0.1:1/jobs\n";

fn file(store: &Store, text: &str, mode: u32) -> PathBuf {
    let file = store.file("store");
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    file
}

fn run(store: &Store) -> Line {
    let line = store.bare(&["-g", "job", "--store-file", "store"]);
    line.job(&["touch", "ran"])
}

#[test]
fn it_holds_what_the_option_takes() {
    let store = Store::new();
    file(
        &store,
        &format!("  {}\n\n", store.database().display()),
        0o644,
    );
    assert_eq!(run(&store).end().with_code(0).messages(), [""; 0]);
    assert_eq!(store.status()["group"], "job");
}

/// Such as `<(…)` of a shell.
#[test]
fn it_may_be_a_pipe() {
    let store = Store::new();
    let database = store.database();
    let pipe = format!("echo {} | \"$@\"", database.display());
    let line = store.bare(&["-g", "job", "--store-file", "/dev/stdin"]);
    let line = line.job(&["true"]).under(&["sh", "-c", &pipe, "sh"]);
    assert_eq!(line.end().with_code(0).messages(), [""; 0]);
    assert_eq!(store.status()["group"], "job");
}

#[test]
fn one_with_a_password_that_every_user_may_read_is_a_warning() {
    let store = Store::new();
    let path = file(&store, WITH_PASSWORD, 0o644);
    let ended = run(&store).end().with_code(69);
    let [warning, refusal] = ended.messages()[..] else {
        panic!("{ended:?}");
    };
    for words in [
        "password",
        "store file store",
        "chmod o= store",
        "defaultMode",
    ] {
        assert!(warning.contains(words), "{words}: {warning}");
    }
    assert!(refusal.contains("127.0.0.1:1"), "{refusal}");
    assert!(!ended.stderr.contains("s3cret"), "{ended:?}");
    let silent = run(&store).with(&["-qq"]).end().with_code(69);
    assert_eq!(silent.stderr, "");

    // Its group is whom it was given to, and without a password there is nothing to hide.
    fs::set_permissions(path, fs::Permissions::from_mode(0o640)).unwrap();
    run(&store).end().with_code(69).says(&["127.0.0.1:1"]);
    file(&store, "postgres://etl@127.0.0.1:1/jobs", 0o644);
    run(&store).end().with_code(69).says(&["127.0.0.1:1"]);
}

#[test]
fn an_unusable_one_is_reported_with_a_remedy() {
    let store = Store::new();
    run(&store)
        .end()
        .with_code(78)
        .says(&["store file store", "No such file", "put it there"]);
    file(&store, " \n", 0o600);
    run(&store)
        .end()
        .with_code(78)
        .says(&["store file store is empty", "postgres://"]);
    file(&store, &"x".repeat(100_000), 0o600);
    run(&store)
        .end()
        .with_code(78)
        .says(&["longer than 64 KiB"]);
    let endless = run(&store).with(&["--store-file=/dev/zero"]);
    let endless = endless.without(&["--store-file", "store"]).end();
    endless
        .with_code(78)
        .says(&["/dev/zero", "longer than 64 KiB"]);
    fs::write(store.file("store"), b"\xff\xfe").unwrap();
    run(&store)
        .end()
        .with_code(78)
        .says(&["can't be read", "what --store takes"]);
    fs::remove_file(store.file("store")).unwrap();
    fs::create_dir(store.file("store")).unwrap();
    run(&store)
        .end()
        .with_code(78)
        .says(&["can't be read", "what --store takes"]);
    assert!(!store.file("ran").exists());
}

#[test]
fn one_of_another_user_is_a_denied_permission() {
    let store = Store::new();
    file(&store, "s3cret", 0o000);
    let ended = run(&store).unprivileged().end().with_code(77);
    ended.says(&["store file store", "let this user read it"]);
    assert!(!ended.stderr.contains("s3cret"), "{ended:?}");
}
