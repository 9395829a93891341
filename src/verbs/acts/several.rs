//! An act of an operator on one group or on several, one after the other.

use anyhow::Result;

use super::super::names::is_known;
use super::super::shared::asking::{self, agrees};
use super::super::shared::failure::{Failure, code_of, reported};
use super::super::shared::groups::{all_of, unknown_group};
use super::super::shared::printing::print_json;
use super::awaiting::{Awaited, Prove, await_all};
use super::one::{Acted, Done, act};
use super::order::{Order, Patience};
use crate::exit::{self, Exit};
use crate::report::acts::{aborted, for_stranger, many, stranger};
use crate::report::log::Log;
use crate::report::message::Subject;
use crate::report::printable::quoted;
use crate::run::machine::Wait;
use crate::store::Store;
use crate::token::{Actor, ClientId, GroupName, Groups};

/// Refuses a selection by `--all` or a pattern where no person can be asked.
///
/// # Errors
/// If `--yes` is missing.
pub(crate) fn check(order: &Order<'_>) -> Result<()> {
    let Some(broad) = order.broad() else {
        return Ok(());
    };
    let line = format!("{} {broad}", order.verb);
    asking::check(
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
pub(crate) fn acts(
    store: &mut dyn Store,
    order: &Order<'_>,
    actor: &Actor,
    about: &dyn Fn(&GroupName) -> Subject,
    prove: &mut Prove<'_>,
    log: &mut Log,
) -> Result<Exit> {
    let groups = selected(store, order)?;
    if !is_agreed(store, order, &groups, log)? {
        return Ok(Exit::Code(exit::NOT_NOW));
    }
    let mut all = Performed::default();
    for (at, group) in groups.iter().enumerate() {
        log.about(about(group));
        match act(store, group, &order.wish, actor, log) {
            Ok(acted) => all.add(group, acted),
            Err(error) if groups.len() == 1 => return Err(error),
            Err(error) => {
                log.write(&reported(&error).message, false);
                all.exit = worse(all.exit, Exit::Code(code_of(&error)));
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
        Patience::OnTerminal if asking::is_possible() => Wait::Forever,
        Patience::OnTerminal => Wait::No,
    };
    let waited = await_all(store, &all.to_come, limit, about, prove, log);
    if order.record.json {
        let shown: Vec<_> = all.done.iter().map(Done::shown).collect();
        print_json(&shown)?;
    }
    Ok(worse(all.exit, waited?))
}

/// What came of all groups so far.
struct Performed {
    done: Vec<Done>,
    to_come: Vec<Awaited>,
    exit: Exit,
}

impl Default for Performed {
    fn default() -> Self {
        Self {
            done: Vec::new(),
            to_come: Vec::new(),
            exit: Exit::OK,
        }
    }
}

impl Performed {
    fn add(&mut self, group: &GroupName, acted: Acted) {
        self.done.extend(acted.performed);
        self.exit = worse(self.exit, acted.exit);
        self.to_come.extend(acted.effect.map(|effect| Awaited {
            group: group.clone(),
            effect,
        }));
    }
}

/// The worse of two ends: an error counts more than "not now", which counts more than success.
fn worse(one: Exit, other: Exit) -> Exit {
    let rank = |exit: Exit| match exit.code() {
        0 => (0, 0),
        exit::NOT_NOW => (1, 0),
        code => (2, code),
    };
    std::cmp::max_by_key(one, other, |exit| rank(*exit))
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
    let wanted = &order.groups;
    match wanted.single() {
        Some(group) if order.wish.target().is_none() => return Ok(vec![group.clone()]),
        Some(group) => {
            let reading = store.read(group)?;
            let known = reading.row.map(|row| vec![row.group]);
            return known.ok_or_else(|| unknown_group(store.name(), group).into());
        }
        None => {}
    }
    let listing = store.list()?;
    let all = all_of(&listing);
    if let Some(missing) = wanted.names().find(|name| !all.contains(*name)) {
        return Err(unchanged(unknown_group(store.name(), missing)).into());
    }
    let patterns = match wanted {
        Groups::All => &[],
        Groups::Matching(patterns) => patterns.as_slice(),
    };
    let vain = patterns
        .iter()
        .find(|pattern| !all.iter().any(|group| pattern.matches(group.as_str())));
    if let Some(vain) = vain {
        let text = format!(
            "no group of the store {} matches {}; tokenrun status lists those that it has",
            store.name(),
            quoted(vain.as_str())
        );
        return Err(unchanged(Failure::new(exit::CONFIG, "unknown_group", text)).into());
    }
    if all.is_empty() {
        let text = format!("the store {} has no group yet", store.name());
        return Err(Failure::new(exit::CONFIG, "unknown_group", text).into());
    }
    Ok(all
        .into_iter()
        .filter(|it| wanted.has(it.as_str()))
        .collect())
}

/// Asks what has to be asked before anything is changed. Off a terminal a stranger is warned of.
fn is_agreed(
    store: &mut dyn Store,
    order: &Order<'_>,
    groups: &[GroupName],
    log: &mut Log,
) -> Result<bool> {
    let verb = order.verb;
    let asks = !order.yes && asking::is_possible();
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
