//! The table `tokens`: a token's columns, and back.

use tokio_postgres::Row as Found;

use std::time::SystemTime;

use super::cells::{BadCell, Cells, Value, bad};
use super::statements::{FIRST_SEGMENT, Named};
use crate::token::{
    ClientId, Counters, Domain, Fence, GroupName, Handoff, Outcome, Outcomes, Pause, Row,
    SessionId, Stamp, State, StoreTime, Swap, Touch, Version,
};

/// Where the token begins in an answer of `token_read.sql` or `token_list.sql`: after the time and
/// the oldest reader.
pub(super) const IN_ANSWER: usize = 4;

/// The column that says where the row's stamp comes from.
const DOMAIN: &str = "domain";

/// The columns, in the order of [`row_values`] and of [`from_row`].
pub(super) const COLUMNS: [&str; 40] = [
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
    "acquired_at",
    "released_at",
    "created_at",
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

/// What is sent for a swap's row: its columns, by their names, and when the swap expires. What
/// the server's time goes into is not used.
pub(super) fn to_values(swap: &Swap) -> Named {
    let mut values: Named = COLUMNS.into_iter().zip(row_values(&swap.to)).collect();
    // The time that is put in is one of this domain: in another the swap expires.
    if swap.touch != Touch::Nothing
        && let Some((_, value)) = values.iter_mut().find(|(name, _)| *name == DOMAIN)
    {
        *value = Value::text(&swap.expiry.domain);
    }
    let names = ["expires", "started", "timeline"];
    values.extend(names.into_iter().zip(expiry_values(&swap.expiry)));
    values.push(("from", Value::Long(swap.from.map(Version::number))));
    values
}

/// After which time, and in which incarnation of the server alone: when it was started, and the
/// name that tells its timeline.
pub(super) fn expiry_values(expiry: &StoreTime) -> [Value; 3] {
    let (started, timeline) = incarnation(&expiry.domain);
    [
        Value::time(Some(expiry.stamp.tick_ms)),
        Value::Time(started),
        Value::text(&format!("{timeline}{FIRST_SEGMENT}")),
    ]
}

/// When the server was started, and its timeline, as [`domain`] has put them together.
fn incarnation(of: &Domain) -> (Option<SystemTime>, &str) {
    let parts = of.0.split_once(' ').and_then(|(started, timeline)| {
        let at = humantime::parse_rfc3339(started).ok()?;
        (domain(Some(at), timeline) == *of).then_some((Some(at), timeline))
    });
    // Then it is not this server's.
    parts.unwrap_or((None, &of.0))
}

/// The domain of a server that was started then, with this timeline, which the statements
/// give with a name's rest.
pub(super) fn domain_of(started: Option<SystemTime>, name: &str) -> Domain {
    domain(started, name.strip_suffix(FIRST_SEGMENT).unwrap_or(name))
}

fn domain(started: Option<SystemTime>, timeline: &str) -> Domain {
    Domain(match started {
        Some(at) => format!("{} {timeline}", humantime::format_rfc3339_micros(at)),
        None => timeline.to_owned(),
    })
}

/// What a swap sets, of a row that is there.
pub(super) fn changes(swap: &Swap) -> String {
    let touched = touched(&swap.to, swap.touch);
    let set = COLUMNS.iter().skip(1).map(|column| {
        if touched.contains(column) {
            format!("{column} = {}", source(column))
        } else {
            format!("{column} = ${column}")
        }
    });
    set.collect::<Vec<_>>().join(", ")
}

/// What a swap of a row that is not there inserts.
pub(super) fn insertion(swap: &Swap) -> (String, String) {
    let touched = touched(&swap.to, swap.touch);
    let values = COLUMNS.iter().map(|column| {
        if touched.contains(column) {
            source(column)
        } else {
            format!("${column}")
        }
    });
    (COLUMNS.join(", "), values.collect::<Vec<_>>().join(", "))
}

/// Where the value of a column comes from that is touched.
fn source(column: &str) -> String {
    if column == DOMAIN {
        format!("${column}")
    } else {
        "now".to_owned()
    }
}

fn row_values(row: &Row) -> Vec<Value> {
    let (state, heartbeat_at, released_at) = match &row.state {
        State::Free => (FREE, None, None),
        State::Idle { released_at, .. } => (IDLE, None, Some(*released_at)),
        State::Running { heartbeat_at, .. } => (RUNNING, Some(*heartbeat_at), None),
    };
    let time = |stamp: Option<Stamp>| Value::time(stamp.map(|stamp| stamp.wall_ms));
    let paused = row.paused.as_ref();
    let handoff = row.handoff.as_ref();
    let outcomes = row.counters.outcomes;
    vec![
        Value::text(&row.group),
        Value::text(state),
        Value::maybe(row.client_bound()),
        Value::maybe(row.expected_client.as_ref()),
        Value::maybe(row.session()),
        Value::long(row.fence.0),
        Value::maybe(row.host.as_ref()),
        Value::Int(row.pid),
        Value::maybe(row.label.as_ref()),
        time(heartbeat_at),
        time(row.acquired_at),
        time(released_at),
        time(Some(row.created_at)),
        Value::text(&row.domain),
        Value::maybe(row.granted_domain.as_ref()),
        Value::millis(row.takeover_after),
        Value::millis(row.keep),
        Value::millis(row.head_start),
        Value::millis(row.not_before),
        Value::maybe(row.lock_file.as_ref()),
        Value::maybe(paused.map(|pause| &pause.by)),
        Value::maybe(paused.map(|pause| &pause.reason)),
        Value::time(paused.and_then(|pause| pause.until_wall_ms)),
        Value::maybe(handoff.map(|handoff| &handoff.to)),
        Value::time(handoff.map(|handoff| handoff.at_wall_ms)),
        Value::Flag(row.revoke_requested),
        Value::maybe(row.last_outcome.as_ref()),
        Value::long(row.counters.runs),
        Value::long(row.counters.failures),
        Value::long(row.counters.takeovers),
        Value::long(row.counters.losses),
        Value::long(outcomes.succeeded),
        Value::long(outcomes.signalled),
        Value::long(outcomes.timed_out),
        Value::long(outcomes.not_started),
        Value::long(outcomes.unknown),
        Value::long(outcomes.forced),
        Value::long(row.version.number()),
        Value::Long(row.session_version.map(Version::number)),
        Value::Flag(handoff.is_some_and(|handoff| handoff.for_failback)),
    ]
}

/// The columns that the server puts its own time into: [`Row::stamp`], in its words.
fn touched(row: &Row, touch: Touch) -> Vec<&'static str> {
    let running = matches!(row.state, State::Running { .. }).then_some("heartbeat_at");
    let idle = matches!(row.state, State::Idle { .. }).then_some("released_at");
    let stamps = match touch {
        Touch::Nothing => return Vec::new(),
        Touch::Creation => [Some("created_at"), None, None],
        Touch::Grant { creates } => [
            creates.then_some("created_at"),
            Some("acquired_at"),
            running,
        ],
        Touch::Heartbeat => [running, None, None],
        Touch::Release => [idle, None, None],
    };
    let stamps = stamps.into_iter().flatten();
    stamps.chain([DOMAIN]).collect()
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
    /// Contradictions are not guessed away: whoever is let in by a guess may run
    /// beside another.
    fn state(self) -> Result<State, BadCell> {
        let Self {
            word,
            client,
            session,
            heartbeat_at,
            released_at,
        } = self;
        match (word.as_str(), client, session, heartbeat_at, released_at) {
            (FREE, None, None, None, None) => Ok(State::Free),
            (IDLE, Some(client), None, None, Some(released_at)) => Ok(State::Idle {
                client,
                released_at,
            }),
            (RUNNING, Some(client), Some(session), Some(heartbeat_at), None) => {
                Ok(State::Running {
                    client,
                    session,
                    heartbeat_at,
                })
            }
            (word @ (FREE | IDLE | RUNNING), ..) => Err(bad(
                "state",
                format!(
                    "is {word:?}, which client_bound, session, heartbeat_at and released_at contradict"
                ),
            )),
            (word, ..) => {
                let shown: String = word.chars().take(60).collect();
                Err(bad("state", format!("is {shown:?}, an unknown word")))
            }
        }
    }
}

/// The row that the columns from `first` on stand for; `None` if there is none.
pub(super) fn from_row(found: &Found, first: usize) -> Result<Option<Row>, BadCell> {
    let c = &mut Cells::new(found, first);
    let Some(group) = c.name(GroupName::new)? else {
        return Ok(None);
    };
    let word = c.needed()?;
    let client = c.name(ClientId::new)?;
    let expected_client = c.name(ClientId::new)?;
    let session = c.name(SessionId::new)?;
    let fence = Fence(c.count()?);
    let (host, pid, label) = (c.cell()?, c.cell()?, c.cell()?);
    let heartbeat_at = c.stamp()?;
    let acquired_at = c.stamp()?;
    let released_at = c.stamp()?;
    let state = StateCells {
        word,
        client,
        session,
        heartbeat_at,
        released_at,
    };
    let created_at = c.stamp()?;
    let mut row = Row {
        group,
        state: state.state()?,
        expected_client,
        fence,
        host,
        pid,
        label,
        acquired_at,
        created_at: c.there(created_at)?,
        domain: Domain(c.needed()?),
        granted_domain: c.cell()?.map(Domain),
        takeover_after: c.millis()?,
        keep: c.millis()?,
        head_start: c.millis()?,
        not_before: c.millis()?,
        lock_file: c.cell()?,
        paused: pause(c)?,
        handoff: handoff(c)?,
        revoke_requested: c.needed()?,
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
        version: Version::from_stored(c.needed()?),
        session_version: c.cell()?.map(Version::from_stored),
    };
    let for_failback = c.needed()?;
    match &mut row.handoff {
        Some(handoff) => handoff.for_failback = for_failback,
        None if for_failback => return Err(c.bad("contradicts handoff_to")),
        None => {}
    }
    Ok(Some(row))
}

fn pause(c: &mut Cells<'_>) -> Result<Option<Pause>, BadCell> {
    let by: Option<String> = c.cell()?;
    let reason: Option<String> = c.cell()?;
    let until_wall_ms = c.wall()?;
    let Some(by) = by else {
        if reason.is_some() || until_wall_ms.is_some() {
            return Err(bad(
                "paused_by",
                "is NULL, which the other pause columns contradict",
            ));
        }
        return Ok(None);
    };
    Ok(Some(Pause {
        by,
        reason: reason.unwrap_or_default(),
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
