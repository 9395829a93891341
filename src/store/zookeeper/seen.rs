//! What a look has found, and its time. Pure.

use super::wire::Stat;
use crate::store::kv::flights::{self, Read, Turned};
use crate::store::kv::written::Written;
use crate::token::{ClockEpoch, Stamp, StoreTime, WallTime};

/// What a look has found.
pub(super) type Seen = flights::Seen<Now>;

/// The time of a look, and the transaction that it was.
#[derive(Debug, Clone)]
pub(in crate::store) struct Now {
    pub(super) time: StoreTime,
    pub(super) transaction: i64,
    /// The store's id, which its first client has drawn.
    pub(super) id: String,
    /// A test sets the clock.
    pub(super) is_turned: bool,
}

impl Now {
    /// The time of a node's last change: its epoch is the leader's term, in the upper half of a transaction's number.
    pub(super) fn new(stat: &Stat, id: &str, turned: Option<&Turned>) -> Self {
        let time = match turned {
            Some(turned) => turned(),
            None => time_of(stat, id),
        };
        Self {
            time,
            transaction: stat.changed,
            id: id.to_owned(),
            is_turned: turned.is_some(),
        }
    }

    /// An entry that was read behind this time. One that was written in between has this time.
    pub(super) fn read(&self, data: &[u8], stat: &Stat) -> Read {
        let mut written = Written::read(data);
        let stamp = match stat.changed > self.transaction {
            true => self.time.clone(),
            false => time_of(stat, &self.id),
        };
        written.stamp.get_or_insert((&stamp).into());
        Read {
            written,
            number: stat.created,
            revision: stat.version.into(),
        }
    }
}

fn time_of(stat: &Stat, id: &str) -> StoreTime {
    StoreTime {
        epoch: ClockEpoch(format!("{id}/{:x}", stat.changed >> 32)),
        stamp: Stamp {
            tick_ms: stat.at_ms,
            wall: WallTime(stat.at_ms),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(changed: i64, at_ms: i64) -> Stat {
        Stat {
            created: 1,
            changed,
            at_ms,
            version: 0,
        }
    }

    /// The clock epoch and the tick of an entry with this text, which was changed then.
    fn stamp(text: &str, entry: Stat) -> (String, i64) {
        let now = Now::new(&stat((7 << 32) + 5, 9_000), "id", None);
        let read = now.read(text.as_bytes(), &entry);
        let time: StoreTime = read.written.stamp.unwrap().into();
        (time.epoch.0, time.stamp.tick_ms)
    }

    #[test]
    fn an_entry_has_the_stamp_that_it_was_given() {
        let plain = r#"{"version":"1","fields":{}}"#;
        let own = r#"{"version":"1","fields":{},"stamp":{"tick_ms":3,"wall_ms":3,"epoch":"id/6"}}"#;
        assert_eq!(
            stamp(plain, stat((7 << 32) + 4, 8_000)),
            ("id/7".into(), 8_000)
        );
        // Under another leader, whose clock may be another.
        assert_eq!(
            stamp(plain, stat((6 << 32) + 9, 9_500)),
            ("id/6".into(), 9_500)
        );
        // It was written between the look's time and its read.
        assert_eq!(
            stamp(plain, stat((7 << 32) + 6, 9_900)),
            ("id/7".into(), 9_000)
        );
        // An operator's act has kept the stamp of the heartbeat before it.
        assert_eq!(stamp(own, stat((7 << 32) + 4, 8_000)), ("id/6".into(), 3));
    }
}
