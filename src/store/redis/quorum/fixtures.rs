//! Reports of members, and commits, for tests.

use std::collections::BTreeMap;

use super::register::{Ballot, Held};
use super::wish::{About, Did, Kept, Report};
use crate::store::kv::written::Written;
use crate::store::kv::{self, Commit, Fields};

pub(super) const TOKEN: &str = "token:g";

/// The ballot of this number.
pub(super) const fn ballot(number: u64) -> Ballot {
    Ballot { number, client: 0 }
}

/// A member that has joined, has done what was wished, and holds nothing.
pub(super) fn report() -> Report {
    Report {
        did: Did::Done,
        process: String::new(),
        is_sure: true,
        generation: Ballot::LOWEST,
        incarnation: String::new(),
        highest: Ballot::LOWEST,
        now_ms: 0,
        parts: Vec::new(),
        held: BTreeMap::new(),
    }
}

/// An entry of this version.
pub(super) fn kept(version: &str) -> Kept {
    let written = Written {
        version: version.to_owned(),
        ..Written::default()
    };
    Kept {
        written: Some(written),
        age_ms: 0,
        about: About::default(),
    }
}

/// Such a member that holds this by the ballot of this number, and maybe more.
pub(super) fn holds(mut report: Report, key: &str, number: u64, value: Kept) -> Report {
    let accepted = ballot(number);
    report.held.insert(key.to_owned(), Held { accepted, value });
    report
}

/// A new version of an entry. It is stamped.
pub(super) fn put(key: &str, version: &str) -> kv::Put {
    kv::Put {
        key: key.to_owned(),
        version: version.to_owned(),
        fields: Fields::new(),
        stamps: true,
        numbered: false,
        lists: Vec::new(),
    }
}

/// The token from one version to the next.
pub(super) fn swapping(from: Option<&str>, to: &str) -> Commit {
    Commit {
        compare: vec![(TOKEN.to_owned(), from.map(str::to_owned))],
        puts: vec![put(TOKEN, to)],
        ..Commit::default()
    }
}
