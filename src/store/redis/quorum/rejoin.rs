//! Members that have started anew: they join again with what the others hold, in a new generation. If a majority has
//! started anew, the store may have forgotten: it goes on as another incarnation.

use std::collections::{BTreeMap, BTreeSet};

use super::register::{Ballot, Held};
use super::round::{Answers, Members};
use super::wish::{Did, Kept, Put, Report, To, Wish, newest};
use crate::store::StoreError;
use crate::store::kv::Ask;
use crate::store::net::deadline::Deadline;

/// How many entries are copied at a time.
const BATCH: usize = 200;

/// Lets the members join that have started anew, by these answers. Returns whether one has.
pub(super) async fn rejoin(members: &mut Members, answers: &Answers, deadline: Deadline) -> bool {
    Rejoin::of(members, answers).run(members, deadline).await
}

/// Makes a majority of answers possible, or says why there is none.
pub(super) async fn mend(
    members: &mut Members,
    answers: &Answers,
    deadline: Deadline,
) -> Result<(), StoreError> {
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

/// The members, as they were last met.
struct Rejoin {
    generation: Ballot,
    /// Those that answer.
    to: Vec<Option<To>>,
    /// A majority has started anew.
    forgets: bool,
}

impl Rejoin {
    fn of(members: &Members, answers: &Answers) -> Self {
        let generation = members.next_generation();
        let to = answers.0.iter().map(|answer| {
            let report = answer.as_ref()?.as_ref().ok()?;
            Some(To {
                process: Some(report.process.clone()),
                generation: Some(generation),
                of_unsure: !report.is_sure,
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
        if !self.to.iter().flatten().any(|to| to.of_unsure) {
            return false;
        }
        let entered = self.round(members, deadline, &Wish::Enter, |_| true).await;
        let of_all = entered.reports().filter(|report| report.did == Did::Done);
        let of_all: Vec<&Report> = of_all.collect();
        let knows = |is_sure: &bool| *is_sure != self.forgets;
        let count = of_all.iter().map(|it| it.is_sure).filter(knows).count();
        if count < members.majority() {
            return false;
        }
        let incarnation = match self.forgets {
            true => self.generation.to_string(),
            false => {
                let all = of_all.iter().map(|it| it.incarnation.clone());
                all.max().unwrap_or_default()
            }
        };
        let keys = of_all
            .iter()
            .flat_map(|report| report.parts.iter().flatten());
        let keys: BTreeSet<String> = keys.cloned().collect();
        let keys: Vec<String> = keys.into_iter().collect();
        self.keep(&entered);
        for batch in keys.chunks(BATCH) {
            if !self.copy(members, deadline, batch).await {
                return false;
            }
        }
        let join = Wish::Join { incarnation };
        let joined = self
            .round(members, deadline, &join, |to| to.of_unsure)
            .await;
        joined.count(Did::Done) > 0
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
