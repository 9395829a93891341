//! The table `tokens`: a row's columns, and back.

use rusqlite::types::Value;

use super::cells::{self, BadCell, Cells, agree, bad};
use crate::token::{
    ClientId, Counters, Domain, Fence, GroupName, Handoff, Outcome, Outcomes, Pause, Row,
    SessionId, Stamp, State, Version,
};

/// The columns, in the order of the statements.
pub(super) const COLUMNS: &[&str] = &[
    "token_group",
    "state",
    "client_bound",
    "expected_client",
    "session",
    "fence",
    "host",
    "pid",
    "label",
    "heartbeat_at",
    "heartbeat_tick",
    "acquired_at",
    "acquired_tick",
    "released_at",
    "released_tick",
    "created_at",
    "created_tick",
    "domain",
    "granted_domain",
    "takeover_after_ms",
    "keep_ms",
    "head_start_ms",
    "not_before_ms",
    "lock_file",
    "paused_by",
    "paused_reason",
    "paused_until",
    "handoff_to",
    "handoff_at",
    "revoke_requested",
    "last_outcome",
    "runs",
    "failures",
    "takeovers",
    "losses",
    "succeeded",
    "signalled",
    "timed_out",
    "not_started",
    "vanished",
    "forced",
    "version",
    "session_version",
    "handoff_failback",
];

const FREE: &str = "free";
const IDLE: &str = "idle";
const RUNNING: &str = "running";

/// What is written for a row, in the order of [`COLUMNS`].
pub(super) fn to_values(row: &Row) -> Vec<Value> {
    let (state, heartbeat_at, released_at) = match &row.state {
        State::Free => (FREE, None, None),
        State::Idle { released_at, .. } => (IDLE, None, Some(*released_at)),
        State::Running { heartbeat_at, .. } => (RUNNING, Some(*heartbeat_at), None),
    };
    let [heartbeat_wall, heartbeat_tick] = cells::stamp(heartbeat_at);
    let [acquired_wall, acquired_tick] = cells::stamp(row.acquired_at);
    let [released_wall, released_tick] = cells::stamp(released_at);
    let [created_wall, created_tick] = cells::stamp(Some(row.created_at));
    let paused = row.paused.as_ref();
    let handoff = row.handoff.as_ref();
    let outcomes = row.counters.outcomes;
    vec![
        cells::text(row.group.as_str()),
        cells::text(state),
        cells::text_or_null(row.client_bound()),
        cells::text_or_null(row.expected_client.as_ref()),
        cells::text_or_null(row.session()),
        Value::Integer(row.fence.0),
        cells::text_or_null(row.host.as_ref()),
        cells::number_or_null(row.pid),
        cells::text_or_null(row.label.as_ref()),
        heartbeat_wall,
        heartbeat_tick,
        acquired_wall,
        acquired_tick,
        released_wall,
        released_tick,
        created_wall,
        created_tick,
        cells::text(row.domain.0.as_str()),
        cells::text_or_null(row.granted_domain.as_ref()),
        cells::millis(row.takeover_after),
        cells::millis(row.keep),
        cells::millis(row.head_start),
        cells::millis(row.not_before),
        cells::text_or_null(row.lock_file.as_ref()),
        cells::text_or_null(paused.map(|pause| &pause.by)),
        cells::text_or_null(paused.map(|pause| &pause.reason)),
        cells::wall_or_null(paused.and_then(|pause| pause.until_wall_ms)),
        cells::text_or_null(handoff.map(|handoff| &handoff.to)),
        cells::wall_or_null(handoff.map(|handoff| handoff.at_wall_ms)),
        Value::Integer(i64::from(row.revoke_requested)),
        cells::text_or_null(row.last_outcome.as_ref()),
        Value::Integer(row.counters.runs),
        Value::Integer(row.counters.failures),
        Value::Integer(row.counters.takeovers),
        Value::Integer(row.counters.losses),
        Value::Integer(outcomes.succeeded),
        Value::Integer(outcomes.signalled),
        Value::Integer(outcomes.timed_out),
        Value::Integer(outcomes.not_started),
        Value::Integer(outcomes.unknown),
        Value::Integer(outcomes.forced),
        Value::Integer(row.version.number()),
        cells::number_or_null(row.session_version.map(Version::number)),
        Value::Integer(i64::from(
            handoff.is_some_and(|handoff| handoff.for_failback),
        )),
    ]
}

/// The columns that say together in which state a token is.
struct StateCells {
    word: String,
    client: Option<ClientId>,
    session: Option<SessionId>,
    heartbeat_at: Option<Stamp>,
    released_at: Option<Stamp>,
}

impl StateCells {
    /// Contradictions are not guessed away: whoever is let in by a guess may
    /// run beside another.
    fn state(self) -> Result<State, BadCell> {
        let word = format!("state {:?}", self.word);
        let bound = self.client.is_some();
        agree(bound == (self.word != FREE), "client_bound", &word)?;
        let running = self.word == RUNNING;
        agree(self.session.is_some() == running, "session", &word)?;
        agree(
            self.heartbeat_at.is_some() == running,
            "heartbeat_at",
            &word,
        )?;
        let idle = self.word == IDLE;
        agree(self.released_at.is_some() == idle, "released_at", &word)?;
        match (
            self.client,
            self.session,
            self.heartbeat_at,
            self.released_at,
        ) {
            (None, None, None, None) => Ok(State::Free),
            (Some(client), None, None, Some(released_at)) => Ok(State::Idle {
                client,
                released_at,
            }),
            (Some(client), Some(session), Some(heartbeat_at), None) => Ok(State::Running {
                client,
                session,
                heartbeat_at,
            }),
            _ => Err(bad("state", "contradicts the other columns")),
        }
    }
}

fn known_state(word: &str) -> Option<String> {
    [FREE, IDLE, RUNNING]
        .contains(&word)
        .then(|| word.to_owned())
}

/// The row that the columns stand for.
pub(super) fn from_cells(mut cells: Cells<'_>) -> Result<Row, BadCell> {
    let c = &mut cells;
    let group = c.needed_name(GroupName::new)?;
    let word = c.word(known_state)?;
    let word = c.needed(word)?;
    let client = c.name(ClientId::new)?;
    let expected_client = c.name(ClientId::new)?;
    let session = c.name(SessionId::new)?;
    let fence = Fence(c.count()?);
    let host = c.owned()?;
    let pid = c.small()?;
    let label = c.owned()?;
    let heartbeat_at = c.stamp()?;
    let acquired_at = c.stamp()?;
    let released_at = c.stamp()?;
    let state = StateCells {
        word,
        client,
        session,
        heartbeat_at,
        released_at,
    }
    .state()?;
    let created_at = c.stamp()?;
    let created_at = c.needed(created_at)?;
    let domain = Domain(c.needed_text()?.to_owned());
    let granted_domain = c.owned()?.map(Domain);
    let mut row = Row {
        group,
        state,
        expected_client,
        fence,
        host,
        pid,
        label,
        acquired_at,
        created_at,
        domain,
        granted_domain,
        takeover_after: c.millis()?,
        keep: c.millis()?,
        head_start: c.millis()?,
        not_before: c.millis()?,
        lock_file: c.owned()?,
        paused: pause(c)?,
        handoff: handoff(c)?,
        revoke_requested: c.flag()?,
        last_outcome: c.word(Outcome::from_word)?,
        counters: Counters {
            runs: c.count()?,
            failures: c.count()?,
            takeovers: c.count()?,
            losses: c.count()?,
            outcomes: Outcomes {
                succeeded: c.count()?,
                signalled: c.count()?,
                timed_out: c.count()?,
                not_started: c.count()?,
                unknown: c.count()?,
                forced: c.count()?,
            },
        },
        version: Version::from_stored(c.needed_number()?),
        session_version: c.number()?.map(Version::from_stored),
    };
    let for_failback = c.flag()?;
    match &mut row.handoff {
        Some(handoff) => handoff.for_failback = for_failback,
        None if for_failback => return Err(c.bad("contradicts handoff_to")),
        None => {}
    }
    Ok(row)
}

fn pause(c: &mut Cells<'_>) -> Result<Option<Pause>, BadCell> {
    let by = c.owned()?;
    let reason = c.owned()?;
    let until_wall_ms = c.wall()?;
    let Some(by) = by else {
        agree(reason.is_none(), "paused_reason", "paused_by NULL")?;
        agree(until_wall_ms.is_none(), "paused_until", "paused_by NULL")?;
        return Ok(None);
    };
    let reason = reason.unwrap_or_default();
    Ok(Some(Pause {
        by,
        reason,
        until_wall_ms,
    }))
}

fn handoff(c: &mut Cells<'_>) -> Result<Option<Handoff>, BadCell> {
    let to = c.name(ClientId::new)?;
    let at_wall_ms = c.wall()?;
    match (to, at_wall_ms) {
        (None, None) => Ok(None),
        (Some(to), Some(at_wall_ms)) => Ok(Some(Handoff {
            to,
            at_wall_ms,
            for_failback: false,
        })),
        _ => Err(c.bad("contradicts handoff_to")),
    }
}
