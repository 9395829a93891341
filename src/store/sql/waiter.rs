//! A waiter as stores with tables keep it.

use serde::{Deserialize, Serialize};

use super::cell::{BadColumn, Cells, Column, Kind, number, text};
use crate::store::{Listing, StoreError, Unreadable};
use crate::token::{ClientId, GroupName, QueueEntry, SessionId, StoreTime, Waiter};

/// The contents of the column `document`.
#[derive(Serialize, Deserialize)]
struct Document {
    client: ClientId,
    #[serde(default)]
    failback: bool,
}

/// The document of a waiter.
pub fn document(of: &Waiter) -> String {
    let document = Document {
        client: of.client.clone(),
        failback: of.failback,
    };
    // Its fields are a text and a flag: nothing can fail.
    serde_json::to_string(&document).unwrap_or_default()
}

/// The waiter in the columns `position`, `session`, the stamp and `document`.
///
/// # Errors
/// Which column is malformed, and what is wrong with it.
pub fn entry(
    number: i64,
    session: &str,
    seen: StoreTime,
    document: &str,
) -> Result<QueueEntry, BadColumn> {
    let session = SessionId::new(session).map_err(|why| BadColumn::of("session", why))?;
    let wrong = |why| BadColumn::of("document", format!("is wrong: {why}"));
    let Document { client, failback } = serde_json::from_str(document).map_err(wrong)?;
    Ok(QueueEntry {
        waiter: Waiter {
            session,
            client,
            failback,
        },
        number,
        seen_at: seen.stamp,
        epoch: seen.epoch,
    })
}

/// A waiter's columns in an answer, without its group.
pub const WAITER: [Column; 5] = [
    number("position"),
    text("session"),
    Column::new("seen_at", Kind::Stamp),
    text("clock_epoch"),
    text("document"),
];

/// The columns of a waiter with its group.
pub fn with_group() -> Vec<Column> {
    [text("token_group")].into_iter().chain(WAITER).collect()
}

/// The waiter in these cells; `None` if there is none.
pub fn waiter(c: &mut Cells<'_>) -> Result<Option<QueueEntry>, BadColumn> {
    let Some(number) = c.number()? else {
        return Ok(None);
    };
    let session = c.needed(Cells::text)?;
    let seen = c.time()?;
    entry(number, session, seen, c.needed(Cells::text)?).map(Some)
}

/// The waiter in these cells with its group before it.
pub fn in_group(mut c: Cells<'_>) -> Result<(GroupName, QueueEntry), BadColumn> {
    let group = GroupName::new(c.needed(Cells::text)?).map_err(|why| c.bad(why))?;
    Ok((group, c.needed(waiter)?))
}

/// The name under which the waiters of a group are notified: 64 bits of FNV-1a of its store and its name, because it
/// is shorter than a group's name may be. Two groups with one name only look more often than they need.
pub fn channel(of: impl Iterator<Item = u8>) -> String {
    let hash = of.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("tokenrun_{hash:016x}")
}

/// A waiter in a list of all: its group, as far as it is readable, and what it is or what is wrong with it.
pub type Listed = (String, Result<(GroupName, QueueEntry), StoreError>);

/// Puts all waiters into a list. A malformed one hides no other: its group is named with what is wrong.
pub fn list(all: impl IntoIterator<Item = Listed>, listing: &mut Listing) {
    for (group, waiter) in all {
        match waiter {
            Ok(waiter) => listing.queues.push(waiter),
            Err(error) => {
                if listing.unreadable.iter().all(|it| it.group != group) {
                    listing.unreadable.push(Unreadable { group, error });
                }
            }
        }
    }
}
