//! Every step to an answer has its time: looking up the name, connecting, TLS, logging
//! in, asking. And a network that swallows everything, with a job running.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::sys::socket::{Backlog, listen};

use super::proxy::Proxy;
use super::server::Server;
use super::site::Site;
use crate::support::until;

/// A server that reads a first message, answers this, and then nothing for ever.
fn mute(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut first = [0; 8];
            if stream.read_exact(&mut first).is_ok() {
                let _ = stream.write_all(answer);
            }
            kept.push(stream);
        }
    });
    port
}

#[track_caller]
fn ends_in_time(url: &str, words: &[&str], under: &[&str]) {
    let site = Site::new(url);
    let begun = Instant::now();
    let line = site.short("a").with(&["--store-timeout=2s"]).under(under);
    let ended = line.end().with_code(69);
    let took = begun.elapsed();
    ended.says(words);
    ended.says(&["no answer within", "was not started"]);
    assert!(took < Duration::from_secs(10), "{took:?}: {ended:?}");
}

#[test]
fn a_server_that_hangs_at_any_step_costs_one_time_out() {
    let port = mute(b"");
    let host = format!("127.0.0.1:{port}");
    let login = "while logging in";
    for mode in ["disable", "prefer", "require"] {
        let url = format!("postgres://u@127.0.0.1:{port}/d?sslmode={mode}");
        ends_in_time(&url, &[&host, login], &[]);
    }
    // It says that it will do TLS, or that it will not.
    for (answer, mode) in [(b"S", "require"), (b"S", "prefer"), (b"N", "prefer")] {
        let port = mute(answer);
        let url = format!("postgres://u@127.0.0.1:{port}/d?sslmode={mode}");
        ends_in_time(&url, &[&format!(":{port}"), login], &[]);
    }
    // It requires nothing, and is never ready for a request.
    let port = mute(b"R\0\0\0\x08\0\0\0\0");
    let url = format!("postgres://u@127.0.0.1:{port}/d?sslmode=disable");
    ends_in_time(&url, &[&format!(":{port}"), login], &[]);
}

#[test]
fn an_unaccepted_connection_costs_one_time_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listen(&listener, Backlog::new(0).unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    // The queue is full, so what else comes is dropped.
    let mut queue = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
        queue.push(stream);
    }
    let url = format!("postgres://u@{address}/d");
    let host = format!("127.0.0.1:{}", address.port());
    ends_in_time(&url, &[&host, "while connecting"], &[]);
}

/// Name servers are asked on port 53, which is for root.
#[test]
fn needs_root_a_name_that_is_never_found_costs_one_time_out() {
    let mute = UdpSocket::bind("127.53.0.1:53").unwrap();
    let site = Site::new("");
    std::fs::write(site.file("resolv.conf"), "nameserver 127.53.0.1\n").unwrap();
    let file = site.file("resolv.conf");
    let script = "mount --bind \"$0\" \"$(realpath /etc/resolv.conf)\" && exec \"$@\"";
    let under = ["unshare", "-m", "sh", "-c", script, file.to_str().unwrap()];
    ends_in_time(
        "postgres://u@db.tokenrun.test/d",
        &["db.tokenrun.test:5432", "while looking up"],
        &under,
    );
    let mut query = [0; 512];
    assert!(mute.recv(&mut query).unwrap() > 0);
}

/// Heartbeats every 200 ms, and half a minute to spare.
const PATIENT: [&str; 3] = [
    "--heartbeat=200ms",
    "--takeover-after=40s",
    "--store-timeout=1s",
];

fn through(server: &Server) -> (Proxy, Site) {
    let proxy = Proxy::to(server.port());
    let database = server.database();
    let url = format!(
        "postgres://postgres@127.0.0.1:{}/{}",
        proxy.port, database.name
    );
    (proxy, Site::new(url))
}

#[test]
fn a_call_that_is_dropped_closes_its_connection() {
    let (proxy, site) = through(Server::shared());
    let run = site.made().run("a").with(&PATIENT).start();
    site.store.until_begun("a");
    let before = proxy.accepted();
    proxy.hole(true);
    run.until_says("it is ended in");
    until("it was tried again", || {
        let accepted = proxy.accepted();
        if accepted >= before + 4 {
            Ok(())
        } else {
            Err(accepted.to_string())
        }
    });
    until("one is open at most", || match proxy.open() {
        0 | 1 => Ok(()),
        more => Err(more.to_string()),
    });
    proxy.hole(false);
    run.until_says("can be used again");
    site.store.go(4);
    let ended = run.end().with_code(4);
    assert_eq!(ended.other_messages().len(), 2, "{ended:?}");
}

#[test]
fn a_reset_connection_is_made_anew() {
    let (proxy, site) = through(Server::shared());
    let run = site.made().run("a").with(&PATIENT).start();
    site.store.until_begun("a");
    for _ in 0..3 {
        let before = proxy.accepted();
        proxy.reset();
        until("it has connected again", || {
            let accepted = proxy.accepted();
            if accepted > before {
                Ok(())
            } else {
                Err(accepted.to_string())
            }
        });
    }
    site.store.go(4);
    let ended = run.end().with_code(4);
    assert!(ended.messages().len() <= 6, "{ended:?}");
}

/// One node is cut off, the other is not.
#[test]
fn a_holder_that_is_cut_off_ends_its_job_before_another_takes_over() {
    let server = Server::shared();
    let (proxy, site) = through(server);
    let run = site.run("a").hasty().start();
    site.store.until_begun("a");
    proxy.hole(true);
    let direct = site
        .url
        .replace(&proxy.port.to_string(), &server.port().to_string());
    let other = site.store.bare(&["-s", &direct, "-g", super::site::GROUP]);
    let other = other.with(&["--client-id=b", "--head-start=100ms", "--keep=0"]);
    let other = other.script(crate::support::PROVING).hasty();
    let other = until("the other has it", || {
        let mut other = other.clone().start();
        let begins = until("it begins or ends", || {
            let begun = site
                .store
                .log()
                .iter()
                .any(|line| line.starts_with("begin b "));
            let is_clear = begun || other.has_ended();
            if is_clear {
                Ok(begun)
            } else {
                Err(other.stderr())
            }
        });
        if begins {
            Ok(other)
        } else {
            Err(other.stderr())
        }
    });
    site.store.assert_no_overlap();
    proxy.hole(false);
    run.end().with_code(76);
    site.store.go(0);
    other.end().with_code(0);
    site.store.assert_no_overlap();
}

/// Makes each grant take a while: it sleeps with its row written, before it is committed.
const SLOW_GRANTS: &str = "
    CREATE FUNCTION sleep_a_while() RETURNS trigger LANGUAGE plpgsql
        AS 'BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END';
    CREATE TRIGGER slow AFTER INSERT OR UPDATE ON tokens
        FOR EACH ROW WHEN (NEW.state = 'running') EXECUTE FUNCTION sleep_a_while()";

/// A supervisor that is stopped while its grant is under way has the token without a job. Its guard
/// leaves in time, so that nothing of the run holds another up on this host.
#[test]
fn a_run_that_is_stopped_between_its_grant_and_its_job_is_taken_over_in_time() {
    let server = Server::shared();
    let database = server.database();
    let site = Site::new(database.url());
    site.short("z").end().with_code(0);
    site.sql(SLOW_GRANTS);
    let stopped = site.run("a").hasty().start();
    until("its grant is under way", || {
        let sleeps = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event = 'PgSleep'";
        match database.sql(sleeps).as_str() {
            "0" => Err(stopped.stderr()),
            _ => Ok(()),
        }
    });
    stopped.signal(Signal::SIGSTOP);
    until("it has the token", || {
        let held = "SELECT count(*) FROM tokenrun.tokens WHERE state = 'running'";
        match database.sql(held).as_str() {
            "1" => Ok(()),
            _ => Err(stopped.stderr()),
        }
    });
    site.sql("DROP TRIGGER slow ON tokens");
    let other = site.run("b").hasty().with(&["--wait"]).start();
    site.store.until_begun("b");
    stopped.signal(Signal::SIGCONT);
    let ended = stopped.end();
    assert_ne!(ended.code, Some(0), "{ended:?}");
    site.store.go(0);
    other.end().with_code(0);
    // Neither before the takeover nor after it.
    let jobs = site.store.log();
    assert!(
        !jobs.iter().any(|job| job.starts_with("begin a ")),
        "{jobs:?}"
    );
}
