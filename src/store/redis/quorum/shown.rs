//! What the members of a majority show, united. Pure, but for the members' clocks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::kinds::is_register;
use super::register::{Ballot, Held};
use super::round::Members;
use super::wish::{Kept, Report, chosen, newest};
use crate::store::kv::flights::Turned;
use crate::store::kv::{Ask, Entry, Found, Part, Server};
use crate::token::{ClockEpoch, Incarnation, Served, Stamp, StoreTime, WallTime};

/// The reports that count, each with the index of its member.
pub(super) type Group<'a> = [(usize, &'a Report)];

pub(super) fn one(asked: &Ask) -> Option<&String> {
    match asked {
        Ask::One(key) => Some(key),
        Ask::Part(_) => None,
    }
}

/// The store's time: the majority's last of the members' clocks. Notes how far ahead of it each is.
pub(super) fn time(members: &mut Members, group: &Group<'_>, turned: Option<&Turned>) -> StoreTime {
    if let Some(turned) = turned {
        return turned();
    }
    let mut clocks: Vec<i64> = group.iter().map(|(_, report)| report.now_ms).collect();
    clocks.sort_unstable();
    let at = clocks.len().saturating_sub(members.majority());
    let now = clocks.get(at).copied().unwrap_or_default();
    for (index, report) in group {
        if let Some(member) = members.all.get_mut(*index) {
            member.ahead_ms = Some(report.now_ms.saturating_sub(now));
        }
    }
    StoreTime {
        epoch: ClockEpoch(incarnation(group)),
        stamp: Stamp {
            tick_ms: now,
            wall: WallTime(now),
        },
    }
}

fn incarnation(group: &Group<'_>) -> String {
    let all = group.iter().map(|(_, report)| &report.incarnation);
    all.max().cloned().unwrap_or_default()
}

/// What the members of a majority show.
pub(super) struct Shown {
    members: usize,
    /// How many have answered.
    answered: usize,
    held: BTreeMap<String, Vec<Held<Kept>>>,
    /// The keys of each part that was asked for.
    parts: Vec<BTreeSet<String>>,
}

impl Shown {
    pub(super) fn of(members: usize, group: &Group<'_>) -> Self {
        let mut held: BTreeMap<String, Vec<Held<Kept>>> = BTreeMap::new();
        let mut parts: Vec<BTreeSet<String>> = Vec::new();
        for (_, report) in group {
            for (key, of) in &report.held {
                held.entry(key.clone()).or_default().push(of.clone());
            }
            parts.resize(parts.len().max(report.parts.len()), BTreeSet::new());
            for (all, part) in parts.iter_mut().zip(&report.parts) {
                all.extend(part.iter().cloned());
            }
        }
        Self {
            members,
            answered: group.len(),
            held,
            parts,
        }
    }

    /// True if a majority holds what a round goes on from: the highest ballot.
    pub(super) fn is_settled(&self, key: &str) -> bool {
        let highest = self.newest_of(key).map(|it| it.accepted);
        self.chosen_of(key).map(|it| it.accepted) == highest
    }

    /// What a majority holds of this key. What a minority has of a higher ballot is not the register's value, and may never
    /// be. Of an entry that is no register, the highest ballot counts.
    fn chosen_of(&self, key: &str) -> Option<Held<Kept>> {
        let held = self.held.get(key)?;
        let chosen = chosen(self.members, held)?;
        let highest = newest(self.members, held)?.accepted;
        // A member that does not show it may have removed it since.
        let is_all = held.len() == self.answered;
        (is_register(key) || is_all && chosen.accepted == highest).then_some(chosen)
    }

    /// True if what a majority holds of this key is of a ballot after this one, which will not be completed any more.
    pub(super) fn is_after(&self, key: &str, ballot: Ballot) -> bool {
        self.chosen_of(key).is_some_and(|it| it.accepted >= ballot)
    }

    pub(super) fn newest_of(&self, key: &str) -> Option<Held<Kept>> {
        newest(self.members, self.held.get(key)?)
    }

    pub(super) fn newest(&self, keys: &[String]) -> Vec<(String, Held<Kept>)> {
        let newest = keys
            .iter()
            .filter_map(|key| Some((key.clone(), self.newest_of(key)?)));
        newest.collect()
    }

    /// The keys that a majority does not hold alike.
    pub(super) fn unclear(&self, asked: &[Ask]) -> Vec<String> {
        let keys = self.parts.iter().take(asked.len()).flatten();
        let unclear = keys.filter(|key| self.chosen_of(key).is_none()).cloned();
        let unclear: BTreeSet<String> = unclear.collect();
        unclear.into_iter().collect()
    }

    /// What was asked for, if a majority holds all of it alike.
    pub(super) fn clear(
        &self,
        asked: &[Ask],
        group: &Group<'_>,
        now: StoreTime,
        is_turned: bool,
    ) -> Option<Found> {
        let is_clear = self.unclear(asked).is_empty();
        is_clear.then(|| self.found(asked, group, now, is_turned))
    }

    fn found(&self, asked: &[Ask], group: &Group<'_>, now: StoreTime, is_turned: bool) -> Found {
        let mut entries = BTreeMap::new();
        for (ask, keys) in asked.iter().zip(&self.parts) {
            let existing = keys.iter().filter_map(|key| {
                let held = self.chosen_of(key)?;
                held.value.written.is_some().then_some((key, held.value))
            });
            let existing: Vec<(&String, Kept)> = existing.collect();
            let wanted = match ask {
                Ask::One(_) => existing,
                Ask::Part(part) => of_part(part, existing),
            };
            for (key, kept) in wanted {
                entries.extend(entry(&kept, &now, is_turned).map(|it| (key.clone(), it)));
            }
        }
        Found {
            entries,
            server: Server {
                incarnation: Some(Incarnation(incarnation(group))),
                // What one member forgets the others keep; if a majority forgets, it is another incarnation.
                durable: true,
                unnoted: Served::NOTHING,
                lag: Duration::ZERO,
            },
            now,
            refuses: None,
        }
    }
}

/// The entries in a part of the united list.
fn of_part<'a>(part: &Part, all: Vec<(&'a String, Kept)>) -> Vec<(&'a String, Kept)> {
    let (from, to) = part.ranks;
    let rank = |kept: &Kept| kept.written.as_ref()?.lists.get(&part.list).copied();
    let ranked = all
        .into_iter()
        .filter_map(|(key, kept)| Some((rank(&kept)?, key, kept)));
    let mut ranked: Vec<_> = ranked
        .filter(|(rank, ..)| (from..=to).contains(rank))
        .collect();
    ranked.sort_by(|(one, key, _), (other, of_other, _)| (one, key).cmp(&(other, of_other)));
    if part.newest_first {
        ranked.reverse();
    }
    let listed = ranked.into_iter().map(|(_, key, kept)| (key, kept));
    listed
        .skip(part.skip as usize)
        .take(part.limit as usize)
        .collect()
}

/// The entry, as it is at this time.
fn entry(kept: &Kept, now: &StoreTime, is_turned: bool) -> Option<Entry> {
    let written = kept.written.clone()?;
    let mut stamp = written.stamp.map_or_else(
        || StoreTime {
            epoch: ClockEpoch(String::new()),
            ..now.clone()
        },
        StoreTime::from,
    );
    // By the members' clocks: the writer's is not known.
    if stamp.epoch == now.epoch && !is_turned {
        stamp.stamp.tick_ms = now.stamp.tick_ms.saturating_sub(kept.age_ms);
    }
    Some(Entry {
        version: written.version,
        stamp,
        number: written.number,
        fields: written.fields,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redis::quorum::fixtures::{self, TOKEN, holds, kept};
    use crate::store::redis::settings::Settings;

    /// A member that holds this version of the token by the ballot of this number.
    fn report(number: u64, version: &str) -> Report {
        let mut report = holds(fixtures::report(), TOKEN, number, kept(version));
        report.parts = vec![vec![TOKEN.to_owned()]];
        report
    }

    fn time_of(tick_ms: i64, epoch: &str) -> StoreTime {
        StoreTime {
            epoch: ClockEpoch(epoch.to_owned()),
            stamp: Stamp {
                tick_ms,
                wall: WallTime(tick_ms),
            },
        }
    }

    fn group(reports: &[Report]) -> Vec<(usize, &Report)> {
        reports.iter().enumerate().collect()
    }

    fn version_shown(reports: &[Report]) -> Option<String> {
        let group = group(reports);
        let asked = [Ask::One(TOKEN.to_owned())];
        let found = Shown::of(3, &group).clear(&asked, &group, time_of(0, ""), false)?;
        Some(found.entries[TOKEN].version.clone())
    }

    /// Another client's round may have overtaken it: a session that sees its own grant at a minority has no token.
    #[test]
    fn a_token_of_a_minority_is_not_shown() {
        let shown = version_shown(&[report(5, "new"), report(4, "old"), report(4, "old")]);
        assert_eq!(shown.as_deref(), Some("old"));
        let shown = version_shown(&[report(5, "new"), report(5, "new"), report(4, "old")]);
        assert_eq!(shown.as_deref(), Some("new"));
        assert_eq!(version_shown(&[report(5, "new"), report(4, "old")]), None);
    }

    /// A member that does not show it may have removed it since; a later write may have reached no other.
    #[test]
    fn an_entry_that_is_no_register_is_clear_if_all_that_answer_hold_it_alike() {
        const WAITER: &str = "waiter:g:s";
        let is_clear = |numbers: [Option<u64>; 3]| {
            let of = |number: u64| match number {
                0 => fixtures::report(),
                number => holds(fixtures::report(), WAITER, number, kept("1")),
            };
            let mut reports: Vec<Report> = numbers.into_iter().flatten().map(of).collect();
            for report in &mut reports {
                report.parts = vec![vec![WAITER.to_owned()]];
            }
            let asked = [Ask::One(WAITER.to_owned())];
            Shown::of(3, &group(&reports)).unclear(&asked).is_empty()
        };
        assert!(is_clear([Some(5), Some(5), None]));
        assert!(is_clear([Some(5), Some(5), Some(5)]));
        assert!(!is_clear([Some(5), Some(5), Some(0)]));
        assert!(!is_clear([Some(6), Some(5), Some(5)]));
        assert!(!is_clear([Some(6), Some(5), None]));
    }

    /// Fewer clocks than a majority that were set move it neither way.
    #[test]
    fn the_time_is_the_last_that_a_majority_has_reached() {
        let settings = Settings::read("redis://a,b,c/0?quorum", |_| None).unwrap();
        let mut members = Members::new(settings, 7);
        let at = |now_ms| Report {
            now_ms,
            incarnation: "e".to_owned(),
            ..fixtures::report()
        };
        let all = [at(30), at(10), at(20)];
        let now = time(&mut members, &group(&all), None);
        assert_eq!(now, time_of(20, "e"));
        let ahead =
            |members: &Members| members.all.iter().map(|it| it.ahead_ms).collect::<Vec<_>>();
        assert_eq!(ahead(&members), [Some(10), Some(-10), Some(0)]);
        let two = [at(70), at(50)];
        let now = time(&mut members, &group(&two), None);
        assert_eq!(now, time_of(50, "e"));
        assert_eq!(ahead(&members), [Some(20), Some(0), Some(0)]);
    }

    #[test]
    fn a_stamp_of_this_epoch_is_as_old_as_the_members_say() {
        let stamped = |epoch: &str| {
            let mut kept = kept("1");
            kept.age_ms = 4;
            kept.written.as_mut().unwrap().stamp = Some((&time_of(3, epoch)).into());
            kept
        };
        let now = time_of(10, "e");
        let tick = |epoch, is_turned| {
            let entry = entry(&stamped(epoch), &now, is_turned).unwrap();
            entry.stamp.stamp.tick_ms
        };
        assert_eq!(tick("e", false), 6);
        assert_eq!(tick("e", true), 3);
        assert_eq!(tick("another", false), 3);
        assert_eq!(tick("another", true), 3);
    }

    #[test]
    fn a_part_of_the_united_list_has_its_order_and_its_limits() {
        let ranked = |rank| {
            let mut kept = kept("1");
            kept.written.as_mut().unwrap().lists = BTreeMap::from([("l".to_owned(), rank)]);
            kept
        };
        let keys = ["a", "b", "c", "d", "e"].map(str::to_owned);
        let ranks = [3, 1, 2, 2, 9];
        let all = || keys.iter().zip(ranks.map(ranked)).collect::<Vec<_>>();
        let of = |newest_first, skip, limit| {
            let part = Part {
                list: "l".to_owned(),
                ranks: (1, 3),
                newest_first,
                skip,
                limit,
            };
            let of_part = of_part(&part, all());
            of_part
                .iter()
                .map(|(key, _)| key.as_str())
                .collect::<String>()
        };
        assert_eq!(of(false, 0, 9), "bcda");
        assert_eq!(of(true, 0, 9), "adcb");
        assert_eq!(of(true, 1, 2), "dc");
        assert_eq!(of(false, 3, 9), "a");
    }
}
