//! The faults: processes are killed, stopped, continued and asked to end, singly and together; the
//! database is hindered.

use std::collections::BTreeMap;
use std::time::Duration;

use nix::libc::{SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGSTOP, SIGTERM};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::evidence::Part;
use super::stamps::now;
use super::watch::Known;
use super::world::{MS, World};

const ALL: [Part; 4] = [Part::Supervisor, Part::Guard, Part::Job, Part::Grandchild];
const ASKING: [i32; 3] = [SIGTERM, SIGINT, SIGHUP];

/// The faults of a suite.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    together: bool,
    next: u64,
    /// The database's faults that are to come before any comes again.
    deck: Vec<&'static str>,
    stopped: Vec<(u64, Known, String)>,
    /// Until when the database is hindered.
    hindered_until: u64,
    /// When it was, for the checker.
    pub(crate) hindered: Vec<(u64, u64)>,
    /// When commits were lost, for the checker.
    pub(crate) lost: Vec<(u64, u64)>,
    /// How many there were of each kind.
    pub(crate) counts: BTreeMap<String, u64>,
}

impl Faults {
    /// `together`: supervisor and guard may be hit together. Then no process ends the job, or none
    /// in time: its inherited lock keeps others away.
    pub(crate) fn new(together: bool) -> Self {
        Self {
            together,
            ..Self::default()
        }
    }

    /// Does what is due.
    pub(crate) fn turn(&mut self, world: &mut World) {
        self.continue_those_due(world, now());
        if self.hindered_until != 0 && now() >= self.hindered_until {
            world.database.mend();
            self.hindered_until = 0;
        }
        if now() < self.next {
            return;
        }
        self.next = now() + world.random.range(10, 700) * MS;
        if world.random.percent(world.database.share()) {
            return self.hinder(world);
        }
        for _ in 0..*world.random.pick(&[1, 1, 1, 2, 3]) {
            if let Some(victim) = world.victim() {
                self.hit(world, victim);
            }
        }
    }

    /// Ends everything that lasts.
    pub(crate) fn end(&mut self, world: &mut World) {
        self.continue_those_due(world, u64::MAX);
        world.database.mend();
        world.database.settle();
    }

    /// Strikes a call that has just begun, now and then, in its first milliseconds.
    pub(crate) fn ambush(&mut self, world: &mut World, index: usize) {
        if !world.random.percent(10) {
            return;
        }
        let begun = now();
        let delay = world.random.spread(20, 20_000) * 1_000;
        let signal = *world
            .random
            .pick(&[SIGKILL, SIGKILL, SIGSTOP, SIGSTOP, SIGTERM]);
        while now() < begun + delay {
            std::hint::spin_loop();
        }
        self.strike(
            world,
            index,
            &[Part::Supervisor],
            signal,
            "a call that has just begun",
        );
    }

    fn hinder(&mut self, world: &mut World) {
        if self.hindered_until != 0 {
            return;
        }
        if self.deck.is_empty() {
            self.deck = world.database.faults().to_vec();
        }
        let drawn = world.random.range(0, self.deck.len() as u64);
        let fault = self.deck.swap_remove(usize::try_from(drawn).unwrap());
        let length = world.random.spread(20, 5_000);
        world.log.say(&format!("{fault} for {length} ms"));
        world.database.begin(fault, Duration::from_millis(length));
        *self.counts.entry(fault.to_owned()).or_default() += 1;
        self.hindered_until = now() + length * MS;
        if let Some(lost) = world.database.loses(fault, Duration::from_millis(length)) {
            let lost = u64::try_from(lost.as_nanos()).unwrap();
            // What came back to a server that had been replaced is older than this.
            let since = match self.lost.last() {
                _ if world.database.forgets(fault) => 0,
                Some((since, _)) => *since,
                None => now(),
            };
            self.lost.push((since.min(now()), now() + lost));
            self.note_hindrance(lost);
        }
        let after = u64::try_from(world.database.patience().as_nanos()).unwrap();
        self.note_hindrance(length * MS + after);
    }

    /// From now on, so long; what was held up has to be caught up with.
    fn note_hindrance(&mut self, length: u64) {
        self.hindered.push((now(), now() + length + 1_000 * MS));
    }

    fn hit(&mut self, world: &mut World, index: usize) {
        let signal = match world.random.range(0, 100) {
            0..40 => SIGKILL,
            40..75 => SIGSTOP,
            _ => *world.random.pick(&ASKING),
        };
        if ASKING.contains(&signal) && world.random.percent(30) {
            return self.ask_group(world, index, signal);
        }
        let mut parts = ALL.to_vec();
        let count = *world.random.pick(&[1, 1, 1, 2, 2, 4]);
        while parts.len() > count {
            let out = world.random.range(0, parts.len() as u64);
            parts.remove(usize::try_from(out).unwrap());
        }
        let blinds = matches!(signal, SIGKILL | SIGSTOP);
        if blinds && !self.together {
            if parts.contains(&Part::Supervisor) && parts.contains(&Part::Guard) {
                let spared = *world.random.pick(&[Part::Supervisor, Part::Guard]);
                parts.retain(|part| *part != spared);
            }
            let live = &world.live[index];
            parts.retain(|part| live.may_blind(*part));
        }
        self.strike(world, index, &parts, signal, "");
    }

    /// Sends a signal to parts of a run, as close to one instant as can be.
    fn strike(&mut self, world: &mut World, index: usize, parts: &[Part], signal: i32, whom: &str) {
        let live = &mut world.live[index];
        let found = parts
            .iter()
            .filter_map(|part| Some((*part, live.find(*part)?)));
        let found: Vec<(Part, Known)> = found.collect();
        // Noted before it is sent: its effect is never older than its cause.
        let mut struck: Vec<(Part, Known)> = Vec::new();
        for (part, known) in found {
            live.note(part, signal);
            if matches!(signal, SIGKILL | SIGSTOP) && matches!(part, Part::Supervisor | Part::Guard)
            {
                live.blinded = Some(part);
            }
            if known.signal(signal) {
                struck.push((part, known));
            }
        }
        if struck.is_empty() {
            return;
        }
        let names: Vec<String> = struck.iter().map(|(part, _)| format!("{part:?}")).collect();
        let whom = match whom {
            "" => names.join(" + ").to_lowercase(),
            whom => whom.to_owned(),
        };
        let (what, lasting) = self.describe(world, signal);
        *self.counts.entry(format!("{what} {whom}")).or_default() += 1;
        let call = &world.live[index].call;
        let line = format!(
            "{}: run {}: {what} {whom} {struck:?}",
            call.group, call.number
        );
        world.log.say(&line);
        if signal == SIGSTOP {
            let number = call.number;
            if parts.contains(&Part::Supervisor) && world.database.waits_for_the_stopped() {
                self.note_hindrance(lasting);
            }
            for (part, known) in struck {
                let whom = format!("run {number}: continue {part:?}");
                self.stopped.push((now() + lasting, known, whom));
            }
        }
    }

    /// What a signal does, in words, and for how long.
    fn describe(&self, world: &mut World, signal: i32) -> (&'static str, u64) {
        match signal {
            SIGKILL => ("kill", 0),
            SIGSTOP if world.random.percent(50) => {
                ("stop briefly", world.random.spread(5, 900) * MS)
            }
            SIGSTOP => ("stop for long", world.random.range(900, 6_000) * MS),
            SIGTERM => ("TERM to", 0),
            SIGINT => ("INT to", 0),
            _ => ("HUP to", 0),
        }
    }

    /// As a terminal or `kill -- -PGID` does.
    fn ask_group(&mut self, world: &mut World, index: usize, signal: i32) {
        let live = &mut world.live[index];
        if live.find(Part::Supervisor).is_none() {
            return;
        }
        for part in [Part::Supervisor, Part::Guard, Part::Job] {
            live.note(part, signal);
        }
        // The supervisor is not reaped yet, so the group is its own.
        let signal = Signal::try_from(signal).unwrap();
        let line = format!(
            "{}: run {}: {signal} to the group",
            live.call.group, live.call.number
        );
        if killpg(Pid::from_raw(live.pid), signal).is_ok() {
            world.log.say(&line);
            let name = &signal.as_str()[3..];
            *self
                .counts
                .entry(format!("{name} to the process group"))
                .or_default() += 1;
        }
    }

    fn continue_those_due(&mut self, world: &mut World, now: u64) {
        self.stopped.retain(|(due, known, whom)| {
            let is_due = *due <= now;
            if is_due && known.signal(SIGCONT) {
                world.log.say(whom);
            }
            !is_due
        });
    }
}
