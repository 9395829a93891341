//! Which entries are registers, and which change with one. Pure.

/// The kinds of entries that are registers.
const REGISTERS: [&str; 5] = ["token", "incarnation", "mark", "pruned", "total"];

/// The kinds of entries that are written together with their group's token.
const OF_TOKEN: [&str; 3] = ["run", "key", "act"];

fn kind(key: &str) -> &str {
    key.split(':').next().unwrap_or_default()
}

pub(super) fn is_register(key: &str) -> bool {
    REGISTERS.contains(&kind(key))
}

/// The register that an entry changes with.
pub(super) fn register_of(key: &str) -> Option<String> {
    if is_register(key) {
        return Some(key.to_owned());
    }
    let group = key.split(':').nth(1).unwrap_or_default();
    let of_token = OF_TOKEN.contains(&kind(key));
    of_token.then(|| format!("token:{group}"))
}
