//! What a server does once for each of its processes: it looks up tables, types and
//! functions when a statement first needs them, which takes as long as the statement itself.
//! A rehearsal makes it do so in advance: the very statement, for a version that no row has. It
//! finds nothing, so it takes no row's lock and writes nothing. Where that fails, the swap only
//! takes longer.

use std::time::Duration;

use super::PostgresStore;
use super::cells::Value;
use crate::store::Reading;
use crate::token::{
    GrantKind, History, Outcome, RunEnd, RunRecord, StoreTime, Swap, Swapped, Touch, Waiter,
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
    };
    let run = Box::new(run.as_ref().clone().ended(end));
    Some(Box::new(Swap {
        from: Some(swap.to.version),
        touch: Touch::Release,
        history: History::End(run),
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
            self.rehearse(&swap);
        }
        is_new
    }

    /// Once for each run.
    pub(super) fn prepare_for_end(&mut self) {
        if let Some(swap) = self.coming.take()
            && self.session.is_connected()
        {
            self.rehearse(&swap);
        }
    }

    /// Whether the server did.
    fn rehearse(&mut self, swap: &Swap) -> bool {
        let (_, statement, mut named) = self.asked(swap);
        for (name, value) in &mut named {
            match *name {
                // Of no row: the one that may have the token has another version just now.
                "from" => *value = Value::long(!swap.to.version.number()),
                // Should one have that version, the swap has expired.
                "expires" => *value = Value::time(Some(0)),
                _ => {}
            }
        }
        let (statement, values) = self.statements.bind(&statement, named);
        let limit = LIMIT.min(self.timeout);
        // Where it fails nothing is lost.
        self.session.ask(limit, &statement, &values).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::server::Server;
    use super::super::settings;
    use super::*;
    use crate::store::Store as _;
    use crate::store::conformance::{claim, version};
    use crate::token::GrantKind::Bind;
    use crate::token::swap;

    #[test]
    fn what_is_prepared_for_is_understood_and_writes_nothing() {
        let database = Server::shared().database();
        let timeout = Duration::from_secs(10);
        let mut store = PostgresStore::new(settings(&database.url(), "test").unwrap(), timeout);
        let claim = claim("g", "a", "s1");
        let reading = store.read(&claim.group).unwrap();
        let taken = swap::grant(&claim, Bind, None, &reading.now, version(1));
        assert!(!store.is_unprepared());
        assert!(matches!(store.swap(&taken), Ok(Swapped::Done(_))));
        let everything = "SELECT string_agg(xmin || ' ' || xmax || ' ' || version, ',')
            FROM tokenrun.tokens";
        let before = (database.sql(everything), store.read(&claim.group).unwrap());
        let coming = store.coming.clone().unwrap();
        assert!(store.rehearse(&coming), "the end");
        let waiter = Waiter {
            session: claim.session.clone(),
            client: claim.client.clone(),
            failback: false,
        };
        let coming = grant(&before.1, &waiter).unwrap();
        assert!(store.rehearse(&coming), "the grant");
        assert_eq!(database.sql(everything), before.0);
        assert_eq!(store.read(&claim.group).unwrap().row, before.1.row);
        // Once for each run, and once for each connection.
        store.prepare();
        assert!(!store.is_unprepared());
        assert!(store.prepare_for_grant(&before.1, &waiter));
        assert!(!store.prepare_for_grant(&before.1, &waiter));
    }
}
