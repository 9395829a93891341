//! What the store keeps of a job's output.

use serde::{Deserialize, Serialize};

use super::document::Others;
use super::names::{Fence, GroupName, SessionId};
use super::time::WallTime;

/// The end of a job's output.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OutputRecord {
    #[serde(rename = "token_group")]
    pub group: GroupName,
    /// The fence of the run's grant.
    pub fence: Fence,
    /// The run's session.
    pub session: SessionId,
    /// When it was written, by the store's wall clock. The store sets it.
    #[serde(rename = "written_at_ms")]
    pub written_at: WallTime,
    /// The number of bytes that the job printed, of which only the last are kept.
    pub printed: u64,
    /// The last bytes, in base64: a job may print anything.
    pub last: String,
    /// What a newer program has added.
    #[serde(flatten)]
    pub other: Others,
}

#[cfg(test)]
pub(crate) mod fixture {
    use super::*;

    /// The output of a run with this fence, with every field.
    pub(crate) fn output(group: &str, fence: i64, last: &str) -> OutputRecord {
        OutputRecord {
            group: GroupName::new(group).unwrap(),
            fence: Fence(fence),
            session: SessionId::new(&format!("s{fence}")).unwrap(),
            written_at: WallTime(0),
            printed: 1 << 40,
            last: last.to_owned(),
            other: Others::new(),
        }
    }
}
