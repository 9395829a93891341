//! Commits: two rounds, again while other clients are in between, and a look.

use super::attempt::{Plan, Tried, attempt, pause};
use super::look::look;
use super::round::{Members, TRIES};
use crate::store::kv::flights::Turned;
use crate::store::kv::{Commit, Committed, Outcome};
use crate::store::net::deadline::Deadline;
use crate::store::{StoreError, Trouble};

/// Compares and writes.
pub(super) async fn commit(
    members: &mut Members,
    deadline: Deadline,
    turned: Option<&Turned>,
    commit: &Commit,
) -> Result<Committed, StoreError> {
    let mut plan = Plan::of(commit);
    for tried in 0..TRIES {
        match attempt(members, deadline, turned, &mut plan).await {
            Ok(Tried::Happened(Some(found))) => {
                let outcome = Outcome::Done;
                return Ok(Committed { outcome, found });
            }
            Ok(Tried::Happened(None)) => {
                let looked = look(members, deadline, turned, &commit.then).await;
                let found = looked.map_err(uncertain)?;
                let outcome = Outcome::Done;
                return Ok(Committed { outcome, found });
            }
            Ok(Tried::Ended(outcome)) => {
                let found = look(members, deadline, turned, &commit.then).await?;
                return Ok(Committed { outcome, found });
            }
            Ok(Tried::Again) => {}
            Err(error) if plan.sent.is_empty() => return Err(error.without_effect()),
            Err(error) => return Err(uncertain(error)),
        }
        pause(tried).await;
    }
    match plan.sent.is_empty() {
        true => Err(members.gave_up()),
        false => Err(uncertain(members.gave_up())),
    }
}

/// This error of a commit that may have happened, or has.
fn uncertain(error: StoreError) -> StoreError {
    StoreError {
        trouble: Trouble::Unavailable,
        ..error
    }
}
