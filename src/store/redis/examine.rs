//! Examining a Redis or Valkey store for `doctor`: what a server is asked, and which facts its answers are.

mod rules;

use redis::{Cmd, Value};

use super::RedisKv;
use super::fault::{Fault, RIGHTS, Said};
use super::link::Link;
use super::quorum::QuorumKv;
use super::settings::Settings;
use crate::store::checkup::rules::{Facts, Rule};
use crate::store::checkup::walk::{self, Ended, Examined};
use crate::store::checkup::{Check, Tell};
use crate::store::kv::KvStore;
use crate::store::net::dial::{Ends, ends};
use crate::token::{GroupName, Timing};

type Server<'a, 'b> = walk::Server<'a, 'b, Link>;

const APPLICATION: &str = "tokenrun doctor";

/// What the scripts call, and what a waiter does besides.
const COMMANDS: [&str; 13] = [
    "HGET KEY x",
    "HGETALL KEY",
    "HSET KEY x x",
    "EXISTS KEY",
    "DEL KEY",
    "INCR KEY",
    "ZADD KEY 0 x",
    "ZREM KEY x",
    "ZRANGE KEY 0 0",
    "ZCARD KEY",
    "PUBLISH CHANNEL x",
    "TIME",
    "INFO",
];

/// What the script of a quorum's member calls.
const COMMANDS_OF_MEMBER: [&str; 14] = [
    "HGET KEY x",
    "HMGET KEY x",
    "HSET KEY x x",
    "HDEL KEY x",
    "HEXISTS KEY x",
    "PEXPIRE KEY 1",
    "PERSIST KEY",
    "ZADD KEY 0 x",
    "ZREM KEY x",
    "ZREMRANGEBYSCORE KEY 0 0",
    "ZRANGE KEY 0 0",
    "PUBLISH CHANNEL x",
    "TIME",
    "INFO",
];

/// Tells which of the commands the user has no right to. It changes nothing. Redis 8 refuses to judge a command with
/// arguments that are too many or too few.
const MISSING: &str = "local missing = {}
    for i = 2, #ARGV do
      local words = {}
      for word in string.gmatch(ARGV[i], '%S+') do
        local name = ({KEY = 'x', CHANNEL = 'released:x'})[word]
        words[#words + 1] = name and ARGV[1] .. name or word
      end
      if not redis.acl_check_cmd(unpack(words)) then
        missing[#missing + 1] = words[1]
      end
    end
    return missing";

/// Settings that INFO does not tell.
const SETTINGS: [&str; 4] = [
    "appendfsync",
    "no-appendfsync-on-rewrite",
    "min-replicas-to-write",
    "min-replicas-max-lag",
];

/// Examines every server that the settings name.
pub fn examine(
    settings: &Settings,
    timing: &Timing,
    group: Option<&GroupName>,
    tell: &mut Tell<'_>,
) {
    let settings = settings.clone().named(APPLICATION);
    walk::examine::<Link>(&settings, timing, group, tell);
    if settings.is_quorum && group.is_some() {
        let kv = QuorumKv::new(settings, timing.store_timeout, APPLICATION);
        let check = match kv.map(QuorumKv::that_changes_nothing) {
            Ok(kv) => walk::read(&mut KvStore::new(kv), group, timing),
            Err(error) => Some(Check::fail("group", error.trouble, error.what, "try again")),
        };
        check.into_iter().for_each(tell);
    }
}

impl Examined for Link {
    const RULES: &'static [Rule] = rules::RULES;

    fn facts(settings: &Settings) -> Facts {
        let mut facts = Facts::default();
        facts.extend(rules::WORDS);
        facts.set("user", settings.user.as_deref().unwrap_or("default"));
        facts.set("database", format!("database {}", settings.database));
        facts.set("prefix", &settings.prefix);
        facts.flag("quorum", settings.is_quorum);
        facts
    }

    fn wire(&self) -> (Option<Ends>, bool) {
        (ends(&self.socket), self.secured)
    }

    fn refused(said: &Said) -> (&'static str, &'static str) {
        rules::refused(said)
    }

    fn identify(server: &mut Server<'_, '_>) -> Result<(), Ended> {
        server.judge("tls");
        match ask(server, &redis::cmd("INFO")) {
            Ok(said) => {
                let said = text(&said);
                let pairs = said.lines().filter_map(|line| line.split_once(':'));
                server
                    .facts
                    .extend(pairs.map(|(name, value)| (name, value.trim())));
            }
            Err(fault) => {
                server.tell(refusal("server", &fault, ""));
                return Err(Ended);
            }
        }
        derive(&mut server.facts);
        let is_usable = server.judge("server");
        let is_master = rules::is_master(&server.facts);
        server.facts.flag("writable", is_master);
        server.facts.flag("usable", is_master && is_usable);
        Ok(())
    }

    fn time(server: &mut Server<'_, '_>) -> Result<Option<i64>, Ended> {
        let said = ask(server, &redis::cmd("TIME"));
        Ok(said.ok().and_then(|said| micros(&said)))
    }

    fn inspect(server: &mut Server<'_, '_>, group: Option<&GroupName>) -> Result<(), Ended> {
        if !server.facts.has("usable") {
            return Ok(());
        }
        rights(server);
        for name in SETTINGS {
            let value = second(ask(server, redis::cmd("CONFIG").arg("GET").arg(name)));
            server.facts.extend(value.map(|value| (name, value)));
        }
        count_replicas(&mut server.facts);
        let mut watchers = redis::cmd("PUBSUB");
        watchers.arg("NUMSUB").arg("__sentinel__:hello");
        let watched = second(ask(server, &watchers)).unwrap_or_default();
        server.facts.set("watched", watched);
        if server.facts.has("quorum") {
            let (joined, alone) = (has_joined(server), is_alone(server));
            server.facts.flag("joined", joined);
            server.facts.flag("alone", alone);
        }
        for step in [
            "member",
            "memory",
            "durability",
            "replicas",
            "cluster",
            "sentinel",
        ] {
            server.judge(step);
        }
        // Of a quorum no member tells a token, but a majority of them.
        if !server.facts.has("quorum") {
            let settings = server.session.settings().clone();
            let kv = RedisKv::new(settings, server.limit, APPLICATION);
            server.reads(&mut KvStore::new(kv), group);
        }
        Ok(())
    }
}

fn ask(server: &mut Server<'_, '_>, command: &Cmd) -> Result<Value, Fault> {
    server.session.command(server.limit, command)
}

/// The second of the values of an answer.
fn second(said: Result<Value, Fault>) -> Option<String> {
    match said.ok()? {
        Value::Array(pair) => pair.get(1).map(text),
        _ => None,
    }
}

/// Adds what follows from the fields of INFO.
fn derive(facts: &mut Facts) {
    let (kind, release) = match facts.text("valkey_version") {
        "" => ("Redis", facts.text("redis_version")),
        version => ("Valkey", version),
    };
    let release = release.to_owned();
    let place = match facts.text("role") {
        "master" => "a master".to_owned(),
        "slave" => facts.fill("a replica of {master_host}:{master_port}"),
        other => other.to_owned(),
    };
    let number = |name: &str| facts.text(name).parse::<u64>().unwrap_or_default();
    let (used, most) = (number("used_memory"), number("maxmemory"));
    let (has_replicas, percent) = (
        number("connected_slaves") > 0,
        used.saturating_mul(100).checked_div(most),
    );
    let policy = facts.text("maxmemory_policy");
    let memory = match percent {
        None => format!("no limit, policy {policy}"),
        Some(used) => format!("{used} % of maxmemory is used, policy {policy}"),
    };
    let id = facts.text("run_id").to_owned();
    facts.extend([("kind", kind.to_owned()), ("release", release)]);
    facts.extend([("place", place), ("memory", memory), ("id", id)]);
    facts.set("used", percent.unwrap_or_default());
    facts.flag(
        "almost_full",
        most > 0 && used.saturating_mul(10) > most.saturating_mul(9),
    );
    facts.flag("fails_over", has_replicas);
}

/// Adds how many replicas writes need at least.
fn count_replicas(facts: &mut Facts) {
    let needed = facts.text("min-replicas-to-write").parse::<u64>();
    facts.set("least", needed.unwrap_or(1));
}

/// Checks whether the scripts may do everything.
fn rights(server: &mut Server<'_, '_>) {
    let prefix = &server.session.settings().prefix;
    let mut command = redis::cmd("EVAL");
    command.arg(MISSING).arg(1).arg(format!("{prefix}tokens"));
    command.arg(prefix);
    match server.facts.has("quorum") {
        true => command.arg(&COMMANDS_OF_MEMBER),
        false => command.arg(&COMMANDS),
    };
    match ask(server, &command) {
        Ok(missing) => {
            server.facts.set("missing", text(&missing));
            server.judge("rights");
        }
        Err(fault) => {
            let all = "ACL SETUSER … ~{prefix}* &{prefix}* and the commands of tokenrun";
            let check = refusal("rights", &fault, &server.facts.fill(all));
            server.tell(check);
        }
    }
}

/// A command failed. `rights`: what to do if a right is missing.
fn refusal(step: &'static str, fault: &Fault, rights: &str) -> Check {
    let remedy = match fault.remedy() {
        Some(RIGHTS) if !rights.is_empty() => rights,
        Some(other) => other,
        None => "see the server's log",
    };
    Check::fail(step, fault.trouble(), fault.words(), remedy)
}

/// True if this process of the server has joined its quorum.
fn has_joined(server: &mut Server<'_, '_>) -> bool {
    let mut member = redis::cmd("HGET");
    let prefix = &server.session.settings().prefix;
    member.arg(format!("{prefix}member")).arg("process");
    let joined = ask(server, &member).map(|said| text(&said));
    let own = server.facts.text("id").get(..16).map(str::to_owned);
    own.is_some_and(|own| joined.is_ok_and(|joined| joined.starts_with(&own)))
}

/// True if it keeps tokens of nodes that take it alone for the store.
fn is_alone(server: &mut Server<'_, '_>) -> bool {
    let mut tokens = redis::cmd("ZRANGE");
    let prefix = &server.session.settings().prefix;
    tokens.arg(format!("{prefix}tokens")).arg(0).arg(0);
    ask(server, &tokens).is_ok_and(|said| !text(&said).is_empty())
}

/// An answer as a text; several with blanks between.
fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::VerbatimString { text, .. } => text.clone(),
        Value::Int(number) => number.to_string(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(" "),
        _ => String::new(),
    }
}

/// The answer to TIME, in microseconds since 1970.
fn micros(value: &Value) -> Option<i64> {
    let Value::Array(pair) = value else {
        return None;
    };
    let part = |at: usize| text(pair.get(at)?).parse::<i64>().ok();
    part(0)?.checked_mul(1_000_000)?.checked_add(part(1)?)
}

#[cfg(test)]
mod tests;
