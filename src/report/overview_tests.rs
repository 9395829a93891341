use std::time::Duration;

use super::*;
use crate::report::group::LastRun;
use crate::store::StoreError;
use crate::token::record::fixture::unheld_run;
use crate::token::rule::tests::fixture::{but, client, created, epoch, idle, running, s, session};
use crate::token::{
    ClockEpoch, GroupName, Handoff, Incarnation, Others, Outcome, Pause, RunRecord, Served, Stamp,
    Waiter, WallTime,
};

/// 2026-11-21 13:00:00 in Berlin.
const NOW: WallTime = WallTime(1_795_262_400_000);
const MINUTE: u64 = 60;
const HOUR: u64 = 3_600;

fn now() -> StoreTime {
    StoreTime {
        epoch: epoch("d"),
        stamp: ago(0),
    }
}

fn ago(seconds: u64) -> Stamp {
    let wall = NOW.minus(s(seconds));
    Stamp {
        tick_ms: wall.0,
        wall,
    }
}

fn later(seconds: u64) -> WallTime {
    NOW.plus(s(seconds))
}

fn name(name: &str) -> GroupName {
    GroupName::new(name).unwrap()
}

/// A row with this name, with a heartbeat a second ago, and a grant long before.
fn row(group: &str, of: Row, granted: u64) -> Row {
    but(of, |row| {
        row.group = name(group);
        row.stamped = StoreTime {
            epoch: epoch("d"),
            stamp: ago(1),
        };
        row.document.acquired = Some(ago(granted));
        row.document.granted_epoch = Some(epoch("d"));
        row.document.stamp_of = crate::token::StampOf::Heartbeat;
        row.document.takeover_after = s(5 * MINUTE);
        row.document.not_before = Duration::ZERO;
        row.expected_client = None;
    })
}

fn paused(row: &mut Row, reason: &str, until: Option<WallTime>) {
    row.document.paused = Some(Pause {
        by: "root".into(),
        reason: reason.into(),
        until,
        other: Others::new(),
    });
}

fn last(outcome: Outcome, code: i32, ended: u64, took: u64) -> Option<LastRun> {
    Some(LastRun::of(&RunRecord {
        outcome,
        exit_code: Some(code),
        started_at: ago(ended + took).wall,
        ended_at: Some(ago(ended).wall),
        ..unheld_run(&name("x"), 1)
    }))
}

fn ok(ended: u64, took: u64) -> Option<LastRun> {
    last(Outcome::Succeeded, 0, ended, took)
}

/// Ten groups in ten states, with their last runs and how many sessions wait.
fn ten() -> Vec<(Row, Option<LastRun>, usize)> {
    let nightly = row("nightly", running("vm-1"), 12 * MINUTE);
    let report = but(row("report", idle("vm-2"), 2 * HOUR), |row| {
        row.document.handoff = Some(Handoff {
            to: client("vm-1"),
            at: NOW,
            for_failback: false,
            other: Others::new(),
        });
    });
    let etl = but(row("etl", created(), 0), |row| {
        paused(row, "new kernel", Some(later(HOUR)));
    });
    let silent = but(row("mail", running("vm-3"), HOUR), |row| {
        row.stamped.stamp = ago(7 * MINUTE);
    });
    let elsewhere = but(row("index", running("vm-3"), 2 * HOUR), |row| {
        row.stamped.epoch = ClockEpoch("another".into());
    });
    let revoked = but(row("rebuild", running("vm-2"), 26 * HOUR), |row| {
        row.document.revoke_requested = true;
    });
    let stopping = but(row("billing", running("vm-1"), 30), |row| {
        paused(row, "a migration", None);
    });
    let soon = but(row("archive", idle("vm-2"), 600), |row| {
        row.document.not_before = s(3 * HOUR);
        row.expected_client = Some(client("vm-1"));
    });
    let long = "an-installation-with-a-very-long-name-production-eu-central-1-etl";
    let named = "ip-10-0-12-133.eu-central-1.compute.internal";
    let lengthy = row(long, idle(named), 3 * HOUR);
    vec![
        (nightly, ok(23 * HOUR, 4 * MINUTE), 2),
        (report, last(Outcome::Failed, 3, HOUR, 40), 0),
        (etl, ok(3 * 24 * HOUR, 11), 0),
        (silent, ok(25 * HOUR, 90), 1),
        (elsewhere, ok(26 * HOUR, 90), 0),
        (revoked, last(Outcome::Unknown, 0, 30 * HOUR, 100), 0),
        (stopping, None, 0),
        (soon, ok(9 * MINUTE, 60), 0),
        (lengthy, ok(2 * HOUR, HOUR), 0),
        (row("new", created(), 0), None, 0),
    ]
}

fn drawn(groups: &[(Row, Option<LastRun>, usize)], wide: bool, screen: &Screen) -> String {
    let spoilt = Unreadable {
        group: "spoilt".into(),
        error: StoreError::misconfigured("keep_ms of tokens is -1"),
    };
    let store = "/var/lib/tokenrun/tokens.db";
    drawn_with(groups, &[&spoilt], store, wide, screen)
}

fn drawn_with(
    groups: &[(Row, Option<LastRun>, usize)],
    unreadable: &[&Unreadable],
    store: &str,
    wide: bool,
    screen: &Screen,
) -> String {
    let waiter = Waiter {
        session: session("w"),
        client: client("vm-9"),
        failback: false,
    };
    let now = now();
    let at = Snapshot {
        store,
        memory: &Memory::SOUND,
        now: &now,
    };
    let groups = groups.iter();
    let groups =
        groups.map(|(row, last, waiting)| Group::new(row, *last, vec![&waiter; *waiting], at));
    let groups: Vec<_> = groups.collect();
    overview(&groups, unreadable, at, wide, screen)
}

fn berlin(width: usize) -> Screen {
    let zone = jiff::tz::TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
    Screen {
        width: Some(width),
        times: Times::Local(zone),
        ..Screen::plain()
    }
}

#[test]
fn ten_groups_in_ten_states_fit_eighty_columns() {
    insta::assert_snapshot!(drawn(&ten(), false, &berlin(80)));
}

#[test]
fn the_guide_shows_what_is_shown() {
    let text = drawn_with(&ten()[..3], &[], "postgres://db/jobs", false, &berlin(80));
    let text: String = text.lines().map(|line| format!("    {line}\n")).collect();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/status-and-history.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(&text), "{text}");
}

#[test]
fn any_width_is_kept() {
    for width in 1..200 {
        for line in drawn(&ten(), false, &berlin(width)).lines() {
            let wide = super::super::table::width_of(line);
            assert!(wide <= width, "{width}: {line}");
        }
    }
    let unbounded = drawn(&ten(), false, &Screen::plain());
    assert!(!unbounded.contains('…'), "{unbounded}");
    assert!(
        unbounded.contains("until 2026-11-21T13:00:00.000Z"),
        "{unbounded}"
    );
}

#[test]
fn every_column_is_shown_wide_at_any_width() {
    let text = drawn(&ten(), true, &berlin(80));
    let heads: Vec<&str> = text.lines().next().unwrap().split("  ").collect();
    let heads: Vec<&str> = heads.into_iter().filter(|it| !it.is_empty()).collect();
    let heads: Vec<&str> = heads.into_iter().map(str::trim).collect();
    assert_eq!(
        heads,
        [
            "GROUP",
            "STATE",
            "NODE",
            "EXPECTED",
            "SINCE",
            "LAST RUN",
            "LAST SUCCESS",
            "FENCE",
            "HOST",
            "PID",
            "HEARTBEAT",
            "TAKEOVER IN",
            "NOT BEFORE",
            "LABEL",
            "NOTE"
        ]
    );
    let line = |group: &str| {
        let found = text.lines().find(|line| line.starts_with(group));
        found
            .unwrap_or_else(|| panic!("{group}: {text}"))
            .to_owned()
    };
    let words = |group: &str| line(group).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words("nightly").contains("1s ago 4m 59s"), "{text}");
    assert!(words("mail").contains("7m ago open"), "{text}");
    assert!(line("index").contains("unknown clock"), "{text}");
    assert!(line("archive").contains("2026-11-21 15:50:00"), "{text}");
    assert!(text.contains("production-eu-central"), "{text}");
}

#[test]
fn a_screen_of_few_lines_counts_the_groups_that_it_does_not_show() {
    let low = |height| Screen {
        height: Some(height),
        ..berlin(80)
    };
    let text = drawn(&ten(), false, &low(7));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 7, "{text}");
    assert!(lines[6].starts_with("(6 more groups, store /"), "{text}");
    let all = drawn(&ten(), false, &low(13));
    assert_eq!(all, drawn(&ten(), false, &berlin(80)));
    let all_but_one = drawn(&ten(), false, &low(12));
    assert!(all_but_one.contains("(1 more group, "), "{all_but_one}");
    for height in 0..3 {
        assert!(drawn(&ten(), false, &low(height)).lines().count() <= 2);
    }
}

#[test]
fn colours_name_trouble_and_nothing_else() {
    let colourful = Screen {
        colours: true,
        ..berlin(80)
    };
    let text = drawn(&ten(), false, &colourful);
    for painted in [
        "\u{1b}[31munreadable\u{1b}[0m",
        "\u{1b}[33mrunning, silent\u{1b}[0m",
        "\u{1b}[33mpaused by root\u{1b}[0m",
        "\u{1b}[32mrunning\u{1b}[0m",
        "\u{1b}[31mfailed (3) 1h ago\u{1b}[0m",
    ] {
        assert!(text.contains(painted), "{painted}: {text}");
    }
    let plain = drawn(&ten(), false, &berlin(80));
    let mut stripped = text;
    for code in [31, 32, 33, 0] {
        stripped = stripped.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert_eq!(stripped, plain);
}

#[test]
fn an_observed_group_says_until_when_nothing_is_granted() {
    let memory = Memory {
        unnoted: Served::For(s(100)),
        lag: Duration::ZERO,
        incarnation: Some(Incarnation("i1".into())),
        ..Memory::SOUND
    };
    let now = now();
    let at = Snapshot {
        store: "the store",
        memory: &memory,
        now: &now,
    };
    let row = row("a", idle("vm-1"), 60);
    let group = Group::new(&row, None, Vec::new(), at);
    let text = overview(&[group], &[], at, false, &berlin(80));
    assert!(text.contains("idle, observed"), "{text}");
    assert!(text.contains("nothing granted until 13:"), "{text}");
}

#[test]
fn an_empty_store_has_no_table() {
    let now = now();
    let at = Snapshot {
        store: "the store",
        memory: &Memory::SOUND,
        now: &now,
    };
    let text = overview(&[], &[], at, false, &Screen::plain());
    assert_eq!(text, "(no groups, store the store)\n");
}
