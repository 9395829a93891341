//! The entries of finished runs, acts of operators, and keys that are done.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use super::entries::{limited, put, under, values};
use super::outputs::{self, OUTPUT};
use super::refusals::{self, REFUSAL};
use super::{Commit, Committed, Entry, Found, Keys, Kv, KvStore, PART, TRIES, json};
use crate::store::pruning::{Note, Seen};
use crate::store::{ActQuery, PRUNE_BATCH, Records, RefusalQuery, Retention, RunQuery, StoreError};
use crate::token::{
    ActRecord, Fence, GroupName, OnceMark, Outcome, OutputRecord, Recorded, RefusalRecord,
    RefusalTotal, RunRecord, WallTime,
};

const RUN: &str = "run\u{1f}";
const ACT: &str = "act\u{1f}";
const KEY: &str = "key\u{1f}";
const NOTE: &str = "note\u{1f}";

/// The tag of a run whose own session has reported the end.
const FINAL: &str = "final";
/// The tag of a run that another session recorded as unknown.
const UNKNOWN: &str = "unknown";

/// Fences are padded, so that they sort as texts.
fn run_key(run: &RunRecord) -> String {
    let prefix = under(RUN, Some(&run.group));
    format!("{prefix}{:020}{PART}{}", run.fence.0, run.session)
}

fn once_key(group: &GroupName, key: &str) -> String {
    format!("{}{key}", under(KEY, Some(group)))
}

/// What must be read before a run is written.
pub(super) fn keys_of(run: &RunRecord) -> Vec<Keys> {
    let key = run
        .once_mark(WallTime(0))
        .map(|mark| once_key(&mark.group, &mark.key));
    let keys = [Some(run_key(run)), key].into_iter().flatten();
    keys.map(Keys::One).collect()
}

/// Adds a finished run, and the key that it makes done, to a commit: nothing, if its own session's
/// record exists. Returns what must be read again after a conflict.
pub(super) fn add_run(
    commit: &mut Commit,
    run: &RunRecord,
    known: &BTreeMap<String, Entry>,
) -> Vec<Keys> {
    let key = run_key(run);
    let before = known.get(&key).map(|entry| entry.tag.clone());
    let tag = if run.is_final() { FINAL } else { UNKNOWN };
    if before.is_none() || (before.as_deref() == Some(UNKNOWN) && run.is_final()) {
        commit.compare.push((key.clone(), before));
        commit.puts.push(put(key, json(run), tag));
        if let Some(mark) = run.once_mark(WallTime(0)) {
            let key = once_key(&mark.group, &mark.key);
            if !known.contains_key(&key) {
                commit.compare.push((key.clone(), None));
                commit.puts.push(put(key, json(&mark), ""));
            }
        }
    }
    keys_of(run)
}

/// Adds an act, and the key that it forgets, to a commit.
pub(super) fn add_act(commit: &mut Commit, act: &ActRecord) {
    let prefix = under(ACT, Some(&act.group));
    let key = format!("{prefix}{}", act.version.number());
    commit.puts.push(put(key, json(act), ""));
    if let Some(key) = &act.once_key {
        commit.deletes.push(once_key(&act.group, key));
    }
}

fn runs<K: Kv>(of: &mut KvStore<K>, query: &RunQuery) -> Result<Vec<RunRecord>, StoreError> {
    let found = values(of, Keys::Under(under(RUN, query.group.as_ref())))?;
    let runs = found.into_iter();
    let runs = runs.map(|(run, entry): (RunRecord, Entry)| run.written(&entry.stamp));
    let mut runs: Vec<RunRecord> = runs.filter(|run| query.wants(run)).collect();
    if query.group.is_some() {
        runs.sort_by_key(|run| Reverse(run.fence));
    } else {
        runs.sort_by_key(|run| Reverse((run.started_at, run.fence)));
    }
    Ok(limited(runs, query.limit))
}

fn acts<K: Kv>(of: &mut KvStore<K>, query: &ActQuery) -> Result<Vec<ActRecord>, StoreError> {
    let found = values(of, Keys::Under(under(ACT, query.group.as_ref())))?;
    let acts = found.into_iter().map(|(act, entry)| ActRecord {
        at: entry.stamp.stamp.wall,
        ..act
    });
    let mut acts: Vec<ActRecord> = acts.filter(|act| query.wants(act)).collect();
    acts.sort_by_key(|act| (Reverse(act.at), act.version));
    Ok(limited(acts, query.limit))
}

fn marks<K: Kv>(of: &mut KvStore<K>, keys: Keys) -> Result<Vec<OnceMark>, StoreError> {
    let found = values(of, keys)?.into_iter();
    let marks = found.map(|(mark, entry)| OnceMark {
        done_at: entry.stamp.stamp.wall,
        ..mark
    });
    Ok(marks.collect())
}

fn mark<K: Kv>(
    of: &mut KvStore<K>,
    group: &GroupName,
    key: &str,
) -> Result<Option<OnceMark>, StoreError> {
    Ok(marks(of, Keys::One(once_key(group, key)))?.pop())
}

fn keys<K: Kv>(
    of: &mut KvStore<K>,
    group: Option<&GroupName>,
) -> Result<Vec<OnceMark>, StoreError> {
    let mut found = marks(of, Keys::Under(under(KEY, group)))?;
    found.sort_by(|one, other| {
        let newest_first = other.done_at.cmp(&one.done_at);
        newest_first.then_with(|| one.key.cmp(&other.key))
    });
    Ok(found)
}

/// Removes old records, and leaves a note for the next pruning.
fn prune<K: Kv>(
    of: &mut KvStore<K>,
    group: &GroupName,
    retention: Retention,
) -> Result<(), StoreError> {
    let note_key = format!("{NOTE}{group}");
    let found = of.kv.get(&[
        Keys::One(note_key.clone()),
        Keys::Under(under(RUN, Some(group))),
        Keys::Under(under(ACT, Some(group))),
        Keys::Under(under(REFUSAL, Some(group))),
        Keys::Under(under(OUTPUT, Some(group))),
        Keys::Under(under(KEY, Some(group))),
    ])?;
    let runs: Vec<RunRecord> = read_as(&found, RUN).map(|(_, _, run)| run).collect();
    let mut seen: Vec<Seen> = runs.iter().map(Seen::of).collect();
    let last = found.entries.get(&note_key);
    let before = last.and_then(|entry| Note::from_text(&entry.value));
    let note = Note::next(before, &found.now, true, &mut seen, retention);
    let mut deletes = old_runs(&found, &runs, note.outlived(retention).history, retention);
    deletes.extend(old_rest(&found, &note, retention));
    let commit = Commit {
        // Of two simultaneous prunings one leaves its note.
        compare: vec![(note_key.clone(), last.map(|entry| entry.tag.clone()))],
        puts: vec![put(note_key, note.to_text(), &note.to_text())],
        deletes,
        ..Commit::default()
    };
    of.kv.commit(&commit).map(drop)
}

/// The entries of a kind, except malformed ones, which stay.
fn read_as<'a, T: DeserializeOwned>(
    found: &'a Found,
    kind: &'a str,
) -> impl Iterator<Item = (&'a String, &'a Entry, T)> {
    let of_kind = found
        .entries
        .iter()
        .filter(move |(key, _)| key.starts_with(kind));
    of_kind.filter_map(|(key, entry)| {
        let value = serde_json::from_str(&entry.value).ok()?;
        Some((key, entry, value))
    })
}

/// The old runs to remove, a batch at most. The newest run and the newest success stay.
fn old_runs(
    found: &Found,
    runs: &[RunRecord],
    outlived: Option<Fence>,
    retention: Retention,
) -> Vec<String> {
    let before = found.now.wall_before(retention.history);
    let newest = runs.iter().map(|run| run.fence).max();
    let succeeded = runs.iter().filter(|run| run.outcome == Outcome::Succeeded);
    let success = succeeded.map(|run| run.fence).max();
    let old = read_as(found, RUN).filter(|(_, entry, run): &(_, &Entry, RunRecord)| {
        let stays = Some(run.fence) == newest || Some(run.fence) == success;
        was_written_before(entry, before) && Some(run.fence) <= outlived && !stays
    });
    let batch = usize::try_from(PRUNE_BATCH).unwrap_or(usize::MAX);
    old.take(batch).map(|(key, ..)| key.clone()).collect()
}

/// The old acts, refusals, outputs and keys to remove.
fn old_rest(found: &Found, note: &Note, retention: Retention) -> Vec<String> {
    let outlived = note.outlived(retention);
    let history = found.now.wall_before(retention.history);
    let once = found.now.wall_before(retention.once);
    let acts = read_as(found, ACT).filter(|(_, entry, act): &(_, &Entry, ActRecord)| {
        was_written_before(entry, history) && Some(act.fence) <= outlived.history
    });
    let keys = read_as(found, KEY).filter(|(_, entry, mark): &(_, &Entry, OnceMark)| {
        was_written_before(entry, once) && Some(mark.fence) <= outlived.once
    });
    let refusals = read_as(found, REFUSAL).filter(|(_, _, it): &(_, &Entry, RefusalRecord)| {
        it.last_at < history && Some(it.fence) <= outlived.history
    });
    let outputs = read_as(found, OUTPUT).filter(|(_, entry, it): &(_, &Entry, OutputRecord)| {
        was_written_before(entry, history) && Some(it.fence) <= outlived.history
    });
    let acts = acts.map(|(key, ..)| key.clone());
    let others = refusals.map(|(key, ..)| key.clone());
    let others = others.chain(outputs.map(|(key, ..)| key.clone()));
    let others = others.chain(keys.map(|(key, ..)| key.clone()));
    acts.chain(others).collect()
}

fn was_written_before(entry: &Entry, wall: WallTime) -> bool {
    entry.stamp.stamp.wall < wall
}

impl<K: Kv> Records for KvStore<K> {
    fn record(&mut self, run: &RunRecord) -> Result<Recorded, StoreError> {
        for _ in 0..TRIES {
            let found = self.kv.get(&keys_of(run))?;
            let mut commit = Commit::default();
            add_run(&mut commit, run, &found.entries);
            if commit.puts.is_empty() {
                return Ok(Recorded::Already);
            }
            if let Committed::Done(_) = self.kv.commit(&commit)? {
                return Ok(Recorded::Written);
            }
        }
        Err(self.contended())
    }

    fn runs(&mut self, query: &RunQuery) -> Result<Vec<RunRecord>, StoreError> {
        runs(self, query)
    }

    fn acts(&mut self, query: &ActQuery) -> Result<Vec<ActRecord>, StoreError> {
        acts(self, query)
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
        outputs::keep_output(self, output)
    }

    fn output(
        &mut self,
        group: &GroupName,
        fence: Option<Fence>,
    ) -> Result<Option<OutputRecord>, StoreError> {
        outputs::output(self, group, fence)
    }

    fn once(&mut self, group: &GroupName, key: &str) -> Result<Option<OnceMark>, StoreError> {
        mark(self, group, key)
    }

    fn once_marks(&mut self, group: Option<&GroupName>) -> Result<Vec<OnceMark>, StoreError> {
        keys(self, group)
    }

    fn prune(&mut self, group: &GroupName, retention: Retention) -> Result<(), StoreError> {
        prune(self, group, retention)
    }
}
