//! What people install and copy: the examples, in a real cron, a real systemd and a bare
//! container; the package; the image; the manual.
//!
//! What needs a machine gets one that is thrown away: all that is written to it lies in
//! memory, and nothing of this machine is changed.

// clippy.toml allows these in tests, and knows a test by an attribute that the
// helpers lack.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/guide.rs"]
#[allow(dead_code)]
mod blocks;
#[path = "support/document.rs"]
#[allow(dead_code)]
mod document;
#[path = "../src/store/test_server/libraries.rs"]
#[allow(clippy::duplicate_mod, dead_code)]
mod libraries;
#[path = "packaging/machine.rs"]
mod machine;
#[path = "../src/store/mysql/test_server.rs"]
#[allow(dead_code)]
mod mysql_server;
#[path = "../src/store/redis/test_server.rs"]
#[allow(dead_code)]
mod redis_server;
#[path = "../src/store/postgres/test_server.rs"]
#[allow(dead_code)]
mod server;
#[allow(dead_code, unused_imports)]
mod support;
#[path = "support/console.rs"]
#[allow(dead_code)]
mod typing;

#[path = "packaging/completions.rs"]
mod completions;
#[path = "packaging/container.rs"]
mod container;
#[path = "packaging/container_mariadb.rs"]
mod container_mariadb;
#[path = "packaging/container_redis.rs"]
mod container_redis;
#[path = "packaging/cron.rs"]
mod cron;
#[path = "packaging/hooks.rs"]
mod hooks;
#[path = "packaging/journal.rs"]
mod journal;
#[path = "packaging/kubernetes.rs"]
mod kubernetes;
#[path = "packaging/licences.rs"]
mod licences;
#[path = "packaging/mails.rs"]
mod mails;
#[path = "packaging/manual.rs"]
mod manual;
#[path = "packaging/newcomer.rs"]
mod newcomer;
#[path = "packaging/page.rs"]
mod page;
#[path = "packaging/pod_logs.rs"]
mod pod_logs;
#[path = "packaging/prometheus.rs"]
mod prometheus;
#[path = "packaging/published.rs"]
mod published;
#[path = "packaging/recipes.rs"]
mod recipes;
#[path = "packaging/release.rs"]
mod release;
#[path = "packaging/shared.rs"]
mod shared;
#[path = "packaging/systemd.rs"]
mod systemd;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::programs;

/// A file of the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// What a command prints, after it has succeeded.
#[track_caller]
fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{command:?}: {error} (tests/run-all installs what is missing)")
    });
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{text}{errors}",
        output.status
    );
    text + &errors
}

/// A database's connection string for machines that do not share the server's socket.
fn url_from_elsewhere(database: &server::Database<'_>) -> String {
    let (port, name) = (database.server.port(), &database.name);
    format!("postgres://postgres@127.0.0.1:{port}/{name}?sslmode=disable")
}
