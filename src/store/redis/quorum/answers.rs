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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redis::quorum::fixtures::{ballot, report};

    fn of(process: &str, did: Did) -> Option<Answer> {
        let process = process.to_owned();
        Some(Ok(Report {
            did,
            process,
            ..report()
        }))
    }

    fn failure(error: StoreError, was_asked: bool) -> Option<Answer> {
        Some(Err(Failed {
            was_asked,
            ..Failed::by(error)
        }))
    }

    #[test]
    fn a_server_with_two_names_counts_once() {
        let away = failure(StoreError::unavailable("it is away"), false);
        let [one, other] = ["a", "b"].map(|process| of(process, Did::Done));
        let twin = of("a", Did::Done);
        let mut answers = Answers(vec![one, None, away, twin, other]);
        answers.refuse_twins();
        let sure: Vec<bool> = answers
            .0
            .iter()
            .map(|it| matches!(it, Some(Ok(_))))
            .collect();
        assert_eq!(sure, [true, false, false, false, true]);
        let Some(Err(failed)) = &answers.0[3] else {
            panic!("{:?}", answers.0[3]);
        };
        assert!(failed.words.contains("the same server"), "{failed:?}");
    }

    #[test]
    fn nothing_counts_where_a_server_is_used_alone() {
        for (one, done) in [(Did::Alone, 0), (Did::Behind, 2)] {
            let mut answers = Answers(vec![
                of("a", Did::Done),
                of("b", one),
                None,
                of("c", Did::Done),
            ]);
            answers.refuse_used_alone();
            assert_eq!(answers.count(Did::Done), done);
        }
    }

    #[test]
    fn a_member_may_do_later_what_it_was_asked_for() {
        let are_open =
            |failed: Option<Answer>| Answers(vec![of("a", Did::Done), failed]).are_open();
        assert!(!are_open(None));
        assert!(!are_open(of("b", Did::Behind)));
        let away = || StoreError::unavailable("it is away");
        assert!(are_open(failure(away(), true)));
        assert!(!are_open(failure(away(), false)));
        let refused = StoreError::refused("it can't");
        assert!(!are_open(failure(refused, true)));
    }

    #[test]
    fn a_majority_is_of_members_that_have_joined_one_generation() {
        let majority = |answers: [Option<Answer>; 3]| {
            let answers = Answers(answers.into());
            let group = answers.of_majority()?;
            Some(group.iter().map(|(index, _)| *index).collect::<Vec<_>>())
        };
        let done = || of("", Did::Done);
        let but = |change: fn(&mut Report)| {
            let mut other = report();
            change(&mut other);
            Some(Ok(other))
        };
        assert_eq!(majority([done(), None, done()]), Some(vec![0, 2]));
        assert_eq!(majority([done(), of("", Did::Behind), None]), None);
        let unsure = || but(|report| report.is_sure = false);
        assert_eq!(majority([done(), unsure(), None]), None);
        assert_eq!(majority([done(), unsure(), done()]), Some(vec![0, 2]));
        let newer = || but(|report| report.generation = ballot(1));
        assert_eq!(majority([done(), newer(), None]), None);
        assert_eq!(majority([newer(), done(), newer()]), Some(vec![0, 2]));
    }
}
