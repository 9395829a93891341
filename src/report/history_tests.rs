use super::*;
use crate::report::screen::Times;
use crate::token::record::fixture::unheld_run;
use crate::token::refusal::fixture::refused;
use crate::token::rule::tests::fixture::{client, epoch};
use crate::token::{Actor, Fence, GrantKind, GroupName, Stamp, Version};

/// 2026-11-21 13:00:00 in Berlin.
const NOW: WallTime = WallTime(1_795_262_400_000);

fn now() -> StoreTime {
    StoreTime {
        epoch: epoch("d"),
        stamp: Stamp {
            tick_ms: 0,
            wall: NOW,
        },
    }
}

fn berlin(width: Option<usize>) -> Screen {
    let zone = jiff::tz::TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
    Screen {
        width,
        times: Times::Local(zone),
        ..Screen::plain()
    }
}

fn ago(minutes: u64) -> WallTime {
    NOW.minus(std::time::Duration::from_secs(60 * minutes))
}

fn run(began: u64, outcome: Outcome) -> Entry {
    Entry::Run(Box::new(RunRecord {
        previous_client: None,
        grant: GrantKind::Renew,
        label: None,
        host: Some("vm-1.example.com".into()),
        client: client("vm-1"),
        outcome,
        started_at: ago(began),
        ended_at: (outcome != Outcome::Running).then(|| ago(began - 2)),
        ..unheld_run(&GroupName::new("nightly").unwrap(), 4_711)
    }))
}

fn changed(entry: Entry, change: impl Fn(&mut RunRecord)) -> Entry {
    match entry {
        Entry::Run(mut run) => {
            change(&mut run);
            Entry::Run(run)
        }
        other => other,
    }
}

fn act(word: &str, minutes: u64, change: impl Fn(&mut ActRecord)) -> Entry {
    let mut act = ActRecord {
        group: GroupName::new("nightly").unwrap(),
        at: ago(minutes),
        version: Version::from_stored(1),
        act: word.into(),
        client: None,
        until: None,
        once_key: None,
        incarnation: None,
        fence: Fence(4_712),
        actor: Actor {
            by: "root".into(),
            host: Some("vm-1".into()),
            reason: Some("kernel upgrade".into()),
        },
    };
    change(&mut act);
    Entry::Act(Box::new(act))
}

fn entries() -> Vec<Entry> {
    vec![
        run(10, Outcome::Running),
        act("pause", 20, |act| act.until = Some(ago(0))),
        changed(run(30, Outcome::Lost), |run| run.revoked = true),
        act("revoke", 31, |act| act.client = Some(client("vm-1"))),
        changed(run(60, Outcome::Failed), |run| run.exit_code = Some(3)),
        changed(run(120, Outcome::Succeeded), |run| {
            run.grant = GrantKind::Takeover;
            run.previous_client = Some(client("vm-2"));
            run.label = Some("weekly".into());
        }),
        act("fence_raise", 130, |act| act.actor.reason = None),
        act("once_forget", 1_500, |act| {
            act.once_key = Some("2026-47".into())
        }),
    ]
}

#[test]
fn acts_are_sentences_and_runs_have_their_columns() {
    insta::assert_snapshot!(history(&entries(), &now(), &berlin(None)));
}

#[test]
fn where_there_is_less_room_what_matters_is_left() {
    insta::assert_snapshot!(history(&entries(), &now(), &berlin(Some(80))));
}

#[test]
fn any_width_is_kept() {
    for width in 1..150 {
        let text = history(&entries(), &now(), &berlin(Some(width)));
        for line in text.lines() {
            let wide = super::super::table::width_of(line);
            assert!(wide <= width, "{width}: {line}");
        }
    }
}

#[test]
fn a_file_has_times_that_scripts_can_read() {
    let text = history(&entries(), &now(), &Screen::plain());
    assert!(
        text.contains("\n2026-11-21T11:50:00.000Z  nightly  vm-1"),
        "{text}"
    );
    assert!(!text.contains("times in"), "{text}");
}

#[test]
fn refusals_are_sentences() {
    let refusal = |count, reason: &str| {
        Entry::Refusal(Box::new(RefusalRecord {
            first_at: ago(60),
            last_at: ago(10),
            count,
            ..refused("nightly", "vm-2", reason)
        }))
    };
    let entries = [refusal(12, "held"), refusal(1, "too_soon")];
    let text = history(&entries, &now(), &berlin(Some(100)));
    assert!(
        text.contains("2026-11-21 12:50:00  nightly  vm-2 was refused, 12 times since 12:00: holder held the token\n"),
        "{text}"
    );
    let once = "nightly  vm-2 was refused: the run before was too recent (--at-least)\n";
    assert!(text.contains(once), "{text}");
}
