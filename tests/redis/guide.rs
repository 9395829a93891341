//! The guide's Redis, as it stands there: the servers that it names are real ones of the test's.

use std::fs;

use serde_json::Value;

use super::blocks::{Block, By, a_page_has, blocks, matches};
use super::server::{Quorum, Server, program};
use super::site::Site;
use super::troubles::RIGHTS;
use crate::support::{Line, TOKENRUN, script};
use crate::{incarnation, key, settle};

const EXAMPLE: &str = include_str!("../../examples/redis/fenced-set.lua");

/// What a member of a quorum needs besides, as the guide names it.
const QUORUM_RIGHTS: [&str; 6] = [
    "+hmget",
    "+hdel",
    "+hexists",
    "+pexpire",
    "+persist",
    "+zremrangebyscore",
];

fn the(begin: &str) -> Block {
    let all = blocks(By::Redis);
    all.into_iter().find(|block| block.is(begin)).unwrap()
}

/// A folder in which the guide's commands find tokenrun, the job, and a redis-cli that is connected to
/// this server.
struct Place<'a> {
    server: &'a Server,
    site: Site,
}

impl<'a> Place<'a> {
    fn new(server: &'a Server) -> Self {
        let site = Site::new(server.tcp_url());
        settle(server, &site);
        std::os::unix::fs::symlink(TOKENRUN, site.file("tokenrun")).unwrap();
        let place = Self { server, site };
        let client = format!(
            "exec {} -s {} $AS \"$@\"",
            program("redis-cli").display(),
            server.socket().display()
        );
        place.script("redis-cli", &client);
        place.script("run.sh", "echo $TOKENRUN_FENCE");
        place
    }

    fn script(&self, name: &str, text: &str) {
        script(&self.site.file(name), &format!("#!/bin/sh\n{text}\n"));
    }

    /// The guide's lines, as a shell script.
    fn shell(&self, script: &str) -> Line {
        let here = format!("127.0.0.1:{}", self.server.port());
        let script = script
            .replace(" -h db.example.org", "")
            .replace("@db.example.org", &format!("@{here}"))
            .replace("/opt/etl/run.sh", "./run.sh");
        let own = self.site.store.path().display();
        self.site
            .store
            .bare(&["-ec", &script])
            .program("bash")
            .env("PATH", format!("{own}:/usr/bin:/bin"))
            .env("XDG_STATE_HOME", self.site.store.path())
    }

    /// The guide's user, and its first run.
    fn first_run(&self) -> String {
        let made = self.shell(the("redis-cli -h ").text()).end();
        assert_eq!(made.with_code(0).stdout.trim(), "OK");
        let run = self.shell(the("tokenrun --store redis://").text());
        let run = run.env("REDISCLI_AUTH", "PASSWORD").end().with_code(0);
        assert_eq!(run.stderr, "");
        run.stdout.trim().to_owned()
    }
}

#[test]
fn every_block_is_in_a_test_below() {
    let begins = [
        "redis-cli -h db.example.org ACL SETUSER ",
        "tokenrun --store redis://",
        "maxmemory-policy ",
        "redis://db1\n",
        "$ redis-cli HMGET ",
        "if redis.call(",
        "redis-cli --eval fenced-set.lua ",
        "export TOKENRUN_STORE='redis://",
    ];
    for block in blocks(By::Redis) {
        let known = begins.iter().any(|begin| block.is(begin));
        assert!(known, "no test below is about {block:?}");
    }
}

/// The rights of the guide, without which `tests/redis/troubles.rs` fails, and the two for `doctor`.
#[test]
fn the_user_of_the_guide_runs_the_job_and_examines_the_server() {
    let server = Server::start(&["appendonly yes", "appendfsync always"]);
    let place = Place::new(&server);
    let fence = place.first_run();
    assert_eq!(
        server.cli(&["HGET", "{tokenrun}:token:nightly", "fence"]),
        fence
    );
    let text = the("redis-cli -h ").text().replace(['\'', '\\'], "");
    let (_, rights) = text.split_once(">PASSWORD").unwrap();
    let rights: Vec<&str> = rights.split_whitespace().collect();
    let (all, of_doctor) = rights.split_at(RIGHTS.len());
    assert_eq!(all, RIGHTS);
    assert_eq!(of_doctor, ["+config|get", "+pubsub|numsub"]);
    let as_user = server.tcp_url().replace("://", "://etl:PASSWORD@");
    let doctor = Site::new(as_user).verb(&["doctor", "--json"]).end();
    let checks = doctor.with_code(0).json();
    for check in checks.as_array().unwrap() {
        assert_eq!(check["verdict"], "ok", "{check:#}");
    }
}

/// The guide's user on each of three servers, with the rights that a majority needs besides.
#[test]
fn the_user_of_the_guide_runs_the_job_on_a_majority_of_servers() {
    let quorum = Quorum::start(3);
    for server in &quorum.0 {
        let made = Place::new(server).shell(the("redis-cli -h ").text()).end();
        assert_eq!(made.with_code(0).stdout.trim(), "OK");
        let more = QUORUM_RIGHTS.iter().copied();
        let words = ["ACL", "SETUSER", "etl"].into_iter().chain(more);
        assert_eq!(server.cli(&words.collect::<Vec<_>>()), "OK");
        server.cli(&["FLUSHALL"]);
    }
    assert!(a_page_has(
        &QUORUM_RIGHTS.join(" ").replace(" +zrem", "\n  +zrem")
    ));
    let place = Place::new(&quorum.0[0]);
    quorum.0[0].cli(&["FLUSHALL"]);
    let ports: Vec<String> = quorum.0.iter().map(|it| it.port().to_string()).collect();
    let block = the("export TOKENRUN_STORE='redis://");
    let script = ["r1", "r2", "r3"].iter().zip(ports).fold(
        block.text().to_owned(),
        |script, (name, port)| {
            script.replace(&format!("{name}.example.org"), &format!("127.0.0.1:{port}"))
        },
    );
    let run = place.shell(&script).env("REDISCLI_AUTH", "PASSWORD").end();
    let run = run.with_code(0);
    assert_eq!(run.stderr, "");
    let url = quorum.url("tokenrun").replace("://", "://etl:PASSWORD@");
    let doctor = Site::new(url).verb(&["doctor", "--json"]).end();
    for check in doctor.with_code(0).json().as_array().unwrap() {
        assert_eq!(check["verdict"], "ok", "{check:#}");
    }
}

/// A server on which the guide's settings are, with a replica.
#[test]
fn the_settings_of_the_guide_are_fine() {
    let settings = the("maxmemory-policy ");
    let lines: Vec<&str> = settings.text().lines().collect();
    let master = Server::start(&lines);
    let replica = Server::start(&lines);
    replica.follow(&master);
    master.until_a_replica_is_near();
    let both = format!(
        "redis://127.0.0.1:{},127.0.0.1:{}",
        master.port(),
        replica.port()
    );
    let doctor = Site::new(both).verb(&["doctor", "--json"]).end();
    let checks = doctor.with_code(0).json();
    let checks = checks.as_array().unwrap();
    for check in checks {
        assert_eq!(check["verdict"], "ok", "{check:#}");
    }
    let step = |name: &str| checks.iter().any(|check| check["step"] == name);
    for name in ["memory", "durability", "replicas", "primary"] {
        assert!(step(name), "{name}: {checks:#?}");
    }
}

/// In a network of its own, where none of them is.
#[test]
fn each_address_of_the_guide_is_understood() {
    for address in the("redis://db1\n").text().lines() {
        let site = Site::new(address);
        let doctor = site.verb(&["doctor", "--json"]);
        let checks = doctor.under(&["unshare", "-rn"]).end().json();
        let checks: &Vec<Value> = checks.as_array().unwrap();
        let store = checks
            .iter()
            .find(|check| check["step"] == "store")
            .unwrap();
        assert_eq!(store["verdict"], "ok", "{address}: {store:#}");
        let (place, _) = address.split_once("?cacert").unwrap_or((address, ""));
        let place = place
            .replace("db1", "db1:6379")
            .replace(":6379:6380", ":6380");
        assert_eq!(store["found"], *place, "{address}");
    }
}

#[test]
fn a_token_is_read_as_it_is_shown() {
    let server = Server::start(&[]);
    let place = Place::new(&server);
    let words = [
        "--client-id",
        "vm-1",
        "-s",
        &place.site.url,
        "-g",
        "nightly",
    ];
    place
        .site
        .store
        .bare(&words)
        .job(&["true"])
        .end()
        .with_code(0);
    let block = the("$ redis-cli HMGET ");
    let steps = block.steps();
    let [(command, shown)] = &steps[..] else {
        panic!("one command: {steps:?}");
    };
    let printed = place.shell(command).end().with_code(0).stdout;
    let printed: Vec<&str> = printed.lines().collect();
    assert_eq!(printed.len(), shown.len(), "{printed:?}");
    for (shown, line) in shown.iter().zip(printed) {
        let shown = shown.replace("1790000000123", "…");
        assert!(matches(&shown, line), "{shown}: {line}");
    }
}

/// The job's user has the rights that the guide names.
#[test]
fn a_jobs_script_writes_with_its_own_fence_and_no_earlier_one() {
    let server = Server::start(&[]);
    let place = Place::new(&server);
    place.first_run();
    let script = the("if redis.call(");
    assert!(EXAMPLE.contains(script.text()));
    fs::write(place.site.file("fenced-set.lua"), script.text()).unwrap();
    for right in ["~{tokenrun}:token:nightly", "+eval", "+hget"] {
        assert!(a_page_has(&format!("`{right}`")), "{right}");
    }
    let user = "ACL SETUSER app on >p ~{tokenrun}:token:nightly ~result -@all +eval +hget +set";
    server.cli(&user.split(' ').collect::<Vec<_>>());
    let call = the("redis-cli --eval ");
    let call = call.text().trim_end();
    let job = format!(
        "export AS='--no-auth-warning --user app --pass p'
         {call}
         TOKENRUN_FENCE=$((TOKENRUN_FENCE - 1))
         {call}"
    );
    place.script("run.sh", &job);
    let run = place.shell(the("tokenrun --store redis://").text());
    let run = run.env("REDISCLI_AUTH", "PASSWORD").end();
    let lines: Vec<&str> = run.stdout.lines().filter(|it| !it.is_empty()).collect();
    assert_eq!(lines.first(), Some(&"OK"), "{run:?}");
    assert!(lines[1].contains("FENCED"), "{run:?}");
    assert_eq!(server.cli(&["GET", "result"]), "value");
}

/// What docs/redis-failover.md says to do after a change that tokenrun cannot see.
#[test]
fn after_distrust_nothing_is_granted_until_earlier_leases_are_over() {
    let server = Server::start(&[]);
    let place = Place::new(&server);
    assert!(a_page_has("a token that was deleted by hand"));
    place.site.short("a").hasty().end().with_code(0);
    server.cli(&["DEL", &key(&place.site, "token:job")]);
    place.site.verb(&["distrust", "--yes"]).end().with_code(0);
    let run = place
        .site
        .short("b")
        .with(&["--wait=0s"])
        .end()
        .with_code(75);
    run.tells(&["distrusted by an operator"]);
    let settle = ["settle", "--yes", &incarnation(&server)];
    place.site.verb(&settle).end().with_code(0);
    place.site.short("b").end().with_code(0);
}
