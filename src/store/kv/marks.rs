//! The entries of resources' marks: the highest fence that has used each. It is the entry's tag.

use super::{Commit, Committed, Keys, Kv, KvStore, Put, TRIES};
use crate::store::sql::cell::BadColumn;
use crate::store::{Advanced, Marks, StoreError};
use crate::token::{Fence, ResourceName};

const MARK: &str = "mark\u{1f}";

impl<K: Kv> Marks for KvStore<K> {
    fn advance(&mut self, resource: &ResourceName, fence: Fence) -> Result<Advanced, StoreError> {
        let key = format!("{MARK}{resource}");
        for _ in 0..TRIES {
            let found = self.kv.get(&[Keys::One(key.clone())])?;
            let tag = found.entries.get(&key).map(|entry| entry.tag.clone());
            let mark = tag.as_deref().map(str::parse::<i64>).transpose();
            let mark = mark.map_err(|why| self.bad(&key, &BadColumn::of("tag", why)))?;
            if let Some(mark) = mark.filter(|mark| *mark > fence.0) {
                return Ok(Advanced::Behind(Fence(mark)));
            }
            let commit = Commit {
                compare: vec![(key.clone(), tag)],
                puts: vec![Put {
                    key: key.clone(),
                    value: String::new(),
                    tag: fence.0.to_string(),
                    stamps: true,
                }],
                ..Commit::default()
            };
            if let Committed::Done(_) = self.kv.commit(&commit)? {
                return Ok(Advanced::Stored);
            }
        }
        Err(self.contended())
    }
}
