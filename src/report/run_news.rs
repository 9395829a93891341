//! The messages of a run that goes on, in sentences.

use std::path::Path;
use std::time::Duration;

use super::incarnation;
use super::message::{Context, Level, Message};
use super::refusal;
use super::run_end::{ended, not_recorded, stopping, was_ended};
use crate::duration::rounded;
use crate::job::messages::Unkillable;
use crate::run::ending::Ending;
use crate::run::event::{Granted, GuardNews, Note};
use crate::store::StoreError;
use crate::token::{Clause, Row, StoreTime, Verdict};

/// The message for a note, if there is one. `seen` is the row of the last look.
pub fn message(cx: &Context<'_>, note: &Note, seen: Option<(&Row, &StoreTime)>) -> Option<Message> {
    use Level::{Detail, Info};
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
        Note::NoLocks { why } => Message::detail("no_locks", no_locks(cx, why)),
        Note::Acquired {
            granted,
            vanished,
            proven,
        } => {
            let level = if vanished.is_some() { Info } else { Detail };
            let holder = vanished
                .as_ref()
                .map(|_| if *proven { "dead" } else { "silent" });
            Message::new(level, "acquired", acquired(cx, granted, holder))
        }
        Note::Blind => Message::warning(
            "no_proc",
            format!(
                "/proc is missing or shows another pid namespace: only the first process of {} can be ended, and {} is held as long as other processes that it started live",
                cx.program,
                cx.group()
            ),
        ),
        Note::Started => Message::detail("started", format!("{} started", cx.program)),
        Note::Renewed { trusted_for } => Message::detail(
            "renewed",
            format!(
                "the heartbeat of {} was written; the lease can be trusted for {}",
                cx.group(),
                rounded(*trusted_for)
            ),
        ),
        Note::Adopted => Message::detail(
            "adopted",
            format!(
                "another process wrote the row of {}; this session still has the token",
                cx.group()
            ),
        ),
        Note::TroubleBegan { error, job_ends_in } => {
            Message::warning("store_trouble", trouble(cx, error, *job_ends_in))
                .because(error.trouble.word())
        }
        Note::TroubleEnded => Message::info(
            "store_recovered",
            format!(
                "the store {} can be used again; {} went on",
                cx.store, cx.program
            ),
        ),
        Note::Split { primaries } => Message::warning("two_primaries", split(cx, primaries)),
        Note::Stopping { why, kill_in } => stopping(cx, why, *kill_in)?,
        Note::LostAfterEnd => Message::warning(
            "lost_after_end",
            format!(
                "{} ended by itself, but this session no longer had the token of {}; the exit code of the job counts",
                cx.program,
                cx.group()
            ),
        ),
        Note::NotRecorded { error, once } => {
            let text = not_recorded(cx, error.as_ref(), *once);
            Message::warning("not_recorded", text)
        }
        Note::OutputNotKept { error } => {
            Message::warning("output_not_kept", output_not_kept(cx, error))
                .because(error.trouble.word())
        }
        Note::Ended(ending) => return ended(cx, ending, seen),
    })
}

/// The message for the end of a run whose job's output was caught, if there is one: it comes last, and
/// says why the job was ended, as an earlier one did.
pub fn end_of_caught(cx: &Context<'_>, ending: &Ending) -> Option<Message> {
    was_ended(cx, ending).or_else(|| ended(cx, ending, None))
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
    format!(
        "looked at {} in {}: clause {clause} decides: {what}",
        cx.group(),
        cx.store
    )
}

fn staying(
    cx: &Context<'_>,
    row: &Row,
    now: &StoreTime,
    observing: bool,
    wait: Duration,
) -> String {
    let wait = rounded(wait);
    let group = cx.group();
    let of = row
        .client_bound()
        .map_or_else(String::new, |client| format!(" of {client}"));
    if observing {
        format!(
            "the token{of} for {group} in {} was stamped by another clock ({}, now {}): waiting {wait} to see whether it stays silent",
            cx.store, row.stamped.epoch, now.epoch
        )
    } else {
        let preferred = row.next_client();
        let preferred = preferred.map_or("another client", |client| client.as_str());
        format!(
            "{group} in {} is open; leaving {preferred} a head start of {wait} before taking it",
            cx.store
        )
    }
}

fn no_locks(cx: &Context<'_>, why: &str) -> String {
    format!(
        "no lock could be taken for {} ({why}): if this run is killed, other runs on this host wait for --takeover-after too",
        cx.group()
    )
}

/// `holder`: the state of the earlier run's holder, if there was one.
fn acquired(cx: &Context<'_>, granted: &Granted, holder: Option<&str>) -> String {
    let kind = granted.kind.map_or("nested", |kind| kind.as_str());
    let previous = granted.previous_client.as_ref();
    let from = previous.map_or_else(String::new, |client| format!(" from {client}"));
    let found = holder.map_or_else(String::new, |found| format!(", whose holder is {found},"));
    format!(
        "took {}{from}{found} in {} ({kind}, fence {})",
        cx.group(),
        cx.store,
        granted.fence
    )
}

fn trouble(cx: &Context<'_>, error: &StoreError, job_ends_in: Option<Duration>) -> String {
    let until = job_ends_in.map_or_else(String::new, |left| {
        format!(
            "; it is ended in {} unless the store comes back",
            rounded(left)
        )
    });
    let what = error.to_string();
    let what = match what.starts_with("the store ") {
        true => what,
        false => format!("the store can't be used ({what})"),
    };
    format!("{what}; {} goes on{until}", cx.program)
}

fn split(cx: &Context<'_>, primaries: &[String]) -> String {
    format!(
        "the store {} has several primaries, which can all be written to: {}; another node may use another one, and run {} at the same time; stop all but the right one now, and start an old primary again only as a standby",
        cx.store,
        primaries.join(", "),
        cx.group()
    )
}

fn output_not_kept(cx: &Context<'_>, error: &StoreError) -> String {
    format!(
        "the output of {} is not stored in {}: {error}",
        cx.program, cx.store
    )
}

/// The message for news of the guard.
pub fn guard_news(cx: &Context<'_>, news: &GuardNews) -> Message {
    let program = cx.program;
    let (event, text) = match news {
        GuardNews::Leftovers { seen: false, .. } => (
            "leftovers",
            format!(
                "{program} left processes behind that /proc does not show, so they can't be ended; {} is held as long as they live",
                cx.group()
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
                    "processes of {program} can't be killed, and {} is held as long as they live: {}",
                    cx.group(),
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
