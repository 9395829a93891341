//! The two rounds of a commit. The first one promises, and shows what is there; the second writes, at all that have
//! promised it.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::sleep;

use super::answers::Answers;
use super::kinds::register_of;
use super::register::Ballot;
use super::rejoin::mend;
use super::round::{Members, TRIES};
use super::shown::{Group, Shown, one, time};
use super::wish::{About, Did, Kept, Put, To, Wish};
use crate::store::StoreError;
use crate::store::kv::flights::Turned;
use crate::store::kv::written::Written;
use crate::store::kv::{Ask, Commit, Found, Outcome, drawn_pause};
use crate::store::net::deadline::Deadline;
use crate::token::{StoreTime, Until};

/// What a commit is about.
pub(super) struct Plan<'a> {
    commit: &'a Commit,
    /// The register that is written.
    pub(super) written: Option<String>,
    /// All that are compared or written.
    registers: BTreeSet<String>,
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

    fn first_round(&self, ballot: Ballot) -> Wish {
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
    fn is_behind(&self, shown: &Shown, ballot: Ballot, highest: Ballot) -> bool {
        let mut touched = self.touched.iter().filter_map(one);
        let is_lower = |key: &String| shown.newest_of(key).is_none_or(|it| it.accepted < ballot);
        let numbers = self.commit.puts.iter().any(|put| put.numbered);
        !touched.all(is_lower) || numbers && highest > ballot
    }

    /// A register that must be certain, and is not: this commit only compares it, or an earlier try has written it, which may
    /// still be completed unless something later is.
    fn incomplete(&self, shown: &Shown) -> Option<&String> {
        let last = self.sent.last();
        let is_certain = |key: &&String| match (Some(*key) == self.written.as_ref(), last) {
            (true, None) => true,
            (true, Some(last)) => shown.is_settled(key) && shown.is_after(key, *last),
            (false, _) => shown.is_settled(key),
        };
        self.registers.iter().find(|key| !is_certain(key))
    }

    /// True if it has happened, by what has become of its register; `None`: that is not known.
    fn has_happened(&self, shown: &Shown) -> Option<bool> {
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
    fn outcome(&self, shown: &Shown, now: &StoreTime) -> Outcome {
        let versions = self.commit.compare.iter().filter_map(|(key, _)| {
            let written = shown.newest_of(key)?.value.written?;
            Some((key.as_str(), written.version))
        });
        let versions: BTreeMap<&str, String> = versions.collect();
        self.commit
            .outcome(|key| versions.get(key).map(String::as_str), now)
    }

    /// The entries to be written.
    fn puts(&self, shown: &Shown, now: &StoreTime, ballot: Ballot, writes: bool) -> Vec<Put> {
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

/// Gives a majority what a round has left of a register, which may have reached fewer.
pub(super) async fn complete(
    members: &mut Members,
    deadline: Deadline,
    register: &str,
) -> Result<(), StoreError> {
    let nothing = Commit::default();
    let mut plan = Plan {
        written: Some(register.to_owned()),
        registers: BTreeSet::from([register.to_owned()]),
        ..Plan::of(&nothing)
    };
    for tried in 0..TRIES {
        // It is one level deep: this compares nothing besides.
        let trying = Box::pin(attempt(members, deadline, None, &mut plan));
        if let Tried::Happened(_) = trying.await? {
            return Ok(());
        }
        sleep(drawn_pause(tried)).await;
    }
    Err(members.gave_up())
}

/// What a try has come to.
pub(super) enum Tried {
    /// It has happened. What is to be read then, if a majority holds it alike.
    Happened(Option<Found>),
    /// It has not happened, and will not.
    Ended(Outcome),
    /// Another client was in between, or a member had to join first.
    Again,
}

/// Both rounds, once.
pub(super) async fn attempt(
    members: &mut Members,
    deadline: Deadline,
    turned: Option<&Turned>,
    plan: &mut Plan<'_>,
) -> Result<Tried, StoreError> {
    let ballot = members.next_ballot();
    let answers = members.ask(deadline, &plan.first_round(ballot)).await;
    let Some(group) = answers.of_majority() else {
        mend(members, &answers, deadline).await?;
        return Ok(Tried::Again);
    };
    let now = time(members, &group, turned);
    let shown = Shown::of(members.all.len(), &group);
    if plan.is_behind(&shown, ballot, members.highest()) {
        return Ok(Tried::Again);
    }
    if let Some(register) = plan.incomplete(&shown) {
        complete(members, deadline, register).await?;
        return Ok(Tried::Again);
    }
    let Some(has_happened) = plan.has_happened(&shown) else {
        return Err(members.unknown());
    };
    let outcome = match has_happened {
        true => Outcome::Done,
        false => plan.outcome(&shown, &now),
    };
    if outcome != Outcome::Done {
        return Ok(Tried::Ended(outcome));
    }
    let puts = plan.puts(&shown, &now, ballot, !has_happened);
    let wish = Wish::Accept {
        ballot,
        registers: plan.registers.clone(),
        puts,
        announces: plan.commit.announces.as_ref().map(|it| it.channel.clone()),
        asked: plan.commit.then.clone(),
    };
    // What an earlier try has written is completed, however late.
    let until = plan.commit.until.as_ref();
    let until = until.filter(|_| turned.is_none() && !has_happened);
    let to = addresses(members, &group, until);
    let needed = members.majority();
    let enough = |answers: &Answers| answers.sure() >= needed;
    let accepted = members.round(deadline, &wish, to, enough).await;
    match accepted.count(Did::Done) {
        done if done >= needed => {
            let found = accepted.of_majority().and_then(|group| {
                let now = time(members, &group, turned);
                let shown = Shown::of(members.all.len(), &group);
                shown.clear(&plan.commit.then, &group, now, turned.is_some())
            });
            Ok(Tried::Happened(found))
        }
        0 if !accepted.are_open() => match accepted.count(Did::Expired) {
            0 => Ok(Tried::Again),
            _ => Ok(Tried::Ended(Outcome::Expired)),
        },
        // Fewer than a majority have it, or may have it: the next round completes it, or another client's does.
        _ => {
            plan.sent.push(ballot);
            match accepted.sure() >= needed || members.asks_late_ones(&accepted) {
                true => Ok(Tried::Again),
                false => Err(members.error(&accepted)),
            }
        }
    }
}

/// The members, in the generation of the first round: one that has joined since has not promised. They accept until then.
fn addresses(members: &Members, group: &Group<'_>, until: Option<&Until>) -> Vec<Option<To>> {
    let generation = group.first().map(|(_, report)| report.generation);
    let to = members.all.iter().enumerate().map(|(index, member)| {
        let report = group.iter().find(|(of, _)| *of == index);
        let expiry_ms = match until {
            None => None,
            // One whose clock is not known might accept too late.
            Some(until) => Some(until.tick_ms().saturating_add(member.ahead_ms?)),
        };
        Some(To {
            process: report.map(|(_, report)| report.process.clone()),
            generation,
            of_unsure: false,
            within_ms: 0,
            expiry_ms,
        })
    });
    to.collect()
}
