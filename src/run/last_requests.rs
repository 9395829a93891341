//! What a run asks of the store when it is over. Nothing depends on it any more: each request may
//! happen or not, and delays the end of tokenrun only a little.

use std::time::{Duration, Instant};

use super::ending::Ending;
use super::refusing::Refusing;
use crate::moment::Moment;
use crate::store::worker::Worker;
use crate::store::{Answer, Request, Retention};
use crate::sys::poll::wait_readable;
use crate::token::Claim;

/// A run that took longer prunes history.
const PRUNE_AFTER: Moment = Moment(Duration::from_secs(1));

/// One in so many of the other runs prunes too.
const PRUNE_ONE_IN: u64 = 16;

/// How long a request may delay the end of tokenrun.
const WAIT: Duration = Duration::from_secs(1);

/// A run that is over, and its store.
pub(super) struct LastRequests<'a> {
    pub(super) worker: &'a mut Worker,
    pub(super) claim: &'a Claim,
    pub(super) ending: &'a Ending,
}

impl LastRequests<'_> {
    /// Prunes history now and then. After a long run it costs little; among short runs only one of
    /// many does it, by the random bits `drawn`. `now`: the time since the process began.
    pub(super) fn prune(&mut self, retention: Retention, now: Moment, drawn: u64) {
        let is_over = matches!(self.ending, Ending::Ran { recorded: true, .. });
        if is_over && (now >= PRUNE_AFTER || drawn.is_multiple_of(PRUNE_ONE_IN)) {
            let group = self.claim.group.clone();
            let prune = Request::Prune { group, retention };
            ask(self.worker, prune, WAIT, |it| {
                matches!(it, Answer::Pruned(_))
            });
        }
    }

    /// Records that the run is refused, or could not begin, if that is so.
    pub(super) fn record_refusal(&mut self, refusing: &Refusing) {
        if let Some(refusal) = refusing.record(self.claim, self.ending) {
            let refuse = Request::Refuse(Box::new(refusal));
            ask(self.worker, refuse, WAIT, |it| {
                matches!(it, Answer::Refused(_))
            });
        }
    }
}

/// Sends a request, and waits for its answer, at most `limit`. That to an earlier request may come first: a run that
/// leaves the queue hardly waits for the answer.
fn ask(worker: &mut Worker, request: Request, limit: Duration, is_answer: fn(&Answer) -> bool) {
    let begun = Instant::now();
    worker.send(request, true);
    loop {
        // One announcement may stand for two answers.
        while let Some(answer) = worker.answer() {
            if is_answer(&answer) {
                return;
            }
        }
        let left = limit.saturating_sub(begun.elapsed());
        match worker.fd() {
            Some(fd) if !left.is_zero() && wait_readable(fd, Some(left)).is_ok() => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::catching::tests::ran;
    use crate::store::model::ModelStore;
    use crate::token::rule::tests::fixture::claim;
    use crate::token::{GroupName, OutputLimits, SessionId};

    fn is_read(answer: &Answer) -> bool {
        matches!(answer, Answer::Read(_))
    }

    #[test]
    fn the_answer_to_an_earlier_request_is_not_that_to_the_last() {
        let mut worker = Worker::new(Box::new(ModelStore::new()));
        let group = GroupName::new("g").unwrap();
        let session = SessionId::from_random(1);
        worker.send(Request::Leave(group.clone(), session), true);
        let read = Request::Read(group, None);
        ask(&mut worker, read, Duration::MAX, is_read);
        assert!(worker.answer().is_none(), "both have come");
    }

    #[test]
    fn a_store_that_hangs_is_waited_for_until_the_limit() {
        let store = ModelStore::new();
        let mut worker = Worker::new(Box::new(store.clone()));
        let read = Request::Read(GroupName::new("g").unwrap(), None);
        store.while_it_hangs(|| {
            ask(&mut worker, read, Duration::from_millis(5), is_read);
            assert!(worker.answer().is_none());
        });
        let fd = worker.fd().unwrap();
        wait_readable(fd, None).unwrap();
        assert!(worker.answer().is_some_and(|it| is_read(&it)));
    }

    #[test]
    fn history_is_pruned_after_a_long_run_and_after_one_of_many() {
        let (short, long) = (Moment(Duration::from_millis(999)), PRUNE_AFTER);
        for (ending, now, drawn, expected) in [
            (ran(true), long, 1, true),
            (ran(true), short, 32, true),
            (ran(true), short, 1, false),
            (ran(false), long, 32, false),
            (Ending::NoGuard, long, 32, false),
        ] {
            let store = ModelStore::new();
            let mut worker = Worker::new(Box::new(store.clone()));
            let mut last = LastRequests {
                worker: &mut worker,
                claim: &claim("a"),
                ending: &ending,
            };
            let retention = Retention {
                history: Duration::MAX,
                once: Duration::MAX,
                outputs: OutputLimits {
                    retain: Duration::MAX,
                    count: 1,
                },
            };
            last.prune(retention, now, drawn);
            let pruned = !store.contents().notes.is_empty();
            assert_eq!(pruned, expected, "{ending:?} {now:?} {drawn}");
        }
    }
}
