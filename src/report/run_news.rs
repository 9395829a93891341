//! The messages of a run that goes on, in sentences.

use std::path::Path;
use std::time::Duration;

use super::message::{Context, Level, Message};
use super::run_end::{ended, not_recorded, stopping, was_ended};
use super::{incarnation, refusal};
use crate::duration::rounded;
use crate::job::Unkillable;
use crate::run::ending::Ending;
use crate::run::event::{Granted, GuardNews, Note};
use crate::store::StoreError;
use crate::token::{Clause, Row, StoreTime, Verdict};

/// The message for a note, if there is one. `seen` is the row of the last look.
pub fn message(cx: &Context<'_>, note: &Note, seen: Option<(&Row, &StoreTime)>) -> Option<Message> {
    let (group, store, program) = (cx.group(), cx.store, cx.program);
    Some(match note {
        Note::Decided {
            clause, verdict, ..
        } => Message::detail("decided", decided(cx, *clause, verdict)),
        Note::Staying {
            row,
            now,
            observing,
            wait,
            ..
        } => Message::info("waiting", staying(cx, row, now, *observing, *wait)),
        Note::ObservingStore {
            incarnation,
            doubt,
            now,
            wait,
        } => {
            let text = incarnation::observing(cx, incarnation.as_ref(), *doubt, now, *wait);
            Message::info("observing_store", text)
        }
        Note::Queued { newly: false, .. } => return None,
        Note::Queued {
            row,
            why,
            ahead,
            left,
            ..
        } => {
            let text = refusal::wait_begins(cx, row.as_deref(), why, *ahead, *left);
            Message::info("in_line", text)
                .because(why.word())
                .held_by(why.holder(row.as_deref()))
        }
        Note::StoreAway { error } => Message::warning(
            "store_trouble",
            format!("{error}; waiting for the store too"),
        )
        .because(error.trouble.word()),
        Note::Waited { waited } => Message::info("waited", refusal::wait_ends(cx, *waited)),
        Note::NoLocks { why } => Message::detail(
            "no_locks",
            format!(
                "no lock could be taken for {group} ({why}): if this run is killed, other runs on this host wait for --takeover-after too"
            ),
        ),
        Note::Acquired {
            granted,
            vanished,
            proven,
        } => {
            let level = match vanished {
                Some(_) => Level::Info,
                None => Level::Detail,
            };
            let holder = if *proven { "dead" } else { "silent" };
            let holder = vanished.as_ref().map(|_| holder);
            Message::new(level, "acquired", acquired(cx, granted, holder))
        }
        Note::Blind => Message::warning(
            "no_proc",
            format!(
                "/proc is missing or shows another pid namespace: only the first process of {program} can be ended, and {group} is held as long as other processes that it started live"
            ),
        ),
        Note::Started => Message::detail("started", format!("{program} started")),
        Note::Renewed { trusted_for } => Message::detail(
            "renewed",
            format!(
                "the heartbeat of {group} was written; the lease can be trusted for {}",
                rounded(*trusted_for)
            ),
        ),
        Note::Adopted => Message::detail(
            "adopted",
            format!("another process wrote the row of {group}; this session still has the token"),
        ),
        Note::TroubleBegan { error, job_ends_in } => {
            Message::warning("store_trouble", trouble(cx, error, *job_ends_in))
                .because(error.trouble.word())
        }
        Note::TroubleEnded => Message::info(
            "store_recovered",
            format!("the store {store} can be used again; {program} went on"),
        ),
        Note::Split { primaries } => Message::warning(
            "two_primaries",
            format!(
                "the store {store} has several primaries, which can all be written to: {}; another node may use another one, and run {group} at the same time; stop all but the right one now, and start an old primary again only as a standby",
                primaries.join(", ")
            ),
        ),
        Note::Stopping { why, kill_in } => stopping(cx, why, *kill_in),
        Note::LostAfterEnd => Message::warning(
            "lost_after_end",
            format!(
                "{program} ended by itself, but this session no longer had the token of {group}; the exit code of the job counts"
            ),
        ),
        Note::NotRecorded { error, once } => {
            let text = not_recorded(cx, error.as_ref(), *once);
            Message::warning("not_recorded", text)
        }
        Note::OutputNotKept { error } => {
            let text = format!("the output of {program} is not stored in {store}: {error}");
            Message::warning("output_not_kept", text).because(error.trouble.word())
        }
        Note::Ended(ending) => ended(cx, ending, seen),
    })
}

/// The message for the end of a run whose job's output was caught: it comes last, and
/// says why the job was ended, as an earlier one did.
pub fn end_of_caught(cx: &Context<'_>, ending: &Ending) -> Message {
    was_ended(cx, ending).unwrap_or_else(|| ended(cx, ending, None))
}

fn decided(cx: &Context<'_>, clause: Clause, verdict: &Verdict) -> String {
    let what = match verdict {
        Verdict::Nested => "run under the outer session's lease".to_owned(),
        Verdict::ObserveStore { wait, .. } => {
            format!("observe the store for {}", rounded(*wait))
        }
        Verdict::Observe(wait) => format!("observe for {}", rounded(*wait)),
        Verdict::Wait(wait) => format!("leave the head start of {}", rounded(*wait)),
        Verdict::Create => "create the row".to_owned(),
        Verdict::RefusedWithHandoff(_) => "refused, and handed off for the next look".to_owned(),
        Verdict::Refused(_) => "refused".to_owned(),
        Verdict::Grant(kind) => format!("take the token ({kind})"),
    };
    let (group, store) = (cx.group(), cx.store);
    format!("looked at {group} in {store}: clause {clause} decides: {what}")
}

fn staying(
    cx: &Context<'_>,
    row: &Row,
    now: &StoreTime,
    observing: bool,
    wait: Duration,
) -> String {
    let (group, store, wait) = (cx.group(), cx.store, rounded(wait));
    if observing {
        let client = row.client_bound();
        let of = client.map_or_else(String::new, |client| format!(" of {client}"));
        return format!(
            "the token{of} for {group} in {store} was stamped by another clock ({}, now {}): waiting {wait} to see whether it stays silent",
            row.stamped.epoch, now.epoch
        );
    }
    let preferred = row.next_client();
    let preferred = preferred.map_or("another client", |client| client.as_str());
    format!(
        "{group} in {store} is open; leaving {preferred} a head start of {wait} before taking it"
    )
}

/// `holder`: the state of the earlier run's holder, if there was one.
fn acquired(cx: &Context<'_>, granted: &Granted, holder: Option<&str>) -> String {
    let kind = granted.kind.map_or("nested", |kind| kind.as_str());
    let previous = granted.previous_client.as_ref();
    let from = previous.map_or_else(String::new, |client| format!(" from {client}"));
    let found = holder.map_or_else(String::new, |found| format!(", whose holder is {found},"));
    let (group, store, fence) = (cx.group(), cx.store, granted.fence);
    format!("took {group}{from}{found} in {store} ({kind}, fence {fence})")
}

fn trouble(cx: &Context<'_>, error: &StoreError, job_ends_in: Option<Duration>) -> String {
    let until = job_ends_in.map(rounded).map_or_else(String::new, |left| {
        format!("; it is ended in {left} unless the store comes back")
    });
    let what = error.to_string();
    let what = match what.starts_with("the store ") {
        true => what,
        false => format!("the store can't be used ({what})"),
    };
    format!("{what}; {} goes on{until}", cx.program)
}

/// The message for news of the guard.
pub fn guard_news(cx: &Context<'_>, news: &GuardNews) -> Message {
    let (group, program) = (cx.group(), cx.program);
    let (event, text) = match news {
        GuardNews::Leftovers { seen: false, .. } => (
            "leftovers",
            format!(
                "{program} left processes behind that /proc does not show, so they can't be ended; {group} is held as long as they live"
            ),
        ),
        GuardNews::Leftovers { count: 0, .. } => (
            "leftovers",
            format!("{program} left processes behind; they are ended too"),
        ),
        GuardNews::Leftovers { count, names, .. } => {
            let (processes, they_are, them) = match count {
                1 => ("process", "it is", "it"),
                _ => ("processes", "they are", "them"),
            };
            (
                "leftovers",
                format!(
                    "{program} left {count} {processes} behind ({}); {they_are} ended too (--leftovers leave leaves {them} alone)",
                    names.join(", ")
                ),
            )
        }
        GuardNews::Survivors(survivors) if survivors.is_empty() => (
            "survivors_gone",
            format!("every process of {program} has been killed now"),
        ),
        GuardNews::Survivors(survivors) => {
            let named: Vec<String> = survivors
                .iter()
                .map(|one| match one.why {
                    Unkillable::Unseen => unkillable(one.why).to_owned(),
                    why => format!("{} (pid {}): {}", one.name, one.pid, unkillable(why)),
                })
                .collect();
            (
                "survivors",
                format!(
                    "processes of {program} can't be killed, and {group} is held as long as they live: {}",
                    named.join("; ")
                ),
            )
        }
    };
    Message::warning(event, text)
}

const fn unkillable(why: Unkillable) -> &'static str {
    match why {
        Unkillable::NotPermitted => "only its user or root can end it",
        Unkillable::Uninterruptible => "it sleeps in the kernel",
        Unkillable::NotYetGone => "it has not ended yet",
        Unkillable::Unseen => "/proc does not show them",
    }
}

/// The message for a report that could not be written.
pub fn report_failed(path: &Path, error: &std::io::Error) -> Message {
    let text = format!("the report {} can't be written: {error}", path.display());
    Message::warning("report_failed", text)
}
