//! `--store-file`: what may be in it, who may read it, and what to do if it can't be used.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::PathBuf;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

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

#[test]
fn a_text_that_is_neither_a_url_nor_an_absolute_path_is_refused_and_not_repeated() {
    let store = Store::new();
    for text in [
        "jobs.db",
        "./jobs.db",
        "s3cret",
        "$ecret",
        "~/jobs.db",
        "s3:cret",
    ] {
        file(&store, text, 0o600);
        let refused = run(&store).end().with_code(78);
        refused.says(&["neither a URL nor an absolute path", "postgres://"]);
        assert!(!refused.stderr.contains(text), "{refused:?}");
        assert!(!store.file(text).exists());
    }
    // Its database is another in each directory.
    file(&store, "sqlite://jobs.db", 0o600);
    run(&store).end().with_code(78).says(&["absolute path"]);
}

/// With a second line it would name another store than its first line does.
#[test]
fn one_of_several_lines_is_refused() {
    let store = Store::new();
    let path = store.database();
    let path = path.display();
    for text in [
        format!("{path}\n# a comment\n"),
        format!("sqlite://{path}\n{path}\n"),
        "postgres://etl@127.0.0.1:1/jobs\n# a comment\n".to_owned(),
    ] {
        file(&store, &text, 0o600);
        run(&store)
            .end()
            .with_code(78)
            .says(&["more than one line"]);
    }
    assert!(!store.file("ran").exists());
    // Blanks of any kind stand between the pairs of libpq.
    file(&store, "host=127.0.0.1\nport=1 user=u dbname=d\n", 0o600);
    run(&store).end().with_code(69).says(&["127.0.0.1:1"]);
}

#[test]
fn one_that_others_could_have_written_is_not_believed() {
    let store = Store::new();
    let database = store.database();
    let path = file(&store, database.to_str().unwrap(), 0o600);
    for mode in [0o620, 0o602, 0o666] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let refused = run(&store).end().with_code(78);
        refused.says(&["store file store", "written by others", "chmod go-w store"]);
    }
    assert!(!store.file("ran").exists());
    // Its group may read it.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    run(&store).end().with_code(0);
}

#[test]
fn needs_root_one_of_another_user_is_not_believed() {
    let store = Store::new();
    let database = store.database();
    let path = file(&store, database.to_str().unwrap(), 0o644);
    chown(&path, Some(65_534), None).unwrap();
    let refused = run(&store).end().with_code(78);
    refused.says(&["store file store", "belongs to another user (uid 65534)"]);
    // Root's is believed by all.
    chown(&path, Some(0), None).unwrap();
    let believed = run(&store).unprivileged().end().with_code(77);
    assert!(believed.stderr.contains("tokens.db"), "{believed:?}");
}

/// It is not waited for.
#[test]
fn a_pipe_or_a_device_is_refused() {
    let store = Store::new();
    mkfifo(&store.file("store"), Mode::S_IRWXU).unwrap();
    run(&store)
        .end()
        .with_code(78)
        .says(&["is no regular file"]);
    let pipe = format!("echo {} | \"$@\"", store.database().display());
    for path in ["/dev/stdin", "/dev/zero"] {
        let line = store.bare(&["-g", "job", "--store-file", path]);
        let line = line.job(&["true"]).under(&["sh", "-c", &pipe, "sh"]);
        line.end().with_code(78).says(&[path, "is no regular file"]);
    }
    assert!(!store.file("ran").exists());
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
    fs::write(store.file("store"), b"\xff\xfe").unwrap();
    run(&store)
        .end()
        .with_code(78)
        .says(&["store:1", "is not UTF-8"]);
    fs::remove_file(store.file("store")).unwrap();
    fs::create_dir(store.file("store")).unwrap();
    run(&store)
        .end()
        .with_code(78)
        .says(&["is no regular file"]);
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
