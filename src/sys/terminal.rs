//! The controlling terminal.

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd::{getpgrp, tcgetpgrp};

/// Whether this process's group is the foreground group of its terminal. False without a terminal.
#[must_use]
pub fn is_in_foreground() -> bool {
    let flags = OFlag::O_RDONLY | OFlag::O_NOCTTY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let Ok(terminal) = open("/dev/tty", flags, Mode::empty()) else {
        return false;
    };
    tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp())
}

/// How many columns the terminal at stdout has; `None` if there is none.
#[must_use]
pub fn columns_of_stdout() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
