//! A pseudo-terminal with an interactive shell on it, as a person has.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use rustix::termios::tcsetwinsize;

use super::run::MARK;
use super::{Line, Store, until};

const PROMPT: &str = "READY> ";

/// The Ctrl key with a letter.
pub(crate) const fn ctrl(letter: char) -> char {
    ((letter as u8) & 0x1f) as char
}

/// A terminal without echo, so that everything that appears on it was written by a program.
pub(crate) struct Terminal {
    keyboard: File,
    /// What has appeared and was not waited for yet.
    screen: Arc<Mutex<String>>,
    shell: Child,
}

impl Terminal {
    /// An interactive bash with job control, in the test's folder. There `t` is this
    /// tokenrun with these options: `t -- job`, or `t -v -- job`.
    pub(crate) fn new(store: &Store, line: &Line) -> Self {
        let words = line.clone().job(&[]).words();
        let quoted = words.iter().map(|word| format!("'{}'", word.display()));
        let script = quoted.collect::<Vec<_>>().join(" ");
        let t = store.file("t");
        super::script(&t, &format!("#!/bin/sh\nexec {script} \"$@\"\n"));

        let (keyboard, other_end) = pseudo_terminal();
        let end = || Stdio::from(other_end.try_clone().unwrap());
        let path = std::env::var("PATH").unwrap_or_default();
        // The caller of the tests may ignore INT; setsid(1) makes the shell the leader
        // of a session whose terminal this is.
        let shell = Command::new("env")
            .args(["--default-signal", "setsid", "--ctty"])
            .args(["bash", "--norc", "--noprofile", "--noediting", "-i"])
            .current_dir(store.path())
            .env_clear()
            .env("PATH", format!("{}:{path}", store.path().display()))
            .env("HOME", store.path())
            .env(MARK, store.path())
            .env("TERM", "xterm")
            .env("PS1", "")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let screen = Arc::default();
        watch(keyboard.try_clone().unwrap(), Arc::clone(&screen));
        let mut terminal = Self {
            keyboard,
            screen,
            shell,
        };
        terminal.resize(24, 80);
        // In two parts, so that its echo is not taken for it.
        terminal.line(&format!("stty -echo; PS1='READ''{}'", &PROMPT[4..]));
        terminal.until(PROMPT);
        terminal
    }

    /// Presses keys.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn key(&mut self, key: char) {
        self.keys(&key.to_string());
    }

    /// Types a line.
    pub(crate) fn line(&mut self, line: &str) {
        self.keys(&format!("{line}\n"));
    }

    /// Waits until this appears, and gives what appeared before it.
    #[track_caller]
    pub(crate) fn until(&self, words: &str) -> String {
        until(&format!("the terminal shows {words:?}"), || {
            let mut screen = self.screen.lock().unwrap();
            let Some(at) = screen.find(words) else {
                return Err(screen.clone());
            };
            let rest = screen.split_off(at + words.len());
            Ok(std::mem::replace(&mut *screen, rest))
        })
    }

    /// Waits until the shell is ready for the next command, and gives what appeared.
    #[track_caller]
    pub(crate) fn prompt(&self) -> String {
        self.until(PROMPT)
    }

    /// What a command prints.
    #[track_caller]
    pub(crate) fn run(&mut self, command: &str) -> String {
        self.line(command);
        self.prompt()
    }

    /// The exit status of the last command, as the shell has it.
    #[track_caller]
    pub(crate) fn status(&mut self) -> u8 {
        let shown = self.run("echo $?");
        let line = shown.lines().next().unwrap_or_default();
        line.trim()
            .parse()
            .unwrap_or_else(|e| panic!("{e}: {shown:?}"))
    }

    /// What has appeared and was not waited for.
    pub(crate) fn shows(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let size = rustix::termios::Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.keyboard, size).unwrap();
    }
}

/// Both ends. No process that another test starts at this moment inherits one.
fn pseudo_terminal() -> (File, File) {
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let master = posix_openpt(flags).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let mut options = fs::OpenOptions::new();
    let options = options.read(true).write(true);
    let options = options.custom_flags(OFlag::O_NOCTTY.bits());
    let other_end = options.open(ptsname_r(&master).unwrap()).unwrap();
    (File::from(OwnedFd::from(master)), other_end)
}

fn watch(mut master: File, screen: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        // It ends with an error once the other end is closed.
        while let Ok(count @ 1..) = master.read(&mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..count]);
            screen.lock().unwrap().push_str(&text);
        }
    });
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended; what it started is the store's to end.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
