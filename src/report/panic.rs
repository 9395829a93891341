//! The message of a bug in tokenrun itself: one line, and the process ends.
//!
//! A thread that panics alone would leave the others waiting for it: the store's thread for as long
//! as a store may be silent, and then the message would blame the store. So a panic in any thread
//! ends the process. Its guard notices that and ends the job at once; the token stays held until
//! the run is proven dead or silent.
//!
//! A forked process (the guard, the clerk, the job before its exec) ends as well, but without a
//! message: the guard never writes to a terminal or a pipe that others read. Its parent notices the
//! end: the job dies with its guard, and the supervisor reports that the guard is gone.

use std::panic::{PanicHookInfo, set_hook};
use std::sync::RwLock;

use super::log::{Style, stderr_takes_a_line};
use super::message::{Level, Message, Subject};
use crate::exit;
use crate::sys::fds::write_past_locks;
use crate::sys::process::{exit_now, pid};
use crate::sys::signals::without_being_stopped;

/// The style of the line until the command line is read.
static STYLE: RwLock<Style> = RwLock::new(Style {
    least: Some(Level::Info),
    json: false,
});

/// The longest part of a panic's own text that is printed: even escaped, it fits into what a ready
/// pipe takes without blocking (4096 bytes: pipe(7), `PIPE_BUF`).
const LONGEST: usize = 500;

/// From now on a panic ends this process, and each that is forked from it.
pub fn install() {
    let own = pid();
    set_hook(Box::new(move |panic| {
        if pid() == own {
            tell(panic);
        }
        exit_now(i32::from(exit::BUG))
    }));
}

/// Sets the style of the line.
pub fn in_style(style: Style) {
    if let Ok(mut current) = STYLE.write() {
        *current = style;
    }
}

fn tell(panic: &PanicHookInfo<'_>) {
    // The lock is only tried: the thread that panics may hold it.
    if let Ok(style) = STYLE.try_read()
        && style.least.is_some()
    {
        say(&style.line(&message(panic), &Subject::default()));
    }
}

fn message(panic: &PanicHookInfo<'_>) -> Message {
    let what = panic.payload_as_str().unwrap_or("no reason was given");
    let what: String = what.chars().take(LONGEST).collect();
    let place = panic
        .location()
        .map_or_else(String::new, ToString::to_string);
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("without a name");
    Message::warning(
        "bug",
        format!(
            "a bug ends this run now, and its job if there is one: {what} ({place}, thread \
             {thread}); please report it"
        ),
    )
}

/// Writes without locks and queues: this thread, or one that waits for a terminal, may hold them.
fn say(line: &str) {
    if stderr_takes_a_line() {
        without_being_stopped(|| {
            // A failure of this write cannot be reported.
            let _ = write_past_locks(line.as_bytes());
        });
    }
}
