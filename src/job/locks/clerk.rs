//! A process that does what concerns the files of locks, where the store does not lie beside
//! them. A file system may hang (frozen, a dead disk), and a process that waits for it heeds no
//! signal, not even a KILL. So another process waits, and the supervisor goes on without
//! locks. There is one while the token is sought; it ends when the job is started.

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
use crate::sys::signal_numbers::SIGKILL;
use crate::sys::signals::{Inherited, block_all};
use crate::sys::socket::{Packet, Packets};
use crate::sys::wait::ends_within;

/// What listings call it.
const NAME: &std::ffi::CStr = c"lease-clerk";

/// How often it is looked whether a signal asks for the end, while an answer is waited for.
const TICK: Duration = Duration::from_millis(10);

/// How long its end is waited for when the job has been started.
const LEAVING: Duration = Duration::from_millis(20);

/// The same when the run is over: an outer run must not find it among what its job left.
const LEAVING_AT_THE_END: Duration = Duration::from_millis(100);

/// The supervisor's side.
#[derive(Debug)]
pub struct Clerk {
    socket: Packets,
    pid: i32,
    directory: PathBuf,
    /// How long an answer is waited for.
    patience: Duration,
    /// A signal that asks for the end ends that wait too.
    inherited: Inherited,
    /// The last that was asked, and whether its answer is still to come.
    asked: u64,
    owes: bool,
}

#[derive(Debug, Serialize, Deserialize)]
enum Ask {
    /// Answered with [`Told::Taken`] and the run lock's descriptor, then [`Told::Job`] and
    /// the job lock's.
    Take {
        bits: String,
        inherited: bool,
    },
    Probe {
        name: String,
    },
    /// Not answered.
    Remove {
        name: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
enum Told {
    Taken { name: String },
    Job,
    NotTaken { why: String },
    Probed(Option<Probed>),
}

impl Clerk {
    /// Forks one for the locks in this directory, which has so long for each answer. To be
    /// called while this process has a single thread.
    ///
    /// # Errors
    /// The system refused a process or descriptors.
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
                // Or it would never hear that the supervisor is gone.
                drop(socket);
                let work = AssertUnwindSafe(|| serve(&clerks_end, directory));
                exit_now(catch_unwind(work).map_or(70, |()| 0))
            }
        }
    }

    /// As [`take`].
    ///
    /// # Errors
    /// As there, or there is no answer.
    pub fn take(&mut self, bits: u128, inherited: bool) -> io::Result<(RunLock, JobLock)> {
        let bits = format!("{bits:x}");
        match self.ask(&Ask::Take { bits, inherited })? {
            (Told::Taken { name }, Some(run)) => {
                let name = LockName::parse(&name).ok_or(ErrorKind::InvalidData)?;
                let path = self.directory.join(name.as_str());
                let run = RunLock {
                    file: File::from(run),
                    path,
                    name,
                };
                match self.answer()? {
                    (Told::Job, Some(job)) => Ok((run, JobLock(File::from(job)))),
                    _ => Err(Errno::EMFILE.into()),
                }
            }
            (Told::NotTaken { why }, _) => Err(io::Error::other(why)),
            // A descriptor was lost on its way, for want of free ones.
            _ => Err(Errno::EMFILE.into()),
        }
    }

    /// As [`probe()`]; nothing can be told if there is no answer.
    #[must_use]
    pub fn probe(&mut self, name: &LockName) -> Option<Probed> {
        let name = name.to_string();
        match self.ask(&Ask::Probe { name }).ok()?.0 {
            Told::Probed(found) => found,
            _ => None,
        }
    }

    /// As [`remove`], later.
    pub fn remove(&self, name: &LockName) {
        let name = name.to_string();
        // What is not removed is swept some day.
        let _ = send(&self.socket, self.asked, &Ask::Remove { name }, None);
    }

    /// Sends it away. It sweeps, and ends. Gives the pid of one that does not: it stays a
    /// child of this process until its file system answers.
    #[must_use]
    pub fn dismiss(self) -> Option<i32> {
        self.leaves_within(LEAVING)
    }

    /// The same when the run is over.
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

    fn ask(&mut self, ask: &Ask) -> io::Result<(Told, Option<OwnedFd>)> {
        self.drop_late_answers();
        if self.owes {
            return Err(io::Error::new(ErrorKind::TimedOut, "no answer yet"));
        }
        self.asked += 1;
        send(&self.socket, self.asked, ask, None)?;
        self.owes = true;
        self.answer()
    }

    /// The next packet of the answer to what was asked last.
    fn answer(&mut self) -> io::Result<(Told, Option<OwnedFd>)> {
        let asked_at = Instant::now();
        loop {
            match self.socket.receive()? {
                Packet::Data(bytes, fd) => {
                    let (number, told): (u64, Told) = serde_json::from_slice(&bytes)?;
                    if number == self.asked {
                        self.owes = matches!(told, Told::Taken { .. });
                        return Ok((told, fd));
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

    /// What comes too late is dropped, and its locks with it.
    fn drop_late_answers(&mut self) {
        while let (true, Ok(Packet::Data(bytes, _))) = (self.owes, self.socket.receive()) {
            let told = serde_json::from_slice::<(u64, Told)>(&bytes);
            if let Ok((_, Told::Taken { name })) = &told
                && let Some(name) = LockName::parse(name)
            {
                self.remove(&name);
            }
            self.owes = told.is_ok_and(|(_, told)| matches!(told, Told::Taken { .. }));
        }
    }
}

fn wait(socket: &Packets, limit: Option<Duration>) {
    // Whatever it says, what there is is read next.
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

/// The clerk's whole work, until the supervisor is gone or sends it away.
fn serve(socket: &Packets, directory: &Path) {
    // It holds nothing of the supervisor's: it may outlive it, if it hangs.
    silence_standard();
    close_all_except(&[socket.as_fd()]);
    let _ = block_all().and_then(|()| set_name(NAME));
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
                    send(socket, number, &Told::Taken { name }, Some(&run.file))?;
                    send(socket, number, &Told::Job, Some(&job.0))
                }
                Err(error) => {
                    let why = error.to_string();
                    send(socket, number, &Told::NotTaken { why }, None)
                }
            }
        }
        Ask::Probe { name } => {
            let found = LockName::parse(&name).and_then(|name| probe(directory, &name));
            send(socket, number, &Told::Probed(found), None)
        }
        Ask::Remove { name } => {
            if let Some(name) = LockName::parse(&name) {
                remove(directory, &name);
            }
            Ok(())
        }
    }
}
