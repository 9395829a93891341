//! `tokenrun output`: what a job has printed, as far as it is kept.

use std::io::{IsTerminal as _, stdout};
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use super::shared::failure::Failure;
use super::shared::groups::unknown_group;
use super::shared::options::StoreOptions;
use super::shared::stores::known_store;
use super::shared::terminal::{print_json, put_bytes, tell, zone};
use super::shared::{Action, Context};
use crate::cli::{GivenTime, values};
use crate::exit::{self, Exit};
use crate::report::output::{Object, damaged, head, no_such_run, none, removed, shown};
use crate::store::{Reading, RunQuery, Store};
use crate::token::{
    ClientId, Fence, GroupName, Outcome, OutputRecord, RunRecord, StoreTime, WallTime,
};

/// Print the stored output of a job that ran with --capture
///
/// It prints the last bytes as they are; on a terminal, control characters are escaped. The
/// exit code is 1 if no output of that run is stored, or not any more, and 78 if the group is unknown.
#[derive(Debug, Args)]
pub(super) struct Output {
    /// The group
    #[arg(short, long, value_name = "NAME", value_parser = values::group)]
    group: GroupName,
    /// The run with this fencing token, as history shows it [default: the newest run with stored
    /// output]
    #[arg(long, value_name = "FENCE", value_parser = values::fence)]
    run: Option<Fence>,
    /// The run that went on at this time, or the last one before it: 02:00, 'yesterday 02:00', 12h (ago)
    ///
    /// Times are in the zone of this host (TZ).
    #[arg(long, value_name = "TIME", value_parser = GivenTime::parse, conflicts_with = "run")]
    at: Option<GivenTime>,
    /// The newest run whose job failed, was killed or timed out; with --at the newest until then
    #[arg(long, conflicts_with = "run")]
    failed: bool,
    #[command(flatten)]
    store: StoreOptions,
    /// An array with one JSON object instead of the plain output
    #[arg(long)]
    json: bool,
}

impl Action for Output {
    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        let store = &mut *known_store(&self.store, context.log)?;
        let group = &self.group;
        let Reading { row, now, .. } = store.read(group)?;
        let row = row.ok_or_else(|| unknown_group(store.name(), group))?;
        let run = match self.at.is_some() || self.failed {
            true => Some(self.found(store, now.stamp.wall)?),
            false => self.run,
        };
        let Some(record) = store.output(group, run)? else {
            if self.json {
                print_json::<Object<'_>>(&[])?;
            }
            let text = self.why_none(store, run, &now)?;
            return Err(Failure::new(exit::NOTHING, "no_output", text).into());
        };
        let Some(last) = record.last_bytes() else {
            let text = damaged(&record);
            return Err(Failure::new(exit::CONFIG, "damaged", text).into());
        };
        if self.json {
            return print_json(&[Object::of(&record, &last)]);
        }
        let is_older = run.is_none() && record.fence < row.fence;
        if record.is_cut() || is_older {
            let client = client_of(store, &record)?;
            tell(&head(&record, client.as_ref(), is_older));
        }
        let is_terminal = stdout().is_terminal();
        let text = match is_terminal {
            true => shown(&last, is_terminal),
            // To the byte: it may be a file.
            false => last,
        };
        put_bytes(&text).map(|_| Exit::OK)
    }
}

impl Output {
    /// The run that is meant by --at or --failed.
    fn found(&self, store: &mut dyn Store, now: WallTime) -> Result<Fence> {
        let until = self.at.map(|at| at.end(None, now, &zone(false)));
        let query = RunQuery {
            group: Some(self.group.clone()),
            outcomes: match self.failed {
                true => vec![Outcome::Failed, Outcome::Signalled, Outcome::TimedOut],
                false => Vec::new(),
            },
            // A run that began at that very time went on then.
            until: until.map(|at| at.plus(Duration::from_millis(1))),
            limit: Some(1),
            ..RunQuery::default()
        };
        let newest = store.runs(&query)?.into_iter().next();
        newest.map(|run| run.fence).ok_or_else(|| {
            let text = no_such_run(&self.group, self.failed, until);
            Failure::new(exit::NOTHING, "no_output", text).into()
        })
    }

    /// Why no output is stored, as far as history knows the run.
    fn why_none(
        &self,
        store: &mut dyn Store,
        run: Option<Fence>,
        now: &StoreTime,
    ) -> Result<String> {
        let asked = run;
        let runs = runs_of(store, &self.group)?;
        let caught = runs.iter().filter_map(|run| Some((run, run.output?)));
        let caught: Vec<_> = caught.collect();
        let is_asked = |(run, _): &(&RunRecord, _)| asked.is_none_or(|it| it == run.fence);
        let Some(newer) = caught.iter().position(is_asked) else {
            return Ok(none(&self.group, asked));
        };
        let (run, limits) = caught[newer];
        let ended = run.ended_at.unwrap_or(run.started_at);
        let age = now.stamp.wall.since(ended).unwrap_or_default();
        Ok(removed(run, limits, age, newer))
    }
}

/// The runs of a group, the newest first.
fn runs_of(store: &mut dyn Store, group: &GroupName) -> Result<Vec<RunRecord>> {
    let query = RunQuery {
        group: Some(group.clone()),
        ..RunQuery::default()
    };
    Ok(store.runs(&query)?)
}

/// The client of the run, if history knows it.
fn client_of(store: &mut dyn Store, record: &OutputRecord) -> Result<Option<ClientId>> {
    let runs = runs_of(store, &record.group)?;
    let own = runs.into_iter().find(|run| run.session == record.session);
    Ok(own.map(|run| run.client))
}
