//! Puts parts together for the verbs: the store, the caller, and its host.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use super::hold;
use super::node::{bystander, client_id, runs_inside};
use super::stores::{LISTING_TIMEOUT, known_store, known_store_with_locks};
use crate::cli::{
    ActRequest, CheckRequest, ExplainRequest, JudgementRequest, Names, NamesRequest, ScreenRequest,
    Selection, StoryTime,
};
use crate::commands;
use crate::commands::screen::{screen, zone};
use crate::commands::span::Span;
use crate::exit::Exit;
use crate::report::log::Log;
use crate::report::message::Subject;
use crate::run::locking::evidence_of;
use crate::run::runtime_file::held_session;
use crate::store::open::Opened;
use crate::store::{Reading, Store};
use crate::sys::{process, user};
use crate::token::{Actor, Claim, ClientId, Evidence, GroupName, Row};

/// The subject of a verb's messages: a group, and this host.
fn about(group: &GroupName) -> Subject {
    Subject {
        group: Some(group.to_string()),
        host: process::host_name().ok(),
        ..Subject::default()
    }
}

/// An operator's act on one or several groups.
pub(crate) fn act(mut request: ActRequest, log: &mut Log) -> Result<Exit> {
    commands::acts::check(&request)?;
    if let Selection::One(group) = &request.selection {
        log.about(about(group));
    }
    let Opened { mut store, locks } = known_store_with_locks(&request.store, LISTING_TIMEOUT, log)?;
    let actor = Actor {
        by: user::name(),
        host: process::host_name().ok(),
        reason: request.reason.take(),
    };
    let mut prove = |group: &GroupName, client: &ClientId, reading: &Reading| {
        let mut claim = bystander(group, client.clone())?;
        if let Some(row) = &reading.row {
            // The next run of this group probably has the options of the last one.
            claim.timing.takeover_after = row.document.takeover_after;
        }
        let evidence = |locks: PathBuf| evidence_of(locks, reading, &claim.session);
        let evidence = locks.clone().map_or(Evidence::None, evidence);
        Ok((claim, evidence))
    };
    commands::acts::acts(store.as_mut(), &request, &actor, &about, &mut prove, log)
}

/// An operator's judgement of a store.
pub(crate) fn judge(mut request: JudgementRequest, log: &mut Log) -> Result<Exit> {
    commands::judge::check(&request)?;
    let mut store = known_store(&request.store, log)?;
    let actor = Actor {
        by: user::name(),
        host: process::host_name().ok(),
        reason: request.reason.take(),
    };
    commands::judge::judge(store.as_mut(), &request, &actor, log)
}

/// Answers whether this node may run, or a run has succeeded.
pub(crate) fn check(request: &CheckRequest, log: &mut Log) -> Result<Exit> {
    log.about(about(&request.group));
    let mut store = known_store(&request.store, log)?;
    // Where there is no place for such a file, there is none.
    let by_default = || hold::default_runtime_file(&request.group).ok();
    let path = request.runtime_file.clone().or_else(by_default);
    let agents = match path.as_deref().map(|path| (path, held_session(path))) {
        Some((path, Err(error))) if request.runtime_file.is_some() => {
            return Err(commands::stand_in::unusable(path, &error).into());
        }
        Some((_, Ok(session))) => session,
        _ => None,
    };
    let shown = |row: &Row| runs_inside(row).or(agents.filter(|it| row.session() == Some(it)));
    commands::check::check(store.as_mut(), request, shown, log)
}

/// The rule's decision on a run that this process could make.
pub(crate) fn explain(request: ExplainRequest, log: &mut Log) -> Result<Exit> {
    let Opened { mut store, locks } = known_store_with_locks(&request.store, LISTING_TIMEOUT, log)?;
    if let Some(time) = request.story {
        return story(store.as_mut(), &request, time);
    }
    let host = process::host_name().ok();
    let client = client_id(request.client_id.as_ref(), host.as_deref())?;
    let mut claim = bystander(&request.group, client)?;
    claim.failback = request.failback;
    let prove = |reading: &Reading, claim: &mut Claim| {
        claim.nested_in = reading.row.as_ref().and_then(runs_inside);
        let evidence = |locks| evidence_of(locks, reading, &claim.session);
        locks.map_or(Evidence::None, evidence)
    };
    commands::explain::explain(store.as_mut(), &mut claim, prove, request.json)
}

/// What happened to a group then.
fn story(store: &mut dyn Store, request: &ExplainRequest, time: StoryTime) -> Result<Exit> {
    let reader = ScreenRequest {
        utc: request.utc,
        ..ScreenRequest::default()
    };
    let zone = zone(reader);
    let span = |now| match time {
        StoryTime::At(at) => Ok(Span::around(at, now, &zone)),
        StoryTime::Since(since, until) => Span::between(Some(since), until, now, &zone),
    };
    let times = screen(reader).times;
    commands::story::story(store, &request.group, span, &times, request.json)
}

/// How long a completion waits for a store.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(1);

/// The names of groups or clients, for a shell.
pub(crate) fn names(request: &NamesRequest, log: &mut Log) -> Result<Exit> {
    let mut opened = known_store_with_locks(&request.store, COMPLETION_TIMEOUT, log)?;
    match request.names {
        Names::Groups => commands::groups::groups(opened.store.as_mut()),
        Names::Clients => commands::clients::clients(opened.store.as_mut()),
    }
}
