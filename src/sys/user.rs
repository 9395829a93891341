//! Users: the one that runs this process, and what the system knows of each.

use std::path::PathBuf;

use nix::unistd::{Uid, User, geteuid, getuid};

/// The user's name, or its number if it has none; under sudo with the calling user. For display
/// only, never for a decision: a user may set sudo's variables.
pub fn name() -> String {
    let name = name_of(getuid().as_raw());
    let caller = std::env::var("SUDO_USER").ok();
    let caller = caller.map(|text| text.chars().filter(|c| !c.is_control()).take(100).collect());
    match caller.filter(|caller: &String| !caller.is_empty() && *caller != name) {
        Some(caller) => format!("{name} (sudo by {caller})"),
        None => name,
    }
}

/// The name of the user with this number, or "uid" and the number if it has none.
pub fn name_of(uid: u32) -> String {
    let found = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    found.map_or_else(|| format!("uid {uid}"), |user| user.name)
}

/// An entry in the system's list of users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The user's name.
    pub name: String,
    /// The user's home directory.
    pub home: PathBuf,
}

/// The user that this process acts as; `None` if it is not in the list.
pub fn effective() -> Option<Account> {
    let user = User::from_uid(geteuid()).ok()??;
    Some(Account {
        name: user.name,
        home: user.dir,
    })
}

/// The number of the user that this process acts as.
pub fn effective_id() -> u32 {
    geteuid().as_raw()
}

/// True if this process has root's rights.
pub fn is_root() -> bool {
    geteuid().is_root()
}
