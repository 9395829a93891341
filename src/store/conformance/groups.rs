//! All groups, and their names.

use super::*;

pub(super) fn list_shows_every_group(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    for (n, group) in ["b", "a", "c"].into_iter().enumerate() {
        grant_to(store, &claim(group, "x", &format!("s{n}")), n as u64);
    }
    let listing = store.list().unwrap();
    let groups: Vec<_> = listing.rows.iter().map(|row| row.group.as_str()).collect();
    assert_eq!(groups, ["a", "b", "c"]);
    assert_eq!(listing.now, fixture.now());
    for found in listing.rows {
        assert_eq!(found, row(store, found.group.as_str()));
    }
}

pub(super) fn groups_hold_quotes_and_unicode_and_percent_signs(fixture: &dyn Fixture) {
    let mut store = fixture.store();
    let store = store.as_mut();
    let names = [
        "it's",
        "\"quoted\"",
        "100 %",
        "a_b",
        "a?b=$1",
        "nächtlich",
        "夜間",
        "'; DROP TABLE tokens;--",
        "A",
        "a",
        "back\\slash",
        "e\u{301}",
        "é",
        "two  blanks",
    ];
    for (n, name) in names.into_iter().enumerate() {
        grant_to(store, &claim(name, "x", &format!("s{n}")), n as u64);
    }
    for (n, name) in names.into_iter().enumerate() {
        let token = row(store, name);
        assert_eq!(token.group.as_str(), name);
        assert_eq!(token.session().unwrap().as_str(), format!("s{n}"));
        let group = Some(token.group);
        let query = RunQuery {
            group,
            ..RunQuery::default()
        };
        assert_eq!(found(store, &query).len(), 1, "{name}");
    }
    assert_eq!(store.list().unwrap().rows.len(), names.len());
}
