//! For whom files are made: the permissions follow the directory that they are made in.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// The set-group-id bit: what is made in the directory belongs to the directory's group.
const SET_GROUP_ID: u32 = 0o2000;

const GROUP_WRITES: u32 = 0o020;

const OTHERS_WRITE: u32 = 0o002;

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
    /// How a directory is shared. One that can't be looked at is private.
    #[must_use]
    pub fn of(directory: &Path) -> Self {
        // The parent of a relative path may be empty: the current directory.
        let directory = match directory.as_os_str().is_empty() {
            true => Path::new("."),
            false => directory,
        };
        fs::metadata(directory).map_or(Self::Private, |found| Self::of_mode(found.mode()))
    }

    const fn of_mode(mode: u32) -> Self {
        let wanted = SET_GROUP_ID | GROUP_WRITES;
        match mode & wanted == wanted && mode & OTHERS_WRITE == 0 {
            true => Self::Group,
            false => Self::Private,
        }
    }

    /// The permissions of a file, whatever the umask is.
    #[must_use]
    pub const fn file_mode(self) -> u32 {
        match self {
            Self::Private => 0o600,
            Self::Group => 0o660,
        }
    }

    /// The permissions of a directory, whatever the umask is.
    #[must_use]
    pub const fn directory_mode(self) -> u32 {
        match self {
            Self::Private => 0o700,
            Self::Group => 0o770 | SET_GROUP_ID,
        }
    }

    /// Makes one directory, shared like its parent. Another process may be making it too.
    ///
    /// # Errors
    /// Those of mkdir(2) and chmod(2): `AlreadyExists` if it is there.
    pub fn make_directory(path: &Path) -> io::Result<()> {
        let parent = path.parent().unwrap_or(Path::new("/"));
        let mode = Self::of(parent).directory_mode();
        DirBuilder::new().mode(mode).create(path)?;
        // Restores the bits that the umask removed.
        fs::set_permissions(path, Permissions::from_mode(mode))
    }
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

    #[test]
    fn a_directory_is_made_like_its_parent() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        for (parent, made) in [(0o700, 0o700), (0o755, 0o700), (0o2770, 0o2770)] {
            let parent_path = folder.path().join(format!("{parent:o}"));
            fs::create_dir(&parent_path).unwrap();
            fs::set_permissions(&parent_path, Permissions::from_mode(parent)).unwrap();
            let path = parent_path.join("made");
            Sharing::make_directory(&path).unwrap();
            assert_eq!(mode(&path), made);
            let again = Sharing::make_directory(&path).unwrap_err();
            assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(Sharing::of(Path::new("/no/such")), Sharing::Private);
    }
}
