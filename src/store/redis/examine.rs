//! Examining a Redis or Valkey store for `doctor`: each server of it, step by step, over the kind of
//! connection that a run makes. Every step has the time of a store's call, and nothing is written.

mod findings;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use redis::Value;

use self::findings::Info;
use super::fault::{Fault, RIGHTS, Said};
use super::link::Session;
use super::settings::Settings;
use super::{RedisKv, RedisStore};
use crate::store::checkup::clock::{self, Sample};
use crate::store::checkup::{Check, Tell, advice};
use crate::store::net::deadline::{Activity, TimedOut};
use crate::store::net::host::{Host, Place, Settings as _};
use crate::store::{Tokens as _, Trouble};
use crate::token::{GroupName, Timing};

const APPLICATION: &str = "tokenrun doctor";

/// What the scripts call, and what a waiter does besides.
const COMMANDS: [&str; 13] = [
    "HGET", "HGETALL", "HSET", "EXISTS", "DEL", "INCR", "ZADD", "ZREM", "ZRANGE", "ZCARD",
    "PUBLISH", "TIME", "INFO",
];

/// Examines every server that the settings name.
pub fn examine(
    settings: &Settings,
    timing: &Timing,
    group: Option<&GroupName>,
    tell: &mut Tell<'_>,
) {
    let several = settings.servers.hosts.len() > 1;
    let mut masters = Vec::new();
    let mut has_replicas = false;
    for host in &settings.servers.hosts {
        let name = host.to_string();
        let mut on_host = |check: Check| tell(if several { check.on(&name) } else { check });
        let mut only = settings.only(host);
        only.application = APPLICATION.replace(' ', "_");
        let mut server = Server {
            connection: Session::new(only),
            timing,
            several,
            tell: &mut on_host,
        };
        if let Some(info) = server.examine(host, group) {
            has_replicas |= info.number("connected_slaves") > 0;
            let process = info.process().to_owned();
            // Two names may be of one server.
            let is_known = masters.iter().any(|(_, other)| *other == process);
            if info.is_master() && !is_known {
                masters.push((name, process));
            }
        }
    }
    if several {
        let names: Vec<String> = masters.into_iter().map(|(name, _)| name).collect();
        tell(findings::primary(&names));
    }
    tell(advice::timing(timing, several || has_replicas));
}

struct Server<'a, 'b> {
    connection: Session,
    timing: &'a Timing,
    several: bool,
    tell: &'a mut Tell<'b>,
}

impl Server<'_, '_> {
    fn tell(&mut self, check: Check) {
        (self.tell)(check);
    }

    /// The server's own words, if it could be examined.
    fn examine(&mut self, host: &Host, group: Option<&GroupName>) -> Option<Info> {
        let limit = self.timing.store_timeout;
        let looked = self.connection.look_up(limit);
        if let (Place::Tcp { to: name, .. }, Ok(found)) = (&host.place, &looked) {
            let found: Vec<String> = found.iter().map(|it| it.ip().to_string()).collect();
            let said = match found.as_slice() {
                [one] if one == name => format!("{name} is an address"),
                several => format!("{name} is {}", several.join(", ")),
            };
            self.tell(Check::fine("name", said));
        }
        let said = looked.and_then(|_| self.connection.command(limit, &redis::cmd("INFO")));
        let info = match said {
            Ok(said) => Info::of(&text(&said)),
            Err(fault) => {
                let check = self.failed(host, &fault);
                self.tell(check);
                return None;
            }
        };
        self.tell(Check::fine("port", format!("connected to {host}")));
        let settings = self.connection.settings();
        let (user, database) = (settings.user.clone(), settings.database);
        self.tell(Check::fine(
            "login",
            format!(
                "as {} to database {database}",
                user.as_deref().unwrap_or("default")
            ),
        ));
        let secured = self.connection.link().is_some_and(|link| link.secured);
        if let Some(check) = findings::tls(host, secured) {
            self.tell(check);
        }
        let server = findings::server(&info, self.several);
        let is_usable = !matches!(server.verdict, crate::store::checkup::Verdict::Fail(_));
        self.tell(server);
        self.clock();
        if info.is_master() && is_usable {
            self.master(host, &info, group);
        }
        Some(info)
    }

    fn master(&mut self, host: &Host, info: &Info, group: Option<&GroupName>) {
        let rights = self.rights();
        self.tell(rights);
        let fsync = self.setting("appendfsync");
        let rewrite = self.setting("no-appendfsync-on-rewrite");
        self.tell(findings::memory(info));
        self.tell(findings::durability(
            info,
            fsync.as_deref(),
            rewrite.as_deref(),
        ));
        let [needed, lag] = ["min-replicas-to-write", "min-replicas-max-lag"].map(|name| {
            let value = self.setting(name);
            value.and_then(|value| value.parse().ok())
        });
        for check in [
            findings::replicas(info, needed, lag),
            findings::cluster(info),
        ] {
            check.into_iter().for_each(&mut *self.tell);
        }
        if self.has_sentinel() {
            self.tell(findings::sentinel(info));
        }
        self.read(host, group);
    }

    fn failed(&self, host: &Host, fault: &Fault) -> Check {
        let error = fault.store_error(self.connection.store_name(), &host.to_string());
        let step = match fault {
            Fault::TimedOut(TimedOut { doing, .. }) | Fault::Io(doing, _) => match doing {
                Activity::LookingUp => "name",
                Activity::Securing => "tls",
                _ => "port",
            },
            Fault::Tls(..) => "tls",
            Fault::Said(said) if said.is_full() => "port",
            Fault::Said(Said::Answer { .. }) => "login",
            _ => "port",
        };
        let remedy = error.remedy.unwrap_or_else(|| match fault {
            Fault::Said(Said::Answer { .. }) => "see the server's log".into(),
            _ => "see whether the server runs, listens there, and can be reached from here".into(),
        });
        Check::fail(step, error.trouble, fault.words(), remedy)
    }

    /// Asks the time again and again.
    fn clock(&mut self) {
        let limit = self.timing.store_timeout;
        let taken = clock::samples(|| {
            let said = self.connection.command(limit, &redis::cmd("TIME"));
            Ok::<_, Infallible>(said.ok().and_then(|said| micros(&said)))
        });
        let Ok(samples) = taken;
        self.tell(clock::judge(&samples));
        let trips: Vec<Duration> = samples.iter().map(Sample::round_trip).collect();
        let timing = self.timing;
        self.tell(advice::round_trip("an answer takes", &trips, timing, 1));
    }

    /// Whether the scripts may do everything: asked in a script, which changes nothing.
    fn rights(&mut self) -> Check {
        const STEP: &str = "rights";
        let script = "local missing = {}
            for i = 2, #ARGV do
              local one = ARGV[i] == 'PUBLISH' and ARGV[1] .. 'released:x' or ARGV[1] .. 'x'
              if not redis.acl_check_cmd(ARGV[i], one, 'x', 'x', 'x') and not redis.acl_check_cmd(ARGV[i], one)
                and not redis.acl_check_cmd(ARGV[i], one, 'x', 'x') then
                missing[#missing + 1] = ARGV[i]
              end
            end
            return missing";
        let mut command = redis::cmd("EVAL");
        let prefix = self.connection.settings().prefix.clone();
        command.arg(script).arg(1).arg(format!("{prefix}tokens"));
        command.arg(&prefix);
        for name in COMMANDS {
            command.arg(name);
        }
        let remedy = format!("ACL SETUSER … ~{prefix}* &{prefix}* and the commands of tokenrun");
        let limit = self.timing.store_timeout;
        match self.connection.command(limit, &command) {
            Ok(Value::Array(missing)) if missing.is_empty() => {
                Check::fine(STEP, format!("all commands on the keys {prefix}*"))
            }
            Ok(missing) => {
                let found = format!("no right to {}", text(&missing));
                Check::fail(STEP, Trouble::Denied, found, remedy)
            }
            Err(fault) => {
                let remedy = match fault.remedy() {
                    Some(RIGHTS) => remedy,
                    Some(other) => other.to_owned(),
                    None => "see the server's log".to_owned(),
                };
                Check::fail(STEP, fault.trouble(), fault.words(), remedy)
            }
        }
    }

    /// A setting, if this user may read it.
    fn setting(&mut self, name: &str) -> Option<String> {
        let mut command = redis::cmd("CONFIG");
        command.arg("GET").arg(name);
        let said = self.connection.command(self.timing.store_timeout, &command);
        match said.ok()? {
            Value::Array(pair) => pair.get(1).map(text),
            _ => None,
        }
    }

    /// Whether a Sentinel watches the server, if this user may see that.
    fn has_sentinel(&mut self) -> bool {
        let mut command = redis::cmd("PUBSUB");
        command.arg("NUMSUB").arg("__sentinel__:hello");
        let said = self.connection.command(self.timing.store_timeout, &command);
        let Ok(Value::Array(pair)) = said else {
            return false;
        };
        pair.get(1).is_some_and(|count| *count != Value::Int(0))
    }

    /// Reads a token as a run does: this group's, or any.
    fn read(&mut self, host: &Host, group: Option<&GroupName>) {
        let Ok(any) = GroupName::new("doctor") else {
            return;
        };
        let only = self.connection.settings().only(host);
        let timeout = self.timing.store_timeout;
        let mut store = RedisStore::new(RedisKv::new(only, timeout, APPLICATION));
        let check = match (store.read(group.unwrap_or(&any)), group) {
            (Ok(_), None) => return,
            (Ok(reading), Some(group)) => advice::group(group, reading.row.as_ref(), self.timing),
            (Err(error), group) => Check::fail(
                if group.is_some() { "group" } else { "read" },
                error.trouble,
                error.what.clone(),
                error
                    .remedy
                    .unwrap_or_else(|| "see the server's log".into()),
            ),
        };
        self.tell(check);
    }
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

impl Info {
    /// The fields of an answer to INFO.
    fn of(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        let owned = pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
        Self(owned.collect::<BTreeMap<_, _>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::checkup::pinned::pin;
    use crate::store::net::tls::Insecure;
    use crate::token::Wishes;
    use std::io::{Error, ErrorKind};

    fn faults() -> Vec<(&'static str, Fault)> {
        let late = |doing| {
            let after = Duration::from_secs(10);
            Fault::TimedOut(TimedOut { doing, after })
        };
        let broken = |doing, kind| Fault::Io(doing, Error::from(kind));
        let answer = |doing, code: &str, text: &str| {
            Fault::Said(Said::Answer {
                doing,
                code: code.to_owned(),
                text: format!("{code} {text}"),
            })
        };
        vec![
            ("late look-up", late(Activity::LookingUp)),
            ("look-up", broken(Activity::LookingUp, ErrorKind::NotFound)),
            ("late", late(Activity::Connecting)),
            (
                "refused",
                broken(Activity::Connecting, ErrorKind::ConnectionRefused),
            ),
            (
                "denied",
                broken(Activity::Connecting, ErrorKind::PermissionDenied),
            ),
            ("gone", broken(Activity::Connecting, ErrorKind::NotFound)),
            ("late TLS", late(Activity::Securing)),
            ("late log-in", late(Activity::LoggingIn)),
            (
                "cut",
                broken(Activity::LoggingIn, ErrorKind::ConnectionReset),
            ),
            ("no TLS", Fault::Tls(Insecure::NotOffered, "none".into())),
            ("untrusted", Fault::Tls(Insecure::Untrusted, "bad".into())),
            ("settings", Fault::Settings("impossible".into())),
            ("password", answer(Activity::LoggingIn, "WRONGPASS", "no")),
            ("an error", answer(Activity::LoggingIn, "ERR", "odd")),
            (
                "full",
                answer(Activity::LoggingIn, "ERR", "max number of clients reached"),
            ),
            ("nonsense", Fault::Said(Said::Nonsense("HTTP".into()))),
        ]
    }

    #[test]
    fn what_is_said_of_a_connection_that_failed_is_pinned() {
        let mut cases = Vec::new();
        let timing = Timing::new(&Wishes::default()).unwrap();
        for url in [
            "redis://db1:7",
            "redis+unix:///run/redis.sock",
            "redis://db1:7,db2:7",
        ] {
            let settings = Settings::read(url, |_| None).unwrap();
            let host = settings.servers.hosts[0].clone();
            for (name, fault) in faults() {
                let server = Server {
                    connection: Session::new(settings.only(&host)),
                    timing: &timing,
                    several: settings.servers.hosts.len() > 1,
                    tell: &mut |_| {},
                };
                cases.push((format!("{url}: {name}"), vec![server.failed(&host, &fault)]));
            }
        }
        pin("redis_connecting", cases);
    }
}
