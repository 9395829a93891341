//! Puts parts together for what is asked beside a run: the store, who asks, and from where.

use super::{Failure, known_store};
use crate::cli::ActRequest;
use crate::commands;
use crate::exit::Exit;
use crate::report::log::Log;
use crate::sys::{process, user};
use crate::token::Actor;

/// An operator's act.
pub(crate) fn act(request: ActRequest, log: &mut Log) -> Result<Exit, Failure> {
    let mut store = known_store(&request.store, log)?;
    let actor = Actor {
        by: user::name(),
        host: process::host_name().ok(),
        reason: request.reason,
    };
    let (group, wish) = (&request.group, &request.wish);
    commands::act::act(store.as_mut(), group, wish, &actor, request.json, log)
}
