//! What a page says of a group: its state, its troubles, its past. Pure.

use std::time::Duration;

use crate::duration::{brief, rounded};
use crate::report::acts::{by_until, lasting, reason};
use crate::report::group::{Known as ByToken, LastRun, qualities};
use crate::report::incarnation::doubt_text;
use crate::report::json::{not_before, state_word};
use crate::report::printable::printable;
use crate::sys::signals;
use crate::token::{Outcome, Row, RunRecord, State, WallTime};

use super::calendar::Window;
use super::days::{DAYS, Day, Took, by_day, length, took};
use super::marks::Kind;
use super::timeline::{Lanes, Past, Timeline};
use super::view::View;

/// What is known of a group.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    pub row: &'a Row,
    /// The number of waiters in the queue.
    pub waiters: usize,
    /// What happened in the last month.
    pub past: Past<'a>,
}

/// How urgent something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// An operator or a restart stops something, on purpose perhaps.
    Notice,
    /// Something failed, or may be dead.
    Trouble,
}

impl Level {
    /// The class in the style sheet.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Trouble => "trouble",
            Self::Notice => "notice",
        }
    }
}

/// What a group needs attention for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concern {
    pub level: Level,
    pub text: String,
}

/// A run, as a row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recent {
    pub started_at: WallTime,
    pub kind: Kind,
    /// How it ended, with its code.
    pub outcome: String,
    pub took: String,
    pub client: String,
    /// The client before, after a failover.
    pub from: Option<String>,
    pub grant: &'static str,
    /// The program, and the user's name for the run.
    pub what: String,
}

/// The last run that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Last {
    pub kind: Kind,
    /// How it ended, when, and how long it took: `ok 23h ago (4m)`.
    pub text: String,
}

/// A group, ready to be drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub name: String,
    /// The word of its state, and what qualifies it.
    pub state: &'static str,
    pub qualities: Vec<&'static str>,
    pub client: Option<String>,
    /// The host and the label of the holder, or of the last one.
    pub host: Option<String>,
    pub label: Option<String>,
    /// Since when it is in this state.
    pub since: Option<WallTime>,
    /// How long its holder has been silent, if that is too long.
    pub silent_for: Option<String>,
    pub last: Option<Last>,
    pub fence: i64,
    pub waiters: usize,
    /// The gravest first.
    pub concerns: Vec<Concern>,
    /// What is worth a word and no concern.
    pub notes: Vec<String>,
    pub lanes: Lanes,
    /// In the order of `Window::ALL`.
    pub timelines: Vec<Timeline>,
    pub days: Vec<Day>,
    pub took: Option<Took>,
    pub recent: Vec<Recent>,
    /// The runs before this time are not on the page.
    pub cut: Option<WallTime>,
}

impl Group {
    pub fn of(known: &Known<'_>, view: &View) -> Self {
        let (row, past) = (known.row, &known.past);
        let (now, detail) = (view.wall(), &view.detail);
        let lanes = Lanes::of(past.runs, detail.lanes);
        let timeline = |window| Timeline::of(past, &lanes, window, now, detail);
        let newest = past.runs.iter().rev().take(detail.runs);
        let since = match &row.state {
            State::Running { .. } => row.acquired_at(),
            State::Idle { .. } => row.released_at(),
            State::Free => None,
        };
        let text = |text: &Option<String>| text.as_deref().map(printable);
        Self {
            name: printable(row.group.as_str()),
            state: state_word(&row.state),
            qualities: qualities(row, &view.memory, &view.now),
            client: row.client_bound().map(|client| printable(client.as_str())),
            host: text(&row.document.host),
            label: text(&row.document.label),
            since: since.map(|stamp| stamp.wall),
            silent_for: silent_for(row, view),
            last: last_run(row, past).map(|last| Last {
                kind: Kind::of(last.outcome()),
                text: last.text(now),
            }),
            fence: row.fence.0,
            waiters: known.waiters,
            concerns: concerns(row, past, view),
            notes: notes(row, view),
            timelines: Window::ALL.map(timeline).into(),
            days: by_day(&view.calendar.days(now, DAYS), now, past.runs),
            took: Took::of(past.runs.iter().filter_map(|run| took(run)).collect()),
            recent: newest.map(|run| recent(run, now)).collect(),
            cut: past.cut,
            lanes,
        }
    }

    /// How urgent the gravest concern is.
    pub fn level(&self) -> Option<Level> {
        self.concerns.iter().map(|concern| concern.level).max()
    }
}

/// How long the holder has been silent, if another client can take over for that.
fn silent_for(row: &Row, view: &View) -> Option<String> {
    let heartbeat = row.heartbeat_at().filter(|_| row.is_silent(&view.now))?;
    let epoch = Some(&row.stamped.epoch);
    Some(rounded(view.now.calendar_age_of(heartbeat, epoch)))
}

/// The newest run that is over.
fn newest<'a>(past: &Past<'a>) -> Option<&'a RunRecord> {
    let mut newest = past.runs.iter().rev();
    newest.find(|run| run.outcome != Outcome::Running).copied()
}

/// The last run that is over; what the token says of it, if it is older than the page.
fn last_run(row: &Row, past: &Past<'_>) -> Option<LastRun> {
    let found = newest(past).map(LastRun::of);
    found.or_else(|| match LastRun::known(row) {
        ByToken::Never => None,
        ByToken::All(last) => Some(last),
        ByToken::Part(last) => last,
    })
}

/// A run that was no success: how it ended, when and where. Reads after "its last run".
fn end_of(run: &RunRecord, view: &View) -> String {
    let what = match (run.outcome, run.exit_code, run.signal) {
        (Outcome::Failed, Some(code), _) => format!("failed (exit code {code})"),
        (Outcome::Failed, ..) => "failed".to_owned(),
        (Outcome::Signalled, _, Some(signal)) => format!("was killed by {}", signals::name(signal)),
        (Outcome::Signalled, ..) => "was killed".to_owned(),
        (Outcome::TimedOut, ..) => "ran into its --timeout".to_owned(),
        (Outcome::Lost, ..) => "lost its token".to_owned(),
        (Outcome::Unknown, ..) => "went silent, so its end is unknown,".to_owned(),
        (Outcome::NotStarted, ..) => match &run.reason {
            Some(reason) => format!("{reason},"),
            None => "could not start its job".to_owned(),
        },
        (outcome, ..) => format!("ended as {outcome}"),
    };
    let age = run.ended_at.and_then(|at| view.wall().since(at));
    let age = age.map_or_else(String::new, |age| format!(" {} ago", brief(age)));
    format!("{what}{age} on {}", run.client)
}

/// A client that could not start its job, and so took no token, after the last run began.
fn unstarted(past: &Past<'_>, view: &View) -> Option<String> {
    let last = newest(past).map(|run| run.started_at);
    let of_late = past.refusals.iter().filter(|it| it.is_unstarted());
    let newest = of_late.max_by_key(|it| it.last_at)?;
    if last.is_some_and(|last| newest.last_at <= last) {
        return None;
    }
    let what = newest.error.as_deref().unwrap_or("could not start its job");
    let age = view.wall().since(newest.last_at).map(rounded);
    let age = age.map_or_else(String::new, |age| format!(", {age} ago"));
    Some(format!("{} {what}{age}", newest.client))
}

fn concerns(row: &Row, past: &Past<'_>, view: &View) -> Vec<Concern> {
    let (document, now) = (&row.document, &view.now);
    let mut all = Vec::new();
    let mut add = |level, text: String| {
        all.push(Concern {
            level,
            text: printable(&text),
        });
    };
    if let Some(age) = silent_for(row, view) {
        let text = format!("its holder has been silent for {age}; another client can take over");
        add(Level::Trouble, text);
    }
    if let Some(last) = last_run(row, past).filter(LastRun::is_trouble) {
        let how = newest(past).map(|run| end_of(run, view));
        let how = how.unwrap_or_else(|| format!("ended as {}", last.text(view.wall())));
        add(Level::Trouble, format!("its last run {how}"));
    }
    if let Some(text) = unstarted(past, view) {
        add(Level::Trouble, text);
    }
    if document.revoke_requested {
        let text = "its holder is asked to end its job and to free the token";
        add(Level::Notice, text.to_owned());
    }
    if let Some(pause) = row.pause_at(now) {
        let until = lasting(pause, |until| view.near(until));
        let text = format!("paused by {} {until}{}", pause.by, reason(pause, ": ", ""));
        add(Level::Notice, text);
    }
    let own = row.client_bound();
    let own = own.and_then(|client| Some((client, view.memory.pause_of(client, now)?)));
    if let Some((client, pause)) = own {
        let by = by_until(pause, |until| view.near(until));
        add(Level::Notice, format!("its client {client} is paused {by}"));
    }
    if let Some(observed) = view.memory.observation(row.longest_lease(), now) {
        let until = view.near(now.plus(observed.wait).stamp.wall);
        let why = doubt_text(observed.doubt);
        let text = format!(
            "nothing is granted until {until}: the store may have forgotten a grant, as it {why}"
        );
        add(Level::Notice, text);
    }
    all.sort_by_key(|concern| std::cmp::Reverse(concern.level));
    all
}

fn notes(row: &Row, view: &View) -> Vec<String> {
    let document = &row.document;
    let mut notes = Vec::new();
    if let Some(expected) = &row.expected_client
        && row.client_bound() != Some(expected)
    {
        notes.push(format!("{expected} is expected to have it"));
    }
    if let Some(handoff) = &document.handoff {
        notes.push(format!("handed off to {}", handoff.to));
    }
    if let Some(client) = &document.gives_way {
        notes.push(format!("{client} gives way"));
    }
    if let Some(next) = not_before(row).filter(|at| *at > view.wall()) {
        notes.push(format!("no run before {}", view.near(next)));
    }
    if let (State::Idle { .. }, Some(age)) = (&row.state, row.age(&view.now)) {
        let left = document.keep.saturating_sub(age);
        if left > Duration::ZERO {
            notes.push(format!("open to others in {}", rounded(left)));
        }
    }
    notes.iter().map(|note| printable(note)).collect()
}

fn recent(run: &RunRecord, now: WallTime) -> Recent {
    let code = match (run.exit_code, run.signal) {
        (Some(code), _) if code != 0 => format!(" ({code})"),
        (_, Some(signal)) => format!(" ({})", signals::name(signal)),
        _ => String::new(),
    };
    let label = run.label.as_ref();
    let label = label.map_or_else(String::new, |label| format!(" ({label})"));
    let from = run.previous_client.as_ref();
    Recent {
        started_at: run.started_at,
        kind: Kind::of(run.outcome),
        outcome: format!("{}{code}", run.outcome),
        took: rounded(length(run, now)),
        client: printable(run.client.as_str()),
        from: from.map(|client| printable(client.as_str())),
        grant: run.grant.as_str(),
        what: printable(&format!("{}{label}", run.program)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::calendar::Calendar;
    use super::super::fixture::ago;
    use super::super::view::Detail;
    use super::*;
    use crate::token::rule::tests::fixture::{but, idle, running, s, seen};
    use crate::token::{ClientId, Memory, Pause};
    use jiff::tz::TimeZone;

    fn group(row: &Row, runs: &[RunRecord], after: Duration) -> Group {
        let now = seen(row.clone()).after(after).now;
        let view = View {
            now,
            memory: Memory::SOUND,
            calendar: Calendar::new(TimeZone::UTC),
            detail: Detail::of(1),
        };
        let runs: Vec<&RunRecord> = runs.iter().collect();
        let past = Past {
            runs: &runs,
            cut: runs.first().map(|run| run.started_at),
            acts: &[],
            refusals: &[],
        };
        let known = Known {
            row,
            waiters: 3,
            past,
        };
        Group::of(&known, &view)
    }

    fn texts(group: &Group) -> Vec<&str> {
        group.concerns.iter().map(|it| it.text.as_str()).collect()
    }

    #[test]
    fn a_group_that_is_well_needs_no_attention() {
        let group = group(&running("a"), &[], s(1));
        assert_eq!(
            (group.state, group.client.as_deref()),
            ("running", Some("a"))
        );
        assert_eq!((group.level(), group.waiters), (None, 3));
        assert_eq!((group.timelines.len(), group.days.len()), (3, DAYS));
        assert_eq!((group.cut, group.took), (None, None));
    }

    #[test]
    fn the_gravest_concern_comes_first() {
        let row = but(running("a"), |row| {
            row.document.paused = Some(Pause {
                by: "eve\n".into(),
                reason: "works".into(),
                until: None,
                other: crate::token::Others::new(),
            });
            row.document.last_outcome = Some(Outcome::Lost);
        });
        let silent = row.document.takeover_after + s(1);
        let group = group(&row, &[], silent);
        assert_eq!(group.qualities, ["silent", "paused"]);
        assert_eq!(group.level(), Some(Level::Trouble));
        let texts = texts(&group);
        assert!(texts[0].contains("silent for"), "{texts:?}");
        assert_eq!(texts[1], "its last run ended as lost");
        assert_eq!(group.silent_for.as_deref(), Some("1m 41s"));
        assert_eq!(texts[2], r"paused by eve\n until it is resumed: works");
    }

    #[test]
    fn the_last_run_is_told_with_when_where_and_why() {
        let before = |hours: u64| idle("a").stamped.stamp.wall.minus(s(hours * 3_600));
        let run = |outcome| super::super::fixture::run("vm-1", before(3), Some(before(2)), outcome);
        let told = |run: RunRecord| {
            let group = group(&idle("a"), &[run], Duration::ZERO);
            (
                group.last.unwrap().text,
                group.concerns.first().map(|it| it.text.clone()),
            )
        };
        let killed = RunRecord {
            signal: Some(11),
            ..run(Outcome::Signalled)
        };
        let (last, concern) = told(killed);
        assert_eq!(last, "killed (SIGSEGV) 2h ago");
        let concern = concern.unwrap();
        assert_eq!(concern, "its last run was killed by SIGSEGV 2h ago on vm-1");
        let unstarted = RunRecord {
            reason: Some("could not start /opt/missing: no such file".into()),
            ..run(Outcome::NotStarted)
        };
        assert_eq!(
            told(unstarted).1.unwrap(),
            "its last run could not start /opt/missing: no such file, 2h ago on vm-1"
        );
        // An operator wanted that.
        let revoked = RunRecord {
            revoked: true,
            ..run(Outcome::Lost)
        };
        assert_eq!(told(revoked), ("revoked 2h ago".to_owned(), None));
    }

    #[test]
    fn what_is_worth_a_word_is_no_concern() {
        let row = but(idle("a"), |row| {
            row.expected_client = ClientId::new("b").ok();
        });
        let group = group(&row, &[], Duration::ZERO);
        assert_eq!(group.level(), None);
        assert_eq!(group.notes[0], "b is expected to have it");
    }

    #[test]
    fn the_newest_runs_are_listed_and_the_oldest_one_says_where_history_is_cut() {
        let run = |at, outcome| super::super::fixture::run("a", ago(at), Some(ago(at)), outcome);
        let mut runs: Vec<_> = (1..30)
            .rev()
            .map(|at| run(at, Outcome::Succeeded))
            .collect();
        let mut last = run(0, Outcome::Failed);
        (last.exit_code, last.label) = (Some(3), Some("<b>".into()));
        runs.push(last);
        let group = group(&idle("a"), &runs, s(1));
        assert_eq!(group.recent.len(), Detail::of(1).runs);
        assert_eq!(group.recent[0].outcome, "failed (3)");
        assert_eq!(group.recent[0].what, "job (<b>)");
        assert_eq!(group.cut, Some(ago(29)));
    }
}
