//! `tokenrun check`: whether this node may run now, and whether a run has succeeded, for one group or many.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{ArgAction, Args};

use super::hold::default_runtime_file;
use super::hold::stand_in::unusable;
use super::shared::failure::{Reported, code_of, reported};
use super::shared::groups::{UNKNOWN_GROUP, Vain, listed, selected};
use super::shared::node::{about, runs_inside};
use super::shared::options::{LogOptions, StoreOptions};
use super::shared::stores::known_store;
use super::shared::terminal::print_json;
use super::shared::{Action, Context};
use crate::cli::{Unusable, values};
use crate::exit::{self, Exit};
use crate::report::check::{Answer, Shown, Succeeded, not_succeeded, succeeded};
use crate::report::log::Style;
use crate::report::message::Message;
use crate::run::runtime_file::held_session;
use crate::store::{Reading, RunQuery, Store, Unreadable};
use crate::sys::clock::LocalClock;
use crate::token::timing::margin_of;
use crate::token::{GroupName, GroupPattern, Groups, Outcome, Row, SessionId, StoreTime};

/// The exit code of a monitoring question whose answer is no.
const NO: u8 = 1;

/// Check whether this node may run now, or whether a run has succeeded
///
/// Each group gets a line, and the worst answer is the exit code.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// The group, or a pattern such as 'etl-*'; can be repeated
    #[arg(short, long, value_name = "NAME", value_parser = values::pattern, required_unless_present = "all")]
    group: Vec<GroupPattern>,
    /// Every group of the store
    #[arg(long, conflicts_with = "group")]
    all: bool,
    #[command(flatten)]
    store: StoreOptions,
    /// The lease must be good for this much longer [default: 0]
    #[arg(long = "for", value_name = "DURATION", value_parser = values::duration)]
    lasts: Option<Duration>,
    /// For monitoring: whether a run on any node has succeeded in this time
    #[arg(long, value_name = "DURATION", value_parser = values::duration, conflicts_with = "lasts")]
    succeeded_within: Option<Duration>,
    /// The runtime file of tokenrun hold [default: the file that hold writes for this group]
    #[arg(long, value_name = "FILE", env = "TOKENRUN_RUNTIME_FILE")]
    runtime_file: Option<PathBuf>,
    /// An array of JSON objects on stdout, one for each group
    #[arg(long)]
    json: bool,
    /// Print only what is wrong; twice: print nothing, only the exit code tells
    #[arg(short, long, action = ArgAction::Count, value_parser = values::quiet)]
    quiet: u8,
}

impl Action for Check {
    fn check(&self) -> Result<(), Unusable> {
        match self.succeeded_within {
            Some(Duration::ZERO) => Err(Unusable::about(
                &["--succeeded-within"],
                "--succeeded-within must be longer than 0",
            )),
            _ => Ok(()),
        }
    }

    fn style(&self) -> Style {
        LogOptions::of_quiet(self.quiet).style()
    }

    /// An unknown group ends it as any other no. A group whose token can't be read keeps no other from
    /// being checked.
    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        let log = &mut *context.log;
        let wanted: Groups = self.group.clone().into();
        if let Some(group) = wanted.single() {
            log.about(about(group));
        }
        let mut store = known_store(&self.store, log)?;
        let clock = LocalClock::start();
        let seen = Seen::in_store(store.as_mut(), &wanted)?;
        let mut answers = Vec::new();
        for row in &seen.rows {
            let answer = match self.succeeded_within {
                Some(within) => has_succeeded(store.as_mut(), row, &seen.now, within),
                None => self.may_run(row, &seen.now, &clock, store.name()),
            };
            match answer {
                Err(error) if code_of(&error) == exit::UNAVAILABLE => return Err(error),
                Err(error) => answers.push(Checked::failed(&row.group, &error)),
                Ok(answer) => answers.push(answer),
            }
        }
        answers.extend(seen.unreadable.iter().map(Checked::unreadable));
        answers.extend(seen.vain.iter().map(|vain| self.in_vain(vain)));
        let mut exit = Exit::OK;
        for answer in &answers {
            if let Some(group) = &answer.group {
                log.about(about(group));
            }
            log.write(&answer.message, false);
            exit = exit.worse(answer.exit);
        }
        if self.json {
            let shown = answers.iter().filter_map(|it| it.shown.as_ref());
            print_json(&shown.collect::<Vec<_>>())?;
        }
        Ok(exit)
    }
}

/// What the store has of the groups in question.
struct Seen {
    now: StoreTime,
    rows: Vec<Row>,
    unreadable: Vec<Unreadable>,
    vain: Vec<Vain>,
}

impl Seen {
    fn in_store(store: &mut dyn Store, wanted: &Groups) -> Result<Self> {
        if let Some(group) = wanted.single() {
            let Reading { row, now, .. } = store.read(group)?;
            if let Some(row) = row {
                return Ok(Self {
                    now,
                    vain: Vec::new(),
                    rows: vec![row],
                    unreadable: Vec::new(),
                });
            }
        }
        let (listing, _) = listed(store)?;
        let vain = selected(&listing, wanted, store.name()).vain;
        let (rows, unreadable) = (listing.rows.into_iter(), listing.unreadable.into_iter());
        Ok(Self {
            now: listing.now,
            rows: rows.filter(|it| wanted.has(it.group.as_str())).collect(),
            unreadable: unreadable.filter(|it| wanted.has(&it.group)).collect(),
            vain,
        })
    }
}

/// The answer for one group.
struct Checked<'a> {
    group: Option<GroupName>,
    message: Message,
    shown: Option<Shown<'a>>,
    exit: Exit,
}

impl Checked<'_> {
    fn failed(group: &GroupName, error: &anyhow::Error) -> Self {
        let Reported { code, message } = reported(error);
        Self {
            group: Some(group.clone()),
            message,
            shown: None,
            exit: Exit::Code(code),
        }
    }

    fn unreadable(unreadable: &Unreadable) -> Self {
        let Reported { code, message } = reported(&unreadable.error.clone().into());
        Self {
            group: GroupName::new(&unreadable.group).ok(),
            message,
            shown: None,
            exit: Exit::Code(code),
        }
    }
}

impl Check {
    /// The answer to "may this process run now".
    fn may_run<'a>(
        &self,
        row: &'a Row,
        now: &StoreTime,
        clock: &LocalClock,
        store: &str,
    ) -> Result<Checked<'a>> {
        let agents = self.agents_session(&row.group)?;
        let needed = self.lasts.unwrap_or_default();
        let session = runs_inside(row).or(agents.filter(|it| row.session() == Some(it)));
        let left = trusted_for(row, now).saturating_sub(clock.now().0);
        let why_not = why_not(row, session.as_ref(), left, needed);
        let answer = Answer::of(row, why_not, left, needed);
        Ok(Checked {
            group: Some(row.group.clone()),
            message: answer.message(store),
            shown: Some(Shown::MayRun(answer)),
            exit: match why_not {
                None => Exit::OK,
                Some(_) => Exit::Code(exit::NOT_NOW),
            },
        })
    }

    /// The answer for what no group is.
    fn in_vain<'a>(&self, vain: &'a Vain) -> Checked<'a> {
        let (shown, code) = match self.succeeded_within {
            Some(_) => (
                Shown::Succeeded(Succeeded::of(&vain.named, None, false)),
                NO,
            ),
            None => (
                Shown::MayRun(Answer::unknown(&vain.named, UNKNOWN_GROUP)),
                exit::NOT_NOW,
            ),
        };
        Checked {
            group: GroupName::new(&vain.named).ok(),
            message: vain.failure.message(),
            shown: Some(shown),
            exit: Exit::Code(code),
        }
    }

    /// The session that an agent on this host holds, as its runtime file proves it.
    fn agents_session(&self, group: &GroupName) -> Result<Option<SessionId>> {
        // Where there is no place for such a file, there is none.
        let by_default = || default_runtime_file(group).ok();
        let path = self.runtime_file.clone().or_else(by_default);
        match path.as_deref().map(|path| (path, held_session(path))) {
            Some((path, Err(error))) if self.runtime_file.is_some() => {
                Err(unusable(path, &error).into())
            }
            Some((_, Ok(session))) => Ok(session),
            _ => Ok(None),
        }
    }
}

/// Why this process may not run now.
fn why_not(
    row: &Row,
    session: Option<&SessionId>,
    left: Duration,
    needed: Duration,
) -> Option<&'static str> {
    match session {
        _ if row.session().is_none() => Some("not_held"),
        None => Some("not_ours"),
        Some(_) if row.document.revoke_requested => Some("revoked"),
        Some(_) if left.is_zero() || left < needed => Some("ends_too_soon"),
        Some(_) => None,
    }
}

/// How long the holder trusts its lease at least, according to its row. The holder counts from
/// sending its heartbeat, which the store stamped a little later: hence the margin again.
fn trusted_for(row: &Row, now: &StoreTime) -> Duration {
    let Some(age) = row.run().and_then(|_| row.age(now)) else {
        return Duration::ZERO;
    };
    let margin = margin_of(row.document.takeover_after).saturating_mul(2);
    row.document
        .takeover_after
        .saturating_sub(margin)
        .saturating_sub(age)
}

/// The answer to "has a run succeeded in this time".
fn has_succeeded<'a>(
    store: &mut dyn Store,
    row: &Row,
    now: &StoreTime,
    within: Duration,
) -> Result<Checked<'a>> {
    let query = RunQuery {
        group: Some(row.group.clone()),
        outcomes: vec![Outcome::Succeeded],
        limit: Some(1),
        ..RunQuery::default()
    };
    let last = store.runs(&query)?.pop();
    let ended_at = last.as_ref().and_then(|run| run.ended_at);
    let recent = ended_at.is_some_and(|at| at >= now.wall_before(within));
    let message = match (&last, recent) {
        (Some(run), true) => succeeded(run, now, store.name()),
        _ => not_succeeded(&row.group, last.as_ref(), within, store.name()),
    };
    let shown = Succeeded::of(row.group.as_str(), last.as_ref(), recent);
    Ok(Checked {
        group: Some(row.group.clone()),
        message,
        shown: Some(Shown::Succeeded(shown)),
        exit: if recent { Exit::OK } else { Exit::Code(NO) },
    })
}
