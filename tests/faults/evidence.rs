//! Evidence of the runs after the faults, from other sources than tokenrun. All times are
//! CLOCK_MONOTONIC in nanoseconds.

use std::collections::BTreeMap;

use nix::libc::{SIGKILL, SIGSTOP};

use serde::Deserialize;

/// A part of a run that a fault may hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Supervisor,
    Guard,
    Job,
    Grandchild,
}

/// A signal that was sent to a part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) part: Part,
    pub(crate) signal: i32,
}

/// A process of a job, alive for certain from one time to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) part: Part,
    pub(crate) from: u64,
    pub(crate) until: u64,
    pub(crate) session: String,
    pub(crate) fence: i64,
    /// The code that it was about to exit with.
    pub(crate) exit: Option<i32>,
}

/// How a supervisor ended, according to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Code(i32),
    Signal(i32),
}

/// What `--report` wrote.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Report {
    pub(crate) session: String,
    pub(crate) outcome: String,
    pub(crate) recorded: Option<bool>,
    pub(crate) tokenrun_exit_code: i32,
    pub(crate) fence: Option<i64>,
}

/// One call of tokenrun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// Which; history has it as the label.
    pub(crate) number: usize,
    pub(crate) group: String,
    pub(crate) client: String,
    pub(crate) begun: u64,
    /// When the supervisor ended, and how.
    pub(crate) ended: Option<(u64, Ended)>,
    /// Whether the job had a `--timeout`.
    pub(crate) has_timeout: bool,
    /// Its key for `--once`.
    pub(crate) once: Option<String>,
    pub(crate) hits: Vec<Hit>,
    pub(crate) lives: Vec<Life>,
    pub(crate) report: Option<Report>,
    /// It has reported that the store did not confirm the run's record, or perhaps granted the
    /// token; or its messages are lost.
    pub(crate) not_told: bool,
}

impl Call {
    /// Whether this part got one of these signals.
    pub(crate) fn was_hit(&self, part: Part, signals: &[i32]) -> bool {
        let is_it = |hit: &Hit| hit.part == part && signals.contains(&hit.signal);
        self.hits.iter().any(is_it)
    }

    /// Its group and its key for `--once`.
    pub(crate) fn key(&self) -> Option<(&str, &str)> {
        Some((&self.group, self.once.as_deref()?))
    }

    /// From the job's first stamp to its last.
    pub(crate) fn alive(&self) -> Option<(u64, u64)> {
        let from = self.lives.iter().map(|life| life.from).min()?;
        let until = self.lives.iter().map(|life| life.until).max()?;
        Some((from, until))
    }
}

/// A run as `history --json` has it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Record {
    pub(crate) group: String,
    pub(crate) fence: i64,
    pub(crate) session: String,
    pub(crate) client: String,
    pub(crate) label: Option<String>,
    pub(crate) grant: String,
    pub(crate) outcome: String,
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

impl Record {
    /// The call that it speaks of.
    pub(crate) fn number(&self) -> Option<usize> {
        self.label.as_ref()?.parse().ok()
    }
}

/// Everything that the checker looks at.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) calls: Vec<Call>,
    pub(crate) history: Vec<Record>,
    /// When the database was hindered, perhaps by a stopped process that was writing.
    pub(crate) hindered: Vec<(u64, u64)>,
    /// When commits were lost: what a call wrote then may have been forgotten.
    pub(crate) lost: Vec<(u64, u64)>,
    /// Files of locks that were left before the last run swept them.
    pub(crate) lock_files: usize,
    /// Processes and files that are left when everything is over.
    pub(crate) left: Vec<String>,
    /// When the faults ended, and how long no job may run from then on.
    pub(crate) recovery: Option<(u64, u64)>,
}

impl Evidence {
    /// Whether something that this call wrote may have been forgotten.
    pub(crate) fn may_be_forgotten(&self, call: &Call) -> bool {
        let overlaps = |(from, until): &(u64, u64)| {
            call.begun <= *until && call.ended.is_none_or(|(at, _)| *from <= at)
        };
        self.lost.iter().any(overlaps)
    }

    /// Whether nothing knew of this run's processes at this time: supervisor and guard were gone, and the store had
    /// forgotten the session whose lock the processes still held.
    pub(crate) fn is_beyond_reach(&self, call: &Call, at: u64) -> bool {
        let blind = |part| call.was_hit(part, &[SIGKILL, SIGSTOP]);
        let forgets_all = |(from, until): &(u64, u64)| *from == 0 && at <= *until;
        blind(Part::Supervisor) && blind(Part::Guard) && self.lost.iter().any(forgets_all)
    }

    /// The runs of each group in the order of their first stamps.
    pub(crate) fn by_start(&self) -> BTreeMap<&str, Vec<(&Call, u64, u64)>> {
        let mut groups: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for call in &self.calls {
            if let Some((from, until)) = call.alive() {
                let runs = groups.entry(&call.group).or_default();
                runs.push((call, from, until));
            }
        }
        for runs in groups.values_mut() {
            runs.sort_by_key(|(_, from, _)| *from);
        }
        groups
    }

    /// The longest time between the end of a run and the next one's begin.
    pub(crate) fn longest_idle(&self) -> u64 {
        let mut longest = 0;
        for runs in self.by_start().values() {
            let mut idle_from = u64::MAX;
            for (_, from, until) in runs {
                longest = longest.max(from.saturating_sub(idle_from));
                idle_from = *until;
            }
        }
        longest
    }

    /// Runs that were lost, or whose end was not recorded, although nothing happened to
    /// them or to the database. A machine that is busy for longer than a lease does that,
    /// so it is no violation.
    pub(crate) fn without_cause(&self, outcome: &str) -> usize {
        let is_it = |record: &&Record| record.outcome == outcome;
        let numbers = self.history.iter().filter(is_it).filter_map(Record::number);
        let has_cause = |call: &Call| {
            let hindered = |(from, until): &(u64, u64)| {
                call.begun <= *until && call.ended.is_none_or(|(at, _)| *from <= at)
            };
            !call.hits.is_empty() || self.hindered.iter().any(hindered)
        };
        let of = |number| self.calls.iter().find(|call| call.number == number);
        numbers
            .filter_map(of)
            .filter(|call| !has_cause(call))
            .count()
    }
}
