//! The output of `metrics`: Prometheus' text format. The counters come from the tokens themselves,
//! so pruning history does not lower them.

use std::fmt::Write as _;
use std::time::Duration;

use crate::token::{Memory, RefusalTotal, Row, RunRecord, State, StoreTime};

/// One group, with the data of its history.
#[derive(Debug)]
pub struct Measured {
    pub row: Row,
    /// The newest run that succeeded.
    pub last_success: Option<RunRecord>,
    /// The newest run that has ended.
    pub last_ended: Option<RunRecord>,
    /// The number of waiters in the queue.
    pub waiters: usize,
    /// The number of recorded refusals, by reason.
    pub refusals: Vec<RefusalTotal>,
}

/// A metric: its name, its type and its meaning.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    pub name: &'static str,
    /// Prometheus' type: gauge or counter.
    pub kind: &'static str,
    pub help: &'static str,
}

impl Metric {
    const fn gauge(name: &'static str, help: &'static str) -> Self {
        let kind = "gauge";
        Self { name, kind, help }
    }

    const fn counter(name: &'static str, help: &'static str) -> Self {
        let kind = "counter";
        Self { name, kind, help }
    }
}

/// All metrics of these groups, as text.
pub fn text(groups: &[Measured], unreadable: usize, memory: &Memory, now: &StoreTime) -> String {
    let mut text = String::new();
    for metric in METRICS {
        let Metric { name, kind, help } = metric;
        let mut samples = String::new();
        if *name == "tokenrun_unreadable_groups" {
            samples = format!("{name} {unreadable}\n");
        }
        for group in groups {
            for (labels, value) in samples_of(name, group, memory, now) {
                let label = escaped(group.row.group.as_str());
                let _ = writeln!(samples, "{name}{{group=\"{label}\"{labels}}} {value}");
            }
        }
        if !samples.is_empty() {
            let _ = write!(
                text,
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{samples}"
            );
        }
    }
    text
}

/// All metrics, in the order in which they are printed.
pub const METRICS: &[Metric] = &[
    Metric::gauge(
        "tokenrun_held",
        "Whether a session holds the token of the group.",
    ),
    Metric::gauge(
        "tokenrun_client_info",
        "The client that the token belongs to, running or between runs.",
    ),
    Metric::gauge(
        "tokenrun_heartbeat_age_seconds",
        "The age of the last heartbeat of the session that holds the token.",
    ),
    Metric::gauge(
        "tokenrun_takeover_after_seconds",
        "How long the holder may be silent before another takes over.",
    ),
    Metric::counter("tokenrun_grants_total", "How often the token was granted."),
    Metric::counter(
        "tokenrun_runs_total",
        "Runs that are over, by outcome. failed: exited with another code than 0. unknown: its holder went silent, and another was granted its token. forced: its token was freed by force. revoked: an operator revoked its token. other: ended by an older tokenrun, which did not count this outcome.",
    ),
    Metric::counter(
        "tokenrun_takeovers_total",
        "Grants to another client than the one before.",
    ),
    Metric::counter(
        "tokenrun_losses_total",
        "Runs that lost their token or whose end is unknown. A token that an operator revokes is none.",
    ),
    Metric::counter(
        "tokenrun_refusals_total",
        "Refused runs, by reason. A client that is refused more often than once a minute counts once a minute.",
    ),
    Metric::gauge(
        "tokenrun_last_success_timestamp_seconds",
        "When the last run that succeeded ended, by the clock of the store. Missing if history knows of none.",
    ),
    Metric::gauge(
        "tokenrun_last_run_duration_seconds",
        "How long the last run that has ended took.",
    ),
    Metric::gauge("tokenrun_paused", "Whether new grants are stopped."),
    Metric::gauge(
        "tokenrun_observation_remaining_seconds",
        "For how much longer nothing is granted, as the store may have forgotten a grant. 0 where the store is trusted.",
    ),
    Metric::gauge("tokenrun_waiters", "How many sessions wait in the queue."),
    Metric::gauge(
        "tokenrun_unreadable_groups",
        "Rows of the store that can not be read.",
    ),
];

fn samples_of(
    name: &str,
    group: &Measured,
    memory: &Memory,
    now: &StoreTime,
) -> Vec<(String, String)> {
    let row = &group.row;
    let counted = row.document.counters;
    let one = |value: String| vec![(String::new(), value)];
    let maybe = |value: Option<String>| value.map(one).unwrap_or_default();
    let flag = |is: bool| one(u8::from(is).to_string());
    let running = matches!(row.state, State::Running { .. });
    match name {
        "tokenrun_held" => flag(running),
        "tokenrun_observation_remaining_seconds" => {
            let observed = memory.observation(row.longest_lease(), now);
            one(seconds(observed.map(|it| it.wait).unwrap_or_default()))
        }
        "tokenrun_waiters" => one(group.waiters.to_string()),
        "tokenrun_client_info" => {
            let client = row.client_bound().map(|client| escaped(client.as_str()));
            let label = client.map(|client| format!(",client=\"{client}\""));
            label
                .into_iter()
                .map(|label| (label, "1".to_owned()))
                .collect()
        }
        "tokenrun_heartbeat_age_seconds" => maybe(row.age(now).filter(|_| running).map(seconds)),
        "tokenrun_takeover_after_seconds" => one(seconds(row.document.takeover_after)),
        "tokenrun_grants_total" => one(counted.runs.to_string()),
        "tokenrun_runs_total" => {
            let by =
                |(word, value): (&str, i64)| (format!(",outcome=\"{word}\""), value.to_string());
            counted.by_outcome(running).map(by).into()
        }
        "tokenrun_takeovers_total" => one(counted.takeovers.to_string()),
        "tokenrun_losses_total" => one(counted.losses.to_string()),
        "tokenrun_refusals_total" => {
            let by = |it: &RefusalTotal| {
                let label = format!(",reason=\"{}\"", escaped(&it.reason));
                (label, it.total.to_string())
            };
            group.refusals.iter().map(by).collect()
        }
        "tokenrun_last_success_timestamp_seconds" => {
            let ended = group.last_success.as_ref().and_then(|run| run.ended_at);
            maybe(ended.map(|at| millis_as_seconds(at.0)))
        }
        "tokenrun_last_run_duration_seconds" => maybe(group.last_ended.as_ref().and_then(|run| {
            let took = run.ended_at?.since(run.started_at);
            Some(seconds(took.unwrap_or_default()))
        })),
        "tokenrun_paused" => flag(row.pause_at(now).is_some()),
        _ => Vec::new(),
    }
}

fn seconds(duration: Duration) -> String {
    millis_as_seconds(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

fn millis_as_seconds(ms: i64) -> String {
    let (whole, rest) = (ms.div_euclid(1_000), ms.rem_euclid(1_000));
    format!("{whole}.{rest:03}")
}

/// A label's value: backslash, quote and line feed are escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
