//! What the kernel grants this process, and its children after it: the size of files (`ulimit -f`) and the
//! priority.
//!
//! The limit of file sizes is meant for the job. tokenrun's own files are small, but the log of a SQLite store is
//! not, and a write beyond the limit kills its process by SIGXFSZ.

#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use rustix::process::{Resource, getpriority_process, getrlimit};

/// The inherited limit, and the inherited effect of a write beyond it.
#[derive(Debug, Clone, Copy)]
pub struct FileSizeLimit {
    limit: libc::rlimit,
    signal: SigAction,
}

impl FileSizeLimit {
    /// Records the inherited values, then lifts the limit as far as possible: completely
    /// (CAP_SYS_RESOURCE), otherwise up to the hard limit. A write beyond the remaining limit fails
    /// (EFBIG), and kills no process.
    ///
    /// # Errors
    /// Those of sigaction(2) and getrlimit(2), which have no reason to fail.
    pub fn lift() -> io::Result<Self> {
        let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
        // SAFETY: no handler is installed.
        let signal = unsafe { sigaction(Signal::SIGXFSZ, &ignore) }?;
        let limit = file_size_limit()?;
        if limit.rlim_cur != libc::RLIM_INFINITY {
            let none = libc::rlimit {
                rlim_cur: libc::RLIM_INFINITY,
                rlim_max: libc::RLIM_INFINITY,
            };
            let hard = libc::rlimit {
                rlim_cur: limit.rlim_max,
                ..limit
            };
            if set_file_size(&none).is_err() {
                // If that fails too, the limit stays.
                let _ = set_file_size(&hard);
            }
        }
        Ok(Self { limit, signal })
    }

    /// Restores what [`Self::lift`] changed. Async-signal-safe.
    pub fn restore(&self) {
        // Lowering a limit is always allowed.
        let _ = set_file_size(&self.limit);
        // SAFETY: it was inherited through an exec, so that it is the default or ignoring.
        let _ = unsafe { sigaction(Signal::SIGXFSZ, &self.signal) };
    }

    /// Executes a command with the inherited values.
    pub fn hand_down(self, command: &mut Command) {
        let restore = move || {
            self.restore();
            Ok(())
        };
        // SAFETY: the code between fork and exec makes two system calls and nothing else.
        unsafe { command.pre_exec(restore) };
    }
}

/// How long a file that this process writes may be; `None` without a limit.
pub fn file_size() -> Option<u64> {
    let limit = file_size_limit().ok()?.rlim_cur;
    (limit != libc::RLIM_INFINITY).then_some(limit)
}

fn file_size_limit() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: getrlimit(2) writes to a struct that is ours.
    Errno::result(unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) })?;
    Ok(limit)
}

fn set_file_size(limit: &libc::rlimit) -> io::Result<()> {
    // SAFETY: setrlimit(2) reads a struct that is ours.
    Errno::result(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, limit) })?;
    Ok(())
}

/// The time slice that a process that seldom runs requests, in nanoseconds: the kernel prefers
/// processes with short slices. This is the smallest allowed value. Kernels before 6.12 ignore it.
const SHORT_SLICE: u64 = 100_000;

/// The least niceness that there is.
const LEAST_NICE: i32 = -20;

/// The argument of sched_setattr(2), in its first version, which every kernel knows.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Children have ordinary priority again.
const RESET_ON_FORK: u64 = 1;

/// Gives this process precedence, so that it runs however many others want to: at the highest
/// real-time priority allowed (CAP_SYS_NICE, or RLIMIT_RTPRIO), otherwise before other ordinary
/// processes as far as allowed. Its children do not inherit that.
///
/// Only for a process that runs seldom, and never for long.
pub fn run_first() {
    let highest = highest_real_time();
    let allowed = soft_limit(Resource::Rtprio).min(highest);
    if !run_in_real_time(highest) && !run_in_real_time(allowed) {
        run_first_in_turn();
    }
}

/// Gives this process precedence among ordinary ones.
fn run_first_in_turn() {
    let own = getpriority_process(None).unwrap_or_default();
    let allowed = 20 - soft_limit(Resource::Nice);
    let tries = [LEAST_NICE, allowed.min(own), own];
    let _ = tries.into_iter().any(run_in_turn);
}

fn highest_real_time() -> i32 {
    // SAFETY: sched_get_priority_max(2) takes no pointer.
    unsafe { libc::sched_get_priority_max(libc::SCHED_RR) }
}

fn run_in_real_time(priority: i32) -> bool {
    schedule(&Attributes {
        policy: libc::SCHED_RR.cast_unsigned(),
        priority: u32::try_from(priority).unwrap_or_default(),
        ..Attributes::default()
    })
}

fn run_in_turn(nice: i32) -> bool {
    schedule(&Attributes {
        policy: libc::SCHED_OTHER.cast_unsigned(),
        nice,
        runtime: SHORT_SLICE,
        ..Attributes::default()
    })
}

/// By the kernel's own call: musl's sched_setscheduler(3) does nothing, and returns ENOSYS.
fn schedule(wanted: &Attributes) -> bool {
    let wanted = Attributes {
        size: u32::try_from(size_of::<Attributes>()).unwrap_or_default(),
        flags: RESET_ON_FORK,
        ..*wanted
    };
    // SAFETY: sched_setattr(2) reads a struct that is ours, up to the size in it.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
    Errno::result(done).is_ok()
}

fn soft_limit(of: Resource) -> i32 {
    let limit = getrlimit(of).current.unwrap_or(u64::MAX);
    i32::try_from(limit).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_the_inherited_limit() {
        let mut limited = Command::new("bash");
        limited.args([
            "-c",
            "ulimit -Sf; ulimit -Hf; grep SigIgn /proc/self/status",
        ]);
        let signal = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
        let limit = libc::rlimit {
            rlim_cur: 64 << 10,
            rlim_max: 128 << 10,
        };
        FileSizeLimit { limit, signal }.hand_down(&mut limited);
        let printed = String::from_utf8(limited.output().unwrap().stdout).unwrap();
        let (limits, ignored) = printed.split_once("\nSigIgn:").unwrap();
        assert_eq!(limits, "64\n128");
        let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
        assert_eq!(ignored >> (libc::SIGXFSZ - 1) & 1, 1, "{printed}");
        assert_eq!(file_size(), None, "of this process");
    }
}
