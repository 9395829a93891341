//! A server that hangs, refuses, dies or comes back, with a job running and with none.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use nix::sys::signal::Signal;

use super::server::Server;
use super::site::Site;
use crate::support::{children, signal, state, until};

/// Every process of a server, stopped or continued. The first one is stopped first, so that it makes no more, and
/// continued last, when the others have seen which clients are gone.
pub(super) fn all(server: &Server, which: Signal) {
    let first = server.pid();
    if which != Signal::SIGCONT {
        signal(first, which);
    }
    let children = children(first);
    for child in &children {
        // It may have ended meanwhile.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(*child), which);
    }
    if which == Signal::SIGCONT {
        // On a busy machine each waits for its turn.
        until("the server's processes wait again", || {
            let busy = |it: &&i32| matches!(state(**it), Some('T' | 'R'));
            children
                .iter()
                .find(busy)
                .map_or(Ok(()), |it| Err(it.to_string()))
        });
        signal(first, which);
    }
}

#[test]
fn nothing_is_started_without_a_server() {
    let site = Site::new("postgres://u@127.0.0.1:1/d");
    site.short("a")
        .end()
        .with_code(69)
        .says(&["127.0.0.1:1", "refused", "was not started"]);
    let site = Site::new("postgres://u@%2Fnowhere/d");
    site.short("a")
        .end()
        .with_code(69)
        .says(&["/nowhere/.s.PGSQL.5432", "was not started"]);
}

#[test]
fn a_frozen_server_ends_no_wait_but_its_time_out() {
    let server = Server::start(&[]);
    let database = server.database();
    let site = Site::new(database.tcp_url());
    site.short("a").end().with_code(0);
    all(&server, Signal::SIGSTOP);
    let ended = site.short("a").hasty().end();
    all(&server, Signal::SIGCONT);
    ended
        .with_code(69)
        .says(&["no answer within", "127.0.0.1:", "was not started"]);
}

#[test]
fn a_job_is_ended_in_time_when_the_server_stays_frozen() {
    let server = Server::start(&[]);
    let database = server.database();
    let site = Site::new(database.url());
    let run = site.run("a").hasty().start();
    site.store.until_begun("a");
    all(&server, Signal::SIGSTOP);
    site.store.until_job_gone();
    // It is still frozen: the job went without it.
    all(&server, Signal::SIGCONT);
    let ended = run.end().with_code(76);
    assert!(ended.stderr.contains("can't be used"), "{ended:?}");
    // Closing its record was tried until the server was back.
    site.run("b").hasty().job(&["true"]).end();
    site.store.assert_no_overlap();
}

#[test]
fn a_run_goes_on_unharmed_when_the_server_is_back_in_time() {
    let server = Server::start(&[]);
    let database = server.database();
    let site = Site::new(database.url());
    let run = site
        .made()
        .run("a")
        .with(&[
            "--heartbeat=200ms",
            "--takeover-after=40s",
            "--store-timeout=2s",
        ])
        .start();
    site.store.until_begun("a");
    all(&server, Signal::SIGSTOP);
    run.until_says("can't be used: server");
    all(&server, Signal::SIGCONT);
    run.until_says("can be used again");
    site.store.go(4);
    let ended = run.end().with_code(4);
    assert_eq!(ended.other_messages().len(), 2, "{ended:?}");
}

#[test]
fn a_killed_server_that_comes_back_is_another_epoch_and_the_run_goes_on() {
    let server = Server::start(&[]);
    let database = server.database();
    let site = Site::new(database.url());
    let run = site
        .made()
        .run("a")
        .with(&[
            "--heartbeat=200ms",
            "--takeover-after=40s",
            "--store-timeout=1s",
        ])
        .start();
    site.store.until_begun("a");
    let before = database.sql("SELECT clock_epoch FROM tokenrun.tokens");
    server.ctl(&["-w", "-m", "immediate", "restart"]);
    crate::support::until("a heartbeat is of the new clock epoch", || {
        let now = database.sql("SELECT clock_epoch FROM tokenrun.tokens");
        if now == before { Err(now) } else { Ok(()) }
    });
    site.short("b").end().with_code(75);
    site.store.go(0);
    run.end().with_code(0);
}

#[test]
fn too_many_connections_are_no_reason_to_start() {
    let server = Server::start(&["max_connections = 4", "superuser_reserved_connections = 3"]);
    let database = server.database();
    database.sql("CREATE ROLE u LOGIN SUPERUSER; ALTER ROLE u NOSUPERUSER; GRANT ALL ON DATABASE postgres TO u");
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    let holder = site.run("a").start();
    site.store.until_begun("a");
    let other = Site::new(database.url().replace("postgres@", "u@"));
    other
        .short("b")
        .end()
        .with_code(69)
        .says(&["connection", "53300", "was not started"]);
    site.store.go(0);
    holder.end().with_code(0);
}

#[test]
fn a_read_only_database_grants_nothing() {
    let server = Server::start(&["default_transaction_read_only = on"]);
    let site = Site::new(format!(
        "postgres://postgres@127.0.0.1:{}/postgres",
        server.port()
    ));
    site.short("a")
        .end()
        .with_code(69)
        .says(&["read-only", "was not started"]);
}

#[test]
fn a_password_is_never_shown_and_one_on_the_command_line_is_warned_of() {
    let database = Server::shared().database();
    let url = database.tcp_url().replace("postgres@", "postgres:s3cr3t@");
    let site = Site::new(url.clone());
    let report = site.file("report");
    let ended = site
        .short("a")
        .with(&["-v", "--report", report.to_str().unwrap()])
        .end()
        .with_code(0);
    assert!(
        ended.stderr.contains("password on the command line"),
        "{ended:?}"
    );
    let report = std::fs::read_to_string(report).unwrap();
    assert!(
        !ended.stderr.contains("s3cr3t") && !report.contains("s3cr3t"),
        "{ended:?}"
    );
    // Not from a file or a variable.
    let file = site.file("store");
    std::fs::write(&file, format!("{url}\n")).unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let quiet = site
        .store
        .bare(&["-g", "g", "--store-file=store"])
        .job(&["true"]);
    assert_eq!(quiet.end().with_code(0).stderr, "");
    let quiet = site
        .store
        .bare(&["-g", "g"])
        .env("TOKENRUN_STORE", &url)
        .job(&["true"]);
    assert_eq!(quiet.end().with_code(0).stderr, "");
}

/// A mounted secret is read at each start.
#[test]
fn a_store_file_that_was_rotated_is_read_at_the_next_run() {
    let (old, new) = (Server::shared().database(), Server::shared().database());
    let site = Site::new(old.url());
    for (database, text) in [(&old, old.url()), (&new, format!("{}\n", new.tcp_url()))] {
        std::fs::write(site.file("secret"), text).unwrap();
        let words = ["-g", "g", "--store-file=secret"];
        let run = site.store.bare(&words).job(&["true"]);
        assert_eq!(run.end().with_code(0).stderr, "");
        assert_eq!(database.sql("SELECT count(*) FROM tokenrun.runs"), "1");
    }
    let ended = site.store.bare(&["-g", "g", "--store-file=absent"]);
    let ended = ended.job(&["true"]).end().with_code(78);
    ended.says(&["absent", "can't be read"]);
}

/// Nor does a supervisor that dies leave it on the disk.
#[test]
fn a_password_is_in_no_core_dump() {
    let database = Server::shared().database();
    let site = Site::new(database.tcp_url().replace("postgres@", "postgres:s3cr3t@"));
    let limited = ["prlimit", "--core=unlimited"];
    let run = site.run("a").under(&limited).start();
    site.store.until_begun("a");
    run.signal(Signal::SIGABRT);
    let mut command = std::process::Command::new("prlimit");
    command.args(["--core=unlimited", "sh", "-c", "kill -ABRT $$"]);
    let others = command.current_dir(site.store.path()).status().unwrap();
    let ended = run.end();
    assert_eq!(ended.signal, Some(6), "{ended:?}");
    assert!(!ended.dumped, "{ended:?}");
    // Others do dump here, unless this machine never does.
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    let dumps = std::os::unix::process::ExitStatusExt::core_dumped(&others);
    assert!(dumps || pattern.starts_with('|'), "{pattern:?}");
}
