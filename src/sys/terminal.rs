//! The controlling terminal.

use std::os::fd::AsFd;

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd::{getpgrp, tcgetpgrp};

/// True if this process's group is the foreground group of its terminal. False without a terminal.
pub fn is_in_foreground() -> bool {
    let flags = OFlag::O_RDONLY | OFlag::O_NOCTTY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let Ok(terminal) = open("/dev/tty", flags, Mode::empty()) else {
        return false;
    };
    tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp())
}

/// How many columns and lines a terminal has; `None` of what it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub columns: Option<usize>,
    pub lines: Option<usize>,
}

/// The size of the terminal at stdout; `None` if there is no terminal.
pub fn size_of_stdout() -> Option<Size> {
    size_of(std::io::stdout())
}

/// The size of the terminal at stderr; `None` if there is no terminal.
pub fn size_of_stderr() -> Option<Size> {
    size_of(std::io::stderr())
}

fn size_of(terminal: impl AsFd) -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    let said = |number: u16| Some(usize::from(number)).filter(|number| *number > 0);
    Some(Size {
        columns: said(size.ws_col),
        lines: said(size.ws_row),
    })
}
