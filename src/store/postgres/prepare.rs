//! What a server does once for each of its processes: it looks up tables, types and
//! functions when a statement first needs them, which takes as long as the statement itself.
//! EXPLAIN makes it do so in advance. It plans a statement and does nothing: it takes no
//! row's lock, and writes nothing. Where that fails, the swap only takes longer.

use std::time::Duration;

use super::PostgresStore;
use crate::store::Reading;
use crate::token::{
    GrantKind, History, Outcome, RunEnd, RunId, RunRecord, StoreTime, Swap, Swapped, Touch, Waiter,
};

/// A server that takes longer has other troubles: the connection is given up, and the next call
/// makes another. Whatever that is waits for no longer than this.
const LIMIT: Duration = Duration::from_secs(1);

/// The end of the run that this swap has begun, as it will probably be.
pub(super) fn end_after(swap: &Swap, swapped: &Swapped) -> Option<Box<Swap>> {
    let (History::Begin { run, .. }, Swapped::Done(_)) = (&swap.history, swapped) else {
        return None;
    };
    let end = RunEnd {
        outcome: Outcome::Succeeded,
        exit_code: Some(0),
        signal: None,
        marks_once: run.once_key.is_some(),
    };
    let run = RunId {
        fence: run.fence,
        session: run.session.clone(),
    };
    Some(Box::new(Swap {
        from: Some(swap.to.version),
        touch: Touch::Release,
        history: History::End { run, end },
        ..swap.clone()
    }))
}

/// A grant to who waits, as it will probably be.
fn grant(reading: &Reading, waiter: &Waiter) -> Option<Swap> {
    let row = reading.row.clone()?;
    let run = RunRecord {
        group: row.group.clone(),
        fence: row.fence,
        session: waiter.session.clone(),
        client: waiter.client.clone(),
        previous_client: None,
        host: None,
        pid: None,
        label: None,
        program: String::new(),
        once_key: None,
        grant: GrantKind::Bind,
        started_at_ms: 0,
        ended_at_ms: None,
        outcome: Outcome::Running,
        exit_code: None,
        signal: None,
    };
    Some(Swap {
        from: Some(row.version),
        to: row,
        touch: Touch::Grant { creates: false },
        expiry: StoreTime {
            stamp: reading.now.stamp,
            domain: reading.now.domain.clone(),
        },
        history: History::Begin {
            run: Box::new(run),
            vanished: None,
            waited: true,
        },
    })
}

impl PostgresStore {
    /// Once for each connection. Whether the server was asked.
    pub(super) fn prepare_for_grant(&mut self, reading: &Reading, waiter: &Waiter) -> bool {
        let Some(swap) = grant(reading, waiter) else {
            return false;
        };
        let is_new = self.session.expects_grant_now();
        if is_new {
            self.explain(&swap);
        }
        is_new
    }

    /// Once for each run.
    pub(super) fn prepare_for_end(&mut self) {
        if let Some(swap) = self.coming.take()
            && self.session.is_connected()
        {
            self.explain(&swap);
        }
    }

    fn explain(&mut self, swap: &Swap) {
        let (_, statement, values) = self.asked(swap);
        let limit = LIMIT.min(self.timeout);
        // Where it fails nothing is lost.
        let _ = self
            .session
            .ask(limit, &format!("EXPLAIN {statement}"), &values);
    }
}
