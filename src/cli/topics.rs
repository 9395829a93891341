//! The topics of `tokenrun help`: texts that are generated from the program's own data, as the manual is.

/// The topics, by the name that `tokenrun help` takes, for a terminal of 80 columns.
pub const TOPICS: [(&str, &str); 6] = [
    ("exit-codes", include_str!("topics/exit-codes.txt")),
    ("environment", include_str!("topics/environment.txt")),
    ("json", include_str!("topics/json.txt")),
    ("configuration", include_str!("topics/configuration.txt")),
    ("options", include_str!("topics/options.txt")),
    ("metrics", include_str!("topics/metrics.txt")),
];

/// The names of all topics.
pub(crate) fn names() -> Vec<&'static str> {
    TOPICS.iter().map(|(name, _)| *name).collect()
}

/// The text of a topic; `None` if no topic has this name.
pub(crate) fn text_of(name: &str) -> Option<&'static str> {
    let found = TOPICS.iter().find(|(other, _)| *other == name);
    found.map(|(_, text)| *text)
}
