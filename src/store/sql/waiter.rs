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

#[cfg(test)]
mod tests {
    use super::super::cell::Cell;
    use super::*;
    use crate::token::rule::tests::fixture::{failback, idle};

    fn entry_of(group: &str) -> (GroupName, QueueEntry) {
        let seen = idle("a").stamped;
        let entry = QueueEntry {
            waiter: Waiter::of(&failback("a")),
            number: 7,
            seen_at: seen.stamp,
            epoch: seen.epoch,
        };
        (GroupName::new(group).unwrap(), entry)
    }

    #[test]
    fn a_waiter_is_read_as_written() {
        let (group, entry) = entry_of("g");
        let columns = with_group();
        let mut row = vec![
            Cell::text(&group),
            Cell::number(entry.number),
            Cell::text(&entry.waiter.session),
            Cell::Stamp(Some(entry.seen_at)),
            Cell::text(&entry.epoch),
            Cell::text(&document(&entry.waiter)),
        ];
        assert_eq!(in_group(Cells::new(&columns, &row)), Ok((group, entry)));
        row[1] = Cell::Number(None);
        assert_eq!(waiter(&mut Cells::new(&columns, &row).after(1)), Ok(None));
        row[1] = Cell::number(7);
        row[5] = Cell::text("{}");
        let bad = in_group(Cells::new(&columns, &row)).unwrap_err();
        assert_eq!(bad.column, "document");
        assert!(bad.what.starts_with("is wrong: missing field"), "{bad:?}");
        row[2] = Cell::text("");
        let bad = in_group(Cells::new(&columns, &row)).unwrap_err();
        assert_eq!(bad.column, "session");
        row.truncate(1);
        let bad = in_group(Cells::new(&columns, &row)).unwrap_err();
        assert_eq!((&*bad.column, &*bad.what), ("position", "is missing"));
    }

    #[test]
    fn a_channel_is_named_by_a_hash_of_its_group() {
        // The values that the authors of FNV give.
        for (of, name) in [
            ("", "tokenrun_cbf29ce484222325"),
            ("foobar", "tokenrun_85944171f73967e8"),
        ] {
            assert_eq!(channel(of.bytes()), name);
        }
    }

    #[test]
    fn malformed_waiters_hide_no_other_and_each_group_of_them_is_named_once() {
        let error = |what: &str| StoreError::unavailable(what);
        let unreadable = |group: &str, what: &str| Unreadable {
            group: group.into(),
            error: error(what),
        };
        let mut listing = Listing {
            rows: Vec::new(),
            unreadable: vec![unreadable("x", "its token")],
            now: idle("a").stamped,
            queues: Vec::new(),
        };
        let all = [
            ("a".into(), Ok(entry_of("a"))),
            ("b".into(), Err(error("first"))),
            ("b".into(), Err(error("second"))),
            ("x".into(), Err(error("third"))),
            ("c".into(), Err(error("fourth"))),
            ("c".into(), Ok(entry_of("c"))),
        ];
        list(all, &mut listing);
        assert_eq!(listing.queues, [entry_of("a"), entry_of("c")]);
        let named = [
            unreadable("x", "its token"),
            unreadable("b", "first"),
            unreadable("c", "fourth"),
        ];
        assert_eq!(listing.unreadable, named);
    }
}
