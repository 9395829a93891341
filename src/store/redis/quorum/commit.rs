//! Commits: two rounds, again while other clients are in between, and a look.

use tokio::time::sleep;

use super::attempt::{Tried, attempt};
use super::look::look;
use super::plan::Plan;
use super::round::{Members, TRIES};
use crate::store::kv::flights::Turned;
use crate::store::kv::{Commit, Committed, Outcome, drawn_pause};
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
            Err(error) => return Err(failed(members, plan, error)),
        }
        sleep(drawn_pause(tried)).await;
    }
    let error = members.gave_up();
    Err(failed(members, plan, error))
}

/// This error of a commit. What was sent of it may be completed by another client, until a look settles that.
fn failed(members: &mut Members, plan: Plan<'_>, error: StoreError) -> StoreError {
    match (plan.sent.last(), plan.written) {
        (None, _) => error.without_effect(),
        (Some(last), register) => {
            members.unsettled.extend(register.map(|it| (it, *last)));
            uncertain(error)
        }
    }
}

/// This error of a commit that may have happened, or has.
fn uncertain(error: StoreError) -> StoreError {
    StoreError {
        trouble: Trouble::Unavailable,
        ..error
    }
}
