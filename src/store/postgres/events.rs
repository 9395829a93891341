//! The table `events`: what operators did.

use tokio_postgres::Row;

use super::cells::{BadCell, Cells, Value};
use super::statements::Named;
use crate::token::{ActRecord, Actor, ClientId, Domain, Fence, GroupName, StoreTime, Version};

/// What is sent for an act, but for its group. `domain`: where its time comes from.
pub(super) fn to_values(act: &ActRecord, domain: &Domain) -> Named {
    vec![
        ("act_version", Value::long(act.version.number())),
        ("act", Value::text(&act.act)),
        ("act_client", Value::maybe(act.client.as_ref())),
        ("act_until", Value::time(act.until_wall_ms)),
        ("act_once_key", Value::maybe(act.once_key.as_ref())),
        ("act_fence", Value::long(act.fence.0)),
        ("act_by", Value::text(&act.actor.by)),
        ("act_host", Value::maybe(act.actor.host.as_ref())),
        ("act_reason", Value::maybe(act.actor.reason.as_ref())),
        ("act_domain", Value::text(domain)),
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
