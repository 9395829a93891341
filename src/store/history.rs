//! History: the finished runs, which a store keeps, and the present ones, which are in their
//! tokens. Pure.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::{Listing, RunQuery};
use crate::token::{Row, RunRecord, StoreTime};

/// The runs that match a query, the newest first: by fence within a group, by start across groups.
/// `listing` was read before `over`, so that no run is missed that ended in between. Where both
/// have a run, the record in `over` is the better one.
pub fn runs(listing: &Listing, over: Vec<RunRecord>, query: &RunQuery) -> Vec<RunRecord> {
    let key = |run: &RunRecord| (run.group.clone(), run.fence, run.session.clone());
    let known: HashSet<_> = over.iter().map(key).collect();
    let rows = listing.rows.iter();
    let held = rows.filter_map(|row| held(row, &listing.now));
    let held = held.filter(|run| query.wants(run) && !known.contains(&key(run)));
    let mut runs: Vec<RunRecord> = held.collect();
    runs.extend(over);
    if query.group.is_some() {
        runs.sort_by_key(|run| Reverse(run.fence));
    } else {
        runs.sort_by_key(|run| Reverse((run.started_at, run.fence)));
    }
    let limit = query.limit.and_then(|limit| usize::try_from(limit).ok());
    runs.truncate(limit.unwrap_or(usize::MAX));
    runs
}

/// The run that holds a token. Its outcome is unknown if it has been silent for too long, or if its
/// last heartbeat belongs to another clock epoch.
fn held(row: &Row, now: &StoreTime) -> Option<RunRecord> {
    match row.age(now) {
        Some(age) if age < row.document.takeover_after => RunRecord::of(row),
        Some(_) | None => RunRecord::vanished(row),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::record::fixture::run_of;
    use crate::token::rule::tests::fixture::{but, epoch, idle, running, s, seen};
    use crate::token::{Fence, GroupName, Outcome};

    /// The run's last heartbeat plus `by`.
    fn at(by: std::time::Duration) -> StoreTime {
        seen(running("a")).after(by).now
    }

    fn listing(rows: Vec<Row>, now: StoreTime) -> Listing {
        Listing {
            rows,
            unreadable: Vec::new(),
            now,
            queues: Vec::new(),
        }
    }

    fn outcomes(runs: &[RunRecord]) -> Vec<(i64, Outcome)> {
        runs.iter().map(|run| (run.fence.0, run.outcome)).collect()
    }

    fn over(row: &Row, fence: i64, outcome: Outcome) -> RunRecord {
        RunRecord {
            fence: Fence(fence),
            outcome,
            ..run_of(row)
        }
    }

    #[test]
    fn a_run_that_goes_on_comes_from_its_token_and_its_record_wins() {
        let row = but(running("a"), |row| row.fence = Fence(7));
        let all = RunQuery::default();
        let found = listing(vec![row.clone(), idle("b")], at(s(1)));
        let before = over(&row, 6, Outcome::Failed);
        let runs = runs(&found, vec![before.clone()], &all);
        assert_eq!(
            outcomes(&runs),
            [(7, Outcome::Running), (6, Outcome::Failed)]
        );
        let ended = over(&row, 7, Outcome::Succeeded);
        let runs = super::runs(&found, vec![ended, before], &all);
        assert_eq!(
            outcomes(&runs),
            [(7, Outcome::Succeeded), (6, Outcome::Failed)]
        );
    }

    #[test]
    fn a_run_that_is_silent_or_of_another_clock_epoch_is_unknown() {
        let row = running("a");
        let silent = row.document.takeover_after;
        let elsewhere = StoreTime {
            epoch: epoch("other"),
            ..at(s(1))
        };
        for now in [at(silent), elsewhere] {
            let runs = runs(
                &listing(vec![row.clone()], now),
                vec![],
                &RunQuery::default(),
            );
            assert_eq!(runs[0].outcome, Outcome::Unknown);
            assert_eq!(runs[0].ended_at, Some(row.stamped.stamp.wall));
        }
    }

    #[test]
    fn a_query_filters_orders_and_limits() {
        let row = but(running("a"), |row| row.fence = Fence(3));
        let found = listing(vec![row.clone()], at(s(1)));
        let old = || vec![over(&row, 9, Outcome::Lost), over(&row, 2, Outcome::Lost)];
        let fences = |query: RunQuery| -> Vec<i64> {
            let runs = runs(&found, old(), &query);
            runs.iter().map(|run| run.fence.0).collect()
        };
        let of_group = |group: &str| RunQuery {
            group: Some(GroupName::new(group).unwrap()),
            ..RunQuery::default()
        };
        assert_eq!(fences(of_group(row.group.as_str())), [9, 3, 2]);
        assert_eq!(fences(of_group("other")), [9, 2]);
        let limited = RunQuery {
            limit: Some(2),
            ..of_group(row.group.as_str())
        };
        assert_eq!(fences(limited), [9, 3]);
        let failed = RunQuery {
            outcomes: vec![Outcome::Failed],
            ..RunQuery::default()
        };
        assert!(!fences(failed).contains(&3));
    }
}
