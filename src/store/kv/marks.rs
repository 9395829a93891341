//! The entries of resources' marks: the highest fence that has used each. It is the entry's version.

use super::keys::key;
use super::{Ask, Commit, Fields, KvStore, Outcome, Put};
use crate::store::sql::cell::BadColumn;
use crate::store::{Advanced, Marks, StoreError};
use crate::token::{Fence, ResourceName};

impl Marks for KvStore {
    fn advance(&mut self, resource: &ResourceName, fence: Fence) -> Result<Advanced, StoreError> {
        let key = key([&"mark", resource]);
        self.persistently(|store| {
            let found = store.kv.get(&[Ask::One(key.clone())])?;
            let version = found.entries.get(&key).map(|entry| entry.version.clone());
            let mark = version.as_deref().map(str::parse::<i64>).transpose();
            let mark = mark.map_err(|why| store.bad(&key, &BadColumn::of("version", why)))?;
            if let Some(mark) = mark.filter(|mark| *mark > fence.0) {
                return Ok(Some(Advanced::Behind(Fence(mark))));
            }
            let commit = Commit {
                compare: vec![(key.clone(), version)],
                puts: vec![Put {
                    key: key.clone(),
                    version: fence.0.to_string(),
                    fields: Fields::new(),
                    stamps: true,
                    numbered: false,
                    lists: Vec::new(),
                }],
                ..Commit::default()
            };
            let is_done = store.kv.commit(&commit)?.outcome == Outcome::Done;
            Ok(is_done.then_some(Advanced::Stored))
        })
    }
}
