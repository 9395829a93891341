//! What becomes of a request to the store, as the event that its sender gets.

use crate::run::event::Event;
use crate::store::model::{ModelData, Server};
use crate::store::{Request, StoreError};
use crate::token::{Evidence, Row, StoreTime};

/// Carries a request out. What the sender's host can prove is not in the answer yet.
pub(crate) fn carried_out(
    request: &Request,
    store: &mut ModelData,
    server: &Server,
    now: &StoreTime,
) -> Event {
    match request {
        Request::Read(group, key) | Request::Join(group, .., key) => {
            if let Request::Join(_, waiter, expiry, _) = request {
                store.join(group, waiter, expiry, now);
            }
            let reading = store.look(group, key.as_deref(), server, now);
            Event::Looked(Ok((Box::new(reading), Evidence::None)))
        }
        Request::Leave(group, session) => {
            store.leave(group, session);
            Event::Left(Ok(()))
        }
        Request::Swap(swap) => Event::Swapped(Ok(store.swap(swap, now))),
        Request::Note(swap) => Event::Swapped(Ok(store.note(swap, now))),
        Request::Once { group, key } => Event::OnceLooked(Ok(store.key(group, key).map(Box::new))),
        Request::Prune { group, retention } => {
            store.prune(group, *retention, now);
            Event::Tick
        }
        Request::KeepOutput(output) => {
            store.keep_output(output, now.stamp.wall);
            Event::Tick
        }
        Request::Refuse(_) => Event::Tick,
        Request::Record(run) => Event::Recorded(Ok(store.record(run, now))),
    }
}

/// No answer came in time.
pub(crate) fn unanswered(request: &Request) -> Event {
    let error = StoreError::unavailable("no answer");
    match request {
        Request::Read(..) | Request::Join(..) => Event::Looked(Err(error)),
        Request::Leave(..) => Event::Left(Err(error)),
        Request::Swap(_) | Request::Note(_) => Event::Swapped(Err(error)),
        Request::Once { .. } => Event::OnceLooked(Err(error)),
        Request::Prune { .. } | Request::Refuse(_) | Request::KeepOutput(_) => Event::Tick,
        Request::Record(_) => Event::Recorded(Err(error)),
    }
}

/// Adds to an answer what the sender's host can prove about the run in the row.
pub(crate) fn with_evidence(
    mut answer: Event,
    prove: impl FnOnce(Option<&Row>) -> Evidence,
) -> Event {
    if let Event::Looked(Ok((reading, evidence))) = &mut answer {
        *evidence = prove(reading.row.as_ref());
    }
    answer
}

/// A row about whose run locks may prove something: it names their file.
pub(crate) fn row_with_locks(row: Option<&Row>) -> Option<&Row> {
    row.filter(|row| row.run().is_some_and(|run| run.lock_file.is_some()))
}
