//! The walk of an examination across a network: server by server, the way of a run, over the kind of
//! connection that a run makes. Every step has the time of a store's call, and nothing is written.

use std::time::{Duration, Instant};

use super::clock::{self, Offset, Sample};
use super::connecting;
use super::rules::{self, Facts, Rule};
use super::{Check, Tell, advice};
use crate::store::net::deadline::Activity;
use crate::store::net::dial::Ends;
use crate::store::net::fault::Fault;
use crate::store::net::host::{Host, Settings as _};
use crate::store::net::session::{Link, Session, bound};
use crate::store::sql::cell::BadColumn;
use crate::store::{Tokens, Trouble};
use crate::token::{GroupName, Row, Timing};

/// A store across a network, as far as its examination differs from that of others.
pub(in crate::store) trait Examined: Link {
    /// What facts mean. The walk judges the step `primary`, and `clock` before its samples.
    const RULES: &'static [Rule];

    /// Facts of the settings, and the words of [`connecting`].
    fn facts(settings: &Self::Settings) -> Facts;

    /// The addresses of a connection, if it has some, and whether it uses TLS.
    fn wire(&self) -> (Option<Ends>, bool);

    /// The step at which a log-in was refused, and what to do.
    fn refused(said: &Self::Said) -> (&'static str, &'static str);

    /// Finds out which server it is: the facts `id`, and `writable` if tokens can be written there.
    fn identify(server: &mut Server<'_, '_, Self>) -> Result<(), Ended>;

    /// The server's time in microseconds; `None` if it gives none.
    fn time(server: &mut Server<'_, '_, Self>) -> Result<Option<i64>, Ended>;

    /// Examines the rest: rights, what can be lost, the tables, and the group's row. The fact `fails_over` says
    /// that another server may take its place.
    fn inspect(server: &mut Server<'_, '_, Self>, group: Option<&GroupName>) -> Result<(), Ended>;
}

/// The examination of a server has ended; the check that says why has been told.
pub(in crate::store) struct Ended;

/// What a question is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum For {
    /// Every run needs the answer, or what the answer shows.
    Runs,
    /// No run needs it: a refusal is no failure.
    Advice,
}

/// What to do about an answer that says no more.
const SEE_LOG: &str = "see the server's log";

/// A server under examination.
pub(in crate::store) struct Server<'a, 'b, L: Link> {
    pub(in crate::store) session: Session<L>,
    pub(in crate::store) facts: Facts,
    pub(in crate::store) timing: &'a Timing,
    /// The time of a call.
    pub(in crate::store) limit: Duration,
    pub(in crate::store) begun: Instant,
    clock: Option<Offset>,
    tell: &'a mut Tell<'b>,
}

/// Examines every server that the settings name.
pub(in crate::store) fn examine<L: Examined>(
    settings: &L::Settings,
    timing: &Timing,
    group: Option<&GroupName>,
    tell: &mut Tell<'_>,
) {
    for warning in &settings.servers().warnings {
        tell(Check::warn("settings", warning, "see to that file"));
    }
    let several = settings.servers().hosts.len() > 1;
    let (mut known, mut clocks) = (Vec::new(), Vec::new());
    for host in &settings.servers().hosts {
        let name = host.to_string();
        let mut on_host = |check: Check| tell(if several { check.on(&name) } else { check });
        let mut server = Server {
            session: Session::<L>::new(settings.only(host)),
            facts: L::facts(settings),
            timing,
            limit: timing.store_timeout,
            begun: Instant::now(),
            clock: None,
            tell: &mut on_host,
        };
        server.facts.flag("several", several);
        // Else the check that says why has been told.
        let _ = server.walk(host, settings.servers().hosts.len(), group);
        let Server { facts, clock, .. } = server;
        if facts.has("id") {
            clocks.push((name.clone(), clock));
            known.push((name, facts));
        }
    }
    if several {
        let servers = settings.servers().hosts.len();
        primary::<L>(&known, servers)
            .into_iter()
            .for_each(&mut *tell);
        clock::between(&clocks).into_iter().for_each(&mut *tell);
    }
    let fails_over = several || known.iter().any(|(_, facts)| facts.has("fails_over"));
    tell(advice::timing(timing, fails_over));
}

/// Reads a token as a run does: this group's, or any.
pub(in crate::store) fn read(
    store: &mut dyn Tokens,
    group: Option<&GroupName>,
    timing: &Timing,
) -> Option<Check> {
    let any = GroupName::new("doctor").ok()?;
    match (store.read(group.unwrap_or(&any)), group) {
        (Ok(_), None) => None,
        (Ok(reading), Some(group)) => Some(advice::group(group, reading.row.as_ref(), timing)),
        (Err(error), group) => Some(Check::fail(
            if group.is_some() { "group" } else { "read" },
            error.trouble,
            error.what.clone(),
            error.remedy.unwrap_or_else(|| SEE_LOG.into()),
        )),
    }
}

/// Checks that one of so many servers accepts writes, or enough do. Two names may lead to one server.
pub(in crate::store) fn primary<L: Examined>(
    known: &[(String, Facts)],
    servers: usize,
) -> Option<Check> {
    let mut writable: Vec<(&str, &str)> = Vec::new();
    for (name, facts) in known.iter().filter(|(_, facts)| facts.has("writable")) {
        let id = facts.text("id");
        if writable.iter().all(|(_, other)| *other != id) {
            writable.push((name, id));
        }
    }
    let names: Vec<&str> = writable.iter().map(|(name, _)| *name).collect();
    let mut facts = Facts::default();
    facts.flag("quorum", known.iter().any(|(_, facts)| facts.has("quorum")));
    facts.set("members", servers);
    facts.set("needed", servers / 2 + 1);
    facts.set("primaries", names.len());
    facts.set("names", names.join(", "));
    facts.set("all", names.join(" and "));
    rules::judge(L::RULES, "primary", &facts)
}

impl<L: Examined> Server<'_, '_, L> {
    pub(in crate::store) fn tell(&mut self, check: Check) {
        (self.tell)(check);
    }

    /// The check of a step by the rules, if the facts give one.
    pub(in crate::store) fn judged(&self, step: &str) -> Option<Check> {
        rules::judge(L::RULES, step, &self.facts)
    }

    /// Tells the check of a step. `false`: it failed.
    pub(in crate::store) fn judge(&mut self, step: &str) -> bool {
        let check = self.judged(step);
        let failed = check.as_ref().is_some_and(Check::failed);
        check.into_iter().for_each(&mut *self.tell);
        !failed
    }

    fn walk(
        &mut self,
        host: &Host,
        servers: usize,
        group: Option<&GroupName>,
    ) -> Result<(), Ended> {
        self.connect(host)?;
        L::identify(self)?;
        let samples = clock::samples(|| L::time(self))?;
        self.clock = clock::offset(&samples);
        let check = self.judged("clock");
        self.tell(check.unwrap_or_else(|| clock::judge(&samples)));
        let trips: Vec<Duration> = samples.iter().map(Sample::round_trip).collect();
        let check = advice::round_trip("an answer takes", &trips, self.timing, servers);
        self.tell(check);
        L::inspect(self, group)
    }

    /// The name, the port and the log-in.
    fn connect(&mut self, host: &Host) -> Result<(), Ended> {
        let looked = self.session.look_up(self.limit);
        let addresses = looked.as_deref().unwrap_or_default().to_vec();
        let name = connecting::name(host, &addresses);
        name.into_iter().for_each(&mut *self.tell);
        let connected = looked.and_then(|_| self.session.connect(self.limit));
        if let Err(fault) = connected {
            let checks = connecting::failed(&mut self.facts, host, &addresses, &fault, L::refused);
            checks.into_iter().for_each(&mut *self.tell);
            return Err(Ended);
        }
        let (ends, secured) = self.session.link().map_or((None, false), L::wire);
        let peer = ends.map(|ends| ends.peer);
        self.facts.flag("unix", host.is_unix());
        let is_loopback = peer.is_some_and(|peer| peer.ip().is_loopback());
        self.facts.flag("loopback", is_loopback);
        self.facts.flag("secured", secured);
        self.tell(connecting::connected(host, peer.as_slice()));
        let found = self.facts.fill("as {user} to {database}");
        self.tell(Check::fine("login", found));
        Ok(())
    }

    /// The answer to a question. A refusal becomes a check: this step fails, or is unknown if no run needs the answer.
    pub(in crate::store) fn answered<T>(
        &mut self,
        step: &'static str,
        purpose: For,
        answer: Result<T, (Trouble, String)>,
    ) -> Result<Option<T>, Ended> {
        let (trouble, found) = match answer {
            Ok(answer) => return Ok(Some(answer)),
            Err(refused) => refused,
        };
        let remedy = match trouble {
            Trouble::Denied => "give the {account} what tokenrun init --print-sql prints",
            Trouble::Misconfigured => "{see} whether {whole}",
            _ => "{see} the server's log, and whether it is overloaded, stopped or out of disk",
        };
        let is_refused = matches!(trouble, Trouble::Denied | Trouble::Misconfigured);
        self.tell(match purpose {
            For::Advice if is_refused => Check::unknown(
                step,
                format!("unknown: {found}"),
                "nothing, if this is intended: no run needs it",
            ),
            For::Runs | For::Advice => Check::fail(step, trouble, found, self.facts.fill(remedy)),
        });
        match self.session.link() {
            Some(_) => Ok(None),
            None => Err(Ended),
        }
    }

    /// Asks over the connection to this server.
    pub(in crate::store) fn ask<T>(
        &mut self,
        question: impl AsyncFnOnce(&mut L) -> Result<T, Fault<L::Said>>,
    ) -> Result<T, Fault<L::Said>> {
        self.session.run(self.limit, async |session, deadline| {
            let mut link = session.first_link(deadline).await?;
            let answer = bound(deadline, Activity::Asking, question(&mut link)).await;
            session.keep(link);
            answer
        })
    }

    /// The answer; a fault is told, and ends the examination of this server.
    pub(in crate::store) fn told<T>(
        &mut self,
        step: &'static str,
        answer: Result<T, Fault<L::Said>>,
    ) -> Result<T, Ended> {
        answer.map_err(|fault| {
            let remedy = fault.remedy().unwrap_or(SEE_LOG);
            self.tell(Check::fail(step, fault.trouble(), fault.words(), remedy));
            Ended
        })
    }

    /// Reads a token as a run does: this group's, or any.
    pub(in crate::store) fn reads(&mut self, store: &mut dyn Tokens, group: Option<&GroupName>) {
        let check = read(store, group, self.timing);
        check.into_iter().for_each(|check| self.tell(check));
    }

    /// Compares a group's row with the options.
    pub(in crate::store) fn group(
        &mut self,
        name: &GroupName,
        row: Result<Option<Row>, BadColumn>,
        table: &str,
    ) {
        let check = match row {
            Ok(row) => advice::group(name, row.as_ref(), self.timing),
            Err(bad) => Check::fail(
                "group",
                Trouble::Misconfigured,
                format!("the row's {} {}", bad.column, bad.what),
                format!("correct it in the table {table}, or put a backup back"),
            ),
        };
        self.tell(check);
    }
}
