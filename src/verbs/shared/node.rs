//! The identity of this node and of this invocation.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::failure::Failure;
use crate::exit;
use crate::job::ancestry::is_inside;
use crate::report::message::Subject;
use crate::run::environment;
use crate::store::url::{NodeEnvironment, state_directory};
use crate::sys::{process, random, user};
use crate::token::{
    About, Actor, Claim, ClientId, GroupName, Row, SessionId, Timing, Version, Wishes,
};

/// The subject of a verb's messages: a group, and this host.
pub(crate) fn about(group: &GroupName) -> Subject {
    Subject {
        group: Some(group.to_string()),
        host: process::host_name().ok(),
        ..Subject::default()
    }
}

/// The operator who acts.
pub(crate) fn actor(reason: Option<&String>) -> Actor {
    Actor {
        by: user::name(),
        host: process::host_name().ok(),
        reason: reason.cloned(),
    }
}

/// A new session's name.
pub(crate) fn new_session() -> Result<SessionId> {
    let bits = random::bits128().context("cannot read random bytes")?;
    Ok(SessionId::from_random(bits))
}

/// A new version of a row or of a note.
pub(crate) fn new_version() -> Result<Version> {
    let bits = random::bits64().context("cannot read random bytes")?;
    Ok(Version::from_random(bits))
}

/// A claim for a query of the rule. No run makes it. The next run of a group probably has the options
/// of the last one, as the row shows them.
pub(crate) fn bystander(group: &GroupName, client: ClientId, row: Option<&Row>) -> Result<Claim> {
    let mut timing = Timing::new(&Wishes::default()).context("a bug: default durations")?;
    if let Some(row) = row {
        timing.takeover_after = row.document.takeover_after;
    }
    Ok(Claim {
        group: group.clone(),
        client,
        session: new_session()?,
        expected: None,
        failback: false,
        nested_in: None,
        timing,
        about: About::default(),
    })
}

/// The client's name: as given, else from `$CLIENT_ID`, else the host's name.
pub(crate) fn client_id(given: Option<&ClientId>, host: Option<&str>) -> Result<ClientId> {
    if let Some(client) = given {
        return Ok(client.clone());
    }
    let variable = std::env::var("CLIENT_ID")
        .ok()
        .filter(|text| !text.is_empty());
    let (source, text) = match (variable, host) {
        (Some(text), _) => ("the variable CLIENT_ID", text),
        (None, host) => ("the host name", host.unwrap_or_default().to_owned()),
    };
    ClientId::given(&text).map_err(|error| {
        let text = format!("{source} {error}; give --client-id");
        Failure::new(exit::CONFIG, "no_client_id", text).into()
    })
}

/// The session that the environment claims for this process. The row and the ancestors decide
/// whether that is true.
pub(crate) fn nested_in() -> Option<SessionId> {
    let session = std::env::var(environment::SESSION).ok()?;
    SessionId::new(&session).ok()
}

/// The session in the row, if this process runs under its guard: its environment names the session,
/// and its ancestors prove it.
pub(crate) fn runs_inside(row: &Row) -> Option<SessionId> {
    let session = nested_in().filter(|session| row.session() == Some(session))?;
    let here = row.document.host == process::host_name().ok();
    (here && row.document.pid.is_some_and(is_inside)).then_some(session)
}

/// The directory for what this host keeps, if there is a place for it.
pub(crate) fn state() -> Option<PathBuf> {
    state_directory(&node_environment()).ok()
}

/// The facts about this process on which the default paths depend.
pub(crate) fn node_environment() -> NodeEnvironment {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    NodeEnvironment {
        is_pid_1: process::pid() == 1,
        in_kubernetes: set("KUBERNETES_SERVICE_HOST").is_some(),
        is_root: user::is_root(),
        xdg_state_home: set("XDG_STATE_HOME"),
        home: set("HOME"),
    }
}
