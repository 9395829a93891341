//! What the journal has of `examples/systemd/nightly.service` for each end, and the unit's result.

use std::fs;
use std::net::TcpListener;

use crate::machine::{Machine, shared_folder};
use crate::mails::without_time;
use crate::server::Server;
use crate::support::{Store, until};
use crate::systemd::{install, install_database, until_over};

struct Node {
    store: Store,
    machine: Machine,
    /// How much of the journal is known.
    known: usize,
}

impl Node {
    fn boot() -> Self {
        let store = Store::new();
        let machine = Machine::boot("node-a", &shared_folder(&store));
        install(&machine, "true");
        let mut node = Self {
            store,
            machine,
            known: 0,
        };
        node.set("");
        node
    }

    /// Gives the run these variables too.
    fn set(&mut self, variables: &str) {
        let hasty = "TOKENRUN_HEARTBEAT=500ms TOKENRUN_STORE_TIMEOUT=900ms";
        let text = format!("[Service]\nEnvironment={hasty} {variables}\n");
        let path = "/etc/systemd/system/nightly.service.d/test.conf";
        self.machine.write(path, "0644", &text);
    }

    /// Runs the service on this database with this job: the unit's result, the status, and the lines
    /// of the journal that are the run's.
    fn run(
        &mut self,
        url: &str,
        job: &str,
        during: impl FnOnce(&Store),
    ) -> (String, String, String) {
        install_database(&self.machine, url);
        let job = format!("#!/bin/sh\n{job}\n");
        self.machine.write("/opt/etl/run.sh", "0755", &job);
        self.machine
            .shell("systemctl daemon-reload; systemctl reset-failed nightly.service || true");
        // It ends with the run: a unit that has succeeded may be unloaded the next moment.
        let mut start = self.machine.command("systemctl");
        let mut start = start.args(["start", "nightly.service"]).spawn().unwrap();
        during(&self.store);
        let succeeded = start.wait().unwrap().success();
        let (result, status) = until_over(&self.machine);
        // A unit that did not start at all has the result of one that succeeded.
        assert_eq!(succeeded, result == "success", "{result}");
        let journal = self
            .machine
            .shell("journalctl --sync; journalctl -q -o cat -t tokenrun");
        let said = journal.split_at(self.known).1.to_owned();
        self.known = journal.len();
        let said = said.split_inclusive([' ', '\n']).map(without_time);
        (result, status, said.collect())
    }
}

fn ended(result: &str, status: &str, lines: &[String]) -> (String, String, String) {
    let lines = lines.iter().map(|line| format!("{line}\n")).collect();
    (result.to_owned(), status.to_owned(), lines)
}

#[test]
fn needs_root_the_journal_has_the_reason_of_each_end() {
    let mut node = Node::boot();
    let server = Server::start(&[]);
    server.sql("postgres", "CREATE ROLE etl LOGIN PASSWORD 'right'");
    let database = server.database();
    let url = crate::url_from_elsewhere(&database);
    let shown = url.split_once('?').unwrap().0;
    let failed = |status, lines: &[String]| ended("exit-code", status, lines);

    assert_eq!(node.run(&url, "exit 0", |_| ()), ended("success", "0", &[]));
    let line = "tokenrun: \"nightly\" failed: run.sh exited with 3 after N on node-a";
    assert_eq!(
        node.run(&url, "echo no space left >&2; exit 3", |_| ()),
        failed("3", &["no space left".into(), line.into()])
    );
    let lost = node.run(&url, "exec sleep 300", |store| {
        let status = ["status", "--json", "-s", &url];
        until("it runs", || {
            let status = store.bare(&status).end().with_code(0).json()[0].take();
            match status["state"] == "running" {
                true => Ok(()),
                false => Err(status.to_string()),
            }
        });
        let revoke = ["revoke", "-s", &url, "-g", "nightly", "-qq"];
        store.bare(&revoke).end().with_code(0);
    });
    let line = format!(
        "tokenrun: an operator revoked the token of \"nightly\" in {shown}; run.sh is ended, and \
         killed in N"
    );
    assert_eq!(lost, failed("76", &[line]));

    node.set("TOKENRUN_TIMEOUT=1s");
    let line = "tokenrun: \"nightly\" timed out: run.sh ran longer than N (--timeout) on node-a; it \
                is ended, and killed in N";
    assert_eq!(
        node.run(&url, "exec sleep 300", |_| ()),
        failed("124", &[line.into()])
    );

    let hba = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    fs::write(server.data().join("pg_hba.conf"), hba).unwrap();
    server.ctl(&["reload"]);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = "Connection refused (os error 111), while connecting; run.sh was not started; \
                  tokenrun doctor examines the store";
    let late = "no answer within 900ms while logging in; run.sh was not started; tokenrun doctor \
                examines the store";
    let wrong = "password authentication failed for user \"etl\" (SQLSTATE 28P01); run.sh was not \
                 started";
    for (port, status, how) in [
        (1, "69", closed),
        (silent.local_addr().unwrap().port(), "69", late),
        (server.port(), "77", wrong),
    ] {
        let url = format!("postgres://etl:wrong@127.0.0.1:{port}/postgres?sslmode=disable");
        let line = format!(
            "tokenrun: the store postgres://etl@127.0.0.1:{port}/postgres can't be used: server \
             127.0.0.1:{port}: {how}"
        );
        assert_eq!(node.run(&url, "exit 0", |_| ()), failed(status, &[line]));
    }
}
