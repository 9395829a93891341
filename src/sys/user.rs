//! Who runs this process.

use nix::unistd::{User, getuid};

/// The user's name, or its number if it has none; behind sudo, who called that as well.
/// It is told, never believed: a user may set what sudo says.
#[must_use]
pub fn name() -> String {
    let uid = getuid();
    let found = User::from_uid(uid).ok().flatten();
    let name = found.map_or_else(|| format!("uid {uid}"), |user| user.name);
    let caller = std::env::var("SUDO_USER").ok();
    let caller = caller.map(|text| text.chars().filter(|c| !c.is_control()).take(100).collect());
    match caller.filter(|caller: &String| !caller.is_empty() && *caller != name) {
        Some(caller) => format!("{name} (sudo by {caller})"),
        None => name,
    }
}

/// Whether this process has root's rights.
#[must_use]
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}
