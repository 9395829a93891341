//! The entries of the output of finished runs.

use super::entries::{put, under, values};
use super::{Commit, Entry, Keys, Kv, KvStore, PART, json};
use crate::store::StoreError;
use crate::token::{Fence, GroupName, OutputRecord};

pub(super) const OUTPUT: &str = "output\u{1f}";

/// Writes the output of a run. Its entry has no other writer.
pub(super) fn keep_output<K: Kv>(
    of: &mut KvStore<K>,
    output: &OutputRecord,
) -> Result<(), StoreError> {
    let group = under(OUTPUT, Some(&output.group));
    let key = format!("{group}{:020}{PART}{}", output.fence.0, output.session);
    let commit = Commit {
        puts: vec![put(key, json(output), "")],
        ..Commit::default()
    };
    of.kv.commit(&commit).map(drop)
}

/// The output of the run with this fence, or of the newest run that has one.
pub(super) fn output<K: Kv>(
    of: &mut KvStore<K>,
    group: &GroupName,
    fence: Option<Fence>,
) -> Result<Option<OutputRecord>, StoreError> {
    let mut prefix = under(OUTPUT, Some(group));
    if let Some(fence) = fence {
        prefix = format!("{prefix}{:020}{PART}", fence.0);
    }
    let found = values(of, Keys::Under(prefix))?;
    let found = found
        .into_iter()
        .map(|(output, entry): (OutputRecord, Entry)| OutputRecord {
            written_at: entry.stamp.stamp.wall,
            ..output
        });
    Ok(found.max_by_key(|output| (output.fence, output.written_at)))
}
