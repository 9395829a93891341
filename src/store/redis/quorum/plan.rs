//! A commit, as it goes through its two rounds: what it asks for, if it has happened, and what it writes. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::kinds::register_of;
use super::register::Ballot;
use super::shown::{Shown, one};
use super::wish::{About, Kept, Put, Wish};
use crate::store::kv::written::Written;
use crate::store::kv::{Ask, Commit, Outcome};
use crate::token::StoreTime;

/// What a commit is about.
pub(super) struct Plan<'a> {
    pub(super) commit: &'a Commit,
    /// The register that is written.
    pub(super) written: Option<String>,
    /// All that are compared or written.
    pub(super) registers: BTreeSet<String>,
    /// The entries that are compared or written.
    touched: Vec<Ask>,
    /// The ballots at which a member may have accepted it.
    pub(super) sent: Vec<Ballot>,
}

impl<'a> Plan<'a> {
    pub(super) fn of(commit: &'a Commit) -> Self {
        let written = commit.puts.last().and_then(|put| register_of(&put.key));
        let compared = commit
            .compare
            .iter()
            .filter_map(|(key, _)| register_of(key));
        Self {
            commit,
            registers: compared.chain(written.clone()).collect(),
            written,
            touched: commit
                .touched()
                .into_iter()
                .cloned()
                .map(Ask::One)
                .collect(),
            sent: Vec::new(),
        }
    }

    /// A plan that writes what a round has left of this register, and compares nothing; `nothing`: an empty commit.
    pub(super) fn completing(register: &str, nothing: &'a Commit) -> Self {
        Self {
            written: Some(register.to_owned()),
            registers: BTreeSet::from([register.to_owned()]),
            ..Self::of(nothing)
        }
    }

    pub(super) fn first_round(&self, ballot: Ballot) -> Wish {
        let asked = self.touched.clone();
        match self.registers.is_empty() {
            // Nothing is compared: what has the highest ballot stays.
            true => Wish::Show(asked),
            false => Wish::Prepare {
                ballot,
                registers: self.registers.clone(),
                asked,
            },
        }
    }

    /// True if entries have a ballot that is not lower than this one, or a number would not be the highest.
    pub(super) fn is_behind(&self, shown: &Shown, ballot: Ballot, highest: Ballot) -> bool {
        let mut touched = self.touched.iter().filter_map(one);
        let is_lower = |key: &String| shown.newest_of(key).is_none_or(|it| it.accepted < ballot);
        let numbers = self.commit.puts.iter().any(|put| put.numbered);
        !touched.all(is_lower) || numbers && highest > ballot
    }

    /// A register that must be certain, and is not: this commit only compares it, or an earlier try has written it, which may
    /// still be completed unless something later is.
    pub(super) fn incomplete(&self, shown: &Shown) -> Option<&String> {
        let last = self.sent.last();
        let is_certain = |key: &&String| match (Some(*key) == self.written.as_ref(), last) {
            (true, None) => true,
            (true, Some(last)) => shown.is_settled(key) && shown.is_after(key, *last),
            (false, _) => shown.is_settled(key),
        };
        self.registers.iter().find(|key| !is_certain(key))
    }

    /// True if it has happened, by what has become of its register; `None`: that is not known.
    pub(super) fn has_happened(&self, shown: &Shown) -> Option<bool> {
        match &self.written {
            // What is there is completed.
            Some(_) if self.commit.puts.is_empty() => Some(true),
            Some(register) if !self.sent.is_empty() => {
                shown.newest_of(register)?.value.about.has(&self.sent)
            }
            _ => Some(false),
        }
    }

    /// What becomes of it at this time.
    pub(super) fn outcome(&self, shown: &Shown, now: &StoreTime) -> Outcome {
        let versions = self.commit.compare.iter().filter_map(|(key, _)| {
            let written = shown.newest_of(key)?.value.written?;
            Some((key.as_str(), written.version))
        });
        let versions: BTreeMap<&str, String> = versions.collect();
        self.commit
            .outcome(|key| versions.get(key).map(String::as_str), now)
    }

    /// The entries to be written.
    pub(super) fn puts(
        &self,
        shown: &Shown,
        now: &StoreTime,
        ballot: Ballot,
        writes: bool,
    ) -> Vec<Put> {
        let mut puts = Vec::new();
        if writes {
            puts.extend(self.commit.puts.iter().map(|put| {
                let before = shown.newest_of(&put.key).map(|it| it.value);
                let existing = before.as_ref().and_then(|it| it.written.as_ref());
                let (mut written, _) = Written::over(existing, put, now);
                if existing.is_none() && put.numbered {
                    written.number = ballot.rising();
                }
                let keeps_stamp = existing.is_some() && !put.stamps;
                let age_ms = before.filter(|_| keeps_stamp).map_or(0, |it| it.age_ms);
                Put {
                    key: put.key.clone(),
                    ballot,
                    kept: Kept {
                        written: Some(written),
                        age_ms,
                        about: About::default(),
                    },
                }
            }));
            puts.extend(self.commit.deletes.iter().map(|delete| Put {
                key: delete.key.clone(),
                ballot,
                kept: Kept::default(),
            }));
        }
        let Some(register) = &self.written else {
            return puts;
        };
        let before = shown.newest_of(register).unwrap_or_default();
        let mut own = match puts.iter().position(|put| put.key == *register) {
            Some(at) => puts.swap_remove(at),
            None => Put {
                key: register.clone(),
                ballot,
                kept: before.value.clone(),
            },
        };
        // What a majority may not have yet goes on with what it was written with.
        if !shown.is_settled(register) {
            let carried = before.value.about.with.iter().filter_map(|key| {
                let held = shown.newest_of(key)?;
                let is_written = puts.iter().any(|put| put.key == *key);
                (!is_written).then(|| Put {
                    key: key.clone(),
                    ballot: held.accepted,
                    kept: held.value,
                })
            });
            let carried: Vec<Put> = carried.collect();
            puts.extend(carried);
        }
        let about = before.value.about;
        own.kept.about = About {
            with: puts.iter().map(|put| put.key.clone()).collect(),
            writes: match writes {
                true => about.then(ballot),
                false => about.writes,
            },
        };
        puts.push(own);
        puts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::kv;
    use crate::store::redis::quorum::fixtures::{
        TOKEN, ballot, holds, kept, put, report, swapping,
    };
    use crate::store::redis::quorum::wish::Report;
    use crate::token::{ClockEpoch, Stamp, WallTime};

    const NOTE: &str = "incarnation";
    const RUN: &str = "run:g:1:s";

    /// What these show, of three members.
    fn shown(reports: &[Report]) -> Shown {
        let group: Vec<(usize, &Report)> = reports.iter().enumerate().collect();
        Shown::of(3, &group)
    }

    /// What members show that hold a key, each by the ballot of such a number.
    fn holding<const N: usize>(key: &str, numbers: [u64; N]) -> Shown {
        shown(&numbers.map(|number| holds(report(), key, number, kept("1"))))
    }

    fn now() -> StoreTime {
        StoreTime {
            epoch: ClockEpoch("e".to_owned()),
            stamp: Stamp {
                tick_ms: 5,
                wall: WallTime(5),
            },
        }
    }

    /// A commit that puts these.
    fn putting<const N: usize>(puts: [kv::Put; N]) -> Commit {
        Commit {
            puts: puts.into(),
            ..Commit::default()
        }
    }

    #[test]
    fn an_entry_of_a_ballot_that_is_not_lower_is_not_written_over() {
        let commit = swapping(None, "1");
        let is_behind = |shown: &Shown| Plan::of(&commit).is_behind(shown, ballot(5), ballot(5));
        assert!(!is_behind(&shown(&[])));
        assert!(!is_behind(&holding(TOKEN, [4, 4])));
        assert!(is_behind(&holding(TOKEN, [4, 5])));
        assert!(is_behind(&holding(TOKEN, [6, 4])));
    }

    #[test]
    fn a_number_is_given_by_the_highest_ballot_alone() {
        let numbered = kv::Put {
            numbered: true,
            ..put(TOKEN, "1")
        };
        for (commit, expected) in [
            (putting([put(TOKEN, "1")]), [false, false]),
            (putting([numbered]), [false, true]),
        ] {
            let plan = Plan::of(&commit);
            let highest = [5, 6].map(ballot);
            let is_behind = highest.map(|it| plan.is_behind(&shown(&[]), ballot(5), it));
            assert_eq!(is_behind, expected);
        }
    }

    #[test]
    fn a_register_that_is_only_compared_is_completed_first() {
        let commit = Commit {
            compare: vec![(NOTE.to_owned(), None), (TOKEN.to_owned(), None)],
            ..putting([put(TOKEN, "1")])
        };
        let plan = Plan::of(&commit);
        let incomplete = |shown: &Shown| plan.incomplete(shown).cloned();
        assert_eq!(incomplete(&holding(NOTE, [4, 4])), None);
        assert_eq!(incomplete(&holding(NOTE, [4, 3])).as_deref(), Some(NOTE));
        // What is written is completed by that.
        assert_eq!(incomplete(&holding(TOKEN, [4, 3])), None);
    }

    /// The try may still be completed unless a majority holds something later, and that is what stands.
    #[test]
    fn what_a_try_has_left_is_completed_before_the_next_one() {
        let commit = swapping(None, "1");
        let mut plan = Plan::of(&commit);
        plan.sent.push(ballot(5));
        let incomplete = |numbers| plan.incomplete(&holding(TOKEN, numbers)).is_some();
        assert!(!incomplete([5, 5, 4]));
        assert!(!incomplete([6, 6, 5]));
        assert!(incomplete([4, 4, 4]), "nothing later");
        assert!(incomplete([5, 4, 4]), "no majority has it");
        assert!(incomplete([7, 6, 6]), "something later may come");
    }

    fn of_key<'a>(puts: &'a [Put], key: &str) -> &'a Put {
        let mut of_key = puts.iter().filter(|put| put.key == key);
        let one = of_key.next().expect(key);
        assert_eq!(of_key.next(), None, "{key}");
        one
    }

    #[test]
    fn only_a_new_entry_gets_a_number() {
        let numbered = kv::Put {
            numbered: true,
            ..put(RUN, "1")
        };
        let commit = putting([numbered, put(TOKEN, "1")]);
        let plan = Plan::of(&commit);
        let numbers = |shown: &Shown| {
            let puts = plan.puts(shown, &now(), ballot(5), true);
            [RUN, TOKEN].map(|key| {
                let written = of_key(&puts, key).kept.written.as_ref();
                written.unwrap().number
            })
        };
        assert_eq!(numbers(&shown(&[])), [ballot(5).rising(), 0]);
        let mut old = kept("0");
        old.written.as_mut().unwrap().number = 7;
        let old = [1, 1].map(|number| holds(report(), RUN, number, old.clone()));
        assert_eq!(numbers(&shown(&old)), [7, 0]);
    }

    #[test]
    fn an_entry_ages_until_it_is_stamped_or_removed() {
        let age = |stamps, before: Kept| {
            let commit = putting([kv::Put {
                stamps,
                ..put(TOKEN, "1")
            }]);
            let before = Kept {
                age_ms: 9,
                ..before
            };
            let before = [4, 4].map(|number| holds(report(), TOKEN, number, before.clone()));
            let puts = Plan::of(&commit).puts(&shown(&before), &now(), ballot(5), true);
            of_key(&puts, TOKEN).kept.age_ms
        };
        assert_eq!(age(false, kept("0")), 9);
        assert_eq!(age(true, kept("0")), 0);
        assert_eq!(age(false, Kept::default()), 0);
        assert_eq!(age(true, Kept::default()), 0);
    }

    /// A token that a minority has got together with a run, and the members that have neither.
    fn granted_by(number: u64, others: u64) -> [Report; 2] {
        let mut token = kept("1");
        token.about.with = vec![RUN.to_owned()];
        let granted = holds(report(), TOKEN, number, token);
        [
            holds(granted, RUN, number, kept("of 1")),
            holds(report(), TOKEN, others, kept("0")),
        ]
    }

    fn version_and_ballot(put: &Put) -> (&str, Ballot) {
        let written = put.kept.written.as_ref().unwrap();
        (&written.version, put.ballot)
    }

    #[test]
    fn what_a_minority_has_goes_on_with_what_it_was_written_with() {
        let commit = swapping(Some("1"), "2");
        let plan = Plan::of(&commit);
        let puts = plan.puts(&shown(&granted_by(4, 3)), &now(), ballot(5), true);
        let run = of_key(&puts, RUN);
        assert_eq!(version_and_ballot(run), ("of 1", ballot(4)));
        let token = of_key(&puts, TOKEN);
        assert_eq!(version_and_ballot(token), ("2", ballot(5)));
        assert_eq!(token.kept.about.with, [RUN]);
        assert_eq!(token.kept.about.writes, [ballot(5)]);
        // A majority has it already.
        let [granted, _] = granted_by(4, 3);
        let both = shown(&[granted.clone(), granted]);
        let puts = plan.puts(&both, &now(), ballot(5), true);
        let keys: Vec<&str> = puts.iter().map(|put| put.key.as_str()).collect();
        assert_eq!(keys, [TOKEN]);
    }

    #[test]
    fn an_entry_that_is_written_anew_is_not_carried_beside() {
        let commit = Commit {
            puts: vec![put(RUN, "of 2"), put(TOKEN, "2")],
            ..swapping(Some("1"), "2")
        };
        let shown = shown(&granted_by(4, 3));
        let puts = Plan::of(&commit).puts(&shown, &now(), ballot(5), true);
        assert_eq!(version_and_ballot(of_key(&puts, RUN)), ("of 2", ballot(5)));
        assert_eq!(puts.len(), 2);
    }

    #[test]
    fn a_completion_writes_what_is_there() {
        let nothing = Commit::default();
        let plan = Plan::completing(TOKEN, &nothing);
        let shown = shown(&granted_by(4, 3));
        assert_eq!(plan.has_happened(&shown), Some(true));
        let puts = plan.puts(&shown, &now(), ballot(5), false);
        assert_eq!(version_and_ballot(of_key(&puts, RUN)), ("of 1", ballot(4)));
        let token = of_key(&puts, TOKEN);
        assert_eq!(version_and_ballot(token), ("1", ballot(5)));
        assert_eq!(token.kept.about.writes, [], "it is no write");
    }

    #[test]
    fn a_try_has_happened_if_its_ballot_is_among_the_writes() {
        let commit = swapping(None, "1");
        let mut plan = Plan::of(&commit);
        let written_by = |number| {
            let mut token = kept("1");
            token.about.writes = vec![ballot(number)];
            let of = |number| holds(report(), TOKEN, number, token.clone());
            shown(&[of(number), of(number)])
        };
        assert_eq!(plan.has_happened(&written_by(5)), Some(false), "not tried");
        plan.sent.push(ballot(5));
        assert_eq!(plan.has_happened(&written_by(5)), Some(true));
        assert_eq!(plan.has_happened(&written_by(6)), Some(false));
        assert_eq!(plan.has_happened(&shown(&[])), None);
    }
}
