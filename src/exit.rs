//! Every way to end, its number and its meaning. The numbers up to 78 are those
//! of BSD's `sysexits.h`; 124, 126 and 127 are those of `timeout` and the shell.

/// What was asked for is not there: `tokenrun output` of a run whose output is not kept.
pub const NOTHING: u8 = 1;
/// A command line that can't be understood.
pub const USAGE: u8 = 64;
/// The store could not be reached, the job was not started.
pub const UNAVAILABLE: u8 = 69;
/// A bug in tokenrun.
pub const BUG: u8 = 70;
/// The operating system refused (fork, …).
pub const SYSTEM: u8 = 71;
/// The job succeeded, but that could not be recorded (`--once` only).
pub const UNRECORDED: u8 = 74;
/// Not now: held, bound, reserved, handed off, too soon, paused, or behind others; what was waited
/// for has not come in time; a question was not answered with yes.
pub const NOT_NOW: u8 = 75;
/// The job was stopped because its token was lost or could no longer be guarded.
pub const LOST: u8 = 76;
/// The store or a file refused permission.
pub const DENIED: u8 = 77;
/// Bad configuration: store, file system, schema, unknown group in a verb.
pub const CONFIG: u8 = 78;
/// `--timeout` passed.
pub const TIMED_OUT: u8 = 124;
/// The command can't be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// The command was not found.
pub const NOT_FOUND: u8 = 127;

/// A code, and what it means to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meaning {
    pub code: u8,
    /// With code between backticks.
    pub text: &'static str,
}

const fn meaning(code: u8, text: &'static str) -> Meaning {
    Meaning { code, text }
}

/// The meaning of every code that is tokenrun's own, in their order.
pub const MEANINGS: [Meaning; 13] = [
    meaning(
        NOTHING,
        "`tokenrun output`: no output of that run is stored. `tokenrun check --succeeded-within`: no run has succeeded in that time, or the group is unknown.",
    ),
    meaning(USAGE, "The command line can't be understood."),
    meaning(
        UNAVAILABLE,
        "The store can't be reached. The job was not started.",
    ),
    meaning(
        BUG,
        "There is a bug in tokenrun. A job that was running has been ended.",
    ),
    meaning(
        SYSTEM,
        "The operating system refused something: no process can be started, for example.",
    ),
    meaning(
        UNRECORDED,
        "With --once: the job succeeded, but its success could not be recorded.",
    ),
    meaning(
        NOT_NOW,
        "Not now. Another client holds the token, the token is kept for another client, the last grant is too recent (--at-least), the group is paused, other clients are ahead in the queue, or the time of --wait is over. --conflict-exit-code gives another number. `tokenrun check`: the answer is no, or the group is unknown.",
    ),
    meaning(
        LOST,
        "The token was lost, or the lease could no longer be guarded. The job was ended. `tokenrun fence`: the fencing token is stale.",
    ),
    meaning(
        DENIED,
        "Permission denied: a login, a right in the database, a file.",
    ),
    meaning(
        CONFIG,
        "The configuration is bad: a configuration file, the store, its file system or its schema. A command names an unknown group.",
    ),
    meaning(
        TIMED_OUT,
        "The job ran longer than --timeout. It was ended.",
    ),
    meaning(NOT_EXECUTABLE, "The job's program can't be executed."),
    meaning(NOT_FOUND, "The job's program was not found."),
];

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With this code.
    Code(u8),
    /// By this signal, so that the shell's loop around tokenrun ends too.
    Signal(i32),
}

impl Exit {
    /// All went well.
    pub const OK: Self = Self::Code(0);

    /// The code as a shell sees it: 128 + N for signal N.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => of_signal(signal),
        }
    }

    /// The worse of two ends: an error counts more than "not now", which counts more than success.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        let rank = |exit: Self| match exit.code() {
            0 => (0, 0),
            NOT_NOW => (1, 0),
            code => (2, code),
        };
        std::cmp::max_by_key(self, other, |exit| rank(*exit))
    }
}

/// 128 + N, as shells report a death by signal N.
#[must_use]
pub fn of_signal(signal: i32) -> u8 {
    u8::try_from(128 + (signal & 0x7f)).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_meaning() {
        let source = include_str!("exit.rs");
        let declared = source
            .lines()
            .filter(|line| line.starts_with("pub const ") && line.contains(": u8 = "));
        assert_eq!(declared.count(), MEANINGS.len());
        assert!(MEANINGS.windows(2).all(|pair| pair[0].code < pair[1].code));
    }

    #[test]
    fn a_death_by_signal_is_128_and_its_number() {
        assert_eq!(Exit::Signal(15).code(), 143);
        assert_eq!(of_signal(64), 192);
        assert_eq!(Exit::Code(3).code(), 3);
    }

    #[test]
    fn an_error_is_worse_than_not_now_which_is_worse_than_success() {
        let order = [0, NOT_NOW, NOTHING, UNAVAILABLE].map(Exit::Code);
        for (at, one) in order.into_iter().enumerate() {
            for other in order.into_iter().skip(at) {
                assert_eq!(one.worse(other), other);
                assert_eq!(other.worse(one), other);
            }
        }
    }
}
