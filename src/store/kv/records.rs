//! The entries of finished runs and their output, acts of operators, and keys that are done.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::entries::{delete, json, limited, put};
use super::keys::{self, ACTS, KEYS, OUTPUTS, RUNS, list, part};
use super::{Ask, Commit, Entry, KvStore, Outcome, Part, Rank};
use super::{pruning, refusals};
use crate::store::{ActQuery, Records, RefusalQuery, Retention, RunQuery, StoreError};
use crate::token::{
    ActRecord, Fence, GroupName, OnceMark, OutputRecord, Recorded, RefusalRecord, RefusalTotal,
    RunRecord, WallTime,
};

/// The version of a run whose own session has reported the end.
const FINAL: &str = "final";
/// The version of a run that another session recorded as unknown.
const UNKNOWN: &str = "unknown";

fn run_key(run: &RunRecord) -> String {
    keys::run(&run.group, run.fence, &run.session)
}

/// What must be read before a run is written.
fn keys_of(run: &RunRecord) -> Vec<Ask> {
    let key = run
        .once_mark(WallTime(0))
        .map(|mark| keys::once(&mark.group, &mark.key));
    let keys = [Some(run_key(run)), key].into_iter().flatten();
    keys.map(Ask::One).collect()
}

/// Adds a finished run, and the key that it makes done, to a commit: nothing, if its own session's
/// record exists. Returns what must be read again after a conflict.
pub(super) fn add_run(
    commit: &mut Commit,
    run: &RunRecord,
    known: &BTreeMap<String, Entry>,
) -> Vec<Ask> {
    let key = run_key(run);
    let before = known.get(&key).map(|entry| entry.version.clone());
    let version = if run.is_final() { FINAL } else { UNKNOWN };
    if before.is_none() || (before.as_deref() == Some(UNKNOWN) && run.is_final()) {
        // Before the run, whose record says that its key is done too: a store may fail between two puts.
        if let Some(mark) = run.once_mark(WallTime(0)) {
            let key = keys::once(&mark.group, &mark.key);
            if !known.contains_key(&key) {
                commit.compare.push((key.clone(), None));
                let put_mark = put(key, "", &run.group, json(&mark));
                let ranks = [Rank::Now; 2];
                commit.puts.push(put_mark.listed(KEYS, &run.group, ranks));
            }
        }
        commit.compare.push((key.clone(), before));
        let put_run = put(key, version, &run.group, json(run));
        // Across groups by start, within a group by fence.
        let ranks = [Rank::At(run.started_at.0), Rank::At(run.fence.0)];
        commit.puts.push(put_run.listed(RUNS, &run.group, ranks));
    }
    keys_of(run)
}

/// Adds an act, and the key that it forgets, to a commit.
pub(super) fn add_act(commit: &mut Commit, act: &ActRecord) {
    let put_act = put(keys::act(act), "", &act.group, json(act));
    commit
        .puts
        .push(put_act.listed(ACTS, &act.group, [Rank::Now; 2]));
    if let Some(key) = &act.once_key {
        let key = keys::once(&act.group, key);
        commit.deletes.push(delete(key, KEYS, &act.group));
    }
}

/// The part of a list with these wall times as ranks.
fn between(list: String, since: Option<WallTime>, until: Option<WallTime>) -> Part {
    let from = since.map_or(i64::MIN, |since| since.0);
    let to = until.map_or(i64::MAX, |until| until.0);
    part(list, from, to)
}

/// The key, with the time of the store.
fn mark_of(mark: OnceMark, entry: &Entry) -> OnceMark {
    OnceMark {
        done_at: entry.stamp.stamp.wall,
        ..mark
    }
}

/// The key among these entries, if it is done.
pub(super) fn mark_in(
    of: &KvStore,
    entries: &mut BTreeMap<String, Entry>,
    group: &GroupName,
    key: &str,
) -> Result<Option<OnceMark>, StoreError> {
    let found = entries.remove_entry(&keys::once(group, key));
    let marks = of.values(found.into_iter().collect())?.into_iter();
    let mut marks = marks.map(|(mark, entry)| mark_of(mark, &entry));
    Ok(marks.next())
}

/// How many outputs are read to find the newest: two runs may have one fence.
const SAME_FENCE: u32 = 4;

impl Records for KvStore {
    fn record(&mut self, run: &RunRecord) -> Result<Recorded, StoreError> {
        self.persistently(|store| {
            let found = store.kv.get(&keys_of(run))?;
            let mut commit = Commit::default();
            add_run(&mut commit, run, &found.entries);
            if commit.puts.is_empty() {
                return Ok(Some(Recorded::Already));
            }
            let is_done = store.kv.commit(&commit)?.outcome == Outcome::Done;
            Ok(is_done.then_some(Recorded::Written))
        })
    }

    fn runs(&mut self, query: &RunQuery) -> Result<Vec<RunRecord>, StoreError> {
        let list = list(RUNS, query.group.as_ref());
        let part = match query.group {
            Some(_) => part(list, i64::MIN, i64::MAX),
            None => between(list, query.since, query.until),
        };
        let wanted = |run: RunRecord, entry: Entry| {
            let run = run.written(&entry.stamp);
            query.wants(&run).then_some(run)
        };
        let mut runs = self.newest(part, query.limit, wanted)?;
        if query.group.is_some() {
            runs.sort_by_key(|run| Reverse(run.fence));
        } else {
            runs.sort_by_key(|run| Reverse((run.started_at, run.fence)));
        }
        Ok(limited(runs, query.limit))
    }

    fn acts(&mut self, query: &ActQuery) -> Result<Vec<ActRecord>, StoreError> {
        let part = between(list(ACTS, query.group.as_ref()), query.since, query.until);
        let wanted = |act: ActRecord, entry: Entry| {
            let at = entry.stamp.stamp.wall;
            let act = ActRecord { at, ..act };
            query.wants(&act).then_some(act)
        };
        let mut acts = self.newest(part, query.limit, wanted)?;
        acts.sort_by_key(|act| (Reverse(act.at), act.version));
        Ok(limited(acts, query.limit))
    }

    fn refuse(&mut self, refusal: &RefusalRecord) -> Result<(), StoreError> {
        refusals::refuse(self, refusal)
    }

    fn refusals(&mut self, query: &RefusalQuery) -> Result<Vec<RefusalRecord>, StoreError> {
        refusals::refusals(self, query)
    }

    fn refusal_totals(&mut self) -> Result<Vec<RefusalTotal>, StoreError> {
        refusals::totals(self)
    }

    fn keep_output(&mut self, output: &OutputRecord) -> Result<(), StoreError> {
        let OutputRecord { group, fence, .. } = output;
        let key = keys::key([&"output", group, fence, &output.session]);
        let ranks = [Rank::At(fence.0); 2];
        let commit = Commit {
            // No other run writes this entry: the key has the session.
            puts: vec![put(key, "", group, json(output)).listed(OUTPUTS, group, ranks)],
            ..Commit::default()
        };
        self.kv.commit(&commit).map(drop)
    }

    fn output(
        &mut self,
        group: &GroupName,
        fence: Option<Fence>,
    ) -> Result<Option<OutputRecord>, StoreError> {
        let (from, to) = fence.map_or((i64::MIN, i64::MAX), |fence| (fence.0, fence.0));
        let asked = Part {
            newest_first: true,
            limit: SAME_FENCE,
            ..part(list(OUTPUTS, Some(group)), from, to)
        };
        let found = self.kv.get(&[Ask::Part(asked)])?;
        let found = self.values(found.entries)?.into_iter();
        let found = found.map(|(output, entry): (OutputRecord, Entry)| OutputRecord {
            written_at: entry.stamp.stamp.wall,
            ..output
        });
        Ok(found.max_by_key(|output| (output.fence, output.written_at)))
    }

    fn once(&mut self, group: &GroupName, key: &str) -> Result<Option<OnceMark>, StoreError> {
        let mut found = self.kv.get(&[Ask::One(keys::once(group, key))])?;
        mark_in(self, &mut found.entries, group, key)
    }

    fn once_marks(&mut self, group: Option<&GroupName>) -> Result<Vec<OnceMark>, StoreError> {
        let part = part(list(KEYS, group), i64::MIN, i64::MAX);
        let mut found = self.newest(part, None, |mark, entry| Some(mark_of(mark, &entry)))?;
        found.sort_by(|one, other| {
            let newest_first = other.done_at.cmp(&one.done_at);
            newest_first.then_with(|| one.key.cmp(&other.key))
        });
        Ok(found)
    }

    fn prune(&mut self, group: &GroupName, retention: Retention) -> Result<(), StoreError> {
        pruning::prune(self, group, retention)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::kv::Fields;
    use crate::token::record::fixture::unheld_run;
    use crate::token::{ClockEpoch, Outcome as End, Stamp, StoreTime};

    #[test]
    fn a_record_is_written_once_and_in_place_of_unknown() {
        let own = unheld_run(&GroupName::new("g").unwrap(), 3);
        let unknown = RunRecord {
            outcome: End::Unknown,
            ..own.clone()
        };
        let entry = |version: &str| Entry {
            version: version.to_owned(),
            stamp: StoreTime {
                epoch: ClockEpoch("e".into()),
                stamp: Stamp {
                    tick_ms: 0,
                    wall: WallTime(0),
                },
            },
            number: 0,
            fields: Fields::new(),
        };
        let (key, mark) = (run_key(&own), keys::once(&own.group, "key"));
        for (before, run, written) in [
            (None, &unknown, &[&key][..]),
            (None, &own, &[&mark, &key]),
            (Some(UNKNOWN), &unknown, &[]),
            (Some(UNKNOWN), &own, &[&mark, &key]),
            (Some(FINAL), &unknown, &[]),
            (Some(FINAL), &own, &[]),
        ] {
            let known = before.map(|version| (key.clone(), entry(version)));
            let mut commit = Commit::default();
            add_run(&mut commit, run, &known.into_iter().collect());
            let puts: Vec<&String> = commit.puts.iter().map(|put| &put.key).collect();
            assert_eq!(puts, written, "{before:?}");
        }
    }
}
