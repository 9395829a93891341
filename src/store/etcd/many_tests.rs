//! Commits of many entries on a real server, which takes 128 operations in one transaction.

use std::collections::BTreeMap;
use std::time::Duration;

use super::EtcdKv;
use super::settings::Settings;
use super::test_server::Cluster;
use crate::store::kv::keys::whole;
use crate::store::kv::{Commit, Delete, Kv as _, Outcome, Put, Rank};

/// One pruning removes up to 200 runs. Some may have been removed by another at the same time.
#[test]
fn a_commit_removes_as_many_entries_as_a_pruning_finds() {
    let settings = Settings::read(&Cluster::shared().url(), |_| None).unwrap();
    let mut kv = EtcdKv::over(settings, Duration::from_secs(10));
    let key = |n: usize| format!("run:g:{n:03}");
    let put = |n: usize| Put {
        key: key(n),
        version: "final".into(),
        fields: BTreeMap::new(),
        stamps: true,
        numbered: false,
        lists: ["runs", "runs:g"]
            .map(|list| (list.to_owned(), Rank::Now))
            .to_vec(),
    };
    let numbers: Vec<usize> = (0..150).collect();
    for some in numbers.chunks(30) {
        let commit = Commit {
            puts: some.iter().map(|n| put(*n)).collect(),
            ..Commit::default()
        };
        assert_eq!(kv.commit(&commit).unwrap().outcome, Outcome::Done);
    }
    let delete = |n| Delete {
        key: key(n),
        lists: Vec::new(),
    };
    let listed = || whole("runs".into());
    assert_eq!(kv.get(&[listed()]).unwrap().entries.len(), 150);
    let commit = Commit {
        compare: vec![("note".into(), None)],
        puts: vec![Put {
            key: "note".into(),
            ..put(0)
        }],
        deletes: (0..200).map(delete).collect(),
        then: vec![listed()],
        ..Commit::default()
    };
    let committed = kv.commit(&commit).unwrap();
    assert_eq!(committed.outcome, Outcome::Done);
    let left: Vec<&String> = committed.found.entries.keys().collect();
    assert_eq!(left, ["note"]);
}
