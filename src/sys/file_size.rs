//! The limit on the size of files (`ulimit -f`). It is meant for the job. tokenrun's own
//! files are small, but the log of a SQLite store is not, and a write beyond the limit kills
//! its process by SIGXFSZ.

#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

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
    /// fails (EFBIG), and kills no process.
    ///
    /// # Errors
    /// Those of sigaction(2) and getrlimit(2), which have no reason to fail.
    pub fn lift() -> io::Result<Self> {
        let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
        // SAFETY: no handler is installed.
        let signal = unsafe { sigaction(Signal::SIGXFSZ, &ignore) }?;
        let limit = current()?;
        if limit.rlim_cur != libc::RLIM_INFINITY {
            let none = libc::rlimit {
                rlim_cur: libc::RLIM_INFINITY,
                rlim_max: libc::RLIM_INFINITY,
            };
            let hard = libc::rlimit {
                rlim_cur: limit.rlim_max,
                ..limit
            };
            if set(&none).is_err() {
                // If that fails too, the limit stays.
                let _ = set(&hard);
            }
        }
        Ok(Self { limit, signal })
    }

    /// Restores what [`Self::lift`] changed. Async-signal-safe.
    pub fn restore(&self) {
        // Lowering a limit is always allowed.
        let _ = set(&self.limit);
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
pub fn limit() -> Option<u64> {
    let limit = current().ok()?.rlim_cur;
    (limit != libc::RLIM_INFINITY).then_some(limit)
}

fn current() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: getrlimit(2) writes to a struct that is ours.
    Errno::result(unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) })?;
    Ok(limit)
}

fn set(limit: &libc::rlimit) -> io::Result<()> {
    // SAFETY: setrlimit(2) reads a struct that is ours.
    Errno::result(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, limit) })?;
    Ok(())
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
        assert_eq!(super::limit(), None, "of this process");
    }
}
