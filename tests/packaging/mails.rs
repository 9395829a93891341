//! What Debian's own cron mails of `examples/cron/nightly`: nothing of what is ordinary, and of each
//! other end one mail with the reason. The whole body is checked.

use std::fs;
use std::net::TcpListener;

use crate::cron::{HASTY, Night};
use crate::machine::{Machine, shared_folder};
use crate::server::Server;
use crate::support::{Store, until};

/// A job that the test ends by a line with its status.
const WAITING: &str = "echo begun >> log; read -r status < go; exit $status";

/// A machine with cron, on which each night is another.
struct Vm {
    store: Store,
    machine: Machine,
    nights: u8,
}

impl Vm {
    fn new(name: &str) -> Self {
        let store = Store::new();
        let folder = shared_folder(&store);
        let machine = Machine::start(name, &folder);
        machine.shell(
            "useradd --uid 1234 --create-home etl
             rm -rf /etc/cron.d/* /etc/crontab /var/spool/cron/crontabs/*",
        );
        let sendmail = format!("#!/bin/sh\ncat >> {}/mail\n", folder.display());
        machine.write("/usr/sbin/sendmail", "0755", &sendmail);
        let mut vm = Self {
            store,
            machine,
            nights: 0,
        };
        vm.set("");
        vm
    }

    /// Installs the example, with these lines of a crontab before it.
    fn set(&mut self, settings: &str) {
        let example = fs::read_to_string(crate::repository("examples/cron/nightly")).unwrap();
        let report = format!("TOKENRUN_REPORT={}\n", self.store.file("report").display());
        let entry = format!("{HASTY}{report}{settings}{example}");
        self.machine.write("/etc/cron.d/nightly", "0644", &entry);
    }

    /// The next night, with this database and this job: the body of its mail, without times that
    /// differ. `during`: what happens while the entry runs.
    fn mail(&mut self, url: &str, job: &str, during: impl FnOnce(&Store)) -> String {
        self.machine.write("/etc/tokenrun/store", "0400", url);
        self.machine.shell("chown etl /etc/tokenrun/store");
        let job = format!("#!/bin/sh\ncd {}\n{job}\n", self.store.path().display());
        self.machine.write("/opt/etl/run.sh", "0755", &job);
        for file in ["mail", "report", "log"] {
            let _ = fs::remove_file(self.store.file(file));
        }
        self.nights += 1;
        let [night] = Night::begin([&self.machine], self.nights + 1);
        during(&self.store);
        until("the entry has been run", || {
            fs::metadata(self.store.file("report")).map_err(|error| error.to_string())
        });
        night.end();
        let mail = fs::read_to_string(self.store.file("mail")).unwrap_or_default();
        plain(&mail)
            .split_inclusive([' ', '\n'])
            .map(without_time)
            .collect()
    }
}

impl Drop for Vm {
    /// Shows what a failed test's entry has left.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for file in ["mail", "report"] {
                let text = fs::read_to_string(self.store.file(file));
                eprintln!("the {file} of {}: {text:?}", self.machine.name());
            }
        }
    }
}

/// The body of a mail. Newer versions of cron encode it (quoted-printable).
fn plain(mail: &str) -> String {
    let (head, body) = mail.split_once("\n\n").unwrap_or_default();
    match head.contains("quoted-printable") {
        true => body.replace("=\n", "").replace("=3D", "="),
        false => body.to_owned(),
    }
}

/// A word; N if it is a number of seconds.
pub(crate) fn without_time(word: &str) -> String {
    let text = word.trim_end_matches([' ', '\n', ';', ',', ')']);
    let number = text.strip_suffix('s').unwrap_or_default();
    match number.parse::<f64>() {
        Ok(_) => word.replacen(text, "N", 1),
        Err(_) => word.to_owned(),
    }
}

/// The database as messages name it.
fn shown(url: &str) -> &str {
    url.split_once('?').map_or(url, |(shown, _)| shown)
}

#[test]
fn needs_root_a_night_that_is_ordinary_is_no_mail() {
    let database = Server::shared().database();
    let url = crate::url_from_elsewhere(&database);
    let mut vm = Vm::new("vm-1");
    // Another node has the job, then had it a moment ago.
    let words = ["-s", &url, "-g", "nightly", "--client-id=vm-2", "--keep=1h"];
    let line = vm
        .store
        .bare(&words)
        .script("echo other > other; read -r status < go");
    let other = line.start();
    vm.store.until_line("other");
    assert_eq!(vm.mail(&url, "exit 0", |_| ()), "");
    vm.store.go(0);
    other.end().with_code(0);
    assert_eq!(vm.mail(&url, "exit 0", |_| ()), "");

    // It is this node's again, and its job says nothing.
    let handoff = [
        "move",
        "--when-idle",
        "-s",
        &url,
        "-g",
        "nightly",
        "--to=vm-1",
        "-qq",
    ];
    vm.store.bare(&handoff).end().with_code(0);
    let mail = vm.mail(&url, "echo begun >> log", |store| {
        drop(store.until_logged("begun"))
    });
    assert_eq!(mail, "");
}

#[test]
fn needs_root_each_store_that_can_not_be_used_is_a_mail() {
    let mut vm = Vm::new("vm-1");
    let server = Server::start(&[]);
    server.sql("postgres", "CREATE ROLE etl LOGIN PASSWORD 'right'");
    let hba = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    fs::write(server.data().join("pg_hba.conf"), hba).unwrap();
    server.ctl(&["reload"]);
    let port = server.port();
    let url = format!("postgres://etl:wrong@127.0.0.1:{port}/postgres?sslmode=disable");
    assert_eq!(
        vm.mail(&url, "exit 0", |_| ()),
        format!(
            "tokenrun: the store postgres://etl@127.0.0.1:{port}/postgres can't be used: server \
             127.0.0.1:{port}: password authentication failed for user \"etl\" (SQLSTATE \
             28P01); run.sh was not started\n"
        )
    );

    let closed = "postgres://etl:x@127.0.0.1:1/postgres?sslmode=disable";
    assert_eq!(
        vm.mail(closed, "exit 0", |_| ()),
        "tokenrun: the store postgres://etl@127.0.0.1:1/postgres can't be used: server 127.0.0.1:1: \
         Connection refused (os error 111), while connecting; run.sh was not started; \
         tokenrun doctor examines the store\n"
    );

    // Its kernel takes the connection, and no process answers.
    vm.set("TOKENRUN_STORE_TIMEOUT=2s\n");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let url = format!("postgres://etl:x@127.0.0.1:{port}/postgres?sslmode=disable");
    assert_eq!(
        vm.mail(&url, "exit 0", |_| ()),
        format!(
            "tokenrun: the store postgres://etl@127.0.0.1:{port}/postgres can't be used: server \
             127.0.0.1:{port}: no answer within N while logging in; run.sh was not \
             started; tokenrun doctor examines the store\n"
        )
    );
}

#[test]
fn needs_root_each_job_that_fails_is_a_mail() {
    let database = Server::shared().database();
    let url = crate::url_from_elsewhere(&database);
    let mut vm = Vm::new("vm-1");
    // What it has written is the mail, and then the reason.
    assert_eq!(
        vm.mail(&url, "echo no space left >&2; exit 3", |_| ()),
        "no space left\ntokenrun: \"nightly\" failed: run.sh exited with 3 after N on vm-1\n"
    );
    assert_eq!(
        vm.mail(&url, "exit 3", |_| ()),
        "tokenrun: \"nightly\" failed: run.sh exited with 3 after N on vm-1\n"
    );
    assert_eq!(
        vm.mail(&url, "kill -9 $$", |_| ()),
        "tokenrun: \"nightly\" failed: run.sh was killed by SIGKILL after N on vm-1\n"
    );
    let lost = vm.mail(&url, WAITING, |store| {
        store.until_logged("begun");
        let words = ["revoke", "-s", &url, "-g", "nightly", "-qq"];
        store.bare(&words).end().with_code(0);
    });
    assert_eq!(
        lost,
        format!(
            "tokenrun: an operator revoked the token of \"nightly\" in {}; run.sh is ended, and \
             killed in N\n",
            shown(&url)
        )
    );
    vm.set("TOKENRUN_TIMEOUT=1s\n");
    assert_eq!(
        vm.mail(&url, "sleep 300", |_| ()),
        "tokenrun: \"nightly\" timed out: run.sh ran longer than N (--timeout) on vm-1; it is \
         ended, and killed in N\n"
    );
}

#[test]
fn needs_root_a_store_that_goes_away_is_a_mail_with_what_became_of_the_job() {
    let mut vm = Vm::new("vm-1");
    let server = Server::start(&[]);
    let database = server.database();
    let url = crate::url_from_elsewhere(&database);
    let mail = vm.mail(&url, WAITING, |store| {
        store.until_logged("begun");
        server.ctl(&["-m", "immediate", "stop"]);
    });
    let (store, port) = (shown(&url), server.port());
    let refused = format!(
        "the store {store} can't be used: server 127.0.0.1:{port}: Connection refused (os \
         error 111), while connecting"
    );
    let lines = [
        format!("{refused}; run.sh goes on; it is ended in N unless the store comes back"),
        format!(
            "the lease of \"nightly\" could not be renewed in {store} in time; run.sh is ended, \
             and killed in N"
        ),
        format!(
            "the run of \"nightly\" has ended, but the store {store} did not confirm its record \
             ({refused}): history may show the run as unknown, and other nodes may wait for \
             takeover-after; a claimant on this host need not, once the run is proven dead"
        ),
    ];
    assert_eq!(
        mail,
        lines.map(|line| format!("tokenrun: {line}\n")).concat()
    );
    server.ctl(&["-w", "start"]);
}
