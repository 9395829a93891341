//! The hooks of a run: which are run, with which variables, and the wait for them.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;

use super::super::shared::failure::{STORE_FAILED, SYSTEM_REFUSED, reported};
use super::super::shared::{Action, Context};
use crate::cli::{Unusable, values};
use crate::exit::Exit;
use crate::job::hooks::{self, HookEnd, HookProcess, Input, Order};
use crate::moment::Moment;
use crate::report::log::Log;
use crate::report::run_result::{HookReport, Occasion, ended};
use crate::run::environment::Known;
use crate::run::event::Granted;
use crate::sys::clock::LocalClock;
use crate::sys::poll::Sources;
use crate::sys::signals::{Inherited, SignalFd, asks_for_end};
use crate::token::{Claim, GroupName, RunRecord};

/// The first word of the process that keeps a hook. No person writes it.
pub(crate) const HOOK_KEEPER: &str = "hook:keeper";

/// How long a hook may take.
pub(crate) const HOOK_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct HookOptions {
    /// A shell command to run after a success [default: none]
    ///
    /// It runs once the token is released, with the variables of the job and TOKENRUN_OUTCOME,
    /// TOKENRUN_EXIT_CODE and TOKENRUN_REASON. With --capture it reads the output from stdin, or from the
    /// file TOKENRUN_OUTPUT_FILE. Its stdout goes to stderr. It never changes the exit
    /// code. An empty text stands for none.
    #[arg(
        long,
        value_name = "CMD",
        env = "TOKENRUN_ON_SUCCESS",
        hide_env_values = true
    )]
    on_success: Option<String>,
    /// A shell command to run after any end that is not a success [default: none]
    ///
    /// As --on-success, if the job failed, timed out, lost its token or was not started, or if the
    /// store can't be used. A run that takes over from a holder that vanished also runs it for that
    /// holder, beside its job. TOKENRUN_OUTCOME is unknown then.
    #[arg(
        long,
        value_name = "CMD",
        env = "TOKENRUN_ON_FAILURE",
        hide_env_values = true
    )]
    on_failure: Option<String>,
    /// A shell command to run when the run is refused [default: none]
    ///
    /// As --on-success. TOKENRUN_REASON is held, bound, reserved, paused, too_soon, behind, alive_here,
    /// store_observed, head_start or observed.
    #[arg(
        long,
        value_name = "CMD",
        env = "TOKENRUN_ON_REFUSED",
        hide_env_values = true
    )]
    on_refused: Option<String>,
    /// How long a hook may take; then it is killed with every process that it has started [default:
    /// 10s]
    ///
    /// tokenrun ends after its hooks.
    #[arg(long, value_name = "DURATION", env = "TOKENRUN_HOOK_TIMEOUT", value_parser = values::duration)]
    hook_timeout: Option<Duration>,
}

impl HookOptions {
    pub(crate) fn check(&self) -> Result<(), Unusable> {
        match self.timeout().is_zero() {
            true => Err(Unusable::about(
                &["--hook-timeout"],
                "--hook-timeout must be longer than 0, as in --hook-timeout 10s",
            )),
            false => Ok(()),
        }
    }

    fn timeout(&self) -> Duration {
        self.hook_timeout.unwrap_or(HOOK_TIMEOUT)
    }

    /// An empty command stands for none.
    fn command(&self, occasion: Occasion) -> Option<&str> {
        let command = match occasion {
            Occasion::Success => self.on_success.as_deref(),
            Occasion::Failure => self.on_failure.as_deref(),
            Occasion::Refused => self.on_refused.as_deref(),
        };
        command.filter(|text| !text.trim().is_empty())
    }
}

/// A process that keeps a hook. The process that started it reports what comes of the hook.
#[derive(Debug)]
pub(crate) struct Keep(pub(crate) Order);

impl Action for Keep {
    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        hooks::keep(&self.0, &context.inherited).context(SYSTEM_REFUSED)?;
        Ok(Exit::OK)
    }
}

/// How much longer than its limit a keeper is waited for: it may have to kill the hook.
const KEEPERS_TIME: Duration = Duration::from_secs(5);

/// The longest sleep while a keeper is being started.
const WHILE_STARTING: Duration = Duration::from_millis(5);

/// The hooks of one run.
#[derive(Debug)]
pub(crate) struct Hooks {
    options: HookOptions,
    inherited: Inherited,
    clock: LocalClock,
    known: Known,
    /// Those that are not over.
    running: Vec<Running>,
    /// The pid of a keeper that nothing else knows of yet.
    new_child: Option<i32>,
    /// The run's end has been reported.
    is_reported: bool,
    /// The run is under an outer run's lease.
    is_nested: bool,
}

/// A hook that is not over.
#[derive(Debug)]
struct Running {
    occasion: Occasion,
    process: Process,
    /// When its keeper counts as hung.
    overdue: Moment,
}

/// Another thread starts it: the file system of this program may hang.
#[derive(Debug)]
enum Process {
    Starting(Receiver<io::Result<HookProcess>>),
    Started(HookProcess),
}

impl Hooks {
    /// The hooks of a run of this group.
    pub(crate) fn new(
        options: HookOptions,
        group: &GroupName,
        inherited: Inherited,
        clock: LocalClock,
    ) -> Self {
        Self {
            options,
            inherited,
            clock,
            known: Known::of_group(group),
            running: Vec::new(),
            new_child: None,
            is_reported: false,
            is_nested: false,
        }
    }

    /// Takes what the claim says of the run.
    pub(crate) fn claims(&mut self, claim: &Claim) {
        self.known = Known::of_claim(claim);
    }

    /// Takes what the grant says of the run.
    pub(crate) fn granted(&mut self, granted: &Granted) {
        self.known = std::mem::take(&mut self.known).granted(granted);
    }

    /// The run is under an outer run's lease.
    pub(crate) const fn nested(&mut self) {
        self.is_nested = true;
    }

    /// Reports the run of a holder that vanished, beside this run's job. Does not block.
    pub(crate) fn vanished(&mut self, run: &RunRecord, proven: bool, log: &mut Log) {
        let report = HookReport::of_vanished(proven);
        self.start(report, Known::of_record(run), Input::new(), log);
    }

    /// Looks for hooks that are over. Does not block.
    pub(crate) fn look(&mut self, log: &mut Log) {
        let now = self.clock.now();
        let limit = self.options.timeout();
        let mut running = std::mem::take(&mut self.running);
        running.retain_mut(|hook| match hook.look(now, &mut self.new_child) {
            None => true,
            Some(end) => {
                if let Some(message) = ended(hook.occasion, &end, limit) {
                    log.write(&message, true);
                }
                false
            }
        });
        self.running = running;
    }

    /// The pid of a child of this process that was started since the last call. It is not the
    /// job's.
    pub(crate) fn new_child(&mut self) -> Option<i32> {
        self.new_child.take()
    }

    /// Reports the run's end, and waits for all hooks. `input` is what the hook reads.
    pub(crate) fn after(&mut self, report: Option<HookReport>, input: Input, log: &mut Log) {
        self.is_reported = true;
        // The token of a nested run is not free: the run around it reports.
        if let Some(report) = report.filter(|_| !self.is_nested) {
            self.start(report, self.known.clone(), input, log);
        }
        if !self.running.is_empty() {
            // Without signals the hooks still have their limit.
            let signals = SignalFd::new(&self.inherited).ok();
            self.until_over(signals.as_ref(), log);
        }
    }

    /// Reports the end of a run that failed with an error, unless it was reported, and waits for all hooks.
    pub(crate) fn after_error(&mut self, error: &anyhow::Error, log: &mut Log) {
        if self.is_reported {
            return;
        }
        let reported = reported(error);
        let of_store = reported.message.event == STORE_FAILED;
        let report = HookReport::of_error(reported.code, &reported.message, of_store);
        self.after(report, Input::new(), log);
    }

    fn start(&mut self, report: HookReport, known: Known, input: Input, log: &mut Log) {
        let Some(command) = self.options.command(report.occasion) else {
            return;
        };
        let limit = self.options.timeout();
        let order = Order {
            command: command.to_owned(),
            limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
        };
        let variables = known.variables_of_hook(report.values());
        // From here on stop signals are read. A refused run has not blocked them before.
        let begun = self
            .inherited
            .block()
            .and_then(|()| begin(order, variables, input, self.inherited));
        match begun {
            Ok(process) => self.running.push(Running {
                occasion: report.occasion,
                process: Process::Starting(process),
                overdue: self.clock.now().plus(limit).plus(KEEPERS_TIME),
            }),
            Err(error) => {
                let end = HookEnd::NotStarted(error.to_string());
                if let Some(message) = ended(report.occasion, &end, limit) {
                    log.write(&message, true);
                }
            }
        }
    }

    /// Waits for the hooks. A stop signal ends them.
    fn until_over(&mut self, signals: Option<&SignalFd>, log: &mut Log) {
        let mut stopped = false;
        loop {
            self.look(log);
            if self.running.is_empty() {
                return;
            }
            while let Some(received) = signals.and_then(SignalFd::read) {
                stopped |= asks_for_end(received.signal);
            }
            if stopped {
                self.running.iter_mut().for_each(Running::stop);
            }
            self.sleep(signals);
        }
    }

    fn sleep(&self, signals: Option<&SignalFd>) {
        let now = self.clock.now();
        let wakes = self.running.iter().map(|hook| match hook.process {
            Process::Starting(_) => WHILE_STARTING,
            Process::Started(_) => hook.overdue.since(now),
        });
        let limit = wakes.min();
        let mut sources = Sources::new().and((), signals.map(|it| it.as_fd()));
        for hook in &self.running {
            if let Process::Started(process) = &hook.process {
                sources = sources.and((), process.as_fd());
            }
        }
        // Whatever this returns, everything is looked at next.
        let _ = sources.wait(limit);
    }
}

impl Running {
    /// How the hook ended; `None` while it runs.
    fn look(&mut self, now: Moment, new_child: &mut Option<i32>) -> Option<HookEnd> {
        if let Process::Starting(started) = &self.process {
            match started.try_recv() {
                Ok(Ok(process)) => {
                    *new_child = Some(process.pid());
                    self.process = Process::Started(process);
                }
                Ok(Err(error)) => return Some(HookEnd::NotStarted(error.to_string())),
                Err(TryRecvError::Disconnected) => return Some(HookEnd::Lost),
                Err(TryRecvError::Empty) => {}
            }
        }
        let end = match &mut self.process {
            Process::Starting(_) => None,
            Process::Started(process) => process.look(),
        };
        if end.is_none() && now >= self.overdue {
            if let Process::Started(process) = &mut self.process {
                process.abandon();
            }
            return Some(HookEnd::Lost);
        }
        end
    }

    fn stop(&mut self) {
        if let Process::Started(process) = &mut self.process {
            process.stop();
        }
    }
}

fn begin(
    order: Order,
    variables: Vec<(String, String)>,
    input: Input,
    inherited: Inherited,
) -> io::Result<Receiver<io::Result<HookProcess>>> {
    let (tell, started) = channel();
    thread::Builder::new()
        .name("hook".into())
        .stack_size(256 * 1024)
        .spawn(move || {
            let process = HookProcess::start(HOOK_KEEPER, &order, &variables, &input, &inherited);
            // The run may have given up meanwhile.
            let _ = tell.send(process);
        })?;
    Ok(started)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::verbs::shared::own_order;

    fn flags(command: Option<&str>, timeout: Option<u64>) -> HookOptions {
        HookOptions {
            on_success: command.map(str::to_owned),
            on_failure: None,
            on_refused: None,
            hook_timeout: timeout.map(Duration::from_secs),
        }
    }

    #[test]
    fn an_empty_command_is_none() {
        let command = |text| {
            let options = flags(text, None);
            options.command(Occasion::Success).map(str::to_owned)
        };
        assert_eq!(command(Some(" ")), None);
        assert_eq!(command(None), None);
        assert_eq!(command(Some("true")).as_deref(), Some("true"));
        assert_eq!(flags(None, None).timeout(), Duration::from_secs(10));
    }

    #[test]
    fn a_hook_without_time_is_refused() {
        let refused = flags(None, Some(0)).check().unwrap_err();
        assert!(refused.text.contains("--hook-timeout 10s"), "{refused:?}");
    }

    #[test]
    fn only_a_whole_order_is_one() {
        let order = Order {
            command: "true".into(),
            limit_ms: 10,
        };
        let text = serde_json::to_string(&order).unwrap();
        let line = |word: &str, text: &str| ["tokenrun", word, text].map(OsString::from);
        assert_eq!(
            own_order(&line(HOOK_KEEPER, &text), HOOK_KEEPER),
            Some(order)
        );
        assert_eq!(own_order::<Order>(&line("hook", &text), HOOK_KEEPER), None);
        assert_eq!(
            own_order::<Order>(&line(HOOK_KEEPER, "{"), HOOK_KEEPER),
            None
        );
    }
}
