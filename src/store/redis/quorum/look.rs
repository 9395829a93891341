//! Reads: one round, if the members that answer agree. What a majority does not hold alike is settled first.

use std::collections::BTreeSet;

use tokio::time::sleep;

use super::attempt::complete;
use super::kinds::is_register;
use super::register::Held;
use super::rejoin::{mend, rejoin};
use super::round::{Members, TRIES};
use super::shown::{Shown, one, time};
use super::wish::{Kept, Put, Wish};
use crate::store::StoreError;
use crate::store::kv::flights::Turned;
use crate::store::kv::{Ask, Found, drawn_pause};
use crate::store::net::deadline::Deadline;

/// The part of a call's time that members may take to join, while others answer.
const JOINING: u32 = 2;

/// Reads entries.
pub(super) async fn look(
    members: &mut Members,
    deadline: Deadline,
    turned: Option<&Turned>,
    asked: &[Ask],
) -> Result<Found, StoreError> {
    // What a list of one member has and that of another has not is asked for by name.
    let mut all = asked.to_vec();
    let mut has_joined = false;
    for tried in 0..TRIES {
        let answers = members.ask(deadline, &Wish::Show(all.clone())).await;
        if !has_joined
            && !members.changes_nothing
            && answers.reports().any(|report| !report.is_sure)
        {
            has_joined = true;
            let share = deadline.at_most(Some(deadline.left() / JOINING));
            if rejoin(members, &answers, share).await {
                continue;
            }
        }
        let Some(group) = answers.of_majority() else {
            if members.changes_nothing {
                return Err(members.error(&answers));
            }
            mend(members, &answers, deadline).await?;
            sleep(drawn_pause(tried)).await;
            continue;
        };
        let now = time(members, &group, turned);
        let shown = Shown::of(members.all.len(), &group);
        if let Some(register) = unsettled(members, &shown, asked) {
            complete(members, deadline, &register).await?;
            continue;
        }
        if let Some(found) = shown.clear(asked, &group, now, turned.is_some()) {
            return Ok(found);
        }
        let unclear = shown.unclear(asked);
        let named: BTreeSet<&String> = all.iter().filter_map(one).collect();
        let (by_name, others): (Vec<String>, Vec<String>) =
            unclear.into_iter().partition(|key| named.contains(key));
        let settled = shown.newest(&by_name);
        all.extend(others.into_iter().map(Ask::One));
        match tried {
            // Rounds are under way; one that was left half-way waits a few milliseconds for it.
            0..3 => sleep(drawn_pause(tried)).await,
            _ if members.changes_nothing => sleep(drawn_pause(tried)).await,
            _ => settle(members, deadline, settled).await?,
        }
    }
    Err(members.gave_up())
}

/// A register that is asked for, and that a commit of this client may still change: no later ballot has a majority.
fn unsettled(members: &mut Members, shown: &Shown, asked: &[Ask]) -> Option<String> {
    let unsettled = &mut members.unsettled;
    unsettled.retain(|key, ballot| !shown.is_after(key, *ballot));
    let mut keys = asked.iter().filter_map(one);
    keys.find(|key| unsettled.contains_key(*key)).cloned()
}

/// Gives a majority what the highest ballot has left.
async fn settle(
    members: &mut Members,
    deadline: Deadline,
    unclear: Vec<(String, Held<Kept>)>,
) -> Result<(), StoreError> {
    let (registers, others): (Vec<_>, Vec<_>) =
        unclear.into_iter().partition(|(key, _)| is_register(key));
    for (key, _) in registers {
        complete(members, deadline, &key).await?;
    }
    if others.is_empty() {
        return Ok(());
    }
    let puts = others.into_iter().map(|(key, held)| Put {
        key,
        ballot: held.accepted,
        kept: held.value,
    });
    let wish = Wish::keep(puts.collect());
    members.ask(deadline, &wish).await;
    Ok(())
}
