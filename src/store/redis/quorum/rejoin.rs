//! Members that have started anew: they join again with what the others hold, in a new generation. If a majority has
//! started anew, the store may have forgotten: it goes on as another incarnation.

use std::collections::BTreeMap;

use super::answers::Answers;
use super::register::{Ballot, Held};
use super::round::Members;
use super::wish::{Did, Kept, Put, Report, To, Wish, newest};
use crate::store::StoreError;
use crate::store::kv::Ask;
use crate::store::net::deadline::Deadline;

/// How many entries are copied at first: few, so that a client with little time gets some across, which the next one
/// need not copy again. Each time it is twice as many, up to the most.
const FIRST_BATCH: usize = 64;
const LARGEST_BATCH: usize = 512;

/// Lets the members join that have started anew, by these answers. Returns whether one has.
pub(super) async fn rejoin(members: &mut Members, answers: &Answers, deadline: Deadline) -> bool {
    Rejoin::of(members, answers, deadline)
        .run(members, deadline)
        .await
}

/// Makes a majority of answers possible, or says why there is none.
pub(super) async fn mend(
    members: &mut Members,
    answers: &Answers,
    deadline: Deadline,
) -> Result<(), StoreError> {
    if answers.count(Did::Alone) > 0 {
        return Err(members.used_alone());
    }
    if rejoin(members, answers, deadline).await {
        return Ok(());
    }
    if members.asks_late_ones(answers) {
        return Ok(());
    }
    // They are of several generations, or behind, or another client lets them join: the next round knows better.
    match answers.reports().count() >= members.majority() {
        true => Ok(()),
        false => Err(members.error(answers)),
    }
}

/// The keys of which one of these members holds an older ballot than another member.
fn missing<'a>(these: &[Report], all: impl Iterator<Item = &'a Report>) -> Vec<String> {
    let mut newest: BTreeMap<&String, Ballot> = BTreeMap::new();
    for (key, held) in all.flat_map(|report| &report.held) {
        let ballot = newest.entry(key).or_default();
        *ballot = held.accepted.max(*ballot);
    }
    let lacks = |key: &String, ballot: Ballot| {
        let held = |it: &Report| it.held.get(key).map(|held| held.accepted);
        these
            .iter()
            .any(|it| held(it).is_none_or(|own| own < ballot))
    };
    let all = newest
        .into_iter()
        .filter(|(key, ballot)| lacks(key, *ballot));
    all.map(|(key, _)| key.clone()).collect()
}

/// The members, as they were last met.
struct Rejoin {
    generation: Ballot,
    /// Those that answer.
    to: Vec<Option<To>>,
    /// A majority has started anew.
    forgets: bool,
}

impl Rejoin {
    fn of(members: &Members, answers: &Answers, deadline: Deadline) -> Self {
        let within_ms = u64::try_from(deadline.left().as_millis()).unwrap_or(u64::MAX);
        let generation = members.next_generation();
        let to = answers.0.iter().map(|answer| {
            let report = answer.as_ref()?.as_ref().ok()?;
            Some(To {
                process: Some(report.process.clone()),
                generation: Some(generation),
                of_unsure: !report.is_sure,
                within_ms,
                expiry_ms: None,
            })
        });
        let to: Vec<Option<To>> = to.collect();
        let unsure = to.iter().flatten().filter(|to| to.of_unsure).count();
        Self {
            generation,
            to,
            forgets: unsure >= members.majority(),
        }
    }

    async fn run(mut self, members: &mut Members, deadline: Deadline) -> bool {
        let those = |unsure: bool| {
            self.to
                .iter()
                .flatten()
                .filter(move |to| to.of_unsure == unsure)
        };
        if those(true).count() == 0 || those(self.forgets).count() < members.majority() {
            return false;
        }
        // One client at a time lets members join: the one that the first of them takes, in an order that all clients have.
        let unsure = self.to.iter().flatten().filter(|to| to.of_unsure);
        let first = unsure.filter_map(|to| to.process.clone()).min();
        let is_first = |to: &To| to.process == first;
        let mut of_unsure = self.enter(members, deadline, is_first).await;
        if of_unsure.is_empty() {
            return false;
        }
        let others = |to: &To| to.of_unsure && !is_first(to);
        of_unsure.extend(self.enter(members, deadline, others).await);
        let of_sure = self.enter(members, deadline, |to| !to.of_unsure).await;
        let knowing = match self.forgets {
            true => &of_unsure,
            false => &of_sure,
        };
        if knowing.len() < members.majority() {
            return false;
        }
        let all = || of_unsure.iter().chain(&of_sure);
        let incarnation = match self.forgets {
            true => self.generation.to_string(),
            false => {
                let all = all().map(|it| it.incarnation.clone());
                all.max().unwrap_or_default()
            }
        };
        let missing = missing(&of_unsure, all());
        let (mut rest, mut size) = (missing.as_slice(), FIRST_BATCH);
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(size.min(rest.len()));
            if !self.copy(members, deadline, batch).await {
                return false;
            }
            (rest, size) = (later, (size * 2).min(LARGEST_BATCH));
        }
        let join = Wish::Join { incarnation };
        let joined = self
            .round(members, deadline, &join, |to| to.of_unsure)
            .await;
        joined.count(Did::Done) > 0
    }

    /// Lets these members enter the generation, and leaves out those that do not.
    async fn enter(
        &mut self,
        members: &mut Members,
        deadline: Deadline,
        these: impl Fn(&To) -> bool,
    ) -> Vec<Report> {
        let enter = Wish::Enter {
            by: Some(members.client()),
        };
        let entered = self.round(members, deadline, &enter, these).await;
        self.keep(&entered);
        let done = entered.0.into_iter().filter_map(|it| it?.ok());
        done.filter(|report| report.did == Did::Done).collect()
    }

    async fn round(
        &self,
        members: &mut Members,
        deadline: Deadline,
        wish: &Wish,
        these: impl Fn(&To) -> bool,
    ) -> Answers {
        let to = self.to.iter().cloned();
        let to = to.map(|to| to.filter(&these)).collect();
        members.round(deadline, wish, to, |_| false).await
    }

    /// Leaves those out that did not do what was wished.
    fn keep(&mut self, answers: &Answers) {
        for (to, answer) in self.to.iter_mut().zip(&answers.0) {
            let did = answer.as_ref().and_then(|it| Some(it.as_ref().ok()?.did));
            if answer.is_some() && did != Some(Did::Done) {
                *to = None;
            }
        }
    }

    /// Copies these entries to the members that have started anew.
    async fn copy(&mut self, members: &mut Members, deadline: Deadline, keys: &[String]) -> bool {
        let asked = keys.iter().cloned().map(Ask::One).collect();
        // If a majority knows all, what the others still have adds nothing.
        let forgets = self.forgets;
        let knows = |to: &To| forgets || !to.of_unsure;
        let sources = self.to.iter().flatten().filter(|to| knows(to)).count();
        let shown = self
            .round(members, deadline, &Wish::Show(asked), knows)
            .await;
        if shown.count(Did::Done) < sources {
            return false;
        }
        let mut held: BTreeMap<&String, Vec<Held<Kept>>> = BTreeMap::new();
        for report in shown.reports() {
            for (key, of) in &report.held {
                held.entry(key).or_default().push(of.clone());
            }
        }
        let puts = held.into_iter().filter_map(|(key, held)| {
            let newest = newest(members.all.len(), &held)?;
            Some(Put {
                key: key.clone(),
                ballot: newest.accepted,
                kept: newest.value,
            })
        });
        let accept = Wish::keep(puts.collect());
        let taken = self
            .round(members, deadline, &accept, |to| to.of_unsure)
            .await;
        self.keep(&taken);
        self.to.iter().flatten().any(|to| to.of_unsure)
    }
}
