//! How a run ends, in sentences.

use std::time::Duration;

use super::message::{Context, Level, Message};
use super::printable::shell_word;
use super::refusal::refused;
use super::rfc3339;
use crate::duration::rounded;
use crate::run::ending::{Ending, Failed, JobEnd, Loss, NotStarted, Unstarted, Why, ends_loops};
use crate::store::{StoreError, Trouble};
use crate::sys::signals;
use crate::sys::wait::Status;
use crate::token::{OnceMark, Row, StoreTime};

pub(super) fn stopping(cx: &Context<'_>, why: &Why, kill_in: Duration) -> Message {
    let (program, at_once, kill) = (cx.program, kill_in.is_zero(), rounded(kill_in));
    let ended = match at_once {
        true => format!("{program} is ended at once"),
        false => format!("{program} is ended, and killed in {kill}"),
    };
    match why {
        Why::Signal(signal) => {
            let text = match at_once {
                true => ended,
                false => format!("{program} is killed in {kill} if it does not end"),
            };
            Message::detail("stopping", format!("received signal {signal}; {text}"))
        }
        Why::Timeout => Message::warning("timed_out", timed_out(cx, kill_in)).because("timeout"),
        Why::HandedOff => {
            let (group, store) = (cx.group(), cx.store);
            let text = format!("an operator handed off {group} in {store}; {ended}");
            Message::info("handed_off", text)
        }
        Why::Loss(loss) => Message::warning("lost", format!("{}; {ended}", lost(cx, *loss)))
            .because(loss_word(*loss)),
    }
}

/// The longest run of the job.
fn limit(cx: &Context<'_>) -> String {
    cx.timeout.map_or_else(
        || "--timeout".to_owned(),
        |it| format!("{} (--timeout)", rounded(it)),
    )
}

fn timed_out(cx: &Context<'_>, kill_in: Duration) -> String {
    let limit = limit(cx);
    let ended = match kill_in.is_zero() {
        true => "it is killed".to_owned(),
        false => format!("it is ended, and killed in {}", rounded(kill_in)),
    };
    let (group, program, client) = (cx.group(), cx.program, cx.client);
    format!("{group} timed out: {program} ran longer than {limit} on {client}; {ended}")
}

/// How a token was lost, in a word for scripts.
pub(super) const fn loss_word(loss: Loss) -> &'static str {
    match loss {
        Loss::Taken => "taken",
        Loss::StoreGone => "store_gone",
        Loss::Revoked => "revoked",
        Loss::Untrusted => "untrusted",
        Loss::GuardGone => "guard_gone",
    }
}

pub(super) fn lost(cx: &Context<'_>, loss: Loss) -> String {
    let (group, store) = (cx.group(), cx.store);
    match loss {
        Loss::Taken => format!("this session no longer has the token of {group} in {store}"),
        Loss::StoreGone => format!("the store {store} was removed or replaced"),
        Loss::Revoked => format!("an operator revoked the token of {group} in {store}"),
        Loss::Untrusted => {
            format!("the lease of {group} could not be renewed in {store} in time")
        }
        Loss::GuardGone => format!("the guard of {group} is gone, or does not answer"),
    }
}

pub(super) fn not_recorded(cx: &Context<'_>, error: Option<&StoreError>, once: bool) -> String {
    let (group, store, program) = (cx.group(), cx.store, cx.program);
    let why = error.map_or_else(String::new, |error| format!(" ({error})"));
    if once {
        return format!(
            "{program} has ended with 0, but the store {store} did not confirm that this was recorded{why}: it is not known whether the key of {group} is done there, and a run with this key may run {program} again; tokenrun once list shows it"
        );
    }
    format!(
        "the run of {group} has ended, but the store {store} did not confirm its record{why}: history may show the run as unknown, and other nodes may wait for takeover-after; a claimant on this host need not, once the run is proven dead"
    )
}

fn done(cx: &Context<'_>, mark: &OnceMark) -> String {
    let (group, store, program) = (cx.group(), cx.store, cx.program);
    let (key, client, fence) = (&mark.key, &mark.client, mark.fence);
    let until = rfc3339(mark.done_at);
    format!(
        "{key} is done already in {group} of {store}: {client} ran it, until {until} (fence {fence}); {program} was not started (to run it again: tokenrun once forget -g {} {})",
        shell_word(cx.group.as_str()),
        shell_word(key),
    )
}

pub(super) fn ended(
    cx: &Context<'_>,
    ending: &Ending,
    seen: Option<(&Row, &StoreTime)>,
) -> Message {
    let (group, store, program) = (cx.group(), cx.store, cx.program);
    match ending {
        Ending::Refused { why, .. } => {
            let word = why.word();
            Message::info(word, refused(cx, why, seen))
                .because(word)
                .held_by(why.holder(seen.map(|(row, _)| row)))
        }
        Ending::Done(mark) => Message::info("done", done(cx, mark)),
        Ending::Stopped(signal) => Message::info(
            "stopped",
            format!("received signal {signal} before {group} was taken; {program} was not started"),
        ),
        Ending::StoreFailed {
            error,
            perhaps_granted,
        } => {
            let perhaps = match *perhaps_granted {
                true => format!(
                    "; {group} may be held by this dead session until takeover-after has passed"
                ),
                false => String::new(),
            };
            // The messages of the other errors say what to do.
            let remedy = match error.trouble {
                Trouble::Unavailable | Trouble::Refused => "; tokenrun doctor examines the store",
                _ => "",
            };
            let of = match error.what.contains(store) {
                true => String::new(),
                false => format!(" ({store})"),
            };
            Message::warning(
                "store_failed",
                format!("{error}{of}; {program} was not started{perhaps}{remedy}"),
            )
            .because(error.trouble.word())
        }
        Ending::NoGuard => Message::warning("no_guard", not_started(cx, &Unstarted::GuardGone)),
        Ending::Unstartable(why) => unstarted(cx, &Unstarted::Guard(why.clone())),
        Ending::Ran {
            end, stopped_by, ..
        } => match end {
            JobEnd::Itself(status) => itself(cx, *status, *stopped_by),
            JobEnd::TimedOut(_) | JobEnd::Lost(_) => {
                Message::detail("ended", format!("no process of {program} is left"))
            }
            JobEnd::NotStarted(Unstarted::Done(mark)) => Message::info("done", done(cx, mark)),
            JobEnd::NotStarted(why) => unstarted(cx, why),
        },
    }
}

fn unstarted(cx: &Context<'_>, why: &Unstarted) -> Message {
    // A requested stop is ordinary, as before the grant.
    let level = match why {
        Unstarted::Signal(_) => Level::Info,
        _ => Level::Warning,
    };
    Message::new(level, "not_started", not_started(cx, why)).because(unstarted_word(why))
}

/// The end of a job that was not ended because of its token or its time.
fn itself(cx: &Context<'_>, status: Status, stopped_by: Option<i32>) -> Message {
    let (reason, how) = told(status);
    let (group, program, client) = (cx.group(), cx.program, cx.client);
    match cx.ran.filter(|_| is_failure(status, stopped_by)) {
        None => Message::detail("ended", format!("{program} {how}; {group} is released")),
        Some(ran) => {
            let ran = rounded(ran);
            let stopped = stopped_by.map_or_else(String::new, |signal| {
                format!("; tokenrun received signal {signal}")
            });
            let text = format!("{group} failed: {program} {how} after {ran} on {client}{stopped}");
            Message::warning("failed", text).because(reason)
        }
    }
}

/// How a process ended: in a word for scripts, and after its name.
pub(super) fn told(status: Status) -> (&'static str, String) {
    match status {
        Status::Exited(code) => ("exit_status", format!("exited with {code}")),
        Status::Signalled(signal) => ("signal", format!("was killed by {}", signals::name(signal))),
    }
}

/// True if an end is to be reported. An end by the interrupt of a person at the terminal is no news.
const fn is_failure(status: Status, stopped_by: Option<i32>) -> bool {
    match (status, stopped_by) {
        (Status::Exited(0), _) => false,
        (Status::Signalled(signal), Some(by)) => signal != by || !ends_loops(signal),
        _ => true,
    }
}

/// The last line after the output of a job that was ended for its time or its token: why. `None` for
/// another end.
pub(super) fn was_ended(cx: &Context<'_>, ending: &Ending) -> Option<Message> {
    let Ending::Ran { end, .. } = ending else {
        return None;
    };
    let (group, program, client) = (cx.group(), cx.program, cx.client);
    let text = match end {
        JobEnd::TimedOut(_) => {
            let limit = limit(cx);
            format!(
                "{group} timed out: {program} ran longer than {limit} on {client}, and was ended"
            )
        }
        JobEnd::Lost(loss) => format!("{}; {program} was ended", lost(cx, *loss)),
        JobEnd::Itself(_) | JobEnd::NotStarted(_) => return None,
    };
    Some(Message::warning("ended", text))
}

/// What to write for a single argument that looks like a line of a shell.
fn shell_hint(cx: &Context<'_>) -> &'static str {
    let is_shell = |c: char| c.is_whitespace() || "|&;<>()$`*?~".contains(c);
    match cx.command {
        [line] if line.to_string_lossy().contains(is_shell) => {
            "; for a line of a shell, write sh -c before it"
        }
        _ => "",
    }
}

/// Why a job was not started, in a word for scripts.
pub(super) const fn unstarted_word(unstarted: &Unstarted) -> &'static str {
    match unstarted {
        Unstarted::Guard(why) => not_started_word(why),
        Unstarted::Signal(_) => "signal",
        Unstarted::GuardGone => "guard_gone",
        Unstarted::Done(_) => "done",
    }
}

/// Why the guard did not start a job, likewise.
pub(super) const fn not_started_word(why: &NotStarted) -> &'static str {
    match why {
        NotStarted::NotFound(_) => "not_found",
        NotStarted::NotExecutable(_) => "not_executable",
        NotStarted::NoProcess(_) => "no_process",
        NotStarted::TooLate => "too_late",
    }
}

fn not_started(cx: &Context<'_>, unstarted: &Unstarted) -> String {
    let program = cx.program;
    match unstarted {
        Unstarted::Guard(NotStarted::NotFound(Failed { program, error })) => {
            format!("{program}: command not found ({error}){}", shell_hint(cx))
        }
        Unstarted::Guard(NotStarted::NotExecutable(Failed { program, error })) => {
            format!("{program} can't be executed: {error}{}", shell_hint(cx))
        }
        Unstarted::Guard(NotStarted::NoProcess(Failed { error, .. })) => {
            format!("no process for {program}: {error}")
        }
        Unstarted::Guard(NotStarted::TooLate) => format!(
            "it was too late for a start under the token of {}; {program} was not started",
            cx.group()
        ),
        Unstarted::Signal(signal) => {
            format!("received signal {signal}; {program} was not started")
        }
        Unstarted::GuardGone => format!("the guard was ended before {program} was started"),
        Unstarted::Done(mark) => done(cx, mark),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::{ClientId, GroupName};

    fn text_of(
        ran: Option<u64>,
        timeout: Option<u64>,
        what: impl FnOnce(&Context<'_>) -> Message,
    ) -> (Level, String) {
        let (group, client) = (GroupName::new("nightly"), ClientId::new("vm-1"));
        let cx = Context {
            group: &group.unwrap(),
            store: "the store",
            program: "run.sh",
            command: &[],
            client: &client.unwrap(),
            host: None,
            timeout: timeout.map(Duration::from_secs),
            ran: ran.map(Duration::from_secs),
        };
        let message = what(&cx);
        (message.level, message.text)
    }

    #[test]
    fn a_job_that_fails_is_reported_with_its_time_and_its_node() {
        let end = |status, by| text_of(Some(240), None, |cx| itself(cx, status, by));
        assert_eq!(
            end(Status::Exited(3), None),
            (
                Level::Warning,
                "\"nightly\" failed: run.sh exited with 3 after 4m on vm-1".into()
            )
        );
        assert_eq!(
            end(Status::Signalled(15), Some(15)).1,
            "\"nightly\" failed: run.sh was killed by SIGTERM after 4m on vm-1; \
             tokenrun received signal 15"
        );
        assert_eq!(end(Status::Exited(0), None).0, Level::Detail);
    }

    #[test]
    fn an_interrupt_by_a_person_and_the_end_of_a_stand_in_are_not_reported() {
        let end = |ran, status, by| text_of(ran, None, |cx| itself(cx, status, by)).0;
        assert_eq!(end(Some(1), Status::Signalled(2), Some(2)), Level::Detail);
        assert_eq!(end(Some(1), Status::Signalled(2), None), Level::Warning);
        assert_eq!(end(None, Status::Exited(3), None), Level::Detail);
    }

    #[test]
    fn a_job_that_runs_too_long_is_reported_with_its_limit() {
        let kill = |seconds| {
            let kill_in = Duration::from_secs(seconds);
            let stopping = |cx: &Context<'_>| stopping(cx, &Why::Timeout, kill_in);
            text_of(Some(14_400), Some(14_400), stopping).1
        };
        assert_eq!(
            kill(10),
            "\"nightly\" timed out: run.sh ran longer than 4h (--timeout) on vm-1; \
             it is ended, and killed in 10s"
        );
        assert!(kill(0).ends_with("on vm-1; it is killed"));
    }
}
