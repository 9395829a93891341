//! The tree of commands, as clap reads and shows it.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use super::acts::{
    ExpectFlags, HandoffFlags, MoveFlags, PauseFlags, ReleaseFlags, ResumeFlags, RevokeFlags,
};
use super::check::CheckFlags;
use super::config::ConfigFlags;
use super::doctor::DoctorFlags;
use super::explain::ExplainFlags;
use super::fence::FenceVerb;
use super::generated::Shell;
use super::help::{HelpFlags, topics_line};
use super::hold::HoldFlags;
use super::init::InitFlags;
use super::judgements::{DistrustFlags, SettleFlags};
use super::listing::{HistoryFlags, StatusFlags};
use super::metrics::MetricsFlags;
use super::once::OnceVerb;
use super::output::OutputFlags;
use super::page::PageFlags;
use super::run::RunFlags;

const ABOUT: &str = "Runs a job on one node at a time, keeps it on that node while it is well, \
and moves it by itself when the node dies, with nothing but a database";

const RUN_USAGE: &str = "tokenrun [OPTIONS] --group NAME -- CMD [ARG]...\n       tokenrun COMMAND";

const AFTER_HELP: &str = "\
Exit codes: the job's own; 64 usage; 69 store not reached; 75 not now; 76 token lost;
77 permission; 78 configuration; 124 timed out; all of them: tokenrun help exit-codes";

fn after_help() -> String {
    format!("{AFTER_HELP}\n\n{}", topics_line())
}

#[derive(Debug, Parser)]
#[command(
    name = "tokenrun",
    version,
    about = ABOUT,
    override_usage = RUN_USAGE,
    after_help = after_help(),
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) verb: Option<Verb>,
    #[command(flatten)]
    pub(super) run: RunFlags,
}

/// A run alone: to set up the verbs takes longer than to read the line of a run.
#[derive(Debug, Parser)]
#[command(name = "tokenrun", version)]
pub(super) struct PlainRun {
    #[command(flatten)]
    pub(super) run: RunFlags,
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Show the state of every token
    Status(StatusFlags),
    /// Show past runs, and how each ended
    History(HistoryFlags),
    /// Print the stored output of a job that ran with --capture
    ///
    /// It prints the last bytes as they are; on a terminal, control characters are escaped. The
    /// exit code is 1 if no output of that run is stored, and 78 if the group is unknown.
    Output(OutputFlags),
    /// Explain whether a client may run now, and when that changes
    Explain(ExplainFlags),
    /// Check whether this node may run now, or whether a run has succeeded
    Check(CheckFlags),
    /// Hold the token without a job, and report each gain and loss
    Hold(Box<HoldFlags>),
    /// Stop new grants; a running job goes on
    Pause(PauseFlags),
    /// Allow grants again
    Resume(ResumeFlags),
    /// Give the token to a certain client next, when it is idle
    Handoff(HandoffFlags),
    /// Give the token to a certain client now: hand it off, and end the job of another client
    ///
    /// The token is handed off to the client. If another client runs its job, the token is revoked
    /// from it. On a terminal the command then waits until the client can have the token, and shows
    /// what it waits for.
    Move(MoveFlags),
    /// Change the client that is expected to have the token
    Expect(ExpectFlags),
    /// Ask the holder to end its job and to free the token, without overlap
    Revoke(RevokeFlags),
    /// Free an idle token, although its --at-least is not over; a running one only by force
    Release(ReleaseFlags),
    /// Confirm that the store has forgotten no grant, so that no run waits for it
    ///
    /// Use it when you know that nothing was lost, for example after a planned switch-over. It
    /// counts for the incarnation of the store that you name, and for no other. The message of the
    /// run that waits shows the incarnation.
    Settle(SettleFlags),
    /// Grant nothing until every lease is over that the store may have forgotten
    ///
    /// Use it after a restore or a rollback that the store does not show by itself: a snapshot or a
    /// file that was put back in place.
    Distrust(DistrustFlags),
    /// Print metrics for Prometheus
    Metrics(MetricsFlags),
    /// Write an HTML page: the state of every group, and its runs
    ///
    /// The page is one file. It needs no script and requests nothing, so a cron entry can write it
    /// into the directory of a web server. It shows the last day, week and month.
    Page(PageFlags),
    /// List or forget the keys of --once that are done
    #[command(subcommand)]
    Once(OnceVerb),
    /// Check a fencing token, guard a resource with it, or raise it
    #[command(subcommand)]
    Fence(FenceVerb),
    /// Make the store, or print the SQL with which an administrator makes it
    Init(InitFlags),
    /// Show the settings that a run would use, and where each comes from
    ///
    /// It takes the options of a run: put the word config before them to see what they would do.
    Config(Box<ConfigFlags>),
    /// Check the store step by step, and say what to do about each problem
    ///
    /// It changes nothing. The exit code is 0 if no check fails, otherwise that of the first
    /// failure: 69 not reached, 77 no permission, 78 configuration.
    Doctor(Box<DoctorFlags>),
    /// Explain a command or a topic: exit-codes, environment, json, configuration, options, metrics
    Help(HelpFlags),
    /// Print the completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages
    Man {
        /// The directory; if it is called man1, pages of section 7 go to man7 beside it
        directory: PathBuf,
    },
}
