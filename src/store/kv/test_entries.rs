//! Entries for tests.

use std::collections::BTreeMap;

use super::flights::Read;
use super::written::Written;
use super::{Delete, Put};

/// A write of an entry that is in no list; the server stamps it.
pub(in crate::store) fn put(key: &str, version: &str) -> Put {
    Put {
        key: key.to_owned(),
        version: version.to_owned(),
        fields: BTreeMap::new(),
        stamps: true,
        numbered: false,
        lists: Vec::new(),
    }
}

/// The removal of an entry that is in no list.
pub(in crate::store) fn delete(key: &str) -> Delete {
    Delete {
        key: key.to_owned(),
        lists: Vec::new(),
    }
}

/// An entry of this version, as it was read at this revision. Its number is 1.
pub(in crate::store) fn read(version: &str, revision: i64) -> Read {
    Read {
        written: Written {
            version: version.to_owned(),
            ..Written::default()
        },
        number: 1,
        revision,
    }
}
