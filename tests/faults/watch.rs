//! Which processes are alive, according to the kernel. A stopped process can't stamp, and is alive.

use std::fs;
use std::path::Path;

use tokenrun::sys::pidfd::{Delivery, Target};
use tokenrun::sys::procfs;

use super::stamps::{Stamps, now};

/// A process as /proc/PID/stat shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    parent: i32,
    started: u64,
    /// It runs no more code of its own, and closes what it has open.
    is_leaving: bool,
}

/// The kernel's flag for a process that is in exit(2) or has been killed and knows.
const PF_EXITING: u64 = 0x4;

fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let (_, rest) = text.rsplit_once(')')?;
    // The first of the rest is the manual's field 3.
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        parent: i32::try_from(number(4)?).ok()?,
        started: number(22)?,
        is_leaving: matches!(*fields.first()?, "Z" | "X") || number(9)? & PF_EXITING != 0,
    })
}

/// A process that was known to be a certain one when it was first looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) pid: i32,
    started: u64,
}

impl Known {
    /// The process with this pid now, if it descends from this process.
    pub(crate) fn find(pid: i32) -> Option<Self> {
        let found = stat(pid).filter(|it| !it.is_leaving)?;
        descends(found.parent).then_some(Self {
            pid,
            started: found.started,
        })
    }

    fn look(self) -> Option<Stat> {
        stat(self.pid).filter(|it| it.started == self.started)
    }

    /// Whether it runs, or could: it has not begun to leave.
    pub(crate) fn is_alive(self) -> bool {
        self.look().is_some_and(|it| !it.is_leaving)
    }

    /// Sends a signal, to this process and no other. Says whether it was there.
    pub(crate) fn signal(self, signal: i32) -> bool {
        let Some(target) = Target::open(self.pid) else {
            return false;
        };
        // Only now the identity of the process is certain.
        self.look().is_some_and(|it| descends(it.parent))
            && target.signal(signal).unwrap() == Delivery::Sent
    }
}

/// Whether a process is this one or descends from it.
fn descends(mut pid: i32) -> bool {
    let own = tokenrun::sys::process::pid();
    while pid > 1 && pid != own {
        pid = stat(pid).map_or(0, |it| it.parent);
    }
    pid == own
}

/// The guard of the tokenrun that has this pid.
pub(crate) fn guard_of(supervisor: i32) -> Option<Known> {
    let is_it = |it: &procfs::Process| it.parent == supervisor && it.name == "lease-guard";
    let all = procfs::processes().unwrap();
    Known::find(all.iter().find(|it| is_it(it))?.pid)
}

/// A process that stamps, and until when the kernel has shown it alive.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    pub(crate) known: Option<Known>,
    pub(crate) until: u64,
    is_over: bool,
}

impl Watched {
    /// Looks at it, once it has begun to stamp into `slot`. Says whether it may go on.
    pub(crate) fn look(&mut self, slot: &Path) -> bool {
        if self.is_over {
            return false;
        }
        if self.known.is_none() {
            // A pid that was given to another since would be one that began after.
            self.known = Stamps::read(slot).and_then(|it| is_stamping(&it, slot));
        }
        let Some(known) = self.known else {
            return false;
        };
        let looked_at = now();
        if known.is_alive() {
            self.until = looked_at;
        } else {
            self.is_over = true;
        }
        !self.is_over
    }
}

/// The process that stamps: its command line names the file.
fn is_stamping(stamps: &Stamps, slot: &Path) -> Option<Known> {
    let known = Known::find(stamps.pid)?;
    let words = fs::read(format!("/proc/{}/cmdline", known.pid)).ok()?;
    let slot = slot.as_os_str().as_encoded_bytes();
    let is_it = words.split(|byte| *byte == 0).any(|word| word == slot);
    (is_it && known.is_alive()).then_some(known)
}
