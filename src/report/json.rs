//! The objects of `status --json`. Their field names are stable.

use std::time::Duration;

use serde::Serialize;

use super::group::{Group, LastRun, Snapshot};
use super::rfc3339;
use crate::store::Unreadable;
use crate::token::{Counters, Outcome, Row, State, WallTime};

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// One token, as `status --json` shows it.
#[derive(Debug, Serialize)]
pub struct Token<'a> {
    pub group: &'a str,
    /// `free`, `running` or `idle`.
    pub state: &'static str,
    /// The client that the token belongs to.
    pub client: Option<&'a str>,
    /// The configured primary.
    pub expected_client: Option<&'a str>,
    /// The session that holds it.
    pub session: Option<&'a str>,
    /// The fencing token.
    pub fence: i64,
    /// The holder's host, or the last one's.
    pub host: Option<&'a str>,
    /// The supervisor's pid on that host.
    pub pid: Option<i32>,
    /// The user's name for the run.
    pub label: Option<&'a str>,
    /// The time of the last heartbeat, by the store's wall clock.
    pub heartbeat_at: Option<String>,
    /// The age of that heartbeat; `null` if another clock stamped it.
    pub heartbeat_age_ms: Option<u64>,
    /// How long until the token could be taken over; `null` as above.
    pub takeover_in_ms: Option<u64>,
    /// When it was last granted.
    pub acquired_at: Option<String>,
    /// When the last run ended.
    pub released_at: Option<String>,
    /// The earliest next grant, by `--at-least`.
    pub not_before: Option<String>,
    /// How long nothing is granted, because the store may have forgotten a grant.
    pub observed_until: Option<String>,
    /// The operator who stopped new grants.
    pub paused_by: Option<&'a str>,
    pub paused_reason: Option<&'a str>,
    pub paused_until: Option<String>,
    /// The operator who paused the client that the token belongs to.
    pub client_paused_by: Option<&'a str>,
    pub client_paused_reason: Option<&'a str>,
    pub client_paused_until: Option<String>,
    /// The client that waits the head start for any other.
    pub gives_way: Option<&'a str>,
    /// The client that gets the token next.
    pub handoff_to: Option<&'a str>,
    /// When the hand-off was made.
    pub handoff_at: Option<String>,
    /// True if an operator has asked the holder to end its job.
    pub revoke_requested: bool,
    /// The number of waiters in the queue.
    pub waiters: usize,
    /// The waiters, in order.
    pub queue: Vec<Waiting<'a>>,
    /// The program that runs.
    pub program: Option<&'a str>,
    /// The key of `--once` that it runs for.
    pub once_key: Option<&'a str>,
    /// How the holder got the token.
    pub grant: Option<&'static str>,
    /// How long the holder may be silent.
    pub takeover_after_ms: u64,
    /// How long after a run others are refused outright.
    pub keep_ms: u64,
    /// How long a client without preference waits.
    pub head_start_ms: u64,
    /// The last finished run, as far as it is known.
    pub last_run: Option<LastRun>,
    pub last_outcome: Option<&'static str>,
    /// Why the last try ran no job.
    pub not_started: Option<&'a str>,
    /// When the last run that succeeded ended.
    pub last_success_at: Option<String>,
    /// Grants so far.
    pub runs: i64,
    /// Runs whose job failed, was killed or timed out.
    pub failures: i64,
    /// Grants to another client than the one before.
    pub takeovers: i64,
    /// Runs that lost their token or whose end is unknown, other than by an operator's revoke.
    pub losses: i64,
}

/// A session that waits for a token.
#[derive(Debug, Serialize)]
pub struct Waiting<'a> {
    pub client: &'a str,
    pub session: &'a str,
}

/// An object of `status --json`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Listed<'a> {
    Token(Box<Token<'a>>),
    /// A row that can't be read.
    Unreadable {
        /// The group, as far as it is readable.
        group: &'a str,
        /// The word `unreadable`.
        state: &'static str,
        /// What is wrong with it.
        error: String,
    },
}

impl<'a> Listed<'a> {
    /// The object for an unreadable row.
    pub fn unreadable(row: &'a Unreadable) -> Self {
        Self::Unreadable {
            group: &row.group,
            state: UNREADABLE,
            error: row.error.to_string(),
        }
    }
}

/// The state of an unreadable row.
pub(super) const UNREADABLE: &str = "unreadable";

/// The state in a word.
pub const fn state_word(state: &State) -> &'static str {
    match state {
        State::Free => "free",
        State::Idle { .. } => "idle",
        State::Running { .. } => "running",
    }
}

impl<'a> Token<'a> {
    /// The object for a group.
    pub fn of(group: &'a Group<'a>, at: Snapshot<'a>) -> Self {
        let waiting = group.waiters.iter().map(|waiter| Waiting {
            client: waiter.client.as_str(),
            session: waiter.session.as_str(),
        });
        let queue: Vec<_> = waiting.collect();
        let (row, now) = (group.row, at.now);
        let heartbeat = row.heartbeat_at();
        let age = heartbeat.and_then(|_| row.age(now));
        let Counters {
            runs,
            failures,
            takeovers,
            losses,
            ..
        } = row.document.counters;
        let pause = row.pause_at(now);
        let own = row.client_bound();
        let own = own.and_then(|client| at.memory.pause_of(client, now));
        let handoff = row.document.handoff.as_ref();
        let observed = at.memory.observation(row.longest_lease(), now);
        Self {
            group: row.group.as_str(),
            state: state_word(&row.state),
            client: row.client_bound().map(|client| client.as_str()),
            expected_client: row.expected_client.as_ref().map(|client| client.as_str()),
            session: row.session().map(|session| session.as_str()),
            fence: row.fence.0,
            host: row.document.host.as_deref(),
            pid: row.document.pid,
            label: row.document.label.as_deref(),
            heartbeat_at: heartbeat.map(|stamp| rfc3339(stamp.wall)),
            heartbeat_age_ms: age.map(millis),
            takeover_in_ms: age.map(|age| millis(row.document.takeover_after.saturating_sub(age))),
            acquired_at: row.acquired_at().map(|stamp| rfc3339(stamp.wall)),
            released_at: row.released_at().map(|stamp| rfc3339(stamp.wall)),
            not_before: not_before(row).map(rfc3339),
            observed_until: observed.map(|it| rfc3339(now.plus(it.wait).stamp.wall)),
            paused_by: pause.map(|pause| pause.by.as_str()),
            paused_reason: pause.map(|pause| pause.reason.as_str()),
            paused_until: pause.and_then(|pause| pause.until).map(rfc3339),
            client_paused_by: own.map(|pause| pause.by.as_str()),
            client_paused_reason: own.map(|pause| pause.reason.as_str()),
            client_paused_until: own.and_then(|pause| pause.until).map(rfc3339),
            gives_way: row.document.gives_way.as_ref().map(|it| it.as_str()),
            handoff_to: handoff.map(|handoff| handoff.to.as_str()),
            handoff_at: handoff.map(|handoff| rfc3339(handoff.at)),
            revoke_requested: row.document.revoke_requested,
            waiters: queue.len(),
            queue,
            program: row.run().map(|run| run.program.as_str()),
            once_key: row.run().and_then(|run| run.once_key.as_deref()),
            grant: row.run().map(|run| run.grant.as_str()),
            takeover_after_ms: millis(row.document.takeover_after),
            keep_ms: millis(row.document.keep),
            head_start_ms: millis(row.document.head_start),
            last_run: group.last,
            last_outcome: row.document.last_outcome.map(Outcome::word),
            not_started: group.unstarted.as_deref(),
            last_success_at: group.last_success.map(rfc3339),
            runs,
            failures,
            takeovers,
            losses,
        }
    }
}

/// The earliest next grant, by `--at-least`.
pub fn not_before(row: &Row) -> Option<WallTime> {
    let acquired_at = row
        .acquired_at()
        .filter(|_| !row.document.not_before.is_zero())?;
    Some(acquired_at.wall.plus(row.document.not_before))
}
