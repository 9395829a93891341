//! The log: stderr, a line per message, and never in the way of a deadline.
//!
//! Before there is a guard, a message is written directly, if stderr takes it. From then on a
//! separate thread writes: a pipe without a reader, or a stopped terminal, blocks that thread and
//! nothing else. What does not fit into the thread's queue is dropped and counted, and the count is
//! written as soon as stderr takes it. The thread must not exist before the guard is forked, so
//! until then the log keeps what stderr does not take.

use std::io::{ErrorKind, IsTerminal as _, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel,
};
use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::message::{Level, Message, Subject};
use super::printable::{json, printable};
use super::table::cut;
use super::{rfc3339, wall_clock};
use crate::sys::poll::is_writable;
use crate::sys::signals::without_being_stopped;
use crate::sys::terminal::size_of_stderr;
use crate::token::Fence;

/// How many messages may wait to be written.
const QUEUE: usize = 256;

/// How long the end of a run waits for its last messages to be written.
const FAREWELL: Duration = Duration::from_millis(500);

/// How often the wait for a stderr that takes no output looks for a stop signal.
const TICK: Duration = Duration::from_millis(50);

/// How long the start of a job waits until the terminal no longer shows the wait.
const CLEARING: Duration = Duration::from_millis(20);

/// Goes to the start of the terminal's line, and clears it.
const CLEAR: &str = "\r\x1b[2K";

/// How much is written, and how.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// The least level that is written; `None` for nothing at all.
    pub least: Option<Level>,
    /// JSON instead of text.
    pub json: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            least: Some(Level::Info),
            json: false,
        }
    }
}

/// The messages of one process.
#[derive(Debug)]
pub struct Log {
    style: Style,
    subject: Subject,
    queue: Option<Queue>,
    /// Lines that stderr did not take while there was no thread.
    backlog: Vec<String>,
    /// How many messages were dropped since the last report of that.
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Queue {
    lines: SyncSender<Item>,
    finished: Receiver<()>,
}

/// An item for the log's thread.
#[derive(Debug)]
enum Item {
    /// A line to be written.
    Line(String),
    /// The output of a job, then signal the channel.
    Output(Vec<u8>, SyncSender<()>),
    /// Text for the last line of the terminal, until it is cleared.
    Show(String),
    /// Clear that line, then signal the channel.
    Clear(SyncSender<()>),
}

/// A message of `--log-format json`. The names of the fields are stable; a field without a value is
/// left out.
#[derive(Debug, Serialize)]
struct Logged<'a> {
    time: String,
    level: &'static str,
    event: &'static str,
    message: &'a str,
    #[serde(flatten)]
    subject: &'a Subject,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<&'a str>,
}

impl Style {
    pub(super) fn line(self, message: &Message, subject: &Subject) -> String {
        if !self.json {
            return format!("tokenrun: {}\n", printable(&message.text));
        }
        let level = match message.level {
            Level::Detail => "debug",
            Level::Info => "info",
            Level::Warning => "warning",
        };
        let object = Logged {
            time: rfc3339(wall_clock()),
            level,
            event: message.event,
            message: &message.text,
            subject,
            reason: message.reason,
            holder: message.holder.as_deref(),
        };
        let object = json(serde_json::to_string(&object).unwrap_or_default());
        format!("{object}\n")
    }
}

impl Log {
    /// A log without a thread, which writes directly.
    pub fn new(style: Style) -> Self {
        Self {
            style,
            subject: Subject::default(),
            queue: None,
            backlog: Vec::new(),
            dropped: Arc::default(),
        }
    }

    /// Sets what the messages from here on are about.
    pub fn about(&mut self, subject: Subject) {
        self.subject = subject;
    }

    /// Sets the fence of the messages from here on.
    pub fn granted(&mut self, fence: Fence) {
        self.subject.fence = Some(fence);
    }

    /// Writes a message, if its level is enabled. `detached`: a deadline is held in this process,
    /// so the writing is left to a thread.
    pub fn write(&mut self, message: &Message, detached: bool) {
        if self.style.least.is_none_or(|least| message.level < least) {
            return;
        }
        let line = self.style.line(message, &self.subject);
        if detached {
            self.detached();
        }
        if self.queue.is_some() {
            self.enqueue(line);
        } else if self.backlog.is_empty() && stderr_takes_a_line() {
            write_whole(line.as_bytes());
        } else if self.backlog.len() < QUEUE {
            self.backlog.push(line);
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// True if stderr is a terminal that can show a changing line.
    pub fn displays(&self) -> bool {
        let tells_ordinary = self.style.least.is_some_and(|least| least <= Level::Info);
        tells_ordinary && !self.style.json && std::io::stderr().is_terminal()
    }

    /// Shows this in the last line of the terminal, until it is cleared. Only once a thread is
    /// allowed; dropped if the terminal does not take it.
    pub fn show(&mut self, text: &str) {
        if let Some(queue) = self.detached() {
            // The next one is newer anyway.
            let _ = queue.lines.try_send(Item::Show(printable(text)));
        }
    }

    /// Clears that line. Waits a moment for the terminal, so that the job's output starts in a line
    /// of its own.
    pub fn clear(&mut self) {
        let Some(queue) = &self.queue else { return };
        let (done, cleared) = sync_channel(1);
        if queue.lines.try_send(Item::Clear(done)).is_ok() {
            // A stopped terminal must not block.
            let _ = cleared.recv_timeout(CLEARING);
        }
    }

    /// Writes the output of a job as it is, after the lines before it and whatever the style. Waits
    /// until stderr has taken it, or `is_stopped`.
    pub fn print(&mut self, output: Vec<u8>, is_stopped: impl Fn() -> bool) {
        let Some(queue) = self.detached() else {
            // The system cannot create a thread. No deadline is held any more.
            write_whole(&output);
            return;
        };
        let (done, printed) = sync_channel(1);
        let mut item = Item::Output(output, done);
        while let Err(TrySendError::Full(back)) = queue.lines.try_send(item) {
            if is_stopped() {
                return;
            }
            item = back;
            thread::sleep(TICK);
        }
        while printed.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) && !is_stopped() {}
    }

    /// The queue of the thread, which is started if there is none; `None` if the system can't.
    fn detached(&mut self) -> Option<&Queue> {
        if self.queue.is_none() {
            self.queue = Queue::start(self.style, &self.dropped);
            for line in std::mem::take(&mut self.backlog) {
                self.enqueue(line);
            }
        }
        self.queue.as_ref()
    }

    fn enqueue(&mut self, line: String) {
        let queue = self.queue.as_ref();
        if queue.is_none_or(|queue| queue.lines.try_send(Item::Line(line)).is_err()) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes the remaining lines, within a time limit.
    pub fn close(mut self) {
        if !self.backlog.is_empty() {
            self.detached();
        }
        if let Some(Queue { lines, finished }) = self.queue {
            drop(lines);
            // What is not written by then is lost.
            let _ = finished.recv_timeout(FAREWELL);
        }
    }
}

impl Queue {
    fn start(style: Style, dropped: &Arc<AtomicU64>) -> Option<Self> {
        let (lines, inbox) = sync_channel(QUEUE);
        let (done, finished) = sync_channel(1);
        let mut writer = Writer {
            style,
            shown: None,
            inbox,
            dropped: Arc::clone(dropped),
        };
        let thread = thread::Builder::new()
            .name("log".into())
            .stack_size(128 * 1024)
            .spawn(move || {
                writer.write_all();
                // If this fails, the receiver has stopped waiting.
                let _ = done.send(());
            });
        thread.is_ok().then_some(Self { lines, finished })
    }
}

/// The state of the log's thread.
struct Writer {
    style: Style,
    /// What is shown.
    shown: Option<String>,
    inbox: Receiver<Item>,
    dropped: Arc<AtomicU64>,
}

impl Writer {
    /// Writes every line that arrives; when none is left, reports how many were dropped.
    fn write_all(&mut self) {
        loop {
            let item = match self.inbox.try_recv() {
                Err(TryRecvError::Empty) => {
                    self.tell_dropped();
                    self.inbox.recv().ok()
                }
                other => other.ok(),
            };
            match item {
                None => break,
                Some(Item::Line(line)) => {
                    if !self.write(&line) {
                        self.dropped.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Some(Item::Output(output, done)) => {
                    self.clear();
                    write_whole(&output);
                    // The receiver may have stopped waiting.
                    let _ = done.send(());
                }
                Some(Item::Show(text)) => self.show(text),
                Some(Item::Clear(done)) => {
                    self.clear();
                    // The receiver may have stopped waiting.
                    let _ = done.send(());
                }
            }
        }
        self.clear();
        self.tell_dropped();
    }

    fn show(&mut self, text: String) {
        // A line that is wider than the terminal would go on in the next one, and stay there.
        let width = size_of_stderr().and_then(|size| size.columns);
        let text = cut(&text, Some(width.unwrap_or(80).saturating_sub(1)));
        if self.shown.as_ref() != Some(&text) {
            write_whole(format!("{CLEAR}{text}").as_bytes());
            self.shown = Some(text);
        }
    }

    fn clear(&mut self) {
        if self.shown.take().is_some() {
            write_whole(CLEAR.as_bytes());
        }
    }

    fn write(&self, line: &str) -> bool {
        match &self.shown {
            None => write_whole(line.as_bytes()),
            Some(shown) => write_whole(format!("{CLEAR}{line}{shown}").as_bytes()),
        }
    }

    fn tell_dropped(&self) {
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped == 0 {
            return;
        }
        let text = format!("{dropped} messages dropped: stderr is not being read");
        let message = Message::warning("messages_dropped", text);
        let line = self.style.line(&message, &Subject::default());
        if !self.write(&line) {
            self.dropped.fetch_add(dropped, Ordering::Relaxed);
        }
    }
}

/// True if a line can be written to stderr without blocking: a ready pipe has room for at least
/// 4096 bytes (pipe(7), PIPE_BUF).
pub(super) fn stderr_takes_a_line() -> bool {
    is_writable(std::io::stderr().as_fd(), Some(Duration::ZERO))
}

/// Writes a text, a line at once, so that lines of several processes do not mix. Returns whether
/// that worked; without stderr the failure cannot be reported.
fn write_whole(text: &[u8]) -> bool {
    without_being_stopped(|| {
        let mut rest = text;
        while !rest.is_empty() {
            match std::io::stderr().write(rest) {
                Ok(0) => return false,
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Another process that shares it may have made it nonblocking.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    is_writable(std::io::stderr().as_fd(), None);
                }
                Err(_) => return false,
            }
        }
        true
    })
}
