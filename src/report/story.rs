//! The story of a group in a span of time: which clients came, which were refused and why, which
//! ran, and whether any did. Pure.

use std::time::Duration;

use serde::Serialize;

use super::printable::{printable, quoted};
use super::records::{self, ActObject, RefusalObject, RunObject, other_host, whose};
use super::rfc3339;
use super::screen::Times;
use crate::duration::rounded;
use crate::sys::signals;
use crate::token::{ActRecord, GrantKind, GroupName, Outcome, RefusalRecord, RunRecord, WallTime};

/// At most so many events are shown.
const MOST: usize = 40;

/// The answer where nothing is recorded.
const NO_CLIENT: &str = "It did not run, and no refusal is recorded: no node came, or none that came \
    could write to the store. Check that cron or the timer starts it on each node, and what tokenrun wrote there.";

/// What the store knows of a group in a span of time.
#[derive(Debug)]
pub struct Story<'a> {
    pub group: &'a GroupName,
    /// The span.
    pub from: WallTime,
    pub until: WallTime,
    /// The store's time.
    pub now: WallTime,
    /// The runs that overlap the span, the oldest first.
    pub runs: Vec<RunRecord>,
    /// The refusals that overlap the span, the oldest first.
    pub refusals: Vec<RefusalRecord>,
    /// The acts of operators in the span, the oldest first.
    pub acts: Vec<ActRecord>,
    /// The pause that is in effect when the span begins.
    pub paused: Option<ActRecord>,
    /// The last run that ended before the span.
    pub before: Option<RunRecord>,
    /// The first run that began after it.
    pub after: Option<RunRecord>,
}

/// The story as `explain --at --json` shows it.
#[derive(Debug, Serialize)]
pub struct StoryObject<'a> {
    pub group: &'a str,
    pub from: String,
    pub until: String,
    /// True if a run began in this time, or went on.
    pub ran: bool,
    pub runs: Vec<RunObject<'a>>,
    pub refusals: Vec<RefusalObject<'a>>,
    pub acts: Vec<ActObject<'a>>,
    /// The pause that was in effect when it began.
    pub paused: Option<ActObject<'a>>,
    pub run_before: Option<RunObject<'a>>,
    pub run_after: Option<RunObject<'a>>,
    /// The store's time.
    pub now: String,
}

impl Story<'_> {
    /// The object for the story.
    pub fn object(&self) -> StoryObject<'_> {
        StoryObject {
            group: self.group.as_str(),
            from: rfc3339(self.from),
            until: rfc3339(self.until),
            ran: !self.runs.is_empty(),
            runs: self.runs.iter().map(RunObject).collect(),
            refusals: self.refusals.iter().map(RefusalObject).collect(),
            acts: self.acts.iter().map(ActObject).collect(),
            paused: self.paused.as_ref().map(ActObject),
            run_before: self.before.as_ref().map(RunObject),
            run_after: self.after.as_ref().map(RunObject),
            now: rfc3339(self.now),
        }
    }

    /// The story in sentences: the answer first, then each event with its time.
    pub fn text(&self, times: &Times) -> String {
        let (from, until) = (times.full(self.from), times.full(self.until));
        let (group, zone) = (quoted(self.group.as_str()), zone(times, self.now));
        let mut lines = vec![format!("{group}, {from} to {until}{zone}:")];
        lines.push(self.answer(times));
        let events = self.events(times);
        if !events.is_empty() {
            lines.push(String::new());
        }
        let hidden = events.len().saturating_sub(MOST);
        lines.extend(events.into_iter().take(MOST));
        if hidden > 0 {
            lines.push(format!("and {hidden} more: ask for a shorter time"));
        }
        let around = self.around(times);
        if !around.is_empty() {
            lines.push(String::new());
            lines.extend(around);
        }
        lines.iter().map(|line| printable(line) + "\n").collect()
    }

    /// The answer in a sentence: the job ran, or why it did not.
    fn answer(&self, times: &Times) -> String {
        match (self.runs.as_slice(), self.refusals.as_slice()) {
            ([run], _) => {
                let at = times.short(run.started_at, self.from);
                format!("It ran: {} at {at} {}.", run.client, ended(run, times))
            }
            ([_, ..], _) => format!("It ran {}.", self.counted()),
            ([], []) => {
                let old = match self.before {
                    Some(_) => "",
                    None => {
                        " History has nothing this old: its records are pruned (--history-retain), or the group is newer."
                    }
                };
                format!("{NO_CLIENT}{old}")
            }
            ([], refusals) => {
                let clients = unique(refusals.iter().map(|it| it.client.to_string()));
                let reasons = unique(
                    refusals
                        .iter()
                        .map(|it| records::reason(it, times, self.from)),
                );
                let came = match clients.len() {
                    1 => format!("{} came and was refused", clients.concat()),
                    _ => format!("{} came, and each was refused", clients.join(" and ")),
                };
                format!("It did not run: {came}: {}.", reasons.join("; "))
            }
        }
    }

    /// The number of runs, by outcome.
    fn counted(&self) -> String {
        let outcomes = unique(self.runs.iter().map(|run| run.outcome));
        let parts = outcomes.iter().map(|outcome| {
            let runs = self.runs.iter().filter(|run| run.outcome == *outcome);
            format!("{} {}", runs.count(), word(*outcome))
        });
        let parts: Vec<String> = parts.collect();
        format!("{} times: {}", self.runs.len(), parts.join(", "))
    }

    /// Each event in a line, by time.
    fn events(&self, times: &Times) -> Vec<String> {
        let runs = self.runs.iter();
        let runs = runs.map(|run| (run.started_at, began(run, times)));
        let refusals = self.refusals.iter();
        let refusals = refusals.map(|it| (it.first_at, records::sentence(it, times, self.from)));
        let acts = self.acts.iter().map(|act| (act.at, performed(act, times)));
        let mut events: Vec<(WallTime, String)> = runs.chain(refusals).chain(acts).collect();
        events.sort_by_key(|(at, _)| *at);
        let line = |(at, text): (WallTime, String)| format!("{}  {text}", times.full(at));
        events.into_iter().map(line).collect()
    }

    /// What happened before and after.
    fn around(&self, times: &Times) -> Vec<String> {
        let told =
            |run: &RunRecord| format!("{}  {}", times.full(run.started_at), began(run, times));
        let act = |act: &ActRecord| format!("{}  {}", times.full(act.at), performed(act, times));
        let paused = self.paused.as_ref();
        let (before, after) = (self.before.as_ref(), self.after.as_ref());
        let lines = [
            paused.map(|it| format!("Before: {}", act(it))),
            before.map(|it| format!("The run before: {}", told(it))),
            after.map(|it| format!("The run after: {}", told(it))),
        ];
        lines.into_iter().flatten().collect()
    }
}

fn zone(times: &Times, now: WallTime) -> String {
    let name = times.zone_name(now);
    name.map_or_else(String::new, |name| format!(" ({name})"))
}

/// Each value once, in the order of its first appearance.
fn unique<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

const fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Running => "running",
        Outcome::Succeeded => "succeeded",
        Outcome::Failed => "failed",
        Outcome::Signalled => "killed",
        Outcome::TimedOut => "timed out",
        Outcome::Lost => "lost the token",
        Outcome::NotStarted => "not started",
        Outcome::Unknown => "unknown",
    }
}

/// A run in a sentence.
fn began(run: &RunRecord, times: &Times) -> String {
    let client = &run.client;
    let host = other_host(run.host.as_deref(), client);
    let from = run.previous_client.as_ref();
    let how = match (run.grant, from) {
        (GrantKind::Takeover, Some(from)) => format!("took over from {from} and started"),
        (GrantKind::Failback, Some(from)) => format!("took the token back from {from} and started"),
        (GrantKind::Handoff, Some(from)) => format!("got the token from {from} and started"),
        _ => "started".to_owned(),
    };
    let (program, ended) = (&run.program, ended(run, times));
    format!("{client}{host} {how} {program}; it {ended}")
}

/// How a run ended. Reads after its subject.
fn ended(run: &RunRecord, times: &Times) -> String {
    let took = run.ended_at.and_then(|at| at.since(run.started_at));
    let after = took.map_or_else(String::new, |took: Duration| {
        format!(" after {}", rounded(took))
    });
    match run.outcome {
        Outcome::Running => "is still running".to_owned(),
        Outcome::Succeeded => format!("succeeded{after}"),
        Outcome::Failed => match run.exit_code {
            Some(code) => format!("failed with exit code {code}{after}"),
            None => format!("failed{after}"),
        },
        Outcome::Signalled => match run.signal {
            Some(signal) => format!("was killed by {}{after}", signals::name(signal)),
            None => format!("was killed by a signal{after}"),
        },
        Outcome::TimedOut => format!("ran into its --timeout and was ended{after}"),
        Outcome::Lost => format!("lost its token and was ended{after}"),
        Outcome::NotStarted => {
            let reason = run.reason.as_deref().unwrap_or("did not start the job");
            format!("was granted the token, and {reason}")
        }
        Outcome::Unknown => match run.ended_at {
            Some(at) => {
                let at = times.short(at, run.started_at);
                format!("went silent at {at}, so its end is unknown")
            }
            None => "went silent, so its end is unknown".to_owned(),
        },
    }
}

/// An act in a sentence.
fn performed(act: &ActRecord, times: &Times) -> String {
    let what = match act.act.as_str() {
        "pause" => "paused it",
        "resume" => "resumed it",
        "revoke" => "revoked the token",
        "release" => "freed the token",
        "move_away" => "moved it away",
        "pause_client" => "paused the client",
        "resume_client" => "resumed the client",
        "handoff" => "handed it off",
        "expect" => "changed the expected client",
        other => other,
    };
    let to = act.client.as_ref().map_or_else(String::new, |client| {
        let joint = match act.act.as_str() {
            "handoff" => "to ",
            "move_away" => "from ",
            "pause_client" | "resume_client" => "",
            _ => "of ",
        };
        format!(" {joint}{client}")
    });
    let until = act.until.map_or_else(String::new, |until| {
        format!(" until {}", times.short(until, act.at))
    });
    let why = act.actor.reason.as_ref();
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    format!("{} {what}{to}{until}{why}", whose(act))
}

#[cfg(test)]
#[path = "story_tests.rs"]
mod tests;
