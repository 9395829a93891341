//! A fleet of nodes and its store, and what goes wrong with them in a week. All groups meet the same.

use std::ops::Range;

use crate::run::simulation::dice::Dice;
use crate::run::simulation::happening::Forgetting;

pub(super) const NODES: usize = 50;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
pub(super) const WEEK: u64 = 7 * 24 * HOUR;

/// The time from a drain to the end of the node's power.
const NOTICE: u64 = 30 * MINUTE;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A node has no power.
    Off,
    /// A node does not reach the store.
    Cut,
    /// A node is suspended.
    Suspended,
    /// An operator moves all groups away from a node, which then goes off.
    Drained,
    /// No node reaches the store.
    Away,
    /// The store restarts, and its clock is set, by at most ten minutes.
    Restart(i64),
    /// A store that may lose commits loses some.
    Forgets(Forgetting),
}

/// A trouble of one node; `None`: of the store.
#[derive(Debug, Clone)]
pub(super) struct Trouble {
    pub(super) node: Option<usize>,
    pub(super) kind: Kind,
    pub(super) at: Range<u64>,
}

/// The troubles of a week, by their beginning.
pub(super) struct Fleet {
    pub(super) troubles: Vec<Trouble>,
}

impl Fleet {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x7319_2c4d_a5b6_e80f));
        let mut troubles = Vec::new();
        for node in 0..NODES {
            let mut of = |kind, count, least, most| {
                for _ in 0..count {
                    let from = dice.within(HOUR, WEEK);
                    let at = from..from + dice.within(least, most);
                    let node = Some(node);
                    troubles.push(Trouble { node, kind, at });
                }
            };
            of(Kind::Off, 2, 10 * MINUTE, 12 * HOUR);
            of(Kind::Cut, 2, SECOND, 40 * MINUTE);
            of(Kind::Suspended, 2, SECOND, 90 * SECOND);
            of(Kind::Drained, 1, NOTICE, NOTICE + 1);
        }
        let off_after_drains: Vec<Trouble> = troubles
            .iter()
            .filter(|it| it.kind == Kind::Drained)
            .map(|it| Trouble {
                node: it.node,
                kind: Kind::Off,
                at: it.at.end..it.at.end + 2 * HOUR,
            })
            .collect();
        troubles.extend(off_after_drains);
        let mut of_store = |kind: fn(&mut Dice) -> Kind, count, least, most| {
            for _ in 0..count {
                let from = dice.within(HOUR, WEEK);
                let at = from..from + dice.within(least, most);
                let kind = kind(&mut dice);
                let node = None;
                troubles.push(Trouble { node, kind, at });
            }
        };
        of_store(|_| Kind::Away, 2, MINUTE, 15 * MINUTE);
        let set_by = |dice: &mut Dice| {
            let by = i64::try_from(dice.within(0, 20 * MINUTE)).unwrap();
            Kind::Restart(by - 600_000)
        };
        of_store(set_by, 3, 1, 2);
        let forgets = |dice: &mut Dice| {
            Kind::Forgets(match dice.within(0, 4) {
                0 => Forgetting::Crash,
                1 => Forgetting::Failover,
                2 => Forgetting::Wipe,
                _ => Forgetting::Restore,
            })
        };
        of_store(forgets, 4, 1, 2);
        troubles.sort_by_key(|it| it.at.start);
        Self { troubles }
    }
}
