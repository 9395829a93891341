//! `tokenrun explain`: which clause of the rule decides for a client now, and when that
//! changes. It runs the rule itself, and writes nothing.

use std::time::Duration;

use anyhow::Result;

use super::status::unknown_group;
use super::{print, print_json};
use crate::exit::Exit;
use crate::report::explain::{Explanation, changes_in};
use crate::store::{Reading, Store, check_reader};
use crate::token::{Claim, Decision, Evidence, Look, QueuePosition, Verdict, decide, queue};

/// Explains the rule's decision on a claim. `prove` returns this host's evidence about the run in
/// the row, and whether the claim comes from inside it.
///
/// # Errors
/// If the store can't be read, or the group is unknown.
pub fn explain(
    store: &mut dyn Store,
    claim: &mut Claim,
    prove: impl FnOnce(&Reading, &mut Claim) -> Evidence,
    as_json: bool,
) -> Result<Exit> {
    let reading = store.read(&claim.group)?;
    if let Some(row) = &reading.row {
        check_reader(row)?;
        // The next run of this group probably has the options of the last one.
        claim.timing.takeover_after = row.document.takeover_after;
    }
    let evidence = prove(&reading, claim);
    let decided = at(claim, &reading, &evidence, Duration::ZERO, Duration::ZERO);
    // The store may have forgotten the group itself.
    let observed = matches!(decided.verdict, Verdict::ObserveStore { .. });
    if reading.row.is_none() && !observed {
        return Err(unknown_group(store.name(), &claim.group).into());
    }
    let then = changes_in(&decided.verdict, &reading.now).map(|wait| {
        // An observation goes on by this process's own clock.
        let watched = match &decided.verdict {
            Verdict::Observe(_) | Verdict::Wait(_) | Verdict::ObserveStore { .. } => wait,
            _ => Duration::ZERO,
        };
        (wait, at(claim, &reading, &evidence, wait, watched))
    });
    let row = reading.row.as_ref();
    let explanation = Explanation::of(claim, row, &reading.now, &decided, then.as_ref());
    if as_json {
        return print_json(&[explanation]);
    }
    print(&explanation.text())
}

/// The decision so much later, if nothing else changes.
pub(super) fn at(
    claim: &Claim,
    reading: &Reading,
    evidence: &Evidence,
    later: Duration,
    unchanged_for: Duration,
) -> Decision {
    let now = reading.now.plus(later);
    let memory = reading.memory.noted(&reading.now);
    let look = Look {
        row: reading.row.as_ref(),
        now: &now,
        memory: &memory,
        position: QueuePosition::default(),
        evidence,
        unchanged_for,
        heard: false,
    };
    let position = queue::position(claim, &look, &reading.queue);
    decide(claim, &Look { position, ..look })
}
