//! Catches what a job prints: a pipe in the place of its stdout and stderr, and a thread of the
//! supervisor that reads it and keeps the end. The thread is independent of every deadline: however much
//! the job prints, the supervisor's loop sees nothing of it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::sys::events::EventFlag;
use crate::sys::pipe::{Flow, Outlet};
use crate::sys::poll::Sources;

/// As much as a pipe holds by default.
const READ: usize = 64 * 1024;

/// A pipe for a job's output that is not read yet.
#[derive(Debug)]
pub struct Capture {
    outlet: Outlet,
    size: usize,
}

/// A pipe for a job's output, and the thread that reads it.
#[derive(Debug)]
pub struct Capturing {
    /// Wakes the thread up for the end.
    end: Arc<EventFlag>,
    thread: JoinHandle<Captured>,
}

impl Capture {
    /// Makes a pipe whose last `size` bytes are kept. Returns its other end for the job: this
    /// process must not keep that open.
    ///
    /// # Errors
    /// What pipe(2) says: out of descriptors or memory.
    pub fn new(size: usize) -> io::Result<(Self, OwnedFd)> {
        let (outlet, inlet) = Outlet::pair()?;
        Ok((Self { outlet, size }, inlet))
    }

    /// Starts the thread. To be called when every process is forked that needs a single thread, and
    /// before the job is started: a job whose pipe is not read blocks.
    ///
    /// # Errors
    /// The system cannot create a thread or a descriptor.
    pub fn begin(self) -> io::Result<Capturing> {
        let end = Arc::new(EventFlag::new()?);
        let wanted = Arc::clone(&end);
        let thread = thread::Builder::new()
            .name("output".into())
            .stack_size(128 * 1024)
            .spawn(move || caught(self.outlet, Tail::new(self.size), &wanted))?;
        Ok(Capturing { end, thread })
    }
}

impl Capturing {
    /// Ends the capture, and returns what was caught. What is in the pipe now is still read, and no
    /// more: a process that was left alone may go on printing, or hold the pipe open.
    pub fn end(self) -> Captured {
        // Writing can't fail in a way that matters: the counter is far from full.
        let _ = self.end.notify();
        // A panic has ended the process before it could come here.
        self.thread.join().unwrap_or_default()
    }
}

/// The thread: reads until the end is wanted, or no process has the other end.
fn caught(mut outlet: Outlet, mut tail: Tail, end: &EventFlag) -> Captured {
    let mut buffer = vec![0; READ];
    loop {
        let sources = Sources::new()
            .and(Source::End, end.as_fd())
            .and(Source::Output, outlet.as_fd());
        // Out of memory, at worst: then the next round may do better.
        let ready = sources.wait(None);
        let is_ready = |source| ready.as_ref().is_ok_and(|ready| ready.has(&source));
        if is_ready(Source::End) {
            break;
        }
        if is_ready(Source::Output) && !read(&mut outlet, &mut buffer, &mut tail) {
            return tail.into();
        }
    }
    let mut left = outlet.filled();
    while left > 0 {
        let most = left.min(READ);
        let before = tail.printed();
        let part = buffer.get_mut(..most).unwrap_or_default();
        if !read(&mut outlet, part, &mut tail) || tail.printed() == before {
            break;
        }
        left = left.saturating_sub(usize::try_from(tail.printed() - before).unwrap_or(usize::MAX));
    }
    tail.into()
}

/// Reads once. Returns true if more may come.
fn read(outlet: &mut Outlet, buffer: &mut [u8], tail: &mut Tail) -> bool {
    match outlet.read(buffer) {
        Ok(Flow::Bytes(count)) => {
            tail.push(buffer.get(..count).unwrap_or_default());
            true
        }
        Ok(Flow::Nothing) => true,
        Ok(Flow::Closed) | Err(_) => false,
    }
}

/// The descriptors that the thread polls.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Source {
    End,
    Output,
}

/// What was caught of a job's output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// How many bytes the job printed.
    pub printed: u64,
    /// The last of them.
    pub last: Vec<u8>,
}

/// The last bytes of a stream, and how many there were.
#[derive(Debug)]
struct Tail {
    size: usize,
    last: VecDeque<u8>,
    printed: u64,
}

impl Tail {
    /// Keeps this many bytes.
    const fn new(size: usize) -> Self {
        Self {
            size,
            last: VecDeque::new(),
            printed: 0,
        }
    }

    /// How many bytes there were.
    const fn printed(&self) -> u64 {
        self.printed
    }

    fn push(&mut self, bytes: &[u8]) {
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.printed = self.printed.saturating_add(count);
        let skipped = bytes.len().saturating_sub(self.size);
        let bytes = bytes.get(skipped..).unwrap_or_default();
        // First, so that the memory never grows beyond the size.
        let excess = (self.last.len() + bytes.len()).saturating_sub(self.size);
        self.last.drain(..excess);
        self.last.extend(bytes);
    }
}

impl From<Tail> for Captured {
    fn from(tail: Tail) -> Self {
        Self {
            printed: tail.printed,
            last: tail.last.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::{FcntlArg, fcntl};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::fs::File;
    use std::io::Write as _;

    fn capturing(size: usize) -> (Capturing, File) {
        let (capture, inlet) = Capture::new(size).unwrap();
        (capture.begin().unwrap(), File::from(inlet))
    }

    #[test]
    fn everything_is_caught_when_the_pipe_is_closed() {
        let (capturing, mut inlet) = capturing(1_024);
        inlet.write_all(b"one\ntwo\n").unwrap();
        drop(inlet);
        let captured = capturing.end();
        assert_eq!(captured.last, b"one\ntwo\n");
        assert_eq!(captured.printed, 8);
    }

    #[test]
    fn what_is_in_the_pipe_is_caught_while_another_holds_it_open() {
        for _ in 0..100 {
            let (capturing, mut inlet) = capturing(100_000);
            // Less than a pipe holds, so that no write waits for the thread.
            inlet.write_all(&[b'x'; 60_000]).unwrap();
            let captured = capturing.end();
            assert_eq!(captured.last.len(), 60_000);
        }
    }

    #[test]
    fn what_comes_before_the_end_is_caught_even_if_the_thread_sees_the_end_first() {
        let (outlet, inlet) = Outlet::pair().unwrap();
        let mut inlet = File::from(inlet);
        let end = EventFlag::new().unwrap();
        end.notify().unwrap();
        inlet.write_all(&[b'x'; 60_000]).unwrap();
        let captured = caught(outlet, Tail::new(100_000), &end);
        assert_eq!(captured.printed, 60_000);
        assert_eq!(captured.last.len(), 60_000);
    }

    #[test]
    fn all_of_a_pipe_that_the_job_has_enlarged_is_caught() {
        let (outlet, inlet) = Outlet::pair().unwrap();
        fcntl(&inlet, FcntlArg::F_SETPIPE_SZ(1 << 19)).unwrap();
        let mut inlet = File::from(inlet);
        let end = EventFlag::new().unwrap();
        end.notify().unwrap();
        inlet.write_all(&[b'x'; 300_000]).unwrap();
        let captured = caught(outlet, Tail::new(10), &end);
        assert_eq!(captured.printed, 300_000);
    }

    #[test]
    fn one_that_goes_on_printing_does_not_delay_the_end() {
        let (capturing, mut inlet) = capturing(1_024);
        let printer = thread::spawn(move || while inlet.write_all(&[b'x'; 4_096]).is_ok() {});
        let captured = capturing.end();
        assert!(captured.last.len() <= 1_024);
        // The pipe has no reader any more.
        printer.join().unwrap();
    }

    #[test]
    fn of_one_that_goes_on_printing_only_the_pipe_is_caught_at_the_end() {
        let (outlet, inlet) = Outlet::pair().unwrap();
        let mut inlet = File::from(inlet);
        let end = EventFlag::new().unwrap();
        end.notify().unwrap();
        // Many reads, so that the printer goes on between them.
        let size = fcntl(&inlet, FcntlArg::F_SETPIPE_SZ(1 << 19)).unwrap();
        let size = u64::try_from(size).unwrap();
        let printer = thread::spawn(move || while inlet.write_all(&[b'x'; 4_096]).is_ok() {});
        while (outlet.filled() as u64) < size {
            thread::yield_now();
        }
        let captured = caught(outlet, Tail::new(10), &end);
        assert_eq!(captured.printed, size);
        printer.join().unwrap();
    }

    #[test]
    fn of_much_the_end_is_kept() {
        let (capturing, mut inlet) = capturing(1_024);
        let text: String = (0..100_000).map(|number| format!("{number}\n")).collect();
        inlet.write_all(text.as_bytes()).unwrap();
        drop(inlet);
        let captured = capturing.end();
        assert_eq!(captured.printed, text.len() as u64);
        assert_eq!(captured.last, &text.as_bytes()[text.len() - 1_024..]);
    }

    proptest! {
        #[test]
        fn the_last_bytes_are_kept_however_they_come(
            size in 1_usize..64,
            parts in vec(vec(any::<u8>(), 0..100), 0..20),
        ) {
            let mut tail = Tail::new(size);
            for part in &parts {
                tail.push(part);
                prop_assert!(tail.last.capacity() <= 2 * size.max(8));
            }
            let all = parts.concat();
            let captured = Captured::from(tail);
            prop_assert_eq!(captured.printed, all.len() as u64);
            prop_assert_eq!(captured.last, &all[all.len().saturating_sub(size)..]);
        }
    }
}
