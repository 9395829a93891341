//! Signals: their numbers, the inherited dispositions, the signals that tokenrun handles, and how they
//! are read.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{
    SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, pthread_sigmask, sigaction,
};
use nix::sys::signalfd::{self, SfdFlags};

use super::limits::FileSizeLimit;

pub const SIGCHLD: i32 = libc::SIGCHLD;
pub const SIGCONT: i32 = libc::SIGCONT;
pub const SIGHUP: i32 = libc::SIGHUP;
pub const SIGINT: i32 = libc::SIGINT;
pub const SIGKILL: i32 = libc::SIGKILL;
pub const SIGQUIT: i32 = libc::SIGQUIT;
pub const SIGTERM: i32 = libc::SIGTERM;
pub const SIGTSTP: i32 = libc::SIGTSTP;

/// True if this signal asks a process to end.
pub const fn asks_for_end(signal: i32) -> bool {
    matches!(signal, SIGTERM | SIGINT | SIGHUP | SIGQUIT)
}

/// The signals that tokenrun acts on or passes on to its job. Their numbers are
/// the kernel's.
pub const PASSED: [Signal; 8] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
    Signal::SIGCONT,
];

/// Raised by the process's own instructions. A blocked one ends the process.
const SYNCHRONOUS: [Signal; 7] = [
    Signal::SIGSEGV,
    Signal::SIGBUS,
    Signal::SIGFPE,
    Signal::SIGILL,
    Signal::SIGTRAP,
    Signal::SIGABRT,
    Signal::SIGSYS,
];

/// They stop tokenrun together with its job.
const STOPPING: [Signal; 3] = [Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU];

/// A signal mask as the kernel keeps it: a bit for each signal. A C library hides the signals that it keeps for
/// itself; for musl 34 is one of them, which programs with glibc know as SIGRTMIN.
#[derive(Debug, Clone, Copy)]
struct Mask(u64);

impl Mask {
    fn current() -> io::Result<Self> {
        Self::change(None)
    }

    /// Async-signal-safe.
    fn set(self) -> io::Result<()> {
        Self::change(Some(self)).map(drop)
    }

    /// Sets the mask, if there is another. The one before.
    fn change(to: Option<Self>) -> io::Result<Self> {
        let mut before = 0_u64;
        let to = to
            .as_ref()
            .map_or(std::ptr::null(), |mask| &raw const mask.0);
        // SAFETY: rt_sigprocmask(2) reads one mask and writes another, both of this size and ours.
        let done = unsafe {
            libc::syscall(
                libc::SYS_rt_sigprocmask,
                libc::SIG_SETMASK,
                to,
                &raw mut before,
                size_of::<u64>(),
            )
        };
        Errno::result(done)?;
        Ok(Self(before))
    }

    const fn contains(self, signal: Signal) -> bool {
        self.0 >> (signal as i32 - 1) & 1 == 1
    }
}

/// The inherited signal mask, dispositions and limit on files.
#[derive(Debug, Clone, Copy)]
pub struct Inherited {
    mask: Mask,
    child: SigAction,
    pipe: SigAction,
    ignored: SigSet,
    file_size: FileSizeLimit,
}

impl Inherited {
    /// Records the inherited values, then ignores SIGPIPE, lifts the limit on the size of files
    /// ([`FileSizeLimit::lift`]), and gives SIGCHLD its default (a parent may have ignored it, and
    /// then no child could be waited for). The other signals keep their effect: until
    /// [`Inherited::block`] they end this process at once.
    ///
    /// To be called first of all, by the only thread.
    pub fn look() -> io::Result<Self> {
        let mask = Mask::current()?;
        let mut ignored = SigSet::empty();
        for signal in PASSED {
            if is_ignored(signal)? {
                ignored.add(signal);
            }
        }
        Ok(Self {
            mask,
            child: set_disposition(Signal::SIGCHLD, SigHandler::SigDfl)?,
            pipe: set_disposition(Signal::SIGPIPE, SigHandler::SigIgn)?,
            ignored,
            file_size: FileSizeLimit::lift()?,
        })
    }

    /// Blocks every signal except the synchronous ones and those that stop a process
    /// from a terminal: from here on they are read, by [`SignalFd`]. To be called
    /// while there is one thread: others inherit the mask.
    ///
    /// # Errors
    /// Those of pthread_sigmask(3), which has no reason to fail.
    pub fn block(&self) -> io::Result<()> {
        let mut taken = SigSet::all();
        for signal in SYNCHRONOUS {
            taken.remove(signal);
        }
        for signal in STOPPING {
            if !self.mask.contains(signal) {
                taken.remove(signal);
            }
        }
        Ok(taken.thread_set_mask()?)
    }

    /// Takes [`Inherited::block`] back: a stop signal that has come meanwhile ends this process now.
    #[cfg(test)]
    pub fn unblock(&self) -> io::Result<()> {
        self.mask.set()
    }

    /// [`Inherited::look`] and [`Inherited::block`] in one.
    ///
    /// # Errors
    /// As both.
    pub fn take() -> io::Result<Self> {
        let inherited = Self::look()?;
        inherited.block()?;
        Ok(inherited)
    }

    /// Restores everything that [`Inherited::take`] changed. Async-signal-safe: for the job's
    /// process between fork and exec.
    pub fn restore(&self) {
        // A failure can't be reported: these calls fail for a bad number only.
        // SAFETY: both actions
        // were inherited through an exec, so they can only be the default or ignoring; no handler
        // is installed.
        unsafe {
            let _ = sigaction(Signal::SIGCHLD, &self.child);
            let _ = sigaction(Signal::SIGPIPE, &self.pipe);
        }
        self.file_size.restore();
        let _ = self.mask.set();
    }

    /// True if a stop signal has come and is not read yet. To be called after [`Inherited::block`].
    pub fn is_stopped(&self) -> bool {
        // SAFETY: all zeroes is a valid set, and it is overwritten.
        let mut pending: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: sigpending(2) writes to a set that is ours.
        if unsafe { libc::sigpending(&mut pending) } != 0 {
            return false;
        }
        // SAFETY: it is a set that the kernel gave.
        let pending = unsafe { SigSet::from_sigset_t_unchecked(pending) };
        let mut stops = PASSED.iter().filter(|it| asks_for_end(**it as i32));
        let has_come = |stop: &Signal| pending.contains(*stop) && !self.ignored.contains(*stop);
        stops.any(has_come)
    }

    /// The limit on the size of files that this process was given.
    pub const fn file_size(&self) -> FileSizeLimit {
        self.file_size
    }
}

/// Discards the signals that were sent to this process while they were blocked. Returns their
/// numbers.
pub fn discard_pending() -> Vec<i32> {
    let at_once = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let all = SigSet::all();
    let mut discarded = Vec::new();
    loop {
        // SAFETY: both pointers are to values that live until after the call; no
        // information about the signal is asked for.
        let signal = unsafe { libc::sigtimedwait(all.as_ref(), std::ptr::null_mut(), &at_once) };
        if signal <= 0 {
            return discarded;
        }
        discarded.push(signal);
    }
}

fn is_ignored(signal: Signal) -> io::Result<bool> {
    // SAFETY: all zeroes is a valid sigaction, and it is overwritten.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: with no new action, sigaction(2) only writes the current one to a
    // place that is ours.
    let done = unsafe { libc::sigaction(signal as i32, std::ptr::null(), &mut action) };
    Errno::result(done)?;
    Ok(action.sa_sigaction == libc::SIG_IGN)
}

fn set_disposition(signal: Signal, to: SigHandler) -> io::Result<SigAction> {
    let action = SigAction::new(to, SaFlags::empty(), SigSet::empty());
    // SAFETY: only the default and ignoring are ever passed in; no handler runs.
    Ok(unsafe { sigaction(signal, &action) }?)
}

/// Does `work` so that a write to a terminal from the background does not stop this
/// process, whatever `stty tostop` says: the kernel lets it pass.
pub fn without_being_stopped<R>(work: impl FnOnce() -> R) -> R {
    let output = SigSet::from(Signal::SIGTTOU);
    let mut before = SigSet::empty();
    // It can fail only for a bad number; then the write is like any other.
    let _ = pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&output), Some(&mut before));
    let done = work();
    let _ = before.thread_set_mask();
    done
}

/// Blocks every signal that can be blocked, those that stop a process included.
///
/// # Errors
/// Those of pthread_sigmask(3), which has no reason to fail.
pub fn block_all() -> io::Result<()> {
    Ok(SigSet::all().thread_set_mask()?)
}

/// Ends this process by a signal, as if it had never been caught, so that the parent sees a death
/// by that signal. Without a core dump: the job's is the one that matters. If the signal does not
/// end the process, it exits with 128 + `signal`.
pub fn die_of(signal: i32) -> ! {
    if let Ok(signal) = Signal::try_from(signal) {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: setrlimit(2) reads a struct that is ours.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
        let _ = set_disposition(signal, SigHandler::SigDfl);
        let only = SigSet::from(signal);
        let _ = pthread_sigmask(SigmaskHow::SIG_UNBLOCK, Some(&only), None);
        let _ = nix::sys::signal::raise(signal);
    }
    super::process::exit_now(128i32.saturating_add(signal))
}

/// A signal that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// The signal's number.
    pub signal: i32,
    /// The sender, as far as the kernel says; 0 for the kernel itself, or for a process of another
    /// pid namespace.
    pub from_pid: i32,
    /// The kernel's `si_code`: SI_USER, SI_KERNEL, CLD_EXITED and so on.
    pub code: i32,
}

/// The signals of [`PASSED`] that were not ignored, and SIGCHLD, as a descriptor.
/// It reads the signals of the process that reads it: a fork needs its own.
#[derive(Debug)]
pub struct SignalFd {
    fd: signalfd::SignalFd,
}

impl SignalFd {
    /// Opens the descriptor, nonblocking and closed on exec. The signals must be
    /// blocked, see [`Inherited::block`].
    ///
    /// # Errors
    /// What signalfd(2) says: out of descriptors or memory.
    pub fn new(inherited: &Inherited) -> io::Result<Self> {
        Self::reading(inherited, SigSet::empty())
    }

    /// A descriptor that reads SIGTSTP too, which must be blocked.
    pub fn with_stops(inherited: &Inherited) -> io::Result<Self> {
        Self::reading(inherited, SigSet::from(Signal::SIGTSTP))
    }

    fn reading(inherited: &Inherited, mut wanted: SigSet) -> io::Result<Self> {
        wanted.add(Signal::SIGCHLD);
        for signal in PASSED {
            // The kernel would queue the signal although it is ignored: it is blocked.
            if !inherited.ignored.contains(signal) {
                wanted.add(signal);
            }
        }
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let fd = signalfd::SignalFd::with_flags(&wanted, flags)?;
        Ok(Self { fd })
    }

    /// The next signal that has arrived; `None` if there is none now.
    pub fn read(&self) -> Option<Received> {
        // The read of a valid descriptor fails only when nothing is pending.
        let info = self.fd.read_signal().ok().flatten()?;
        Some(Received {
            signal: i32::try_from(info.ssi_signo).unwrap_or_default(),
            from_pid: i32::try_from(info.ssi_pid).unwrap_or_default(),
            code: info.ssi_code,
        })
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
/// The number of the first real-time signal that programs with glibc use, as they name it.
const SIGRTMIN: i32 = 34;

/// The number of the last one.
const SIGRTMAX: i32 = 64;

/// The name of a signal: `SIGKILL`, `SIGRTMIN+2`, `signal 99` if there is none with this number.
pub fn name(signal: i32) -> String {
    match (Signal::try_from(signal), signal) {
        (Ok(known), _) => known.as_str().to_owned(),
        (_, SIGRTMIN) => "SIGRTMIN".to_owned(),
        (_, SIGRTMIN..=SIGRTMAX) => format!("SIGRTMIN+{}", signal - SIGRTMIN),
        _ => format!("signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_has_its_name() {
        let named = [
            (9, "SIGKILL"),
            (11, "SIGSEGV"),
            (34, "SIGRTMIN"),
            (64, "SIGRTMIN+30"),
        ];
        for (signal, expected) in named {
            assert_eq!(name(signal), expected);
        }
        for signal in [0, -1, 33, 65, i32::MAX] {
            assert_eq!(name(signal), format!("signal {signal}"));
        }
    }
}
