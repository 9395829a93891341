//! What the members answer to a round.

use super::register::majority;
use super::wish::{Did, Report};
use crate::store::net::session::Failed;
use crate::store::{StoreError, Trouble};

/// A member's answer to a round.
pub(super) type Answer = Result<Report, Failed>;

/// The answers to a round, by member; `None`: it was not asked.
pub(super) struct Answers(pub(super) Vec<Option<Answer>>);

impl Answers {
    pub(super) fn reports(&self) -> impl Iterator<Item = &Report> {
        self.0.iter().filter_map(|it| it.as_ref()?.as_ref().ok())
    }

    /// How many did this.
    pub(super) fn count(&self, did: Did) -> usize {
        self.reports().filter(|report| report.did == did).count()
    }

    /// How many of those that have joined have answered, whether they did this or not.
    pub(super) fn sure(&self) -> usize {
        self.reports().filter(|report| report.is_sure).count()
    }

    /// A server with two names counts once.
    pub(super) fn refuse_twins(&mut self) {
        let mut processes = Vec::new();
        for answer in self.0.iter_mut().flatten() {
            let Ok(report) = answer else { continue };
            if processes.contains(&report.process) {
                let what = "it is the same server as another one of the list";
                *answer = Err(Failed::by(StoreError::misconfigured(what)));
            } else {
                processes.push(report.process.clone());
            }
        }
    }

    /// No answer counts, once a server is one that other nodes use alone: they exclude none of these.
    pub(super) fn refuse_used_alone(&mut self) {
        if self.count(Did::Alone) > 0 {
            let all = self.0.iter_mut().flatten().flatten();
            all.for_each(|report| report.did = Did::Alone);
        }
    }

    /// True if another member may have done what was wished, or will.
    pub(super) fn are_open(&self) -> bool {
        let failed = self.0.iter().flatten().filter_map(|it| it.as_ref().err());
        let mut failed = failed.filter(|it| it.was_asked);
        failed.any(|it| it.error.trouble == Trouble::Unavailable)
    }

    /// The reports of the members that did what was wished, if they are a majority of one generation.
    pub(super) fn of_majority(&self) -> Option<Vec<(usize, &Report)>> {
        let done = self.0.iter().enumerate().filter_map(|(index, answer)| {
            let report = answer.as_ref()?.as_ref().ok()?;
            (report.did == Did::Done && report.is_sure).then_some((index, report))
        });
        let done: Vec<(usize, &Report)> = done.collect();
        let newest = done.iter().map(|(_, report)| report.generation).max()?;
        let of_newest = done
            .into_iter()
            .filter(|(_, report)| report.generation == newest);
        let of_newest: Vec<_> = of_newest.collect();
        (of_newest.len() >= majority(self.0.len())).then_some(of_newest)
    }
}
