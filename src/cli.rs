//! The command line: the only place that knows clap. Its results are validated. One file per family
//! of commands; `shared` has their common parts.

mod acts;
mod check;
mod claim;
mod config;
mod doctor;
mod explain;
mod explained;
mod fence;
mod forgiving;
pub mod generated;
mod help;
mod hold;
mod hooks;
mod init;
mod instant;
mod judgements;
mod listing;
mod metrics;
mod names;
mod nearest;
mod once;
mod output;
mod page;
mod pages;
pub mod reference;
mod run;
mod screen;
mod selection;
mod settings;
mod shared;
mod tree;
mod unusable;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::CommandFactory as _;

use self::explained::{explained, nothing_asked};
use self::fence::FenceVerb;
use self::names::NamesLine;
use self::once::OnceVerb;
use self::run::run_request;
use self::settings::{Misread, Origins};
use self::tree::{Cli, PlainRun, Verb};
use crate::job::hooks::Order;

pub use self::acts::{ActRequest, Patience, Wish};
pub use self::check::{CheckRequest, Question};
pub use self::config::ConfigRequest;
pub use self::doctor::DoctorRequest;
pub use self::explain::{ExplainRequest, StoryTime};
pub use self::fence::{FenceQuestion, FenceRequest};
pub use self::hold::{HoldRequest, STAND_IN, StandIn};
pub use self::hooks::{HOOK_KEEPER, HookRequest};
pub use self::init::InitRequest;
pub use self::instant::GivenTime;
pub use self::judgements::JudgementRequest;
pub use self::listing::{HistoryRequest, StatusRequest};
pub use self::metrics::MetricsRequest;
pub use self::names::{Names, NamesRequest};
pub use self::once::OnceListRequest;
pub use self::output::OutputRequest;
pub use self::page::PageRequest;
pub use self::pages::{command, command_for_completions, variables};
pub use self::run::{LeftoversFlag, RunRequest};
pub use self::screen::{Colours, ScreenRequest};
pub use self::selection::Selection;
pub use self::settings::{Effective, Origin, said_by_variable};
pub use self::shared::{LogFormat, LogRequest, StoreRequest};
pub use self::unusable::{Unusable, asks_for_json};

/// The text of `--version`, if that is the whole request: then nothing else has to be built, and
/// the start is that of any small program.
#[must_use]
pub fn version_alone(arguments: &[OsString]) -> Option<&'static str> {
    match arguments {
        [_, only] if only == "--version" || only == "-V" => {
            Some(concat!("tokenrun ", env!("CARGO_PKG_VERSION"), "\n"))
        }
        _ => None,
    }
}

/// A request to tokenrun.
#[derive(Debug)]
pub enum Request {
    /// Make a store.
    Init(InitRequest),
    /// Examine a store.
    Doctor(Box<DoctorRequest>),
    /// Run a job.
    Run(Box<RunRequest>),
    /// Keep a token without a job.
    Hold(Box<HoldRequest>),
    /// Take the place of a job.
    StandIn(StandIn),
    /// Keep a hook.
    KeepHook(Order),
    Status(StatusRequest),
    History(HistoryRequest),
    OnceList(OnceListRequest),
    /// Print what a job has printed.
    Output(OutputRequest),
    /// Answer whether a node may run, or a run has succeeded.
    Check(CheckRequest),
    Metrics(MetricsRequest),
    /// Write a page of HTML.
    Page(PageRequest),
    /// Explain the rule's decision.
    Explain(ExplainRequest),
    /// Check a fence.
    Fence(FenceRequest),
    /// Change a token as an operator.
    Act(ActRequest),
    /// Settle or distrust a store.
    Judge(JudgementRequest),
    /// Print names for a shell that completes a line.
    Names(NamesRequest),
    Config(ConfigRequest),
    /// Print this text to stdout.
    Print(String),
    /// Write manual pages to this directory.
    Man(PathBuf),
}

impl Request {
    /// The store options, if the request uses a store.
    #[must_use]
    pub const fn store(&self) -> Option<&StoreRequest> {
        match self {
            Self::Run(run) => Some(&run.store),
            Self::Hold(hold) => Some(&hold.run.store),
            Self::Status(list) => Some(&list.store),
            Self::History(list) => Some(&list.store),
            Self::OnceList(list) => Some(&list.store),
            Self::Output(output) => Some(&output.store),
            Self::Check(check) => Some(&check.store),
            Self::Metrics(metrics) => Some(&metrics.store),
            Self::Page(page) => Some(&page.store),
            Self::Explain(explain) => Some(&explain.store),
            Self::Fence(fence) => Some(&fence.store),
            Self::Act(act) => Some(&act.store),
            Self::Judge(request) => Some(&request.store),
            Self::Init(init) => Some(&init.store),
            Self::Config(config) => Some(&config.store),
            Self::Names(names) => Some(&names.store),
            Self::Doctor(doctor) => Some(&doctor.store),
            Self::StandIn(_) | Self::KeepHook(_) | Self::Print(_) | Self::Man(_) => None,
        }
    }

    /// The amount and the style of messages.
    #[must_use]
    pub fn log(&self) -> LogRequest {
        match self {
            Self::Run(run) => run.log,
            Self::Hold(hold) => hold.run.log,
            Self::StandIn(order) => LogRequest {
                quiet: order.quiet,
                verbose: false,
                format: match order.json {
                    true => LogFormat::Json,
                    false => LogFormat::Text,
                },
            },
            Self::Act(act) => act.log,
            Self::Judge(request) => request.log,
            Self::Fence(fence) => fence.log,
            Self::Check(check) => check.log,
            _ => LogRequest::default(),
        }
    }
}

/// Reads a command line.
///
/// # Errors
/// One line about the error and its correction, or the requested help.
pub fn parse(arguments: &[OsString]) -> Result<Request, Unusable> {
    if arguments.len() <= 1 {
        return Err(nothing_asked());
    }
    if is_plain_run(arguments) {
        match settings::read::<PlainRun>(arguments) {
            Ok(read) => {
                let run = run_request(read.flags.run).map_err(|it| read.origins.blame(it))?;
                return Ok(Request::Run(Box::new(run)));
            }
            Err(Misread::File(unusable)) => return Err(unusable),
            // The parser with all verbs explains the error.
            Err(Misread::Line(_)) => {}
        }
    }
    let rewritten = forgiving::rewritten(arguments);
    let arguments = rewritten.as_deref().unwrap_or(arguments);
    if let Some(order) = StandIn::of(arguments) {
        return Ok(Request::StandIn(order));
    }
    if let Some(order) = hooks::order_of(arguments) {
        return Ok(Request::KeepHook(order));
    }
    if let Some((names, arguments)) = names::rewritten(arguments) {
        let read = settings::read::<NamesLine>(&arguments);
        let read = read.map_err(|error| unusable(error, &arguments))?;
        return Ok(Request::Names(read.flags.request(names)));
    }
    let read = settings::read::<Cli>(arguments);
    let read = read.map_err(|error| unusable(error, arguments))?;
    request(read.flags, &read.origins).map_err(|unusable| read.origins.blame(unusable))
}

/// The message for an unreadable command line.
fn unusable(misread: Misread, arguments: &[OsString]) -> Unusable {
    match misread {
        Misread::Line(error) => explained(&error, arguments),
        Misread::File(unusable) => unusable,
    }
}

fn request(cli: Cli, origins: &Origins) -> Result<Request, Unusable> {
    match cli.verb {
        None => run_request(cli.run).map(|run| Request::Run(Box::new(run))),
        Some(Verb::Status(flags)) => flags.try_into().map(Request::Status),
        Some(Verb::History(flags)) => flags.try_into().map(Request::History),
        Some(Verb::Output(flags)) => flags.try_into().map(Request::Output),
        Some(Verb::Explain(flags)) => flags.try_into().map(Request::Explain),
        Some(Verb::Check(flags)) => flags.try_into().map(Request::Check),
        Some(Verb::Metrics(flags)) => flags.try_into().map(Request::Metrics),
        Some(Verb::Page(flags)) => flags.try_into().map(Request::Page),
        Some(Verb::Hold(flags)) => (*flags)
            .try_into()
            .map(|hold| Request::Hold(Box::new(hold))),
        Some(Verb::Pause(flags)) => flags.try_into().map(Request::Act),
        Some(Verb::Resume(flags)) => flags.try_into().map(Request::Act),
        Some(Verb::Handoff(flags)) => flags.try_into().map(Request::Act),
        Some(Verb::Move(flags)) => flags.try_into().map(Request::Act),
        Some(Verb::Expect(flags)) => flags.try_into().map(Request::Act),
        Some(Verb::Revoke(flags)) => flags.try_into().map(Request::Act),
        Some(Verb::Release(flags)) => flags.try_into().map(Request::Act),
        Some(Verb::Settle(flags)) => flags.try_into().map(Request::Judge),
        Some(Verb::Distrust(flags)) => flags.try_into().map(Request::Judge),
        Some(Verb::Once(OnceVerb::List(flags))) => flags.try_into().map(Request::OnceList),
        Some(Verb::Once(OnceVerb::Forget(flags))) => flags.try_into().map(Request::Act),
        Some(Verb::Fence(FenceVerb::Verify(flags))) => flags.try_into().map(Request::Fence),
        Some(Verb::Fence(FenceVerb::Advance(flags))) => flags.try_into().map(Request::Fence),
        Some(Verb::Fence(FenceVerb::Raise(flags))) => flags.try_into().map(Request::Act),
        Some(Verb::Init(flags)) => Ok(Request::Init(flags.into())),
        Some(Verb::Config(flags)) => flags.request(origins).map(Request::Config),
        Some(Verb::Doctor(flags)) => flags
            .request(origins)
            .map(|doctor| Request::Doctor(Box::new(doctor))),
        Some(Verb::Help(flags)) => flags.page(&Cli::command()).map(Request::Print),
        Some(Verb::Completions { shell }) => Ok(Request::Print(shell.script().1.to_owned())),
        Some(Verb::Man { directory }) => Ok(Request::Man(directory)),
    }
}

/// Whether the line is a run's: it begins with an option, and has a job after `--`.
fn is_plain_run(arguments: &[OsString]) -> bool {
    let starts_with_option = arguments
        .get(1)
        .is_some_and(|word| word.as_encoded_bytes().starts_with(b"-"));
    starts_with_option && arguments.iter().any(|word| word == "--")
}

#[cfg(test)]
mod tests;
