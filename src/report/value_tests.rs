//! Every value in its own place: no two values shown here are equal, so a value in the place of
//! another is noticed.

use std::time::Duration;

use serde_json::{Value, json};

use super::check::{Succeeded, not_succeeded, succeeded};
use super::details::details;
use super::explain::Explanation;
use super::group::{Group, LastRun, Snapshot};
use super::history::{Entry, history};
use super::message::Context;
use super::metrics::{Measured, text};
use super::overview::overview;
use super::records::{MarkObject, RunObject, marks};
use super::refusal::why_not;
use super::screen::Screen;
use super::{json, refusal};
use crate::token::rule::tests::fixture::{claim, client, epoch, run_by, session};
use crate::token::{
    Clause, ClockEpoch, Counters, Decision, Document, Fence, GrantKind, GroupName, Handoff,
    Incarnation, Memory, OnceMark, Others, Outcome, Pause, Refusal, RefusalTotal, Row, RunRecord,
    Served, Stamp, StampOf, State, StoreTime, Verdict, Version, Waiter, WallTime,
    document::VERSION,
};

const HOUR: i64 = 3_600_000;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// This long after 14:13:20 of that day.
const fn at(ms: i64) -> Stamp {
    Stamp {
        tick_ms: 5_000 + ms,
        wall: WallTime(1_790_000_000_000 + ms),
    }
}

/// A minute after the heartbeat, and after the release.
fn now() -> StoreTime {
    StoreTime {
        epoch: epoch("d"),
        stamp: at(2 * HOUR + 60_000),
    }
}

/// Created at 14:13:20, granted an hour later, with a heartbeat another hour later.
fn running() -> Row {
    Row {
        group: GroupName::new("backup").unwrap(),
        version: Version::from_stored(1),
        fence: Fence(4_711),
        state: State::Running {
            client: client("n1"),
            run: run_by("s1"),
        },
        expected_client: Some(client("n2")),
        stamped: StoreTime {
            stamp: at(2 * HOUR),
            epoch: epoch("d"),
        },
        document: Document {
            longest_takeover_after: Duration::ZERO,
            reader: VERSION,
            stamp_of: StampOf::Heartbeat,
            session_version: Some(Version::from_stored(1)),
            granted_epoch: Some(epoch("d")),
            created: Some(at(0)),
            acquired: Some(at(HOUR)),
            takeover_after: s(5 * 60),
            keep: s(2 * 3_600),
            head_start: s(17),
            not_before: s(9 * 3_600),
            host: Some("host-a".into()),
            pid: Some(42),
            label: Some("the label".into()),
            paused: Some(Pause {
                by: "admin".into(),
                reason: "disk full".into(),
                until: Some(at(3 * HOUR).wall),
                other: Others::new(),
            }),
            handoff: Some(Handoff {
                to: client("n3"),
                at: at(HOUR / 2).wall,
                for_failback: false,
                other: Others::new(),
            }),
            gives_way: Some(client("n5")),
            revoke_requested: false,
            last_outcome: Some(Outcome::TimedOut),
            counters: Counters {
                runs: 90,
                failures: 17,
                takeovers: 4,
                losses: 9,

                succeeded: 30,
                signalled: 5,
                timed_out: 6,
                not_started: 7,
                unknown: 1,
                forced: 2,
                revoked: 3,
            },
            other: Others::new(),
        },
    }
}

fn idle() -> Row {
    Row {
        state: State::Idle {
            client: client("n1"),
        },
        ..running()
    }
}

fn shown<T>(
    row: &Row,
    memory: &Memory,
    now: &StoreTime,
    show: impl Fn(&Group<'_>, Snapshot<'_>) -> T,
) -> T {
    let at = Snapshot {
        store: "the store",
        memory,
        now,
    };
    let waiter = Waiter {
        session: session("s7"),
        client: client("n7"),
        failback: false,
    };
    let last = LastRun::of(&record("n1", HOUR, 90_000, Outcome::Failed));
    show(&Group::new(row, Some(last), vec![&waiter], at), at)
}

fn wide(row: &Row, now: &StoreTime) -> Vec<String> {
    let text = shown(row, &Memory::SOUND, now, |group, at| {
        overview(std::slice::from_ref(group), &[], at, true, &Screen::plain())
    });
    let line = text.lines().nth(1).unwrap().split("  ");
    let cells = line.map(str::trim).filter(|cell| !cell.is_empty());
    cells.map(str::to_owned).collect()
}

#[test]
fn a_running_token_is_open_after_its_takeover_after() {
    let paused = "disk full, until 2026-09-21T17:13:20.000Z; next: n3 (handoff); n5 gives way; 1 waiting; \
                  expected n2; not before 2026-09-22T00:13:20.000Z";
    let line = |state, since, heartbeat, open, note: &str| {
        let cells = [
            "backup",
            state,
            "n1",
            "n2",
            since,
            "failed (3) 59m ago",
            "-",
            "4711",
            "host-a",
            "42",
            heartbeat,
            open,
            "2026-09-22T00:13:20.000Z",
            "the label",
            note,
        ];
        cells.map(str::to_owned).to_vec()
    };
    let by = format!("admin: {paused}");
    let expected = line("running, paused", "1h", "1m ago", "4m", &by);
    assert_eq!(wide(&running(), &now()), expected);
    let expected = line("paused by admin", "-", "-", "-", paused);
    assert_eq!(wide(&idle(), &now()), expected);
    let elsewhere = StoreTime {
        epoch: ClockEpoch("other".into()),
        ..now()
    };
    let at = "2026-09-21T16:13:20.000Z";
    let note = format!("another clock; {by}");
    let expected = line("running, paused", "1h", at, "unknown clock", &note);
    assert_eq!(wide(&running(), &elsewhere), expected);
}

#[test]
fn the_details_of_a_token_name_each_value_by_its_name() {
    let text = |row: &Row| {
        let text = shown(row, &Memory::SOUND, &now(), |group, at| {
            details(group, at, &Screen::plain())
        });
        let words = text.lines().map(|line| line.split_whitespace().collect());
        words
            .map(|words: Vec<_>| words.join(" "))
            .collect::<Vec<_>>()
    };
    let expected = [
        "group backup",
        "state running, paused",
        "client n1",
        "expected client n2",
        "session s1",
        "fence 4711",
        "host host-a, pid 42",
        "label the label",
        "last heartbeat 1m ago",
        "takeover in 4m",
        "acquired at 2026-09-21T15:13:20.000Z",
        "released at -",
        "not before 2026-09-22T00:13:20.000Z",
        "terms takeover-after 5m, keep 2h, head-start 17s",
        "clock d",
        "paused by admin until 2026-09-21T17:13:20.000Z (disk full)",
        "client paused -",
        "gives way n5",
        "handoff to n3 since 2026-09-21T14:43:20.000Z",
        "revoke -",
        "waiting n7 (session s7)",
        "last run failed (3) 59m ago",
        "not started -",
        "last success -",
        "so far 90 runs, 17 failures, 4 takeovers, 9 losses",
        "store the store",
    ];
    assert_eq!(text(&running()), expected);
    let between = text(&idle());
    for line in [
        "last heartbeat -",
        "open to others in 7h 59m",
        "released at 2026-09-21T16:13:20.000Z",
    ] {
        assert!(between.iter().any(|it| it == line), "{line}: {between:?}");
    }
}

#[test]
fn the_json_of_a_token_names_each_value_by_its_name() {
    let mut expected = json!({
        "group": "backup", "state": "running", "client": "n1", "expected_client": "n2",
        "session": "s1", "fence": 4_711, "host": "host-a", "pid": 42, "label": "the label",
        "heartbeat_at": "2026-09-21T16:13:20.000Z", "heartbeat_age_ms": 60_000,
        "takeover_in_ms": 240_000, "acquired_at": "2026-09-21T15:13:20.000Z",
        "released_at": Value::Null, "not_before": "2026-09-22T00:13:20.000Z",
        "observed_until": "2026-09-21T16:17:40.000Z", "paused_by": "admin", "paused_reason": "disk full",
        "paused_until": "2026-09-21T17:13:20.000Z", "client_paused_by": Value::Null,
        "client_paused_reason": Value::Null, "client_paused_until": Value::Null, "gives_way": "n5",
        "handoff_to": "n3",
        "handoff_at": "2026-09-21T14:43:20.000Z", "revoke_requested": false, "waiters": 1,
        "queue": [{ "client": "n7", "session": "s7" }], "program": "run.sh", "once_key": Value::Null,
        "grant": "bind", "takeover_after_ms": 300_000, "keep_ms": 7_200_000, "head_start_ms": 17_000,
        "last_run": {
            "outcome": "failed", "exit_code": 3, "signal": Value::Null, "revoked": false,
            "started_at": "2026-09-21T15:13:20.000Z", "ended_at": "2026-09-21T15:14:50.000Z",
        },
        "last_outcome": "timed_out", "runs": 90, "failures": 17, "takeovers": 4, "losses": 9,
    });
    // json! takes no more at once.
    for name in ["not_started", "last_success_at"] {
        expected[name] = Value::Null;
    }
    let (running, idle) = (running(), idle());
    let object = |row: &Row, memory: &Memory| {
        shown(row, memory, &now(), |group, at| {
            serde_json::to_value(json::Token::of(group, at)).unwrap()
        })
    };
    assert_eq!(object(&running, &observed()), expected);
    let shown = object(&idle, &Memory::SOUND);
    assert_eq!(shown["released_at"], "2026-09-21T16:13:20.000Z");
    assert_eq!(
        (&shown["heartbeat_at"], &shown["takeover_in_ms"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(shown["observed_until"], Value::Null);
}

/// A store that has been observed for 100 s.
fn observed() -> Memory {
    Memory {
        unnoted: Served::For(s(100)),
        lag: Duration::ZERO,
        incarnation: Some(Incarnation("i1".into())),
        ..Memory::SOUND
    }
}

fn record(client_of: &str, began: i64, took: i64, outcome: Outcome) -> RunRecord {
    RunRecord {
        group: GroupName::new("backup").unwrap(),
        fence: Fence(4_700),
        session: session("s0"),
        client: client(client_of),
        previous_client: Some(client("n9")),
        host: Some("host-b".into()),
        pid: Some(43),
        label: Some("weekly".into()),
        program: "run.sh".into(),
        once_key: Some("2026-38".into()),
        grant: GrantKind::Takeover,
        started_at: at(began).wall,
        ended_at: Some(at(began + took).wall),
        outcome,
        exit_code: Some(3),
        signal: None,
        revoked: false,
        reason: None,
        output: None,
        moved_on: false,
        other: Others::new(),
    }
}

#[test]
fn a_run_is_shown_with_each_value_in_its_place() {
    let failed = record("n1", 0, 90_000, Outcome::Failed);
    let expected = [
        "2026-09-21T14:13:20.000Z",
        "backup",
        "n1",
        "host-b",
        "takeover",
        "n9",
        "4700",
        "1m 30s",
        "failed (3)",
        "run.sh (weekly)",
    ];
    let entry = Entry::Run(Box::new(failed.clone()));
    let table = history(&[entry], &now(), &Screen::plain());
    let cells: Vec<&str> = table.lines().nth(1).unwrap().split("  ").collect();
    let cells: Vec<&str> = cells.into_iter().filter(|it| !it.is_empty()).collect();
    let cells: Vec<&str> = cells.into_iter().map(str::trim).collect();
    assert_eq!(cells, expected);
    let expected = json!({
        "group": "backup", "fence": 4_700, "session": "s0", "client": "n1",
        "previous_client": "n9", "host": "host-b", "pid": 43, "label": "weekly",
        "program": "run.sh", "once_key": "2026-38", "grant": "takeover",
        "started_at": "2026-09-21T14:13:20.000Z", "ended_at": "2026-09-21T14:14:50.000Z",
        "outcome": "failed", "exit_code": 3, "signal": Value::Null, "revoked": false,
        "reason": Value::Null, "moved_on": false,
    });
    let shown = RunObject(&failed);
    assert_eq!(serde_json::to_value(shown).unwrap(), expected);
}

#[test]
fn a_key_is_shown_with_each_value_in_its_place() {
    let mark = OnceMark {
        group: GroupName::new("backup").unwrap(),
        key: "2026-38".into(),
        done_at: at(90_000).wall,
        fence: Fence(4_700),
        session: session("s0"),
        client: client("n1"),
    };
    let table = marks(std::slice::from_ref(&mark), &Screen::plain());
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let lines: Vec<_> = table.lines().map(words).collect();
    assert_eq!(lines[0], ["DONE", "GROUP", "KEY", "CLIENT", "FENCE"]);
    let done_at = "2026-09-21T14:14:50.000Z";
    assert_eq!(lines[1], [done_at, "backup", "2026-38", "n1", "4700"]);
    let expected = json!({
        "group": "backup", "once_key": "2026-38", "done_at": done_at, "fence": 4_700,
        "session": "s0", "client": "n1",
    });
    let shown = serde_json::to_value(MarkObject(&mark)).unwrap();
    assert_eq!(shown, expected);
}

#[test]
fn the_last_success_is_shown_as_its_run() {
    let last = record("n1", HOUR, 30 * 60_000, Outcome::Succeeded);
    let group = GroupName::new("backup").unwrap();
    let shown = serde_json::to_value(Succeeded::of(group.as_str(), Some(&last), true)).unwrap();
    let ended = "2026-09-21T15:43:20.000Z";
    let expected =
        json!({ "group": "backup", "succeeded": true, "last_success_at": ended, "client": "n1" });
    assert_eq!(shown, expected);
    let text = succeeded(&last, &now(), "the store").text;
    assert_eq!(text, "\"backup\" in the store succeeded on n1 31m ago");
    let text = not_succeeded(&group, Some(&last), s(60), "the store").text;
    assert!(
        text.contains("in the last 1m; the last did at") && text.ends_with(ended),
        "{text}"
    );
}

#[test]
fn each_metric_has_its_own_value() {
    let measured = Measured {
        row: running(),
        last_success: Some(record("n1", HOUR, 1_250, Outcome::Succeeded)),
        last_ended: Some(record("n1", HOUR, 90_500, Outcome::Failed)),
        waiters: 8,
        refusals: vec![RefusalTotal {
            group: GroupName::new("backup").unwrap(),
            reason: "too_soon".into(),
            total: 44,
        }],
    };
    let text = text(&[measured], 3, &observed(), &now());
    let shown: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let expected = [
        "tokenrun_held{group=\"backup\"} 1",
        "tokenrun_client_info{group=\"backup\",client=\"n1\"} 1",
        "tokenrun_heartbeat_age_seconds{group=\"backup\"} 60.000",
        "tokenrun_takeover_after_seconds{group=\"backup\"} 300.000",
        "tokenrun_grants_total{group=\"backup\"} 90",
        "tokenrun_runs_total{group=\"backup\",outcome=\"succeeded\"} 30",
        "tokenrun_runs_total{group=\"backup\",outcome=\"failed\"} 6",
        "tokenrun_runs_total{group=\"backup\",outcome=\"killed\"} 5",
        "tokenrun_runs_total{group=\"backup\",outcome=\"timed_out\"} 6",
        "tokenrun_runs_total{group=\"backup\",outcome=\"lost\"} 8",
        "tokenrun_runs_total{group=\"backup\",outcome=\"unknown\"} 1",
        "tokenrun_runs_total{group=\"backup\",outcome=\"not_started\"} 7",
        "tokenrun_runs_total{group=\"backup\",outcome=\"forced\"} 2",
        "tokenrun_runs_total{group=\"backup\",outcome=\"revoked\"} 3",
        "tokenrun_runs_total{group=\"backup\",outcome=\"other\"} 21",
        "tokenrun_takeovers_total{group=\"backup\"} 4",
        "tokenrun_losses_total{group=\"backup\"} 9",
        "tokenrun_refusals_total{group=\"backup\",reason=\"too_soon\"} 44",
        "tokenrun_last_success_timestamp_seconds{group=\"backup\"} 1790003601.250",
        "tokenrun_last_run_duration_seconds{group=\"backup\"} 90.500",
        "tokenrun_paused{group=\"backup\"} 1",
        "tokenrun_observation_remaining_seconds{group=\"backup\"} 200.000",
        "tokenrun_waiters{group=\"backup\"} 8",
        "tokenrun_unreadable_groups 3",
    ];
    assert_eq!(shown, expected);
}

/// Refusals, each with its reason in the words of `explain`, of a message, and of the line on a
/// terminal.
fn refusals() -> [(Refusal, [&'static str; 3]); 4] {
    let held = Refusal::Held {
        by: client("n1"),
        session: session("s1"),
        same_client: false,
        silent_for: s(60),
        takeover_in: s(240),
    };
    let bound = Refusal::Bound {
        to: client("n1"),
        wait: s(70),
    };
    let reserved = Refusal::Reserved {
        to: client("n2"),
        wait: s(80),
    };
    [
        (
            held,
            [
                "n1 (session s1) sent its last heartbeat 1m ago, and may be silent for 4m more",
                "held by n1 (host host-a, pid 42) since 2026-09-21T15:13:20.000Z in the store; \
                 its last heartbeat is 1m old, and it can be taken over in 4m if no new heartbeat comes, but \
                 not before 2026-09-22T00:13:20.000Z (--at-least)",
                "held by n1 for 1h 1m, takeover possible in 4m",
            ],
        ),
        (
            bound,
            [
                "It belongs to n1 and is kept for it for 1m 10s more",
                "belongs to n1, which ran it a short while ago; other clients can have it in 1m 10s",
                "kept for n1 for 1m 10s",
            ],
        ),
        (
            reserved,
            [
                "It is reserved for n2 for 1m 20s more",
                "reserved for n2, which is expected to run it; other clients can have it in 1m 20s",
                "reserved for n2 for 1m 20s",
            ],
        ),
        (
            Refusal::TooSoon { wait: s(90) },
            [
                "The last run began at 2026-09-21T15:13:20.000Z; the next may in 1m 30s, or after tokenrun release",
                "can run again in 1m 30s, or after tokenrun release -g \"backup\"",
                "too soon for 1m 30s",
            ],
        ),
    ]
}

#[test]
fn a_refusal_is_shown_with_each_time_in_its_place() {
    let (claim, row, now) = (claim("n5"), running(), now());
    let group = GroupName::new("backup").unwrap();
    let cx = Context {
        group: &group,
        store: "the store",
        program: "run.sh",
        command: &[],
        client: &claim.client,
        host: Some("host-a"),
        timeout: None,
        ran: None,
    };
    for (why, [because, message, shown_line]) in refusals() {
        let decided = Decision {
            clause: Clause::Held,
            verdict: Verdict::Refused(why.clone()),
        };
        let shown = Explanation::of(&claim, Some(&row), &now, &decided, None, None);
        assert_eq!(shown.because, because);
        let shown = why_not(&cx, &why, Some(&row));
        assert!(shown.ends_with(message), "{shown}");
        let shown = refusal::display(&cx, Some(&row), &now, &why, 2);
        let line = format!("\"backup\", 2 ahead in the queue: {shown_line}");
        assert_eq!(shown, line);
    }
}
