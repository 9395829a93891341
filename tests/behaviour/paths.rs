//! One file, however it is named, is one store.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::support::{Line, Store};

fn run_on(store: &Store, url: &str, client: &str) -> Line {
    store
        .bare(&["-s", url, "-g", "job", "--client-id", client])
        .with(&["--keep=1h"])
        .job(&["true"])
}

#[test]
fn a_relative_path_an_absolute_one_and_a_url_lead_to_one_store() {
    let store = Store::new();
    let absolute = store.file("one.db");
    let absolute = absolute.to_str().unwrap();
    run_on(&store, "one.db", "node-a").end().with_code(0);
    for url in [absolute, "./one.db", &format!("sqlite://{absolute}")] {
        let ended = run_on(&store, url, "node-b").end().with_code(75);
        ended.says(&["belongs to node-a", absolute]);
    }
}

#[test]
fn a_symbolic_link_leads_to_the_store_that_it_names() {
    let store = Store::new();
    run_on(&store, "one.db", "node-a").end().with_code(0);
    symlink(store.file("one.db"), store.file("two.db")).unwrap();
    let ended = run_on(&store, "two.db", "node-b").end().with_code(75);
    ended.says(&["belongs to node-a", "one.db"]);
}

#[test]
fn a_file_with_a_second_name_is_refused_for_it_would_be_two_stores() {
    let store = Store::new();
    run_on(&store, "one.db", "node-a").end().with_code(0);
    fs::hard_link(store.file("one.db"), store.file("two.db")).unwrap();
    for url in ["one.db", "two.db"] {
        let ended = run_on(&store, url, "node-b").end().with_code(78);
        ended.says(&[url, "hard links", "symbolic links"]);
    }
    fs::remove_file(store.file("two.db")).unwrap();
    run_on(&store, "one.db", "node-a").end().with_code(0);
}

#[test]
fn in_a_directory_that_was_removed_an_absolute_path_serves_and_a_relative_one_is_refused() {
    let store = Store::new();
    let absolute = store.file("one.db");
    let removed = [
        "sh",
        "-c",
        "mkdir gone; cd gone; rmdir ../gone; exec \"$@\"",
        "sh",
    ];
    let line = run_on(&store, absolute.to_str().unwrap(), "node-a");
    line.under(&removed).end().with_code(0);
    let refused = run_on(&store, "one.db", "node-a").under(&removed).end();
    refused.with_code(78).says(&[
        "the directory of this process can't be found",
        "give an absolute path",
    ]);
}

#[test]
fn any_name_of_a_group_is_only_a_name() {
    let store = Store::new();
    let group = "x'; DROP TABLE tokens; -- \"\\ %s ∆";
    for _ in 0..2 {
        let line = store.bare(&["-s", "one.db", "-g", group, "--client-id", "it's"]);
        line.with(&["--keep=1h"]).job(&["true"]).end().with_code(0);
    }
    let listing = store.bare(&["status", "--json", "-s", "one.db"]).end();
    let listing = listing.with_code(0).json();
    assert_eq!(listing[0]["group"], group);
    assert_eq!(listing[0]["client"], "it's");
    assert_eq!(listing[0]["runs"], 2);
}

/// What mounts an overlay file system at `merged` and goes there, in a mount
/// namespace of its own.
const IN_OVERLAY: [&str; 6] = [
    "unshare",
    "-rm",
    "sh",
    "-c",
    "mkdir -p lower upper work merged &&
     mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged &&
     cd merged && exec \"$@\"",
    "sh",
];

#[test]
fn a_store_in_a_containers_own_layer_is_warned_of_from_the_first_run_on() {
    let store = Store::new();
    let [unshare, words @ ..] = IN_OVERLAY;
    let tried = Command::new(unshare)
        .args(words)
        .arg("true")
        .current_dir(store.path())
        .output();
    assert!(
        tried.is_ok_and(|tried| tried.status.success()),
        "no overlay file system can be had here: install util-linux, and run the tests as root or \
         where user namespaces are allowed (sysctl kernel.unprivileged_userns_clone=1)"
    );
    for turn in ["first", "second"] {
        let line = run_on(&store, "state/one.db", "node-a").under(&IN_OVERLAY);
        let ended = line.end().with_code(0);
        assert!(ended.stderr.contains("overlayfs"), "{turn}: {ended:?}");
    }
}

#[test]
fn a_file_that_is_mounted_by_itself_is_refused() {
    let store = Store::new();
    store.free_run("node-a").job(&["true"]).end().with_code(0);
    std::fs::create_dir(store.file("other")).unwrap();
    std::fs::write(store.file("other/one.db"), "").unwrap();
    let database = store.database();
    let mount = format!(
        "mount --bind {} other/one.db && exec \"$@\"",
        database.display()
    );
    let line = run_on(&store, "other/one.db", "node-b");
    let ended = line
        .under(&["unshare", "-rm", "sh", "-c", &mount, "sh"])
        .end();
    ended.with_code(78).says(&["mounted by itself"]);
}
