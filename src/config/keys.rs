//! The keys of a configuration file, which the command line knows: each is an option's long name.

/// A key of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The option's long name.
    pub name: String,
    /// The setting that it replaces.
    pub instead_of: Option<String>,
    /// The value names a store, and may hold a password.
    pub is_store: bool,
}

/// A value of a file, as far as a key can have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'v> {
    Switch(bool),
    Number(u64),
    Text(&'v str),
    /// A date, a list, a negative number: no key has it.
    Other,
}

/// All keys.
pub trait Keys {
    fn find(&self, name: &str) -> Option<Key>;

    /// The value as written after the option; `None` is `false`.
    ///
    /// # Errors
    /// What is wrong with it; reads after the name.
    fn read(&self, key: &Key, value: Value<'_>) -> Result<Option<String>, String>;

    fn names(&self) -> Vec<String>;
}

/// Options that make no sense in a file, with the alternative.
pub static REFUSED: &[(&str, &str)] = &[
    ("group", "a group's settings stand in a table [groups.NAME]"),
    ("command", "the job stands on the command line, after --"),
    ("once", "a key belongs to one run: give it as --once"),
    (
        "report",
        "each run would replace the last one's: give it as --report",
    ),
    ("config", "a file can't name another"),
    ("json", "give it as --json"),
];

/// How similar two names must be (1 is equal) for a suggestion.
const LEAST_LIKENESS: f64 = 0.8;

/// The most similar name, if one is similar enough.
pub(super) fn nearest(name: &str, names: Vec<String>) -> Option<String> {
    let name = name.to_lowercase().replace('_', "-");
    let near = names
        .into_iter()
        .map(|key| (strsim::jaro(&key, &name), key));
    let near = near.filter(|(likeness, _)| *likeness >= LEAST_LIKENESS);
    near.max_by(|a, b| a.0.total_cmp(&b.0)).map(|it| it.1)
}
