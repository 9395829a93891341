//! What a run asks of the store when it is over. Nothing depends on it any more: each request may
//! happen or not, and delays the end of tokenrun only a little.

use std::time::Duration;

use super::ending::Ending;
use super::refusing::Refusing;
use crate::moment::Moment;
use crate::store::worker::Worker;
use crate::store::{Request, Retention};
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
            self.send(Request::Prune { group, retention });
        }
    }

    /// Records that the run is refused, or could not begin, if that is so.
    pub(super) fn record_refusal(&mut self, refusing: &Refusing) {
        if let Some(refusal) = refusing.record(self.claim, self.ending) {
            self.send(Request::Refuse(Box::new(refusal)));
        }
    }

    fn send(&mut self, request: Request) {
        self.worker.send(request, true);
        if !self.worker.has_early_answer()
            && let Some(fd) = self.worker.fd()
        {
            let _ = wait_readable(fd, Some(WAIT));
        }
    }
}
