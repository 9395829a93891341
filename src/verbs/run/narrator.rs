//! The run itself, told: its notes become messages, and its end a report.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, stderr};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::super::hold::stand_in::STAND_IN;
use super::super::shared::failure::{Failure, SYSTEM_REFUSED};
use super::hooks::Hooks;
use crate::cli::said_by_variable;
use crate::exit::{self, Exit};
use crate::job::Captured;
use crate::job::hooks::Input;
use crate::moment::Moment;
use crate::report::log::Log;
use crate::report::message::{Context, Message};
use crate::report::output::{cut, shown};
use crate::report::printable::printable;
use crate::report::refusal::display;
use crate::report::run_news::{end_of_caught, guard_news, message, report_failed};
use crate::report::run_result::{HookReport, RunReport};
use crate::report::whole_file::check_whole;
use crate::report::{rfc3339, wall_clock};
use crate::run::driver::{Listener, drive};
use crate::run::ending::{Codes, Ending};
use crate::run::event::{Granted, GuardNews, Note};
use crate::run::machine::{Limits, Machine, Wait};
use crate::run::setup::Setup;
use crate::store::Store;
use crate::sys::clock::LocalClock;
use crate::sys::service_manager::ServiceManager;
use crate::sys::signals::Inherited;
use crate::token::{Claim, Row, RunRecord, SessionId, StoreTime, Verdict};

/// A run, with everything that it needs.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The claimant, and its terms.
    pub(super) claim: Claim,
    /// The limits of the job.
    pub(super) limits: Limits,
    /// The exit codes that the user chooses.
    pub(super) codes: Codes,
    /// Where the report goes.
    pub(super) report: Option<PathBuf>,
    /// The clock, the signals and the job.
    pub(super) setup: Setup,
}

/// Runs the job, if the token is granted, reports how that ended, and returns how the process ends.
/// An agent also reports to its service manager.
pub(super) fn run(
    run: Prepared,
    store: Box<dyn Store>,
    manager: Option<&mut ServiceManager>,
    hooks: &mut Hooks,
    log: &mut Log,
) -> Result<(Ending, Exit)> {
    let started_at = rfc3339(wall_clock());
    let store_name = store.name().to_owned();
    let mut narrator = Narrator {
        context: Context {
            group: &run.claim.group,
            store: &store_name,
            program: &run.claim.about.program,
            command: &run.setup.argv,
            client: &run.claim.client,
            host: run.claim.about.host.as_deref(),
            timeout: run.limits.timeout,
            ran: None,
        },
        displays: run.limits.wait != Wait::No && log.displays(),
        log,
        manager,
        hooks,
        seen: None,
        granted: None,
        primaries: None,
        clock: run.setup.clock,
        started: None,
        held_back: run.setup.capture.map(|_| Vec::new()),
    };
    let machine = Machine::new(run.claim.clone(), run.limits);
    let driven = drive(machine, store, &run.setup, &mut narrator).context(SYSTEM_REFUSED);
    let (ending, captured) = driven.inspect_err(|_| narrator.say_the_rest())?;
    let exit = ending.exit(run.codes);
    if let Some(path) = &run.report {
        narrator.report(path, &run.claim, started_at, &ending, exit);
    }
    narrator.conclude(&ending, exit, captured, &run.setup.inherited);
    Ok((ending, exit))
}

/// Checks the path of a report, before anything happens that it would report.
pub(super) fn check_report(path: &Path, session: &SessionId) -> Result<()> {
    let Err(error) = check_whole(path, session) else {
        return Ok(());
    };
    let Message { event, text, .. } = unwritten(path, &error);
    let text = format!("{text}; the job was not started");
    Err(Failure::new(exit::DENIED, event, text).into())
}

/// The message for a report that could not be written.
fn unwritten(path: &Path, error: &io::Error) -> Message {
    let mut message = report_failed(path, error);
    message.text += &said_by_variable("report", Some(path));
    message
}

/// Turns a run's notes into messages, and collects the data of the report.
struct Narrator<'a> {
    context: Context<'a>,
    log: &'a mut Log,
    manager: Option<&'a mut ServiceManager>,
    hooks: &'a mut Hooks,
    seen: Option<(Box<Row>, StoreTime)>,
    granted: Option<Granted>,
    /// The servers that accepted writes at once.
    primaries: Option<Vec<String>>,
    clock: LocalClock,
    /// When the job began; `None` for what stands in for a job.
    started: Option<Moment>,
    /// The wait is shown on a terminal.
    displays: bool,
    /// If the job's output is caught: the messages that come after it, so that the last line says how
    /// the run ended.
    held_back: Option<Vec<Message>>,
}

impl Narrator<'_> {
    /// Reports the run that lost the token without a word of its own, as the last look has shown it.
    fn report_vanished(&mut self, session: &SessionId, proven: bool) {
        let seen = self.seen.as_ref();
        let run = seen.and_then(|(row, _)| RunRecord::vanished(row));
        if let Some(run) = run.filter(|run| run.session == *session) {
            self.hooks.vanished(&run, proven, self.log);
        }
    }

    /// Shows the wait, or clears it. Returns whether the note needs nothing else.
    fn show(&mut self, note: &Note, detached: bool) -> bool {
        match note {
            Note::Queued {
                row,
                now,
                why,
                ahead,
                ..
            } => {
                if detached {
                    let text = display(&self.context, row.as_deref(), now, why, *ahead);
                    self.log.show(&text);
                }
                true
            }
            Note::Waited { .. } => {
                self.log.clear();
                true
            }
            Note::Ended(_) => {
                self.log.clear();
                false
            }
            _ => false,
        }
    }

    /// Writes the report. A failure does not change how the job ended.
    fn report(
        &mut self,
        path: &Path,
        claim: &Claim,
        started_at: String,
        ending: &Ending,
        exit: Exit,
    ) {
        let mut report = RunReport {
            group: &claim.group,
            client: &claim.client,
            session: &claim.session,
            store: self.context.store,
            outcome: "",
            recorded: None,
            tokenrun_exit_code: exit.code(),
            exit_code: None,
            signal: None,
            fence: None,
            grant: None,
            previous_client: None,
            refused: None,
            refused_by: None,
            clause: None,
            primaries: self.primaries.as_deref(),
            started_at,
            ended_at: rfc3339(wall_clock()),
        };
        report.set_ending(ending, self.granted.as_ref());
        let Err(error) = report.write_to(path) else {
            return;
        };
        let mut message = unwritten(path, &error);
        if let Ending::Ran { .. } = ending {
            message.text += &format!(
                "; the run has ended, and its exit code {} stands",
                exit.code()
            );
        }
        match &mut self.held_back {
            Some(held_back) => held_back.insert(0, message),
            None => self.log.write(&message, true),
        }
    }

    /// Runs the hook of the end, and prints what is still to be printed.
    fn conclude(
        &mut self,
        ending: &Ending,
        exit: Exit,
        captured: Option<Captured>,
        inherited: &Inherited,
    ) {
        let report = HookReport::of(ending, exit);
        let caught = captured.as_ref();
        let input = caught.map_or_else(Input::new, |it| it.last.clone());
        self.hooks.after(report, input, self.log);
        // After the hooks: a stderr that is not read must not hold them up.
        if let Some(captured) = captured.filter(|_| exit != Exit::OK) {
            self.print(&captured, inherited);
        }
        self.say_the_rest();
    }

    /// Prints what was caught of the job's output.
    fn print(&mut self, captured: &Captured, inherited: &Inherited) {
        self.write(cut(captured.printed, captured.last.len()));
        let output = shown(&captured.last, stderr().is_terminal());
        self.log.print(output, || inherited.is_stopped());
    }

    /// Writes the messages that were held back.
    fn say_the_rest(&mut self) {
        let rest = self.held_back.take();
        self.write(rest.into_iter().flatten());
    }

    /// Writes messages once no deadline is held any more.
    fn write(&mut self, messages: impl IntoIterator<Item = Message>) {
        for message in messages {
            self.log.write(&message, false);
        }
    }

    /// The message for a note, if there is one.
    fn message(&self, note: &Note) -> Option<Message> {
        match (note, &self.held_back) {
            (Note::Ended(ending @ Ending::Ran { .. }), Some(_)) => {
                Some(end_of_caught(&self.context, ending))
            }
            _ => {
                let seen = self.seen.as_ref().map(|(row, now)| (row.as_ref(), now));
                message(&self.context, note, seen)
            }
        }
    }
}

/// The note is about the end of a run, once the job is gone.
const fn is_about_the_end(note: &Note) -> bool {
    matches!(
        note,
        Note::Ended(_) | Note::NotRecorded { .. } | Note::LostAfterEnd
    )
}

impl Listener for Narrator<'_> {
    fn hear(&mut self, note: &Note, detached: bool) {
        match note {
            Note::Decided {
                row, now, verdict, ..
            } => {
                self.seen = row.clone().map(|row| (row, now.clone()));
                if *verdict == Verdict::Nested {
                    self.hooks.nested();
                }
            }
            Note::Acquired {
                granted,
                vanished,
                proven,
            } => {
                self.log.granted(granted.fence);
                self.hooks.granted(granted);
                if let Some(session) = vanished {
                    self.report_vanished(session, *proven);
                }
                self.granted = Some(granted.clone());
            }
            Note::Started if !is_stand_in(self.context.command) => {
                self.started = Some(self.clock.now());
            }
            Note::Ended(_) => {
                let now = self.clock.now();
                self.context.ran = self.started.map(|started| now.since(started));
            }
            Note::Split { primaries } => self.primaries = Some(primaries.clone()),
            _ => {}
        }
        let message = self.message(note);
        if let (Some(manager), Some(message), Note::Queued { .. } | Note::StoreAway { .. }) =
            (&self.manager, &message, note)
        {
            manager.status(&printable(&message.text));
        }
        if self.displays && self.show(note, detached) {
            return;
        }
        let Some(message) = message else { return };
        match &mut self.held_back {
            // It is heard last, and the others say more about the end.
            Some(held_back) if matches!(note, Note::OutputNotKept { .. }) => {
                held_back.insert(0, message);
            }
            Some(held_back) if is_about_the_end(note) => held_back.push(message),
            _ => self.log.write(&message, detached),
        }
    }

    fn hear_guard(&mut self, news: &GuardNews) {
        let message: Message = guard_news(&self.context, news);
        self.log.write(&message, true);
    }

    fn at_work(&mut self) {
        if let Some(manager) = &mut self.manager {
            manager.at_work();
        }
    }

    fn new_child(&mut self) -> Option<i32> {
        self.hooks.look(self.log);
        self.hooks.new_child()
    }
}

/// The command is an agent's, in the place of a job.
fn is_stand_in(command: &[OsString]) -> bool {
    command.get(1).is_some_and(|word| word == STAND_IN)
}

/// The name of a program, without its directory: arguments can hold secrets, and are never
/// recorded.
pub(super) fn program_name(command: &[OsString]) -> String {
    if is_stand_in(command) {
        // An agent has no program; this is the word that its user has typed.
        return "hold".to_owned();
    }
    let program = command.first().map(PathBuf::from).unwrap_or_default();
    let name = program.file_name().unwrap_or(program.as_os_str());
    let text = name.to_string_lossy();
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}
