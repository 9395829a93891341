//! The entries of the output of finished runs.

use super::entries::{json, put};
use super::keys::{OUTPUTS, key, list, part};
use super::{Ask, Commit, Entry, Kv, KvStore, Part, Rank};
use crate::store::StoreError;
use crate::token::{Fence, GroupName, OutputRecord};

/// Writes the output of a run. Its entry has no other writer.
pub(super) fn keep_output<K: Kv>(
    of: &mut KvStore<K>,
    output: &OutputRecord,
) -> Result<(), StoreError> {
    let OutputRecord { group, fence, .. } = output;
    let key = key([&"output", group, fence, &output.session]);
    let written = put(key, "", group, json(output));
    let ranks = [Rank::At(fence.0); 2];
    let commit = Commit {
        puts: vec![written.listed(OUTPUTS, group, ranks)],
        ..Commit::default()
    };
    of.kv.commit(&commit).map(drop)
}

/// How many outputs are read to find the newest: two runs may have one fence.
const SAME_FENCE: u32 = 4;

/// The output of the run with this fence, or of the newest run that has one.
pub(super) fn output<K: Kv>(
    of: &mut KvStore<K>,
    group: &GroupName,
    fence: Option<Fence>,
) -> Result<Option<OutputRecord>, StoreError> {
    let (from, to) = fence.map_or((i64::MIN, i64::MAX), |fence| (fence.0, fence.0));
    let asked = Part {
        newest_first: true,
        limit: SAME_FENCE,
        ..part(list(OUTPUTS, Some(group)), from, to)
    };
    let found = of.kv.get(&[Ask::Part(asked)])?;
    let found = of.values(found.entries)?.into_iter();
    let found = found.map(|(output, entry): (OutputRecord, Entry)| OutputRecord {
        written_at: entry.stamp.stamp.wall,
        ..output
    });
    Ok(found.max_by_key(|output| (output.fence, output.written_at)))
}
