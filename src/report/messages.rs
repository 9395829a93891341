//! What a run says while it goes on, in sentences.

use std::path::Path;
use std::time::Duration;

use super::incarnation::{self, doubt_text};
use super::json::not_before;
use super::{rfc3339, waiting};
use crate::duration::rounded;
use crate::job::messages::Unkillable;
use crate::run::ending::{Ending, JobEnd, Loss, Unstarted, Why};
use crate::run::event::{Granted, GuardNews, NotStarted, Note};
use crate::store::{StoreError, Trouble};
use crate::sys::wait::Status;
use crate::token::{GroupName, OnceMark, Refusal, Row, StoreTime, Verdict};

/// How much a message matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// One step of many; shown with `-v`.
    Detail,
    /// What is ordinary, a refusal too; shown unless `-q`.
    Info,
    /// Something is wrong, or a job does not end by itself; shown unless `-qq`.
    Warning,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// How much it matters.
    pub level: Level,
    /// What happened, in a word for scripts.
    pub event: &'static str,
    /// What happened, in a line for people.
    pub text: String,
}

impl Message {
    const fn new(level: Level, event: &'static str, text: String) -> Self {
        Self { level, event, text }
    }
}

/// What every message of a run may name.
#[derive(Debug)]
pub struct Context<'a> {
    /// The group.
    pub group: &'a GroupName,
    /// The store's name.
    pub store: &'a str,
    /// The program's name.
    pub program: &'a str,
}

/// The message for a note, if it is worth one. `seen` is the row of the last look.
#[must_use]
pub fn message(cx: &Context<'_>, note: &Note, seen: Option<(&Row, &StoreTime)>) -> Option<Message> {
    use Level::{Detail, Info, Warning};
    Some(match note {
        Note::Decided {
            clause, verdict, ..
        } => Message::new(Detail, "decided", decided(cx, *clause, verdict)),
        Note::Staying {
            row,
            now,
            observing,
            wait,
            ..
        } => Message::new(Info, "waiting", staying(cx, row, now, *observing, *wait)),
        Note::ObservingStore {
            incarnation,
            doubt,
            now,
            wait,
        } => {
            let text = incarnation::observing(cx, incarnation.as_ref(), *doubt, now, *wait);
            Message::new(Info, "observing_store", text)
        }
        Note::InLine { newly: false, .. } => return None,
        Note::InLine {
            row,
            why,
            ahead,
            left,
            ..
        } => {
            let text = waiting::begins(cx, row.as_deref(), why, *ahead, *left);
            Message::new(Info, "in_line", text)
        }
        Note::StoreAway { error } => Message::new(
            Warning,
            "store_trouble",
            format!("{error}; waiting for it too"),
        ),
        Note::Waited { waited } => Message::new(Info, "waited", waiting::ends(cx, *waited)),
        Note::NoLocks { why } => Message::new(Detail, "no_locks", no_locks(cx, why)),
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
        Note::Blind => Message::new(
            Warning,
            "no_proc",
            format!(
                "/proc is missing or shows another pid namespace: whatever happens, only {}'s own process can be ended, and {} is held as long as others that it started live",
                cx.program, cx.group
            ),
        ),
        Note::Started => Message::new(Detail, "started", format!("{} started", cx.program)),
        Note::Renewed { trusted_for } => Message::new(
            Detail,
            "renewed",
            format!(
                "the heartbeat of {} was written; the lease can be trusted for {}",
                cx.group,
                rounded(*trusted_for)
            ),
        ),
        Note::Adopted => Message::new(
            Detail,
            "adopted",
            format!(
                "another wrote the row of {}; the token is still ours",
                cx.group
            ),
        ),
        Note::TroubleBegan { error, job_ends_in } => {
            Message::new(Warning, "store_trouble", trouble(cx, error, *job_ends_in))
        }
        Note::TroubleEnded => Message::new(
            Info,
            "store_recovered",
            format!(
                "the store {} can be used again; {} went on",
                cx.store, cx.program
            ),
        ),
        Note::Split { primaries } => Message::new(Warning, "two_primaries", split(cx, primaries)),
        Note::Stopping { why, kill_in } => stopping(cx, why, *kill_in)?,
        Note::LostAfterEnd => Message::new(
            Warning,
            "lost_after_end",
            format!(
                "{} had ended by itself, but the token of {} was no longer ours; its own exit status counts",
                cx.program, cx.group
            ),
        ),
        Note::NotRecorded { error, once } => {
            let text = not_recorded(cx, error.as_ref(), *once);
            Message::new(Warning, "not_recorded", text)
        }
        Note::Ended(ending) => return ended(cx, ending, seen),
    })
}

fn decided(cx: &Context<'_>, clause: u8, verdict: &Verdict) -> String {
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
        cx.group, cx.store
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
    let group = cx.group;
    let of = row
        .client_bound()
        .map_or_else(String::new, |client| format!(" of {client}"));
    if observing {
        format!(
            "the token{of} for {group} in {} was stamped by another clock ({}, now {}): watching whether it stays silent for {wait}",
            cx.store, row.stamped.domain, now.domain
        )
    } else {
        let preferred = row
            .document
            .handoff
            .as_ref()
            .map(|handoff| &handoff.to)
            .or_else(|| row.preferred_client())
            .map_or("another client", |client| client.as_str());
        format!(
            "{group} in {} is open; leaving {preferred} a head start of {wait} before taking it",
            cx.store
        )
    }
}

fn no_locks(cx: &Context<'_>, why: &str) -> String {
    format!(
        "no lock could be taken for {} ({why}): if this run is killed, others wait for takeover-after on this host too",
        cx.group
    )
}

/// `holder` says how the earlier run's holder was found, if there was one.
fn acquired(cx: &Context<'_>, granted: &Granted, holder: Option<&str>) -> String {
    let kind = granted.kind.map_or("nested", |kind| kind.as_str());
    let previous = granted.previous_client.as_ref();
    let from = previous.map_or_else(String::new, |client| format!(" from {client}"));
    let found = holder.map_or_else(String::new, |found| format!(", whose holder is {found},"));
    format!(
        "took {}{from}{found} in {} ({kind}, fence {})",
        cx.group, cx.store, granted.fence
    )
}

fn trouble(cx: &Context<'_>, error: &StoreError, job_ends_in: Option<Duration>) -> String {
    let until = job_ends_in.map_or_else(String::new, |left| {
        format!("; it is ended in {} if that lasts", rounded(left))
    });
    format!(
        "the store can't be used ({error}); {} goes on{until}",
        cx.program
    )
}

fn split(cx: &Context<'_>, primaries: &[String]) -> String {
    format!(
        "the store {} has become several: each of these can be written to: {}; another node may use another of them, and run {} at the same time; stop all but the right one at once, and let no old primary come back but as a standby",
        cx.store,
        primaries.join(", "),
        cx.group
    )
}

fn stopping(cx: &Context<'_>, why: &Why, kill_in: Duration) -> Option<Message> {
    let program = cx.program;
    let ended = if kill_in.is_zero() {
        format!("{program} is ended at once")
    } else {
        format!("{program} is ended, and killed in {}", rounded(kill_in))
    };
    let (level, event, text) = match why {
        Why::Signal(signal) => (
            Level::Detail,
            "stopping",
            if kill_in.is_zero() {
                format!("received signal {signal}; {ended}")
            } else {
                let kill = rounded(kill_in);
                format!(
                    "received signal {signal}; {program} is killed in {kill} if it does not end"
                )
            },
        ),
        Why::Timeout => (
            Level::Warning,
            "timed_out",
            format!("{program} ran longer than --timeout; {ended}"),
        ),
        Why::HandedOff => (
            Level::Info,
            "handed_off",
            format!(
                "an operator handed {} in {} off; {ended}",
                cx.group, cx.store
            ),
        ),
        Why::Loss(loss) => (
            Level::Warning,
            "lost",
            format!("{}; {ended}", lost(cx, *loss)),
        ),
    };
    Some(Message::new(level, event, text))
}

fn lost(cx: &Context<'_>, loss: Loss) -> String {
    let (group, store) = (cx.group, cx.store);
    match loss {
        Loss::Taken => format!("the token of {group} in {store} is no longer ours"),
        Loss::StoreGone => format!("the store {store} was removed or replaced"),
        Loss::Revoked => format!("an operator revoked the token of {group} in {store}"),
        Loss::Untrusted => {
            format!("the lease of {group} could not be renewed in {store} in time")
        }
        Loss::GuardGone => format!("the guard of {group} is gone, or does not answer"),
    }
}

fn not_recorded(cx: &Context<'_>, error: Option<&StoreError>, once: bool) -> String {
    let (group, store, program) = (cx.group, cx.store, cx.program);
    let why = error.map_or_else(String::new, |error| format!(" ({error})"));
    if once {
        return format!(
            "{program} has ended with 0, but the store {store} did not say that it wrote this down{why}: it is not known whether the key of {group} is done there, and a run with this key may run {program} again; tokenrun once list shows it"
        );
    }
    format!(
        "the run of {group} has ended, but the store {store} could not be told{why}: history shows it as unknown, and others wait for takeover-after, unless they can see on this host that it is dead"
    )
}

fn done(cx: &Context<'_>, mark: &OnceMark) -> String {
    format!(
        "{} is done already in {} of {}: {} ran it, until {} (fence {}); {} was not started",
        mark.key,
        cx.group,
        cx.store,
        mark.client,
        rfc3339(mark.done_at_ms),
        mark.fence,
        cx.program
    )
}

fn ended(cx: &Context<'_>, ending: &Ending, seen: Option<(&Row, &StoreTime)>) -> Option<Message> {
    use Level::{Detail, Info, Warning};
    let (group, program) = (cx.group, cx.program);
    Some(match ending {
        Ending::Refused { why, .. } => {
            Message::new(Info, refusal_word(why), refused(cx, why, seen))
        }
        Ending::Done(mark) => Message::new(Info, "done", done(cx, mark)),
        Ending::Stopped(signal) => Message::new(
            Info,
            "stopped",
            format!("received signal {signal} before {group} was taken; {program} was not started"),
        ),
        Ending::StoreFailed {
            error,
            perhaps_granted,
        } => {
            let perhaps = if *perhaps_granted {
                format!(
                    "; {group} may be held by this dead session until takeover-after has passed"
                )
            } else {
                String::new()
            };
            // The other troubles' messages say what to do.
            let remedy = match error.trouble {
                Trouble::Unavailable | Trouble::Refused => "; tokenrun doctor looks closer",
                _ => "",
            };
            Message::new(
                Warning,
                "store_failed",
                format!("{error}; {program} was not started{perhaps}{remedy}"),
            )
        }
        Ending::NoGuard => Message::new(
            Warning,
            "no_guard",
            format!("the guard was ended before {program} was started"),
        ),
        Ending::Ran { end, .. } => match end {
            JobEnd::Itself(Status::Exited(code)) => Message::new(
                Detail,
                "ended",
                format!("{program} exited with {code}; {group} is released"),
            ),
            JobEnd::Itself(Status::Signalled(signal)) => Message::new(
                Detail,
                "ended",
                format!("{program} was killed by signal {signal}; {group} is released"),
            ),
            JobEnd::TimedOut(_) | JobEnd::Lost(_) => {
                Message::new(Detail, "ended", format!("no process of {program} is left"))
            }
            JobEnd::NotStarted(Unstarted::Done(mark)) => Message::new(Info, "done", done(cx, mark)),
            JobEnd::NotStarted(unstarted) => {
                // A stop that was asked for is ordinary, as before the grant.
                let level = match unstarted {
                    Unstarted::Signal(_) => Info,
                    _ => Warning,
                };
                Message::new(level, "not_started", not_started(cx, unstarted))
            }
        },
    })
}

fn not_started(cx: &Context<'_>, unstarted: &Unstarted) -> String {
    let program = cx.program;
    match unstarted {
        Unstarted::Guard(NotStarted::NotFound(error)) => {
            format!("{program}: command not found ({error})")
        }
        Unstarted::Guard(NotStarted::NotExecutable(error)) => {
            format!("{program} can't be executed: {error}")
        }
        Unstarted::Guard(NotStarted::NoProcess(error)) => {
            format!("no process for {program}: {error}")
        }
        Unstarted::Guard(NotStarted::TooLate) => format!(
            "the token of {} was granted too late to be trusted; {program} was not started",
            cx.group
        ),
        Unstarted::Signal(signal) => {
            format!("received signal {signal}; {program} was not started")
        }
        Unstarted::GuardGone => format!("the guard was ended before {program} was started"),
        Unstarted::Done(mark) => done(cx, mark),
    }
}

/// The message for what the guard says.
#[must_use]
pub fn guard_news(cx: &Context<'_>, news: &GuardNews) -> Message {
    let program = cx.program;
    let (event, text) = match news {
        GuardNews::Leftovers { count: 0, .. } => (
            "leftovers",
            format!("{program} left processes behind; they are ended too"),
        ),
        GuardNews::Leftovers { count, names } => (
            "leftovers",
            format!(
                "{program} left {count} processes behind ({}); they are ended too (--leftovers leave lets them be)",
                names.join(", ")
            ),
        ),
        GuardNews::Survivors(survivors) if survivors.is_empty() => (
            "survivors_gone",
            format!("every process of {program} could be killed after all"),
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
                    cx.group,
                    named.join("; ")
                ),
            )
        }
    };
    Message::new(Level::Warning, event, text)
}

const fn unkillable(why: Unkillable) -> &'static str {
    match why {
        Unkillable::NotPermitted => "only its own user or root may",
        Unkillable::Uninterruptible => "it sleeps in the kernel",
        Unkillable::NotYetGone => "it has not ended yet",
        Unkillable::Unseen => "/proc does not show them",
    }
}

/// The message for a report that could not be written.
#[must_use]
pub fn report_failed(path: &Path, error: &std::io::Error) -> Message {
    let text = format!("the report {} can't be written: {error}", path.display());
    Message::new(Level::Warning, "report_failed", text)
}

/// Why a run was refused, in a word for scripts.
#[must_use]
pub const fn refusal_word(why: &Refusal) -> &'static str {
    match why {
        Refusal::Held { .. } => "held",
        Refusal::AliveHere(_) => "alive_here",
        Refusal::Paused(_) => "paused",
        Refusal::TooSoon { .. } => "too_soon",
        Refusal::Behind { .. } => "behind",
        Refusal::Bound { .. } => "bound",
        Refusal::Reserved { .. } => "reserved",
        Refusal::Forgetful { .. } => "store_observed",
    }
}

/// Who refuses, in which store, since when, and when that may change.
fn refused(cx: &Context<'_>, why: &Refusal, seen: Option<(&Row, &StoreTime)>) -> String {
    let why_not = why_not(cx, why, seen.map(|(row, _)| row));
    format!("{why_not}; {} was not started", cx.program)
}

pub(super) fn why_not(cx: &Context<'_>, why: &Refusal, seen: Option<&Row>) -> String {
    let (group, store) = (cx.group, cx.store);
    match why {
        Refusal::Held {
            by,
            same_client,
            silent_for,
            takeover_in,
            ..
        } => {
            let holder = if *same_client {
                format!("{by}, in another session: two live instances share this client id")
            } else {
                by.to_string()
            };
            let not_before = seen.and_then(not_before).map(|at| {
                let at = rfc3339(at);
                format!(", but not before {at} (--at-least)")
            });
            format!(
                "{group} is held by {holder}{} in {store}; its last heartbeat is {} old, and it can be taken over in {} if no other comes{}",
                seen.map_or_else(String::new, since),
                rounded(*silent_for),
                rounded(*takeover_in),
                not_before.unwrap_or_default(),
            )
        }
        Refusal::AliveHere(processes) => {
            let who = if processes.is_empty() {
                "processes that can't be seen from here (another user's, or a container's)"
                    .to_owned()
            } else {
                processes.join(", ")
            };
            format!(
                "{group} in {store}: its holder is silent, but its run is still alive here: {who}; end them first"
            )
        }
        Refusal::Paused(pause) => {
            let until = pause.until_wall_ms.map_or_else(
                || "until somebody resumes it".to_owned(),
                |until| format!("until {}", rfc3339(until)),
            );
            let reason = match pause.reason.as_str() {
                "" => String::new(),
                reason => format!(" ({reason})"),
            };
            format!(
                "{group} in {store} is paused by {} {until}{reason}",
                pause.by
            )
        }
        Refusal::TooSoon { wait } => format!(
            "{group} in {store} ran too recently for its --at-least: not before {} from now",
            rounded(*wait)
        ),
        Refusal::Behind { ahead: 1 } => {
            format!("{group} in {store}: another is in line before this one")
        }
        Refusal::Behind { ahead } => {
            format!("{group} in {store}: {ahead} others are in line before this one")
        }
        Refusal::Bound { to, wait } => format!(
            "{group} in {store} belongs to {to}, which ran it a short while ago; others may have it in {}",
            rounded(*wait)
        ),
        Refusal::Forgetful { wait, doubt } => format!(
            "the store {store} may have forgotten a grant: it {}; nothing of {group} is granted for {} more",
            doubt_text(*doubt),
            rounded(*wait)
        ),
        Refusal::Reserved { to, wait } => format!(
            "{group} in {store} is new and reserved for {to}, which is expected to run it; others may have it in {}",
            rounded(*wait)
        ),
    }
}

pub(super) fn since(row: &Row) -> String {
    let mut parts = Vec::new();
    if let Some(host) = &row.document.host {
        let pid = row
            .document
            .pid
            .map_or_else(String::new, |pid| format!(", pid {pid}"));
        parts.push(format!(" (host {host}{pid})"));
    }
    if let Some(acquired_at) = row.acquired_at() {
        parts.push(format!(" since {}", rfc3339(acquired_at.wall_ms)));
    }
    parts.concat()
}
