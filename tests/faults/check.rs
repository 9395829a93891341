//! Holds the evidence against what tokenrun promises. Pure; it may miss a violation
//! that left no evidence, and never claims one that did not happen.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Display, Formatter};

use nix::libc::{SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM};

use super::evidence::{Call, Ended, Evidence, Life, Part, Record};

const ASKING: [i32; 4] = [SIGTERM, SIGINT, SIGHUP, SIGQUIT];

/// What was promised and did not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Broken {
    /// Two runs were alive at one instant.
    Overlap,
    /// A later run had no greater fence.
    Fence,
    /// A process or a file was left.
    Left,
    /// History does not say what happened.
    History,
    /// A key that was done was run again, or called done although it was not.
    Once,
    /// An exit status does not say what happened.
    ExitStatus,
    /// `--report` does not say what happened.
    Report,
    /// No job ran again after the faults.
    Recovery,
}

/// A promise that was broken, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) what: Broken,
    pub(crate) how: String,
}

impl Display for Violation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.what, self.how)
    }
}

/// Everything that is wrong.
pub(crate) fn check(evidence: &Evidence) -> Vec<Violation> {
    let mut checker = Checker {
        evidence,
        found: Vec::new(),
    };
    checker.no_overlap_and_rising_fences();
    checker.nothing_left();
    checker.history();
    checker.keys();
    for call in &evidence.calls {
        checker.one_session(call);
        checker.exit_status(call);
        checker.report(call);
    }
    checker.recovery();
    checker.found
}

struct Checker<'a> {
    evidence: &'a Evidence,
    found: Vec<Violation>,
}

fn millis(nanos: u64) -> f64 {
    std::time::Duration::from_nanos(nanos).as_secs_f64() * 1_000.0
}

impl<'a> Checker<'a> {
    fn claim(&mut self, what: Broken, how: String) {
        self.found.push(Violation { what, how });
    }

    fn no_overlap_and_rising_fences(&mut self) {
        for (group, runs) in self.evidence.by_start() {
            let mut last: Option<(&Call, u64)> = None;
            let mut highest: Option<(&Call, i64)> = None;
            for (call, from, until) in runs {
                if let Some((other, other_until)) = last
                    && from < other_until
                    && !self.evidence.is_beyond_reach(other, from)
                {
                    let overlap = millis(other_until.min(until) - from);
                    let how = format!(
                        "{group}: run {} began {overlap:.3} ms before run {} was over",
                        call.number, other.number
                    );
                    self.claim(Broken::Overlap, how);
                }
                if last.is_none_or(|(_, latest)| until > latest) {
                    last = Some((call, until));
                }
                let fences: BTreeSet<i64> = call.lives.iter().map(|life| life.fence).collect();
                for fence in fences {
                    if let Some((other, before)) = highest
                        && fence <= before
                    {
                        let how = format!(
                            "{group}: run {} has fence {fence}, the earlier run {} had {before}",
                            call.number, other.number
                        );
                        self.claim(Broken::Fence, how);
                    }
                    highest = Some((call, fence));
                }
            }
        }
    }

    /// A file stays as the proof of a death where the row may still name it: of a supervisor that
    /// was killed, and of one that does not know what the store recorded.
    fn nothing_left(&mut self) {
        let may_leave = |call: &&Call| call.not_told || call.was_hit(Part::Supervisor, &[SIGKILL]);
        let most = self.evidence.calls.iter().filter(may_leave).count();
        if self.evidence.lock_files > most {
            let files = self.evidence.lock_files;
            let how = format!("{files} lock files, {most} calls may have left one");
            self.claim(Broken::Left, how);
        }
        for left in &self.evidence.left {
            self.claim(Broken::Left, left.clone());
        }
    }

    /// All processes of a run are of one session, and have one fence.
    fn one_session(&mut self, call: &Call) {
        let sessions: BTreeSet<_> = call.lives.iter().map(|life| &life.session).collect();
        let fences: BTreeSet<_> = call.lives.iter().map(|life| life.fence).collect();
        if sessions.len() > 1 || fences.len() > 1 {
            let how = format!("run {}: {sessions:?} with {fences:?}", call.number);
            self.claim(Broken::Fence, how);
        }
    }

    fn history(&mut self) {
        let calls: HashMap<usize, &Call> = self
            .evidence
            .calls
            .iter()
            .map(|call| (call.number, call))
            .collect();
        let mut recorded = BTreeSet::new();
        for record in &self.evidence.history {
            let Some(call) = record.number().and_then(|number| calls.get(&number)) else {
                self.claim(Broken::History, format!("of no call: {record:?}"));
                continue;
            };
            if !recorded.insert(call.number) {
                self.claim(Broken::History, format!("twice: {record:?}"));
            }
            let is_forgotten = record.outcome == "unknown" && self.evidence.may_be_forgotten(call);
            if let Err(wrong) = agrees(record, call)
                && !is_forgotten
            {
                let how = format!("run {}: {wrong}: {record:?}; {call:?}", call.number);
                self.claim(Broken::History, how);
            }
        }
        for call in &self.evidence.calls {
            let is_forgotten = self.evidence.may_be_forgotten(call);
            if !call.lives.is_empty() && !recorded.contains(&call.number) && !is_forgotten {
                self.claim(
                    Broken::History,
                    format!("none of run {}: {call:?}", call.number),
                );
            }
        }
    }

    /// A call that began after another with its key had said that it succeeded runs nothing;
    /// and a call that says that its key is done is right.
    fn keys(&mut self) {
        let mut done: HashMap<(&str, &str), (u64, usize)> = HashMap::new();
        let mut recorded = BTreeSet::new();
        for call in &self.evidence.calls {
            let Some(key) = call.key() else { continue };
            let record = self.record_of(call);
            if record.is_some_and(|record| record.outcome == "succeeded") {
                recorded.insert(key);
            }
            if let Some((at, Ended::Code(0))) = call.ended
                && !call.lives.is_empty()
                && !self.evidence.may_be_forgotten(call)
            {
                let first = done.entry(key).or_insert((at, call.number));
                *first = (*first).min((at, call.number));
            }
        }
        for call in &self.evidence.calls {
            let Some(key) = call.key() else { continue };
            if let Some((at, number)) = done.get(&key)
                && call.begun > *at
                && !call.lives.is_empty()
            {
                let how = format!("{key:?}: run {number} had succeeded, then: {call:?}");
                self.claim(Broken::Once, how);
            }
            let says_done = matches!(call.ended, Some((_, Ended::Code(0))));
            // Of what made it done nothing may be left.
            let mut of_key = self
                .evidence
                .calls
                .iter()
                .filter(|it| it.key() == Some(key));
            let is_forgotten = of_key.any(|it| self.evidence.may_be_forgotten(it));
            if says_done && call.lives.is_empty() && !recorded.contains(&key) && !is_forgotten {
                self.claim(Broken::Once, format!("{key:?} is not done: {call:?}"));
            }
        }
    }

    fn record_of(&self, call: &Call) -> Option<&'a Record> {
        let history = &self.evidence.history;
        history
            .iter()
            .find(|record| record.number() == Some(call.number))
    }

    /// Whether a lost commit is why history does not have what the call said.
    fn is_forgotten(&self, call: &Call) -> bool {
        let record = self.record_of(call);
        let is_missing = record.is_none_or(|record| record.outcome == "unknown");
        is_missing && self.evidence.may_be_forgotten(call)
    }

    fn exit_status(&mut self, call: &Call) {
        let Some((_, ended)) = call.ended else {
            self.claim(Broken::Left, format!("run {} has not ended", call.number));
            return;
        };
        let record = self.record_of(call);
        let outcome = record.map(|record| record.outcome.as_str());
        let right = match ended {
            Ended::Code(code) => is_right_code(code, call, record),
            Ended::Signal(SIGKILL) => call.was_hit(Part::Supervisor, &[SIGKILL]),
            // It had no job to wait for while it waited; or its job died of the signal too.
            Ended::Signal(signal) => {
                let with_its_job = matches!(signal, SIGINT | SIGQUIT);
                ASKING.contains(&signal)
                    && call.was_hit(Part::Supervisor, &[signal])
                    && match outcome {
                        None | Some("not_started") => call.lives.is_empty(),
                        Some("unknown") => call.lives.is_empty() || with_its_job,
                        Some("killed") => {
                            with_its_job && record.and_then(|it| it.signal) == Some(signal)
                        }
                        Some(_) => false,
                    }
            }
        };
        if !right && !self.is_forgotten(call) {
            let how = format!("run {}: {ended:?}; {record:?}; {call:?}", call.number);
            self.claim(Broken::ExitStatus, how);
        }
    }

    fn report(&mut self, call: &Call) {
        let Some(report) = &call.report else {
            return;
        };
        let record = self.record_of(call);
        let code = match call.ended {
            Some((_, Ended::Code(code))) => Some(code),
            Some((_, Ended::Signal(signal))) => Some(128 + signal),
            None => None,
        };
        // Killed after it had reported. A call without a job takes no signal for itself:
        // it may have died of one that asks, too.
        let died_of = |signal| call.was_hit(Part::Supervisor, &[signal]);
        let died_after = match call.ended {
            Some((_, Ended::Signal(SIGKILL))) => died_of(SIGKILL),
            Some((_, Ended::Signal(signal))) => report.recorded.is_none() && died_of(signal),
            Some((_, Ended::Code(_))) | None => false,
        };
        let mut right = died_after || code == Some(report.tokenrun_exit_code);
        right &= call.lives.iter().all(|life| life.session == report.session);
        right &= call
            .lives
            .iter()
            .all(|life| Some(life.fence) == report.fence);
        right &= match report.recorded {
            // Its key was found to be done once it had the token.
            Some(true) if report.outcome == "done" => {
                record.is_some_and(|record| record.outcome == "not_started")
            }
            Some(true) => record.is_some_and(|record| record.outcome == report.outcome),
            Some(false) => true,
            None => call.lives.is_empty(),
        };
        if !right && !self.is_forgotten(call) {
            let how = format!("run {}: {report:?}; {record:?}; {call:?}", call.number);
            self.claim(Broken::Report, how);
        }
    }

    fn recovery(&mut self) {
        let Some((over_at, patience)) = self.evidence.recovery else {
            return;
        };
        let groups: BTreeSet<&str> = self.evidence.calls.iter().map(|it| &*it.group).collect();
        let runs_of = self.evidence.by_start();
        for group in groups {
            let runs = runs_of.get(group).map_or(&[][..], Vec::as_slice);
            let before = runs.iter().filter(|(_, from, _)| *from <= over_at);
            let idle_from = before
                .map(|(_, _, until)| *until)
                .max()
                .unwrap_or(0)
                .max(over_at);
            let again = runs
                .iter()
                .map(|(_, from, _)| *from)
                .find(|from| *from > over_at);
            if again.is_none_or(|from| from > idle_from + patience) {
                let how = format!("{group}: no job ran within {} ms", millis(patience));
                self.claim(Broken::Recovery, how);
            }
        }
    }
}

/// Whether the job's own process was about to exit with this code.
fn meant_to_exit(call: &Call, code: Option<i32>) -> bool {
    let is_job = |life: &&Life| life.part == Part::Job;
    let job = call.lives.iter().find(is_job);
    code.is_some() && job.is_some_and(|job| job.exit == code)
}

/// Whether a fault explains that a job died of this signal: it was sent to the job;
/// or tokenrun was asked to end, passed that on, and killed the job that stayed.
fn may_die_of(call: &Call, signal: i32) -> bool {
    let was_asked = call.was_hit(Part::Supervisor, &ASKING);
    call.was_hit(Part::Job, &[signal])
        || call.was_hit(Part::Supervisor, &[signal]) && ASKING.contains(&signal)
        || was_asked && signal == SIGKILL
}

/// Whether no process was left to record the end; or no database accepted the record, and that was
/// reported.
fn may_be_unknown(call: &Call) -> bool {
    let perhaps_granted = |how| how == Ended::Code(69) && call.lives.is_empty();
    let killed = |how| matches!(how, Ended::Signal(SIGKILL) | Ended::Code(74));
    let is_right = |(_, how)| killed(how) || call.not_told || perhaps_granted(how);
    call.ended.is_some_and(is_right)
}

fn agrees(record: &Record, call: &Call) -> Result<(), &'static str> {
    let same = |life: &Life| life.session == record.session && life.fence == record.fence;
    if record.group != call.group || record.client != call.client {
        return Err("another's group or client");
    }
    if !call.lives.iter().all(same) {
        return Err("another session or fence than in the job's variables");
    }
    let signal = record.signal.unwrap_or_default();
    match record.outcome.as_str() {
        "succeeded" if record.exit_code != Some(0) => Err("succeeded, but not with 0"),
        "failed" if record.exit_code == Some(0) => Err("failed with 0"),
        "succeeded" | "failed" if !meant_to_exit(call, record.exit_code) => {
            Err("the job did not mean to exit so")
        }
        "killed" if !may_die_of(call, signal) => Err("no fault sent the job that signal"),
        "timed_out" if !call.has_timeout => Err("it had no time-out"),
        "not_started" if !call.lives.is_empty() => Err("but its job ran"),
        "unknown" if !may_be_unknown(call) => Err("its supervisor was there to say how it ended"),
        "succeeded" | "failed" | "killed" | "timed_out" | "not_started" | "unknown" | "lost" => {
            Ok(())
        }
        _ => Err("an outcome that nothing that is over has"),
    }
}

/// Whether what an exit code means is what happened.
fn is_right_code(code: i32, call: &Call, record: Option<&Record>) -> bool {
    let outcome = record.map_or("none", |record| record.outcome.as_str());
    let job_ran = !call.lives.is_empty();
    match code {
        75 => !job_ran && outcome == "none",
        69 => !job_ran && matches!(outcome, "none" | "not_started" | "unknown"),
        // The guard was gone before the job, or the machine had no process to give.
        71 => !job_ran && matches!(outcome, "none" | "not_started" | "unknown"),
        76 => matches!(outcome, "lost" | "unknown"),
        124 => call.has_timeout && matches!(outcome, "timed_out" | "unknown"),
        0 if call.once.is_some() && !job_ran => {
            matches!(outcome, "none" | "not_started" | "unknown")
        }
        // It may have been recorded all the same, or be another's already.
        74 => {
            let known = matches!(outcome, "succeeded" | "unknown" | "lost");
            call.once.is_some() && meant_to_exit(call, Some(0)) && known
        }
        0..=63 => {
            let expected = if code == 0 { "succeeded" } else { "failed" };
            meant_to_exit(call, Some(code)) && (outcome == expected || outcome == "unknown")
        }
        129..=192 => {
            let signal = Some(code - 128);
            let recorded = record.and_then(|record| record.signal) == signal;
            outcome == "unknown" || outcome == "killed" && recorded
        }
        _ => false,
    }
}
