//! `tokenrun page`: a page of HTML that shows every group.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;

use super::shared::failure::not_written;
use super::shared::groups::{MOST_REFUSALS, PAST, known, listed, memory};
use super::shared::options::{GroupsOptions, StoreOptions};
use super::shared::stores::known_store_beside;
use super::shared::terminal::{print, zone};
use super::shared::{Action, Context};
use crate::cli::{Unusable, values};
use crate::exit::Exit;
use crate::report::page::{Calendar, Detail, Facts, Group, Known, Past, View, page as written};
use crate::report::whole_file::write_whole;
use crate::store::history::runs;
use crate::store::{ActQuery, Listing, RunQuery, Store, StoreError};
use crate::sys::random;
use crate::token::{ActRecord, RefusalRecord, Row, RunRecord, WallTime};

/// How many runs are read in all. What a group does not use is left for those after it.
const RUNS: usize = 60_000;

/// How many runs of one group are read.
const RUNS_OF_GROUP: std::ops::RangeInclusive<usize> = 200..=50_000;

/// How many acts of operators are read.
const ACTS: u32 = 20_000;

/// The least time between two loads of a page.
const LEAST_REFRESH: Duration = Duration::from_secs(1);

/// Write an HTML page: the state of every group, and its runs
///
/// The page is one file. It needs no script and requests nothing, so a cron entry can write it
/// into the directory of a web server. It shows the last day, week and month.
#[derive(Debug, Args)]
pub(super) struct Page {
    /// The file to write; it is replaced as a whole; - for stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    store: StoreOptions,
    #[command(flatten)]
    options: PageOptions,
}

// What a page shows.
#[derive(Debug, Clone, Args)]
pub(super) struct PageOptions {
    #[command(flatten)]
    pub(super) groups: GroupsOptions,
    /// Times in UTC instead of the local time zone
    #[arg(long)]
    pub(super) utc: bool,
    /// A browser loads the page again after this time, such as 60s or 5m [default: never]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(super) refresh: Option<Duration>,
}

/// The text of a listing, and the first row that could not be read.
pub(super) struct Looked {
    pub(super) text: String,
    pub(super) unreadable: Option<StoreError>,
}

impl PageOptions {
    pub(super) fn check(&self) -> Result<(), Unusable> {
        if self.refresh.is_some_and(|every| every < LEAST_REFRESH) {
            let text = "--refresh is shorter than a second; write for example --refresh 60s";
            return Err(Unusable::about(&["--refresh"], text));
        }
        Ok(())
    }

    /// The page as the store is now.
    pub(super) fn text(&self, store: &mut dyn Store) -> Result<Looked> {
        let wanted_groups = self.groups.groups();
        let (listing, refusals) = listed(store)?;
        let memory = memory(store)?;
        known(&listing, &wanted_groups, store.name())?;
        let wanted = |row: &&Row| wanted_groups.has(row.group.as_str());
        let rows: Vec<&Row> = listing.rows.iter().filter(wanted).collect();
        let unreadable: Vec<(String, String)> = listing
            .unreadable
            .iter()
            .filter(|it| wanted_groups.has(&it.group))
            .map(|it| (it.group.clone(), it.error.to_string()))
            .collect();
        let view = View {
            now: listing.now.clone(),
            memory,
            calendar: Calendar::new(zone(self.utc)),
            detail: Detail::of(rows.len()),
        };
        let since = listing.now.wall_before(PAST);
        let others = Others::read(store, since, refusals)?;
        let groups = groups(store, &listing, &rows, &others, &view, since)?;
        let facts = Facts {
            store: store.name(),
            unreadable: &unreadable,
            is_shortened: others.is_shortened,
            refresh: self.refresh,
        };
        let first = listing.unreadable.iter();
        let mut first = first.filter(|it| wanted_groups.has(&it.group));
        Ok(Looked {
            text: written(&facts, &groups, &view),
            unreadable: first.next().map(|first| first.error.clone()),
        })
    }
}

impl Action for Page {
    fn check(&self) -> Result<(), Unusable> {
        self.options.check()
    }

    /// After everything else, a row that can't be read is an error.
    fn run(&self, context: &mut Context<'_>) -> Result<Exit> {
        let mut store =
            known_store_beside(&self.store, "--output", Some(&self.output), context.log)?;
        let page = self.options.text(store.as_mut())?;
        let exit = match self.output.as_os_str() == "-" {
            true => print(&page.text)?,
            false => replace(&self.output, &page.text)?,
        };
        page.unreadable.map_or(Ok(exit), |error| Err(error.into()))
    }
}

/// Refusals and acts of operators on all groups, the newest first.
struct Others {
    acts: Vec<ActRecord>,
    refusals: Vec<RefusalRecord>,
    /// There are more.
    is_shortened: bool,
}

impl Others {
    fn read(
        store: &mut dyn Store,
        since: WallTime,
        refusals: Vec<RefusalRecord>,
    ) -> Result<Self, StoreError> {
        let acts = store.acts(&ActQuery {
            since: Some(since),
            limit: Some(ACTS),
            ..ActQuery::default()
        })?;
        let is_full = |count: usize, most| u32::try_from(count).is_ok_and(|count| count >= most);
        let is_shortened = is_full(acts.len(), ACTS) || is_full(refusals.len(), MOST_REFUSALS);
        Ok(Self {
            acts,
            refusals,
            is_shortened,
        })
    }
}

/// Makes one group after the other, so that only one's runs are in memory if there are many.
fn groups(
    store: &mut dyn Store,
    listing: &Listing,
    rows: &[&Row],
    others: &Others,
    view: &View,
    since: WallTime,
) -> Result<Vec<Group>> {
    let (mut left, mut groups) = (RUNS, Vec::with_capacity(rows.len()));
    for (number, row) in rows.iter().enumerate() {
        let share = left / (rows.len() - number);
        let share = share.clamp(*RUNS_OF_GROUP.start(), *RUNS_OF_GROUP.end());
        let over = store.runs(&RunQuery {
            group: Some(row.group.clone()),
            since: Some(since),
            limit: u32::try_from(share).ok(),
            ..RunQuery::default()
        })?;
        left = left.saturating_sub(over.len());
        let is_cut = over.len() >= share;
        groups.push(group(listing, row, over, is_cut, others, view));
    }
    // Trouble first, each level by name.
    groups.sort_by_key(|group| std::cmp::Reverse(group.level()));
    Ok(groups)
}

fn group(
    listing: &Listing,
    row: &Row,
    over: Vec<RunRecord>,
    is_cut: bool,
    others: &Others,
    view: &View,
) -> Group {
    // A run that goes on counts whenever it began.
    let own = Listing {
        rows: vec![row.clone()],
        unreadable: Vec::new(),
        now: listing.now.clone(),
        queues: Vec::new(),
    };
    let mut runs = runs(&own, over, &RunQuery::default());
    runs.sort_by_key(|run| (run.started_at, run.fence));
    let runs: Vec<&RunRecord> = runs.iter().collect();
    let acts = others.acts.iter().filter(|act| act.group == row.group);
    let mut acts: Vec<&ActRecord> = acts.collect();
    acts.sort_by_key(|act| act.at);
    let refusals = others.refusals.iter().filter(|it| it.group == row.group);
    let mut refusals: Vec<&RefusalRecord> = refusals.collect();
    refusals.sort_by_key(|refusal| refusal.first_at);
    let known = Known {
        row,
        waiters: listing.waiters(&row.group),
        past: Past {
            runs: &runs,
            cut: runs.first().filter(|_| is_cut).map(|run| run.started_at),
            acts: &acts,
            refusals: &refusals,
        },
    };
    Group::of(&known, view)
}

fn replace(path: &Path, text: &str) -> Result<Exit> {
    // Not the pid: in a container it is the same each time, and so is the file of one that was
    // killed.
    let mark = random::bits64().context("cannot read random bytes")?;
    let written = write_whole(path, text.as_bytes(), format_args!("{mark:016x}"));
    let page = format_args!("the page {}", path.display());
    written.map_err(|error| not_written(page, &error))?;
    Ok(Exit::OK)
}
