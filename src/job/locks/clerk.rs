//! A process that handles the lock files where the store does not lie beside them. A file system
//! may hang (frozen, a dead disk), and a process that waits for it handles no signal, not even
//! KILL. So the clerk waits instead, and the supervisor goes on without locks. The clerk exists
//! while the token is sought; it ends when the job is started.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{JobLock, LockName, Probed, RunLock, probe, remove, sweep_if_due, take};
use crate::sys::errno::Errno;
use crate::sys::fds::{close_all_except, silence_standard};
use crate::sys::poll::wait_readable;
use crate::sys::process::{Forked, exit_now, fork, set_name, signal_child};
use crate::sys::signals::{Inherited, SIGKILL, block_all};
use crate::sys::socket::{Packet, Packets};
use crate::sys::wait::ends_within;

/// The clerk's name in process listings.
const NAME: &std::ffi::CStr = c"lease-clerk";

/// How often a wait for an answer checks for a stop signal.
const TICK: Duration = Duration::from_millis(10);

/// How long the supervisor waits for the clerk's end when the job has started.
const LEAVING: Duration = Duration::from_millis(20);

/// How long the clerk may take when the run is over: an outer run must not find the clerk among the processes that its
/// job left behind.
const LEAVING_AT_THE_END: Duration = Duration::from_millis(100);

/// The supervisor's side of the clerk.
#[derive(Debug)]
pub struct Clerk {
    socket: Packets,
    pid: i32,
    directory: PathBuf,
    /// How long the supervisor waits for an answer.
    patience: Duration,
    /// A stop signal ends that wait too.
    inherited: Inherited,
    /// The number of the last request, and whether its answer is still to come.
    asked: u64,
    owes: bool,
}

#[derive(Debug, Serialize, Deserialize)]
enum Ask {
    /// Answered with [`Answer::Taken`] and the run lock's descriptor, then [`Answer::Job`] and the job
    /// lock's descriptor.
    Take {
        bits: String,
        inherited: bool,
    },
    Probe {
        name: String,
    },
    /// Without an answer.
    Remove {
        name: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Taken { name: String },
    Job,
    NotTaken { why: String },
    Probed(Option<Probed>),
}

impl Clerk {
    /// Forks a clerk for the locks in this directory, with this time for each answer. To be called
    /// while this process has a single thread.
    ///
    /// # Errors
    /// The system cannot create a process or descriptors.
    pub fn fork(directory: &Path, patience: Duration, inherited: Inherited) -> io::Result<Self> {
        let (socket, clerks_end) = Packets::pair()?;
        match fork()? {
            Forked::Parent { child } => Ok(Self {
                socket,
                pid: child,
                directory: directory.to_owned(),
                patience,
                inherited,
                asked: 0,
                owes: false,
            }),
            Forked::Child => {
                // With an open copy the clerk would never see the end of the supervisor.
                drop(socket);
                let work = AssertUnwindSafe(|| serve(&clerks_end, directory));
                exit_now(catch_unwind(work).map_or(70, |()| 0))
            }
        }
    }

    /// As [`take`].
    ///
    /// # Errors
    /// Those of [`take`], or no answer in time.
    pub fn take(&mut self, bits: u128, inherited: bool) -> io::Result<(RunLock, JobLock)> {
        let bits = format!("{bits:x}");
        match self.ask(&Ask::Take { bits, inherited })? {
            (Answer::Taken { name }, Some(run)) => {
                let name = LockName::parse(&name).ok_or(ErrorKind::InvalidData)?;
                let path = self.directory.join(name.as_str());
                let run = RunLock {
                    file: File::from(run),
                    path,
                    name,
                };
                match self.answer()? {
                    (Answer::Job, Some(job)) => Ok((run, JobLock(File::from(job)))),
                    _ => Err(Errno::EMFILE.into()),
                }
            }
            (Answer::NotTaken { why }, _) => Err(io::Error::other(why)),
            // A descriptor was lost on its way, for want of free ones.
            _ => Err(Errno::EMFILE.into()),
        }
    }

    /// As [`probe()`]; `None` also without an answer.
    pub fn probe(&mut self, name: &LockName) -> Option<Probed> {
        let name = name.to_string();
        match self.ask(&Ask::Probe { name }).ok()?.0 {
            Answer::Probed(found) => found,
            _ => None,
        }
    }

    /// As [`remove`], asynchronously.
    pub fn remove(&self, name: &LockName) {
        let name = name.to_string();
        // A file that is not removed is swept later.
        let _ = send(&self.socket, self.asked, &Ask::Remove { name }, None);
    }

    /// Dismisses the clerk. It sweeps, and ends. Returns the pid of one that does not end: it stays
    /// a child of this process until its file system answers.
    pub fn dismiss(self) -> Option<i32> {
        self.leaves_within(LEAVING)
    }

    /// Dismisses the clerk when the run is over.
    pub fn dismiss_at_the_end(self) {
        let _ = self.leaves_within(LEAVING_AT_THE_END);
    }

    fn leaves_within(mut self, limit: Duration) -> Option<i32> {
        self.drop_late_answers();
        let (pid, hangs) = (self.pid, self.owes);
        drop(self);
        if ends_within(pid, if hangs { Duration::ZERO } else { limit }) {
            return None;
        }
        if hangs {
            let _ = signal_child(pid, SIGKILL);
        }
        Some(pid)
    }

    fn ask(&mut self, ask: &Ask) -> io::Result<(Answer, Option<OwnedFd>)> {
        self.drop_late_answers();
        if self.owes {
            return Err(io::Error::new(ErrorKind::TimedOut, "no answer yet"));
        }
        self.asked += 1;
        send(&self.socket, self.asked, ask, None)?;
        self.owes = true;
        self.answer()
    }

    /// The next packet of the answer to the last request.
    fn answer(&mut self) -> io::Result<(Answer, Option<OwnedFd>)> {
        let asked_at = Instant::now();
        loop {
            match self.socket.receive()? {
                Packet::Data(bytes, fd) => {
                    let (number, answer): (u64, Answer) = serde_json::from_slice(&bytes)?;
                    if number == self.asked {
                        self.owes = matches!(answer, Answer::Taken { .. });
                        return Ok((answer, fd));
                    }
                }
                Packet::Closed => return Err(ErrorKind::BrokenPipe.into()),
                Packet::Nothing if asked_at.elapsed() >= self.patience => {
                    let waited = humantime::format_duration(self.patience);
                    let text = format!("no answer for {waited}: its file system hangs");
                    return Err(io::Error::new(ErrorKind::TimedOut, text));
                }
                Packet::Nothing if self.inherited.is_stopped() => {
                    return Err(ErrorKind::Interrupted.into());
                }
                Packet::Nothing => wait(&self.socket, Some(TICK)),
            }
        }
    }

    /// Drops late answers, and their locks.
    fn drop_late_answers(&mut self) {
        while let (true, Ok(Packet::Data(bytes, _))) = (self.owes, self.socket.receive()) {
            let answer = serde_json::from_slice::<(u64, Answer)>(&bytes);
            if let Ok((_, Answer::Taken { name })) = &answer
                && let Some(name) = LockName::parse(name)
            {
                self.remove(&name);
            }
            self.owes = answer.is_ok_and(|(_, answer)| matches!(answer, Answer::Taken { .. }));
        }
    }
}

fn wait(socket: &Packets, limit: Option<Duration>) {
    // Whatever this returns, the available packets are read next.
    let _ = wait_readable(socket.as_fd(), limit);
}

fn send(
    socket: &Packets,
    number: u64,
    message: &impl Serialize,
    fd: Option<&File>,
) -> io::Result<()> {
    let packet = serde_json::to_vec(&(number, message))?;
    socket.send(&packet, fd.map(AsFd::as_fd))
}

/// The clerk's whole work, until the supervisor is gone or dismisses it.
fn serve(socket: &Packets, directory: &Path) {
    // It holds no descriptor of the supervisor's: it may outlive the supervisor, if it hangs.
    silence_standard();
    close_all_except(&[socket.as_fd()]);
    let _ = block_all().and_then(|()| set_name(NAME));
    attend(socket, directory);
}

/// Carries out requests until the other end of the socket is closed; then it sweeps.
fn attend(socket: &Packets, directory: &Path) {
    loop {
        match socket.receive() {
            Ok(Packet::Nothing) => wait(socket, None),
            Ok(Packet::Data(bytes, _)) => {
                let asked = serde_json::from_slice::<(u64, Ask)>(&bytes);
                if let Ok((number, ask)) = asked {
                    // A supervisor that is gone needs no answer.
                    let _ = carry_out(socket, directory, number, ask);
                }
            }
            Ok(Packet::Closed) => return sweep_if_due(directory),
            Err(_) => return,
        }
    }
}

fn carry_out(socket: &Packets, directory: &Path, number: u64, ask: Ask) -> io::Result<()> {
    match ask {
        Ask::Take { bits, inherited } => {
            let bits = u128::from_str_radix(&bits, 16).map_err(io::Error::other)?;
            match take(directory, bits, inherited) {
                Ok((run, job)) => {
                    let name = run.name.to_string();
                    send(socket, number, &Answer::Taken { name }, Some(&run.file))?;
                    send(socket, number, &Answer::Job, Some(&job.0))
                }
                Err(error) => {
                    let why = error.to_string();
                    send(socket, number, &Answer::NotTaken { why }, None)
                }
            }
        }
        Ask::Probe { name } => {
            let found = LockName::parse(&name).and_then(|name| probe(directory, &name));
            send(socket, number, &Answer::Probed(found), None)
        }
        Ask::Remove { name } => {
            if let Some(name) = LockName::parse(&name) {
                remove(directory, &name);
            }
            Ok(())
        }
    }
}

#[cfg(test)]
#[path = "clerk_tests.rs"]
mod tests;
