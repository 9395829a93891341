//! The table `events`: what operators did.

use tokio_postgres::Row;

use super::cells::{BadCell, Cells, Value};
use crate::token::{ActRecord, Actor, ClientId, Domain, Fence, GroupName, StoreTime, Version};

/// What is sent for an act, after the group, in the order of `event_add.sql`. `domain`: where
/// its time comes from.
pub(super) fn to_values(act: &ActRecord, domain: &Domain) -> Vec<Value> {
    vec![
        Value::long(act.version.number()),
        Value::text(&act.act),
        Value::maybe(act.client.as_ref()),
        Value::time(act.until_wall_ms),
        Value::maybe(act.once_key.as_ref()),
        Value::long(act.fence.0),
        Value::text(&act.actor.by),
        Value::maybe(act.actor.host.as_ref()),
        Value::maybe(act.actor.reason.as_ref()),
        Value::text(domain),
    ]
}

/// The act that a row of `events.sql` stands for.
pub(super) fn from_row(row: &Row) -> Result<ActRecord, BadCell> {
    let c = &mut Cells::new(row, 0);
    let group = c.needed_name(GroupName::new)?;
    let stamp = c.stamp()?;
    let stamp = c.there(stamp)?;
    Ok(ActRecord {
        group,
        at: StoreTime {
            stamp,
            domain: Domain(c.needed()?),
        },
        version: Version::from_stored(c.needed()?),
        act: c.needed()?,
        client: c.name(ClientId::new)?,
        until_wall_ms: c.wall()?,
        once_key: c.cell()?,
        fence: Fence(c.count()?),
        actor: Actor {
            by: c.needed()?,
            host: c.cell()?,
            reason: c.cell()?,
        },
    })
}
