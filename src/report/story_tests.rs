use jiff::tz::TimeZone;

use super::*;
use crate::token::record::fixture::unheld_run;
use crate::token::refusal::fixture::refused as refusal;
use crate::token::{Actor, ClientId, Fence, Version};

/// 2026-11-21 02:00:00 in Berlin.
const TWO: WallTime = WallTime(1_795_222_800_000);

fn minutes(count: i64) -> WallTime {
    WallTime(TWO.0 + count * 60_000)
}

fn berlin() -> Times {
    Times::Local(TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap())
}

fn group() -> GroupName {
    GroupName::new("nightly").unwrap()
}

fn story(group: &GroupName) -> Story<'_> {
    Story {
        group,
        from: minutes(-15),
        until: minutes(15),
        now: minutes(360),
        runs: Vec::new(),
        refusals: Vec::new(),
        acts: Vec::new(),
        paused: None,
        before: None,
        after: None,
    }
}

fn run(client: &str, from: i64, until: i64, outcome: Outcome) -> RunRecord {
    RunRecord {
        client: ClientId::new(client).unwrap(),
        host: Some(client.to_owned()),
        previous_client: None,
        grant: GrantKind::Renew,
        started_at: minutes(from),
        ended_at: Some(minutes(until)),
        outcome,
        exit_code: (outcome == Outcome::Failed).then_some(3),
        program: "backup.sh".into(),
        ..unheld_run(&group(), 7)
    }
}

fn refused_at(client: &str, reason: &str, at: i64, count: u64) -> RefusalRecord {
    RefusalRecord {
        first_at: minutes(at),
        last_at: minutes(at + i64::try_from(count).unwrap() - 1),
        count,
        host: Some(client.to_owned()),
        holder: Some(ClientId::new("vm-1").unwrap()),
        paused_until: None,
        paused_reason: Some("kernel upgrade".into()),
        ..refusal("nightly", client, reason)
    }
}

fn pause_at(at: i64) -> ActRecord {
    ActRecord {
        group: group(),
        at: minutes(at),
        version: Version::from_random(1),
        act: "pause".into(),
        client: None,
        until: Some(minutes(720)),
        once_key: None,
        incarnation: None,
        fence: Fence(7),
        actor: Actor {
            by: "root".into(),
            host: Some("jump".into()),
            reason: Some("kernel upgrade".into()),
        },
    }
}

fn lines(story: &Story<'_>) -> Vec<String> {
    let text = story.text(&berlin());
    text.lines().map(str::to_owned).collect()
}

const SPAN: &str = "\"nightly\", 2026-11-21 01:45:00 to 2026-11-21 02:15:00 (CET):";

#[test]
fn no_client_came() {
    let group = group();
    let story = Story {
        before: Some(run("vm-1", -1440, -1436, Outcome::Succeeded)),
        ..story(&group)
    };
    assert_eq!(
        lines(&story),
        [
            SPAN,
            "It did not run, and no refusal is recorded: no node came, or none that came could write to the store. \
             Check that cron or the timer starts it on each node, and what tokenrun wrote there.",
            "",
            "The run before: 2026-11-20 02:00:00  vm-1 started backup.sh; it succeeded after 4m",
        ]
    );
}

#[test]
fn a_pause_refused_every_client() {
    let group = group();
    let story = Story {
        refusals: vec![
            refused_at("vm-1", "paused", 0, 1),
            refused_at("vm-2", "paused", 0, 1),
        ],
        paused: Some(pause_at(-480)),
        ..story(&group)
    };
    assert_eq!(
        lines(&story),
        [
            SPAN,
            "It did not run: vm-1 and vm-2 came, and each was refused: paused by root (kernel upgrade).",
            "",
            "2026-11-21 02:00:00  vm-1 was refused: paused by root (kernel upgrade)",
            "2026-11-21 02:00:00  vm-2 was refused: paused by root (kernel upgrade)",
            "",
            "Before: 2026-11-20 18:00:00  root on jump paused it until 2026-11-21 14:00: kernel upgrade",
        ]
    );
}

#[test]
fn a_holder_died_and_another_took_over() {
    let group = group();
    let taken = RunRecord {
        grant: GrantKind::Takeover,
        previous_client: Some(ClientId::new("vm-1").unwrap()),
        ..run("vm-2", 10, 14, Outcome::Failed)
    };
    let story = Story {
        runs: vec![run("vm-1", 0, 2, Outcome::Unknown), taken],
        refusals: vec![refused_at("vm-2", "held", 1, 5)],
        ..story(&group)
    };
    assert_eq!(
        lines(&story),
        [
            SPAN,
            "It ran 2 times: 1 unknown, 1 failed.",
            "",
            "2026-11-21 02:00:00  vm-1 started backup.sh; it went silent at 02:02, so its end is unknown",
            "2026-11-21 02:01:00  vm-2 was refused, 5 times until 02:05: vm-1 held the token",
            "2026-11-21 02:10:00  vm-2 took over from vm-1 and started backup.sh; it failed with exit code 3 after 4m",
        ]
    );
}

#[test]
fn one_run_is_the_answer() {
    let group = group();
    let story = Story {
        runs: vec![run("vm-1", 0, 4, Outcome::Succeeded)],
        acts: vec![pause_at(10)],
        ..story(&group)
    };
    let lines = lines(&story);
    assert_eq!(lines[1], "It ran: vm-1 at 02:00 succeeded after 4m.");
    assert_eq!(
        lines[4],
        "2026-11-21 02:10:00  root on jump paused it until 14:00: kernel upgrade"
    );
}

#[test]
fn many_events_are_cut_and_foreign_characters_are_escaped() {
    let group = GroupName::new("nightly").unwrap();
    let evil = RunRecord {
        program: "\u{1b}[2J".into(),
        ..run("vm-1", 0, 1, Outcome::Succeeded)
    };
    let story = Story {
        runs: vec![evil; 50],
        ..story(&group)
    };
    let lines = lines(&story);
    assert_eq!(lines.last().unwrap(), "and 10 more: ask for a shorter time");
    assert!(lines.iter().all(|line| !line.contains('\u{1b}')));
}

#[test]
fn the_object_has_every_part() {
    let group = group();
    let story = Story {
        runs: vec![run("vm-1", 0, 4, Outcome::Succeeded)],
        refusals: vec![refused_at("vm-2", "held", 1, 5)],
        acts: vec![pause_at(10)],
        paused: Some(pause_at(-480)),
        before: Some(run("vm-1", -1440, -1436, Outcome::Succeeded)),
        after: Some(run("vm-1", 300, 301, Outcome::Succeeded)),
        ..story(&group)
    };
    let shown = serde_json::to_value(story.object()).unwrap();
    assert_eq!(shown["ran"], true);
    assert_eq!(shown["from"], "2026-11-21T00:45:00.000Z");
    assert_eq!(shown["until"], "2026-11-21T01:15:00.000Z");
    assert_eq!(shown["runs"][0]["client"], "vm-1");
    assert_eq!(shown["refusals"][0]["refused"], "held");
    assert_eq!(shown["acts"][0]["act"], "pause");
    assert_eq!(shown["paused"]["by"], "root");
    assert_eq!(
        shown["run_before"]["started_at"],
        "2026-11-20T01:00:00.000Z"
    );
    assert_eq!(shown["run_after"]["started_at"], "2026-11-21T06:00:00.000Z");
    assert_eq!(shown["now"], "2026-11-21T07:00:00.000Z");
}
