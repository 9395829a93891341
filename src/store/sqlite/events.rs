//! The table `events`: what operators did.

use rusqlite::types::Value;

use super::cells::{self, BadCell, Cells};
use crate::token::{ActRecord, Actor, ClientId, Domain, Fence, GroupName, StoreTime, Version};

/// The table's name.
pub(super) const TABLE: &str = "events";

/// The columns, in the order of the statements.
pub(super) const COLUMNS: &[&str] = &[
    "token_group",
    "at",
    "tick",
    "domain",
    "version",
    "act",
    "client",
    "until",
    "once_key",
    "fence",
    "act_by",
    "host",
    "reason",
];

/// What is written for an act that happens now, in the order of [`COLUMNS`].
pub(super) fn to_values(act: &ActRecord, now: &StoreTime) -> Vec<Value> {
    let [at, tick] = cells::stamp(Some(now.stamp));
    vec![
        cells::text(act.group.as_str()),
        at,
        tick,
        cells::text(now.domain.0.as_str()),
        Value::Integer(act.version.number()),
        cells::text(act.act.as_str()),
        cells::text_or_null(act.client.as_ref()),
        cells::wall_or_null(act.until_wall_ms),
        cells::text_or_null(act.once_key.as_ref()),
        Value::Integer(act.fence.0),
        cells::text(act.actor.by.as_str()),
        cells::text_or_null(act.actor.host.as_ref()),
        cells::text_or_null(act.actor.reason.as_ref()),
    ]
}

/// The act that the columns stand for.
pub(super) fn from_cells(mut cells: Cells<'_>) -> Result<ActRecord, BadCell> {
    let c = &mut cells;
    let group = c.needed_name(GroupName::new)?;
    let stamp = c.stamp()?;
    let stamp = c.needed(stamp)?;
    let domain = Domain(c.needed_text()?.to_owned());
    Ok(ActRecord {
        group,
        at: StoreTime { domain, stamp },
        version: Version::from_stored(c.needed_number()?),
        act: c.needed_text()?.to_owned(),
        client: c.name(ClientId::new)?,
        until_wall_ms: c.wall()?,
        once_key: c.owned()?,
        fence: Fence(c.count()?),
        actor: Actor {
            by: c.needed_text()?.to_owned(),
            host: c.owned()?,
            reason: c.owned()?,
        },
    })
}
