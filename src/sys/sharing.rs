//! For whom files are made, and whose they are: that follows the directory that they lie in.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

use super::user::effective_id;

/// The set-group-id bit: what is made in the directory belongs to the directory's group.
const SET_GROUP_ID: u32 = 0o2000;

/// The sticky bit: only its owner may rename or remove what lies in the directory.
const STICKY: u32 = 0o1000;

const GROUP_WRITES: u32 = 0o020;

const OTHERS_WRITE: u32 = 0o002;

/// Reading and writing, for the group and for everybody.
const GROUP: u32 = 0o060;
const EVERYBODY: u32 = 0o006;

/// Who shares a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// No other user: what is made is for this user alone.
    Private,
    /// The directory's group, as its set-group-id bit and its group's right to write say. What
    /// everybody may write to is not shared by this.
    Group,
}

impl Sharing {
    /// How a directory is shared.
    pub fn of(directory: &Metadata) -> Self {
        Self::of_mode(directory.mode())
    }

    const fn of_mode(mode: u32) -> Self {
        let wanted = SET_GROUP_ID | GROUP_WRITES;
        match mode & wanted == wanted && mode & OTHERS_WRITE == 0 {
            true => Self::Group,
            false => Self::Private,
        }
    }

    /// The permissions of a file, whatever the umask is.
    pub const fn file_mode(self) -> u32 {
        match self {
            Self::Private => 0o600,
            Self::Group => 0o660,
        }
    }

    /// The permissions of a directory, whatever the umask is.
    pub const fn directory_mode(self) -> u32 {
        match self {
            Self::Private => 0o700,
            Self::Group => 0o770 | SET_GROUP_ID | STICKY,
        }
    }
}

/// True if only its owner may rename or remove what lies in a directory.
pub fn is_sticky(directory: &Metadata) -> bool {
    directory.mode() & STICKY != 0
}

/// True if it belongs to root or to the user that this process acts as.
pub fn is_own(found: &Metadata) -> bool {
    is_own_of(effective_id(), found)
}

/// True if it belongs to root or to this user.
pub fn is_own_of(user: u32, found: &Metadata) -> bool {
    found.uid() == 0 || found.uid() == user
}

/// True if another user may put files into a directory, except for root.
fn is_open_to_others(directory: &Metadata) -> bool {
    !is_own(directory) || directory.mode() & (GROUP_WRITES | OTHERS_WRITE) != 0
}

/// Why a file can't be one that lies beside this database for its users, in this directory. Reads
/// after the file's name. Another user may have given the name to a private file of this user's: what
/// is written to it must be no secret to those who may write to the database, and must destroy
/// nothing of others.
pub fn objection(
    found: &Metadata,
    database: &Metadata,
    directory: &Metadata,
) -> Option<&'static str> {
    if !found.is_file() {
        return Some("is no regular file");
    }
    if found.nlink() > 1 {
        return Some("has several names (hard links)");
    }
    let allows = |mode| found.mode() & mode == mode;
    let is_of_its_users = match database.mode() {
        mode if mode & EVERYBODY == EVERYBODY => allows(EVERYBODY),
        mode if mode & GROUP == GROUP => allows(GROUP) && found.gid() == database.gid(),
        _ => found.uid() == database.uid(),
    };
    (is_open_to_others(directory) && !is_of_its_users)
        .then_some("does not belong to the users of the database")
}

/// True if another user may have put this database into a directory that every user may write to: what it says of tokens
/// and keys would be that user's word.
pub fn is_planted(database: &Metadata, directory: &Metadata) -> bool {
    let is_open = directory.mode() & OTHERS_WRITE != 0;
    is_open && !is_own(database) && database.uid() != directory.uid()
}

/// Why a directory, within this one, can't be one of the users of a database.
pub fn objection_to_directory(found: &Metadata, parent: &Metadata) -> Option<&'static str> {
    let is_of_its_users = match Sharing::of(parent) {
        Sharing::Group => found.mode() & GROUP == GROUP && found.gid() == parent.gid(),
        Sharing::Private => is_own(found) || found.uid() == parent.uid(),
    };
    (is_open_to_others(parent) && !is_of_its_users)
        .then_some("does not belong to the users of the directory that it lies in")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_a_group_with_its_bit_is_shared() {
        for (mode, sharing) in [
            (0o40_700, Sharing::Private),
            (0o40_770, Sharing::Private),
            (0o42_750, Sharing::Private),
            (0o42_770, Sharing::Group),
            (0o42_775, Sharing::Group),
            (0o43_770, Sharing::Group),
            (0o42_777, Sharing::Private),
            (0o41_777, Sharing::Private),
        ] {
            assert_eq!(Sharing::of_mode(mode), sharing, "{mode:o}");
        }
    }
}
