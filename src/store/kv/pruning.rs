//! Pruning: two reads and a commit, of a bounded number of entries. The first read finds the note of
//! the last pruning and the newest runs, the second what is old by its rank.

use std::collections::{BTreeMap, BTreeSet};

use super::entries::{delete, put};
use super::keys::{self, ACTS, KEYS, OUTPUTS, REFUSALS, RUNS, list, part};
use super::{Ask, Commit, Delete, Entry, KvStore, Part, refusals};
use crate::store::pruning::{Note, Outlived, Seen};
use crate::store::{OUTPUT_BATCH, PRUNE_BATCH, Retention, StoreError};
use crate::token::{
    ActRecord, Fence, GroupName, OnceMark, Outcome, OutputRecord, RefusalRecord, RunRecord,
    StoreTime,
};

/// Removes old records, and leaves a note for the next pruning.
pub(super) fn prune(
    of: &mut KvStore,
    group: &GroupName,
    retention: Retention,
) -> Result<(), StoreError> {
    let note_key = keys::key([&"pruned", group]);
    let newest = Part {
        newest_first: true,
        limit: PRUNE_BATCH,
        ..part(list(RUNS, Some(group)), i64::MIN, i64::MAX)
    };
    // Outputs beyond the newest ones.
    let excess = Part {
        newest_first: true,
        skip: retention.outputs.count,
        limit: OUTPUT_BATCH,
        ..part(list(OUTPUTS, Some(group)), i64::MIN, i64::MAX)
    };
    let mut found = of.kv.get(&[
        Ask::One(note_key.clone()),
        Ask::Part(newest),
        Ask::Part(excess),
    ])?;
    let last = found.entries.remove(&note_key);
    let (runs, excess): (Vec<_>, Vec<_>) = found.entries.iter().partition(|it| is_run(it.0));
    let runs: Vec<RunRecord> = runs.iter().filter_map(|(_, entry)| entry.read()).collect();
    let before = last
        .as_ref()
        .and_then(|entry| Note::from_text(entry.field("document")));
    let mut seen: Vec<Seen> = runs.iter().map(Seen::of).collect();
    let note = Note::next(before, &found.now, of.kv.has_ticks(), &mut seen, retention);
    let old = Old {
        group,
        retention,
        now: &found.now,
        outlived: note.outlived(retention),
    };
    let asked = old.asked();
    let mut deletes = if asked.is_empty() {
        Vec::new()
    } else {
        old.deletes(&of.kv.get(&asked)?.entries, &runs)
    };
    for (key, _) in excess {
        if !deletes.iter().any(|it| it.key == *key) {
            deletes.push(delete(key.clone(), OUTPUTS, group));
        }
    }
    let text = note.to_text();
    let commit = Commit {
        // Of two simultaneous prunings one leaves its note.
        compare: vec![(note_key.clone(), last.map(|entry| entry.version))],
        puts: vec![put(note_key, &text, group, text.clone())],
        deletes,
        ..Commit::default()
    };
    of.kv.commit(&commit).map(drop)
}

/// What is too old.
struct Old<'a> {
    group: &'a GroupName,
    retention: Retention,
    now: &'a StoreTime,
    outlived: Outlived,
}

impl Old<'_> {
    /// The parts of lists that may have something old in them.
    fn asked(&self) -> Vec<Ask> {
        let Outlived {
            history,
            outputs,
            once,
        } = self.outlived;
        let up_to = |kind, rank, limit| {
            let list = list(kind, Some(self.group));
            let part = part(list, i64::MIN, rank);
            Ask::Part(Part { limit, ..part })
        };
        let before = |retention| self.now.wall_before(retention).0.saturating_sub(1);
        let mut asked = Vec::new();
        if let Some(fence) = history {
            let time = before(self.retention.history);
            asked.push(up_to(RUNS, fence.0, PRUNE_BATCH));
            asked.push(up_to(ACTS, time, PRUNE_BATCH));
            asked.push(up_to(REFUSALS, time, PRUNE_BATCH));
        }
        if let Some(fence) = outputs {
            asked.push(up_to(OUTPUTS, fence.0, OUTPUT_BATCH));
        }
        if once.is_some() {
            asked.push(up_to(KEYS, before(self.retention.once), PRUNE_BATCH));
        }
        asked
    }

    fn deletes(&self, found: &BTreeMap<String, Entry>, newest: &[RunRecord]) -> Vec<Delete> {
        let stay = fences_that_stay(found, newest);
        let old = found.iter().filter_map(|(key, entry)| {
            let (kind, _) = key.split_once(':')?;
            match kind {
                "run" => self.run(key, entry, &stay),
                "output" => self.output(key, entry),
                "act" => self.act(entry),
                "refusal" => self.refusal(entry),
                "key" => self.once(entry),
                _ => None,
            }
        });
        old.collect()
    }

    fn of_history(&self, entry: &Entry, fence: Fence) -> bool {
        let before = self.now.wall_before(self.retention.history);
        entry.stamp.stamp.wall < before && Some(fence) <= self.outlived.history
    }

    fn run(&self, key: &str, entry: &Entry, stay: &BTreeSet<Fence>) -> Option<Delete> {
        let run: RunRecord = entry.read()?;
        let is_old = self.of_history(entry, run.fence) && !stay.contains(&run.fence);
        is_old.then(|| delete(key.to_owned(), RUNS, self.group))
    }

    fn output(&self, key: &str, entry: &Entry) -> Option<Delete> {
        let output: OutputRecord = entry.read()?;
        let before = self.now.wall_before(self.retention.outputs.retain);
        let is_outlived = Some(output.fence) <= self.outlived.outputs;
        let is_old = entry.stamp.stamp.wall < before && is_outlived;
        is_old.then(|| delete(key.to_owned(), OUTPUTS, self.group))
    }

    fn act(&self, entry: &Entry) -> Option<Delete> {
        let act: ActRecord = entry.read()?;
        let is_old = self.of_history(entry, act.fence);
        is_old.then(|| delete(keys::act(&act), ACTS, self.group))
    }

    fn refusal(&self, entry: &Entry) -> Option<Delete> {
        let refusal: RefusalRecord = entry.read()?;
        let before = self.now.wall_before(self.retention.history);
        let is_old = refusal.last_at < before && Some(refusal.fence) <= self.outlived.history;
        is_old.then(|| Delete {
            key: refusals::refusal_key(&refusal),
            lists: refusals::lists_of(&refusal),
        })
    }

    fn once(&self, entry: &Entry) -> Option<Delete> {
        let mark: OnceMark = entry.read()?;
        let before = self.now.wall_before(self.retention.once);
        let is_old = entry.stamp.stamp.wall < before && Some(mark.fence) <= self.outlived.once;
        is_old.then(|| delete(keys::once(&mark.group, &mark.key), KEYS, self.group))
    }
}

fn is_run(key: &str) -> bool {
    key.starts_with("run:")
}

/// The fences of the newest run, and of the newest success among the runs that were read: the
/// newest runs, and the oldest ones. If the newest success of all is in between, one of the oldest
/// stays for longer than it must.
fn fences_that_stay(found: &BTreeMap<String, Entry>, newest: &[RunRecord]) -> BTreeSet<Fence> {
    let runs = found.iter().filter(|(key, _)| is_run(key));
    let old: Vec<RunRecord> = runs.filter_map(|(_, entry)| entry.read()).collect();
    let all = || newest.iter().chain(&old);
    let last = all().map(|run| run.fence).max();
    let succeeded = all().filter(|run| run.outcome == Outcome::Succeeded);
    let success = succeeded.map(|run| run.fence).max();
    [last, success].into_iter().flatten().collect()
}
