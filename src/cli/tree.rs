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
Exit codes: the job's own; 64 usage; 69 store not reached; 75 not now (another client holds the token); \
76 token lost; 77 permission; 78 configuration; 124 timed out; all of them: tokenrun help exit-codes";

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
    /// Show who holds which token
    Status(StatusFlags),
    /// Show who ran when, and how it ended
    History(HistoryFlags),
    /// Print what a job run with --capture has printed
    ///
    /// The last bytes, as they are; on a terminal control characters are escaped. The exit status is
    /// 1 if nothing is kept of that run, 78 if the group is unknown.
    Output(OutputFlags),
    /// Tell what the rule says to this client now, and when that changes
    Explain(ExplainFlags),
    /// Tell whether this node may run now, or whether a run has succeeded
    Check(CheckFlags),
    /// Keep the token without a job, and tell when it comes and goes
    Hold(Box<HoldFlags>),
    /// Stop new grants; a running job goes on
    Pause(PauseFlags),
    /// Allow grants again
    Resume(ResumeFlags),
    /// Have the token go to a certain client next, when it is idle
    Handoff(HandoffFlags),
    /// Have the token go to a certain client now: hand it off, and end the job of another
    ///
    /// The token is handed off to the client, and revoked from another client that runs its job. On
    /// a terminal it then waits until the client may have the token, and says what it waits for.
    Move(MoveFlags),
    /// Change the client that is expected to have the token
    Expect(ExpectFlags),
    /// Ask the holder to end its job and to free the token, without overlap
    Revoke(RevokeFlags),
    /// Free an idle token; a running one only by force
    Release(ReleaseFlags),
    /// Say that a store which may have forgotten a grant has not, so that no run waits for it
    ///
    /// Use it when you know that nothing was lost: after a planned switch-over, say. It counts for the incarnation
    /// that is named, as the message of the run that waits shows it, and for no other.
    Settle(SettleFlags),
    /// Have nothing granted until every lease is over that the store may have forgotten
    ///
    /// After a restore or a rollback that the store does not show by itself: a snapshot or a file
    /// that was put back in place.
    Distrust(DistrustFlags),
    /// Print metrics for Prometheus
    Metrics(MetricsFlags),
    /// Write a page of HTML: every group's state, and who ran when
    ///
    /// One file that needs no script and requests nothing: for a cron entry that writes it into a
    /// web server's directory. It shows the last day, week and month.
    Page(PageFlags),
    /// Show or forget the keys of --once that are done
    #[command(subcommand)]
    Once(OnceVerb),
    /// Check a fence, guard a resource by it, or raise it
    #[command(subcommand)]
    Fence(FenceVerb),
    /// Make the store, or print how an administrator makes it
    Init(InitFlags),
    /// Show the settings that a run would use, and where each came from
    ///
    /// With the options of a run: put the word config before them, and see what they do.
    Config(Box<ConfigFlags>),
    /// Examine the store, step by step, and say what to do about what is wrong
    ///
    /// Nothing in it is changed. The exit status is 0 if nothing fails, else that of the first
    /// failure: 69 not reached, 77 no permission, 78 configuration.
    Doctor(Box<DoctorFlags>),
    /// Explain a command or a topic: exit-codes, environment, json, configuration, options, metrics
    Help(HelpFlags),
    /// Print the completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    Man {
        /// The directory; if it is called man1, pages of section 7 go to man7 beside it
        directory: PathBuf,
    },
}
