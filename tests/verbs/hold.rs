//! `hold`: the agent that keeps the token without a job.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::site::{GROUP, Site};
use crate::support::{Ended, Line, Run, Store, children, is_root, signal, until, until_stopped};

stories!(
    the_second_gets_the_token_as_soon_as_the_first_is_stopped,
    the_second_has_it_when_the_first_is_killed,
    a_stopped_agent_reports_the_loss_and_waits_again,
    a_handoff_is_obeyed_at_once,
    a_revoked_agent_goes_to_the_end_of_the_queue,
    a_service_manager_gets_status_messages,
    a_command_that_fails_or_lasts_holds_up_nothing,
    killing_the_stand_in_only_moves_the_token,
    two_agents_do_not_share_a_runtime_file,
    a_runtime_file_that_was_removed_is_written_again,
    ;
    about tables:
    a_store_that_hangs_is_a_loss_that_is_reported_in_time,
);

/// An agent that writes down what it has and loses.
fn agent(site: &Site, client: &str) -> Line {
    agent_with(
        site,
        client,
        "echo $TOKENRUN_CHANGE $TOKENRUN_CLIENT_ID >> log",
    )
}

fn agent_with(site: &Site, client: &str, command: &str) -> Line {
    let file = site.file(&format!("{client}.json"));
    site.verb(&["hold", "-g", GROUP, "--client-id", client])
        .with(&["--head-start=100ms", "--on-change", command])
        .with(&["--runtime-file", file.to_str().unwrap()])
}

/// An agent that has its lease for a short time. The command of a loss has more time than a hasty job: a shell
/// does not start within 300 ms on a busy machine, and after that the command is killed.
fn hasty_agent(site: &Site, client: &str) -> Line {
    agent(site.made(), client)
        .hasty()
        .with(&["--kill-grace=1500ms", "--store-timeout=700ms"])
}

/// An agent that soon sees what it is asked for, and keeps its lease on a busy machine.
fn lively_agent(site: &Site, client: &str) -> Line {
    agent(site.made(), client).with(&["--heartbeat=1s"])
}

/// Whether this client's node may act.
fn check(site: &Site, client: &str) -> Line {
    let file = site.file(&format!("{client}.json"));
    let file = format!("--runtime-file={}", file.display());
    site.verb(&["check", "-g", GROUP, &file])
}

fn answer(site: &Site, client: &str) -> Ended {
    check(site, client).end()
}

/// Waits until the log has this many lines, and gives them.
fn until_log(site: &Site, lines: usize) -> Vec<String> {
    until(&format!("the log has {lines} lines"), || {
        let log = site.store.log();
        match log.len() >= lines {
            true => Ok(log),
            false => Err(format!("{log:?}")),
        }
    })
}

fn stop(run: Run) {
    run.signal(Signal::SIGTERM);
    run.end().with_code(0);
}

fn the_second_gets_the_token_as_soon_as_the_first_is_stopped(site: &Site) {
    let first = agent(site, "node-a").start();
    until_log(site, 1);
    first.until_says("node-a has the token of \"job\" (fence 1");
    answer(site, "node-a").with_code(0);
    let second = agent(site, "node-b").start();
    second.until_says("node-a");
    answer(site, "node-b").with_code(75);
    check(site, "node-a")
        .with(&["--for", "3m"])
        .end()
        .with_code(0);
    let later = check(site, "node-a").with(&["--for", "1h"]).end();
    later.with_code(75).says(&["not for 1h"]);
    first.signal(Signal::SIGTERM);
    let ended = first.end().with_code(0);
    assert!(
        ended.stderr.contains("no longer has the token"),
        "{ended:?}"
    );
    let log = until_log(site, 3);
    assert_eq!(log, ["gain node-a", "loss node-a", "gain node-b"]);
    answer(site, "node-a").with_code(75);
    answer(site, "node-b").with_code(0);
    second.signal(Signal::SIGINT);
    second.end().with_code(0);
    assert_eq!(until_log(site, 4)[3], "loss node-b");
    answer(site, "node-b").with_code(75);
    let history = site.verb(&["history", "--json"]).end().with_code(0).json();
    assert_eq!(history[0]["outcome"], "succeeded");
    assert_eq!(history[1]["outcome"], "succeeded");
    assert_eq!(history[1]["program"], "hold");
}

fn the_second_has_it_when_the_first_is_killed(site: &Site) {
    let first = agent(site, "node-a").start();
    until_log(site, 1);
    let second = agent(site, "node-b").start();
    second.until_says("node-a");
    first.signal(Signal::SIGKILL);
    // The process in the place of a job outlives the supervisor just long enough to report.
    let log = until_log(site, 3);
    assert_eq!(log, ["gain node-a", "loss node-a", "gain node-b"]);
    answer(site, "node-a").with_code(75);
    answer(site, "node-b").with_code(0);
    stop(second);
}

fn a_stopped_agent_reports_the_loss_and_waits_again(site: &Site) {
    let first = hasty_agent(site, "node-a").start();
    until_log(site, 1);
    let second = hasty_agent(site, "node-b").start();
    second.until_says("node-a");
    site.store.suspend(&first);
    until_log(site, 2);
    answer(site, "node-a").with_code(75);
    let log = until_log(site, 3);
    assert_eq!(log, ["gain node-a", "loss node-a", "gain node-b"]);
    first.signal(Signal::SIGCONT);
    // The same process waits again: its service manager knows it by its pid.
    until("node-a is in the queue", || {
        let status = site.verb(&["status", "--json"]).end().with_code(0).json();
        match status[0]["waiting"]
            .as_u64()
            .or(status[0]["waiters"].as_u64())
        {
            Some(1) => Ok(()),
            _ => Err(status.to_string()),
        }
    });
    stop(second);
    assert_eq!(until_log(site, 5)[3..], ["loss node-b", "gain node-a"]);
    answer(site, "node-a").with_code(0);
    stop(first);
}

/// The store answers no request until this is dropped.
enum Frozen {
    File(rusqlite::Connection),
    Server(Box<::postgres::Client>),
    /// A client whose session has locked a table.
    Client(Child),
}

fn freeze(site: &Site) -> Frozen {
    if site.is_mysql() {
        let mut client = site.mysql_client();
        client.args(["--unbuffered"]);
        let mut client = client
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lock = "LOCK TABLES tokenrun_tokens WRITE; SELECT 'locked';";
        writeln!(client.stdin.as_mut().unwrap(), "{lock}").unwrap();
        let mut line = String::new();
        BufReader::new(client.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "locked\n");
        return Frozen::Client(client);
    }
    if !site.url.starts_with("postgres:") {
        let connection = site.store.sql();
        connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
        return Frozen::File(connection);
    }
    let mut client = ::postgres::Client::connect(&site.url, ::postgres::NoTls).unwrap();
    let lock = "BEGIN; LOCK TABLE tokenrun.tokens IN ACCESS EXCLUSIVE MODE";
    client.batch_execute(lock).unwrap();
    Frozen::Server(Box::new(client))
}

impl Frozen {
    fn thaw(self) {
        match self {
            Self::File(connection) => connection.execute_batch("ROLLBACK").unwrap(),
            Self::Server(mut client) => client.batch_execute("ROLLBACK").unwrap(),
            Self::Client(mut client) => {
                client.kill().unwrap();
                client.wait().unwrap();
            }
        }
    }
}

fn a_store_that_hangs_is_a_loss_that_is_reported_in_time(site: &Site) {
    let run = hasty_agent(site, "node-a").start();
    until_log(site, 1);
    answer(site, "node-a").with_code(0);
    let frozen = freeze(site);
    let since = Instant::now();
    until_log(site, 2);
    let took = since.elapsed();
    assert!(took < Duration::from_secs(5), "others may come: {took:?}");
    // The store answers nothing to check; the file's lock is the only other evidence.
    let held = tokenrun::run::runtime_file::held_session(&site.file("node-a.json"));
    assert_eq!(held.unwrap(), None);
    assert_ne!(answer(site, "node-a").code, Some(0));
    frozen.thaw();
    assert_eq!(until_log(site, 3)[1..], ["loss node-a", "gain node-a"]);
    answer(site, "node-a").with_code(0);
    stop(run);
}

fn a_handoff_is_obeyed_at_once(site: &Site) {
    // The target may look later than the other: on a busy machine, and in MariaDB always, where a holder notifies
    // no waiter until a heartbeat has seen it and each looks once in a second.
    let agent = |client| lively_agent(site, client).with(&["--head-start=4s"]);
    let first = agent("node-a").start();
    until_log(site, 1);
    let second = agent("node-b").start();
    second.until_says("node-a");
    let third = agent("node-c").start();
    third.until_says("node-a");
    let handoff = ["move", "--when-idle", "-g", GROUP, "--to", "node-c"];
    site.verb(&handoff).end().with_code(0);
    let log = until_log(site, 3);
    assert_eq!(log, ["gain node-a", "loss node-a", "gain node-c"]);
    // The first waits again, behind the second.
    first.until_says("handed off \"job\"");
    stop(third);
    assert_eq!(until_log(site, 5)[3..], ["loss node-c", "gain node-b"]);
    stop(second);
    assert_eq!(until_log(site, 7)[5..], ["loss node-b", "gain node-a"]);
    stop(first);
}

fn a_revoked_agent_goes_to_the_end_of_the_queue(site: &Site) {
    let first = lively_agent(site, "node-a").start();
    until_log(site, 1);
    let second = lively_agent(site, "node-b").start();
    second.until_says("node-a");
    site.verb(&["revoke", "-g", GROUP]).end().with_code(0);
    let log = until_log(site, 3);
    assert_eq!(log, ["gain node-a", "loss node-a", "gain node-b"]);
    stop(second);
    assert_eq!(until_log(site, 5)[4], "gain node-a");
    stop(first);
}

/// Receives until a datagram has this line.
fn until_reported(socket: &UnixDatagram, line: &str) -> String {
    let mut buffer = [0; 4096];
    until(&format!("the manager is shown {line}"), || {
        let length = socket.recv(&mut buffer).map_err(|it| it.to_string())?;
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        match text.contains(line) {
            true => Ok(text),
            false => Err(text),
        }
    })
}

fn a_service_manager_gets_status_messages(site: &Site) {
    let other = agent(site, "node-b").start();
    until_log(site, 1);
    let path = site.file("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_nonblocking(true).unwrap();
    let environment = "env > environment; echo $TOKENRUN_CHANGE >> log";
    let run = agent_with(site, "node-a", environment)
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "2000000")
        .start();
    until_reported(&socket, "READY=1");
    // Each second there is a sign that it is at work, while it waits too.
    until_reported(&socket, "WATCHDOG=1");
    until_reported(&socket, "WATCHDOG=1");
    stop(other);
    let shown = until_reported(&socket, "has the token");
    assert!(
        shown.starts_with("STATUS=node-a has the token of \"job\""),
        "{shown}"
    );
    until_reported(&socket, "WATCHDOG=1");
    assert_eq!(until_log(site, 3)[2], "gain");
    let environment = fs::read_to_string(site.file("environment")).unwrap();
    assert!(!environment.contains("NOTIFY_SOCKET"), "{environment}");
    assert!(environment.contains("TOKENRUN_FENCE="), "{environment}");
    run.signal(Signal::SIGTERM);
    until_reported(&socket, "STATUS=node-a no longer has the token of \"job\"");
    run.end().with_code(0);
}

fn a_command_that_fails_or_lasts_holds_up_nothing(site: &Site) {
    // The command of the gain does not end; it is ended, and only then the loss is reported.
    let command = "if [ $TOKENRUN_CHANGE = gain ]; then
            trap 'echo ended >> log; exit 3' TERM; echo gain >> log
            while :; do sleep 0.05; done
        fi; echo loss >> log; exit 4";
    let run = agent_with(site, "node-a", command).start();
    until_log(site, 1);
    answer(site, "node-a").with_code(0);
    run.signal(Signal::SIGTERM);
    let ended = run.end().with_code(0);
    assert_eq!(site.store.log(), ["gain", "ended", "loss"]);
    for words in ["for the gain ended with", "for the loss ended with"] {
        assert!(ended.stderr.contains(words), "{ended:?}");
    }
}

fn killing_the_stand_in_only_moves_the_token(site: &Site) {
    let run = agent(site, "node-a").start();
    until_log(site, 1);
    let standing_in = children(run.guard());
    let held = fs::read_to_string(site.file("node-a.json")).unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(standing_in[0]), Signal::SIGKILL).unwrap();
    let log = until_log(site, 2);
    assert_eq!(log, ["gain node-a", "gain node-a"]);
    let held_now = fs::read_to_string(site.file("node-a.json")).unwrap();
    assert_ne!(held, held_now, "another session, another fence");
    answer(site, "node-a").with_code(0);
    stop(run);
}

fn two_agents_do_not_share_a_runtime_file(site: &Site) {
    let first = agent(site, "node-a").start();
    until_log(site, 1);
    let file = site.file("node-a.json");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let held: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(held["group"], GROUP);
    assert_eq!(held["client_id"], "node-a");
    let other = |file: &str| {
        let file = format!("--runtime-file={file}");
        site.verb(&["hold", "-g", "other", &file])
            .end()
            .with_code(78)
    };
    let ended = other(file.to_str().unwrap());
    assert!(ended.stderr.contains("used by another"), "{ended:?}");
    answer(site, "node-a").with_code(0);
    stop(first);
    // What is no such file is left alone; nothing is asked of the store.
    let notes = site.file("notes");
    fs::write(&notes, "mine").unwrap();
    other(notes.to_str().unwrap()).says(&["notes", "--runtime-file"]);
    assert_eq!(fs::read_to_string(&notes).unwrap(), "mine");
    other("/nowhere/at/all").says(&["/nowhere/at/all"]);
}

fn a_runtime_file_that_was_removed_is_written_again(site: &Site) {
    let run = agent(site, "node-a").start();
    until_log(site, 1);
    let file = site.file("node-a.json");
    let held = fs::read_to_string(&file).unwrap();
    let written_again = |what: &str| {
        until(what, || match answer(site, "node-a").code {
            Some(0) => Ok(()),
            code => Err(format!("{code:?}")),
        });
        assert_eq!(fs::read_to_string(&file).unwrap(), held);
    };
    // Removed twice, as what cleans /tmp does, and emptied.
    for _ in 0..2 {
        // What writes it can't be quicker than the question while it is stopped.
        for writer in children(run.guard()) {
            signal(writer, Signal::SIGSTOP);
            until_stopped(writer);
        }
        fs::remove_file(&file).unwrap();
        answer(site, "node-a").with_code(75);
        for writer in children(run.guard()) {
            signal(writer, Signal::SIGCONT);
        }
        written_again("the file is there again");
    }
    fs::write(&file, "").unwrap();
    written_again("it has its contents again");
    // Another file in its place is left alone.
    fs::remove_file(&file).unwrap();
    fs::write(&file, "mine").unwrap();
    run.until_says("runtime file");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(site.store.log(), ["gain node-a"], "it has its token still");
    fs::remove_file(&file).unwrap();
    written_again("the file is there again");
    stop(run);
    answer(site, "node-a").with_code(75);
}

#[test]
fn a_users_runtime_file_is_found_by_itself() {
    let store = Store::new();
    let directory = store.file("runtime");
    fs::create_dir(&directory).unwrap();
    if is_root() {
        chown(&directory, Some(65534), Some(65534)).unwrap();
    }
    let database = directory.join("x.db");
    // One copy of the program for all: what runs can't be written anew.
    let common = store
        .bare(&[])
        .env("XDG_RUNTIME_DIR", &directory)
        .unprivileged();
    let line = |words: &[&str]| {
        let line = common.clone().with(words).with(&["-g", "a/b", "-s"]);
        line.with(&[database.to_str().unwrap()])
    };
    let run = line(&["hold"]).start();
    run.until_says("has the token of \"a/b\"");
    let own = directory.join("tokenrun");
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(own.join("a%2Fb.json")), 0o600);
    assert_eq!(mode(own), 0o700);
    line(&["check"]).end().with_code(0);
    let guard = run.guard();
    run.signal(Signal::SIGTERM);
    run.end().with_code(0);
    assert!(!crate::support::alive(guard));
    line(&["check"]).end().with_code(75);
}
