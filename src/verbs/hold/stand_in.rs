//! The process in the place of a job while `hold` has the token. It is guarded like a job: it
//! begins when the token is gained, and gets TERM before the lease ends, whatever happens to the
//! supervisor or the store. So it reports both changes.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::super::shared::action::{Action, Context};
use super::super::shared::failure::{Failure, SYSTEM_REFUSED};
use super::super::shared::options::{LogFormat, LogOptions};
use crate::cli::said_by_variable;
use crate::exit::{self, Exit};
use crate::report::hold::{
    Change, changed, command_failed, runtime_file_busy, runtime_file_failed,
};
use crate::report::log::{Log, Style};
use crate::report::message::Message;
use crate::report::printable::printable;
use crate::run::environment;
use crate::run::runtime_file::{Holder, RuntimeFile};
use crate::run::runtime_keeper::RuntimeKeeper;
use crate::sys::poll::wait_readable;
use crate::sys::process::{self, signal_child};
use crate::sys::service_manager::{self, ServiceManager};
use crate::sys::signals::{Inherited, SIGTERM, SignalFd, asks_for_end};

/// The first word of the process in the place of a job. No person writes it.
pub(crate) const STAND_IN: &str = "hold:stand-in";

/// The name of the process in the place of a job.
const STAND_IN_NAME: &std::ffi::CStr = c"token-holder";

/// How long the last holder on this host, which is being ended, may still have the lock of the
/// runtime file.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The pause between two tries.
const LOCK_AGAIN: Duration = Duration::from_millis(10);

/// How often the runtime file is checked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long the unfinished command of a gain may take to end at a loss.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The order to the process in the place of a job, as JSON in its second word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StandIn {
    /// What is run at each gain and loss.
    pub(crate) on_change: Option<String>,
    /// The runtime file.
    pub(crate) runtime_file: PathBuf,
    /// How quiet it is.
    pub(crate) quiet: u8,
    /// Messages are JSON.
    pub(crate) json: bool,
}

impl StandIn {
    /// The order in a command line, if the line belongs to such a process.
    pub(crate) fn of(arguments: &[OsString]) -> Option<Self> {
        let [_, word, order] = arguments else {
            return None;
        };
        (word == STAND_IN)
            .then(|| serde_json::from_str(order.to_str()?).ok())
            .flatten()
    }
}

impl Action for StandIn {
    fn style(&self) -> Style {
        let log = LogOptions {
            log_format: match self.json {
                true => LogFormat::Json,
                false => LogFormat::Text,
            },
            ..LogOptions::of_quiet(self.quiet)
        };
        log.style()
    }

    /// Runs the process in the place of a job.
    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        let _ = process::set_name(STAND_IN_NAME);
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let held = Holder {
            group: variable("TOKENRUN_GROUP"),
            client_id: variable("TOKENRUN_CLIENT_ID"),
            session: variable(environment::SESSION),
            fence: variable("TOKENRUN_FENCE"),
        };
        stand_in(self, &held, &context.inherited, context.log)
    }
}

/// Holds until it gets a stop signal.
///
/// # Errors
/// The runtime file can't be used, or the operating system refused something.
fn stand_in(order: &StandIn, held: &Holder, inherited: &Inherited, log: &mut Log) -> Result<Exit> {
    inherited.block().context(SYSTEM_REFUSED)?;
    let mut standing = Standing {
        order,
        held,
        inherited,
        signals: SignalFd::new(inherited).context(SYSTEM_REFUSED)?,
        manager: ServiceManager::of_environment(),
        log,
    };
    let Some(file) = standing.show()? else {
        return Ok(Exit::OK);
    };
    let path = order.runtime_file.clone();
    let keeper = RuntimeKeeper::start(file, path, held.clone()).context(SYSTEM_REFUSED)?;
    let gained = standing.tell(Change::Gain);
    standing.until_stop(gained, keeper);
    Ok(Exit::OK)
}

/// The error of an unusable runtime file.
pub(crate) fn unusable(path: &Path, error: &io::Error) -> Failure {
    let code = match error.kind() {
        io::ErrorKind::PermissionDenied => exit::DENIED,
        _ => exit::CONFIG,
    };
    let variable = said_by_variable("runtime-file", Some(path));
    let text = runtime_file_failed(path, error) + &variable;
    Failure::new(code, "runtime_file", text)
}

struct Standing<'a> {
    order: &'a StandIn,
    held: &'a Holder,
    inherited: &'a Inherited,
    signals: SignalFd,
    manager: Option<ServiceManager>,
    log: &'a mut Log,
}

impl Standing<'_> {
    /// Locks and writes the runtime file; `None` if a stop came before.
    fn show(&self) -> Result<Option<RuntimeFile>> {
        let path = &self.order.runtime_file;
        let failed = |error: io::Error| unusable(path, &error);
        let mut file = RuntimeFile::open(path).map_err(failed)?;
        let started = Instant::now();
        while !file.lock().map_err(failed)? {
            if started.elapsed() > LOCK_WAIT {
                let text = runtime_file_busy(path);
                return Err(Failure::new(exit::CONFIG, "runtime_file", text).into());
            }
            if self.is_stopped(Some(LOCK_AGAIN)) {
                return Ok(None);
            }
        }
        file.write(self.held).map_err(failed)?;
        Ok(Some(file))
    }

    /// Reports a change, and starts its command.
    fn tell(&mut self, change: Change) -> Option<Child> {
        let message = changed(change, self.held);
        if let Some(manager) = &self.manager {
            manager.status(&printable(&message.text));
        }
        self.log.write(&message, true);
        let command = self.order.on_change.as_ref()?;
        match started(command, change, self.inherited) {
            Ok(child) => Some(child),
            Err(error) => {
                self.log.write(&command_failed(change, Err(error)), true);
                None
            }
        }
    }

    /// Holds until a stop comes, then reports the loss.
    fn until_stop(mut self, mut gained: Option<Child>, mut keeper: RuntimeKeeper) {
        let mut reported = None;
        while !self.is_stopped(Some(LOOK_EVERY)) {
            self.reap(&mut gained, Change::Gain);
            if let Some(looked) = keeper.look() {
                self.report_once(looked, &mut reported);
            }
        }
        // First of all: from here on every check answers no.
        let given_up = keeper.give_up();
        if let Some(child) = &gained {
            let _ = signal_child(pid_of(child), SIGTERM);
            self.until_ended(&mut gained, Change::Gain, Some(LAST_WORDS));
        }
        if let Some(child) = &mut gained {
            // It may end at this very moment.
            let _ = child.kill();
            self.until_ended(&mut gained, Change::Gain, None);
        }
        if let Err(error) = given_up {
            let failure = unusable(&self.order.runtime_file, &error);
            self.log.write(&failure.message(), true);
        }
        let mut lost = self.tell(Change::Loss);
        self.until_ended(&mut lost, Change::Loss, None);
    }

    /// Reports the state of the runtime file once per change.
    fn report_once(&mut self, looked: io::Result<()>, reported: &mut Option<Message>) {
        let failed = |error: io::Error| unusable(&self.order.runtime_file, &error).message();
        let message = looked.err().map(failed);
        if let Some(message) = message.as_ref().filter(|it| reported.as_ref() != Some(it)) {
            self.log.write(message, true);
        }
        *reported = message;
    }

    /// Waits for a signal, at most so long. Returns whether a stop signal has come.
    fn is_stopped(&self, wait: Option<Duration>) -> bool {
        // Whatever this returns, the signals are read next.
        let _ = wait_readable(self.signals.as_fd(), wait);
        let mut stopped = false;
        while let Some(received) = self.signals.read() {
            stopped |= asks_for_end(received.signal);
        }
        stopped
    }

    /// Waits until the command has ended, at most so long.
    fn until_ended(&mut self, child: &mut Option<Child>, change: Change, limit: Option<Duration>) {
        let started = Instant::now();
        loop {
            self.reap(child, change);
            let left = limit.map(|limit| limit.saturating_sub(started.elapsed()));
            if child.is_none() || left.is_some_and(|left| left.is_zero()) {
                return;
            }
            // The guard's grace limits the last command.
            self.is_stopped(left);
        }
    }

    /// Forgets the command if it has ended.
    fn reap(&mut self, child: &mut Option<Child>, change: Change) {
        let ended = child.as_mut().map(Child::try_wait);
        match ended {
            None | Some(Ok(None)) => return,
            Some(Ok(Some(status))) if status.success() => {}
            Some(Ok(Some(status))) => {
                self.log.write(&command_failed(change, Ok(status)), true);
            }
            Some(Err(error)) => self.log.write(&command_failed(change, Err(error)), true),
        }
        *child = None;
    }
}

fn pid_of(child: &Child) -> i32 {
    i32::try_from(child.id()).unwrap_or(i32::MAX)
}

/// Its output goes to stderr: stdout may be a pipe that ends with the first run.
fn started(command: &str, change: Change, inherited: &Inherited) -> io::Result<Child> {
    let output = io::stderr().as_fd().try_clone_to_owned()?;
    let mut shell = Command::new("/bin/sh");
    for name in service_manager::VARIABLES {
        shell.env_remove(name);
    }
    inherited.file_size().hand_down(&mut shell);
    shell
        .args(["-c", command])
        .env(environment::CHANGE, change.as_str())
        .stdin(Stdio::null())
        .stdout(output)
        .spawn()
}
