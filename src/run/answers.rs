//! What an answer of the store means to a run: an event for its machine, with the evidence that this
//! host adds.

use super::event::Event;
use super::machine::Machine;
use crate::job::ancestry::is_inside;
use crate::store::{Answer, Reading};
use crate::token::{Evidence, Row, SessionId};

/// Checks a session that the environment names. It may have leaked there, through ssh, a daemon or
/// a container: it counts only if its guard is an ancestor. To be called with every answer before
/// the machine takes it.
pub(super) fn prove_nesting(machine: &mut Machine, answer: &Answer) {
    let (Some(session), Answer::Read(read)) = (machine.claim().nested_in.clone(), answer) else {
        return;
    };
    let row = read.as_ref().ok().and_then(|reading| reading.row.as_ref());
    let same_host = |row: &&Row| row.document.host == machine.claim().about.host;
    let row = row
        .filter(|row| row.session() == Some(&session))
        .filter(same_host);
    if !row.and_then(|row| row.document.pid).is_some_and(is_inside) {
        machine.is_not_nested();
    }
}

/// The locks are checked for the row that was just read: an earlier check would prove nothing about
/// a run that was granted since.
pub(super) fn event_of(
    answer: Answer,
    machine: &Machine,
    evidence_of: impl FnOnce(&Reading, &SessionId) -> Evidence,
) -> Event {
    match answer {
        Answer::Read(result) => Event::Looked(result.map(|reading| {
            // With the token held there is a deadline, and the evidence is not needed.
            let evidence = match machine.seeks() {
                true => evidence_of(&reading, &machine.claim().session),
                false => Evidence::None,
            };
            (reading, evidence)
        })),
        Answer::Left(result) => Event::Left(result),
        Answer::Swapped(result) => Event::Swapped(result),
        Answer::Once(result) => Event::OnceLooked(result),
        // No phase waits for these answers.
        Answer::Pruned(_) | Answer::Refused(_) | Answer::Kept(_) => Event::Tick,
        Answer::Recorded(result) => Event::Recorded(result),
    }
}
