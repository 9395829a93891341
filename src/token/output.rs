//! What the store keeps of a job's output.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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

impl OutputRecord {
    /// The record of a run whose job printed so many bytes, the last of them these. The store sets
    /// the time.
    pub fn new(
        group: GroupName,
        fence: Fence,
        session: SessionId,
        printed: u64,
        last: &[u8],
    ) -> Self {
        Self {
            group,
            fence,
            session,
            written_at: WallTime::default(),
            printed,
            last: STANDARD.encode(last),
            other: Others::new(),
        }
    }

    /// The last bytes; `None` if the record is damaged.
    pub fn last_bytes(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.last).ok()
    }

    /// Whether the job printed more than is kept.
    pub fn is_cut(&self) -> bool {
        let kept = self.last_bytes().map_or(0, |last| last.len());
        self.printed > u64::try_from(kept).unwrap_or(u64::MAX)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_can_be_kept() {
        let bytes: Vec<u8> = (0..=255).collect();
        let group = GroupName::new("g").unwrap();
        let session = SessionId::from_random(1);
        let mut record = OutputRecord::new(group, Fence(1), session, 256, &bytes);
        assert_eq!(record.last_bytes(), Some(bytes));
        assert!(!record.is_cut());
        record.printed = 257;
        assert!(record.is_cut());
        record.last = "?".to_owned();
        assert_eq!(record.last_bytes(), None);
    }
}
