//! Carries out a request: the only place that puts parts together.

pub(crate) mod doctor;
pub(crate) mod environment;
pub(crate) mod hold;
pub(crate) mod logging;
mod node;
mod run;
mod settings;
mod store_file;
mod stores;
mod verbs;

use std::ffi::OsString;

use anyhow::{Context as _, Result};

use crate::cli::{self, Request};
use crate::commands;
use crate::commands::failure::SYSTEM_REFUSED;
use crate::exit::Exit;
use crate::job::hooks::{self, Order};
use crate::report::log::Log;
use crate::sys::signals::Inherited;
use stores::{known_store, known_store_beside};

pub(crate) fn dispatch(
    request: Request,
    arguments: &[OsString],
    inherited: Inherited,
    log: &mut Log,
) -> Result<Exit> {
    match request {
        Request::Run(request) => {
            run::run_to_its_end(*request, inherited, None, log).map(|(_, exit)| exit)
        }
        Request::Hold(request) => hold::agent(*request, arguments, inherited, log),
        Request::StandIn(order) => hold::standing_in(&order, &inherited, log),
        Request::KeepHook(order) => keep_hook(&order, &inherited),
        Request::Status(list) => {
            let mut store = known_store(&list.store, log)?;
            commands::status::status(store.as_mut(), &list)
        }
        Request::History(list) => {
            let mut store = known_store(&list.store, log)?;
            commands::history::history(store.as_mut(), &list)
        }
        Request::OnceList(list) => {
            let mut store = known_store(&list.store, log)?;
            commands::once::list(store.as_mut(), &list)
        }
        Request::Output(request) => {
            let mut store = known_store(&request.store, log)?;
            commands::output::output(store.as_mut(), &request)
        }
        Request::Check(request) => verbs::check(&request, log),
        Request::Metrics(request) => {
            let output = ("--textfile", request.textfile.as_deref());
            let mut store = known_store_beside(&request.store, output, log)?;
            commands::metrics::metrics(store.as_mut(), &request)
        }
        Request::Page(request) => {
            let output = ("--output", request.output.as_deref());
            let mut store = known_store_beside(&request.store, output, log)?;
            commands::page::page(store.as_mut(), &request)
        }
        Request::Explain(request) => verbs::explain(request, log),
        Request::Act(request) => verbs::act(request, log),
        Request::Judge(request) => verbs::judge(request, log),
        Request::Fence(request) => {
            let mut store = known_store(&request.store, log)?;
            commands::fence::fence(store.as_mut(), &request, log)
        }
        Request::Init(request) => stores::init(&request, log),
        Request::Config(request) => settings::config(request),
        Request::Names(request) => verbs::names(&request, log),
        Request::Doctor(request) => doctor::doctor(&request, log),
        Request::Print(text) => commands::print(&text),
        Request::Man(directory) => commands::manual::write(&directory, cli::generated::MANUAL),
    }
}

/// Keeps a hook. The process that started this one reports what comes of it.
fn keep_hook(order: &Order, inherited: &Inherited) -> Result<Exit> {
    hooks::keep(order, inherited).context(SYSTEM_REFUSED)?;
    Ok(Exit::OK)
}
