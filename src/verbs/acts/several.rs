//! An act of an operator on one group or on several, one after the other.

use std::path::Path;

use anyhow::Result;

use super::super::names::is_known;
use super::super::shared::failure::{Failure, code_of, reported};
use super::super::shared::groups::{self, known_row};
use super::super::shared::node::about;
use super::super::shared::options::RecordOptions;
use super::super::shared::terminal::{self, agrees, print_json};
use super::awaiting::{Awaited, await_all};
use super::one::{Done, Wish, act_on};
use crate::exit::{self, Exit};
use crate::report::acts::{aborted, for_stranger, has_none, many, stranger};
use crate::report::log::Log;
use crate::report::printable::quoted;
use crate::run::machine::Wait;
use crate::store::Store;
use crate::token::{Actor, ClientId, GroupName, Groups};

/// How long an act waits for its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// However long it takes if a person sees it on a terminal, else not at all.
    OnTerminal,
    /// This long.
    Given(Wait),
}

/// What an act concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// These groups.
    Groups(Groups),
    /// The groups whose tokens belong to this client.
    TokensOf(ClientId),
    /// This client, in every group.
    Client(ClientId),
}

impl Target {
    /// The only group.
    pub(crate) fn single(&self) -> Option<&GroupName> {
        match self {
            Self::Groups(groups) => groups.single(),
            Self::TokensOf(_) | Self::Client(_) => None,
        }
    }
}

/// An act on groups or on a client.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    pub(crate) on: Target,
    /// Ask no question.
    pub(crate) yes: bool,
    /// The verb, for a line that the message suggests.
    pub(crate) verb: &'static str,
    pub(crate) wish: Wish,
    pub(crate) patience: Patience,
    pub(crate) record: &'a RecordOptions,
}

impl Order<'_> {
    /// The order on a client, if one is given in place of groups.
    pub(crate) fn or_on(self, client: Option<&ClientId>, target: fn(ClientId) -> Target) -> Self {
        let on = client.cloned().map_or(self.on, target);
        Self { on, ..self }
    }

    /// How the line names groups without their names; `None` if it gives each name.
    pub(crate) fn broad(&self) -> Option<String> {
        match &self.on {
            Target::Client(_) => None,
            Target::TokensOf(client) => Some(format!("--from {:?}", client.as_str())),
            Target::Groups(Groups::All) => Some("--all".to_owned()),
            Target::Groups(Groups::Matching(patterns)) => {
                let pattern = patterns.iter().find(|it| it.name().is_none())?;
                Some(format!("--group {:?}", pattern.as_str()))
            }
        }
    }
}

/// Refuses a selection by `--all` or a pattern where no person can be asked.
pub(crate) fn check(order: &Order<'_>) -> Result<()> {
    let Some(broad) = order.broad() else {
        return Ok(());
    };
    let line = format!("{} {broad}", order.verb);
    terminal::check_can_ask(
        order.yes,
        &format!("{broad} may stand for many groups"),
        &line,
    )
}

/// Carries a request out on each of its groups. An error of one group does not keep the others from
/// being acted on, unless the store itself fails.
///
/// # Errors
/// If the store is unusable, a group is unknown (nothing is changed then), or the only group can't
/// be acted on.
pub(crate) fn act_on_each(
    store: &mut dyn Store,
    order: &Order<'_>,
    actor: &Actor,
    locks: Option<&Path>,
    log: &mut Log,
) -> Result<Exit> {
    let groups = selected(store, order)?;
    if let (Target::TokensOf(client), true) = (&order.on, groups.is_empty()) {
        log.write(&has_none(client, store.name()), false);
    }
    if !is_agreed(store, order, &groups, log)? {
        return Ok(Exit::Code(exit::NOT_NOW));
    }
    let (mut done, mut awaited, mut exit) = (Vec::new(), Vec::new(), Exit::OK);
    for (at, group) in groups.iter().enumerate() {
        log.about(about(group));
        let of = match &order.on {
            Target::TokensOf(client) => Some(client),
            _ => None,
        };
        match act_on(store, group, &order.wish, of, actor, log) {
            Ok(acted) => {
                done.extend(acted.performed);
                exit = exit.worse(acted.exit);
                awaited.extend(acted.effect.map(|effect| Awaited {
                    group: group.clone(),
                    effect,
                }));
            }
            Err(error) if groups.len() == 1 => return Err(error),
            Err(error) => {
                log.write(&reported(&error).message, false);
                exit = exit.worse(Exit::Code(code_of(&error)));
                let left = groups.len() - at - 1;
                if code_of(&error) == exit::UNAVAILABLE && left > 0 {
                    log.write(&aborted(left, store.name()), false);
                    break;
                }
            }
        }
    }
    let limit = match order.patience {
        Patience::Given(wait) => wait,
        Patience::OnTerminal if terminal::can_ask() => Wait::Forever,
        Patience::OnTerminal => Wait::No,
    };
    let waited = await_all(store, &awaited, limit, locks, log);
    if order.record.json {
        let shown: Vec<_> = done.iter().map(Done::shown).collect();
        print_json(&shown)?;
    }
    Ok(exit.worse(waited?))
}

/// The failure of a request that has changed none of its groups.
fn unchanged(failure: Failure) -> Failure {
    Failure {
        text: format!("{}; nothing was changed", failure.text),
        ..failure
    }
}

/// The groups that are selected. The only one is looked up by the act itself, if nothing is asked
/// before.
fn selected(store: &mut dyn Store, order: &Order<'_>) -> Result<Vec<GroupName>> {
    let wanted = match &order.on {
        Target::Groups(wanted) => wanted,
        Target::TokensOf(client) | Target::Client(client) => return tokens_of(store, client),
    };
    match wanted.single() {
        Some(group) if order.wish.target().is_none() => return Ok(vec![group.clone()]),
        Some(group) => return Ok(vec![known_row(store, group)?.group]),
        None => {}
    }
    let listing = store.list()?;
    let selected = groups::selected(&listing, wanted, store.name());
    match selected.vain.into_iter().next() {
        Some(vain) => Err(unchanged(vain.failure).into()),
        None => Ok(selected.groups),
    }
}

/// The groups whose tokens belong to this client, which the store must have seen.
fn tokens_of(store: &mut dyn Store, client: &ClientId) -> Result<Vec<GroupName>> {
    if !is_known(store, client)? {
        let text = format!(
            "the store {} has never seen the client {}; tokenrun status lists those that have a token",
            store.name(),
            quoted(client.as_str())
        );
        return Err(unchanged(Failure::new(exit::CONFIG, "unknown_client", text)).into());
    }
    let listing = store.list()?;
    let rows = listing.rows.iter();
    let own = rows.filter(|row| row.client_bound() == Some(client));
    Ok(own.map(|row| row.group.clone()).collect())
}

/// Asks what has to be asked before anything is changed. Off a terminal a stranger is warned of.
fn is_agreed(
    store: &mut dyn Store,
    order: &Order<'_>,
    groups: &[GroupName],
    log: &mut Log,
) -> Result<bool> {
    let verb = order.verb;
    let asks = !order.yes && terminal::can_ask();
    if asks && groups.len() > 1 && order.broad().is_some() {
        let question = many(verb, groups, store.name());
        if !agrees(&question, log)? {
            return Ok(false);
        }
    }
    let Some(to) = unknown_target(store, order)? else {
        return Ok(true);
    };
    if asks {
        return agrees(&for_stranger(verb, &to, store.name()), log);
    }
    log.write(&stranger(&to, store.name()), false);
    Ok(true)
}

/// The client that is to get the token, if the store has never seen it.
fn unknown_target(store: &mut dyn Store, order: &Order<'_>) -> Result<Option<ClientId>> {
    match order.wish.target() {
        Some(to) if !is_known(store, to)? => Ok(Some(to.clone())),
        _ => Ok(None),
    }
}
