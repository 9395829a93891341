//! The file by which a process on this host can see that `hold` has a token here, and in which
//! session. It counts only while its lock is held. The lock ends with its process, however that
//! ends. The file itself stays, so that no process removes another's.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::sys::file::{NO_FOLLOW, NO_WAIT};
use crate::sys::ofd;
use crate::sys::sharing::is_own_of;
use crate::sys::user::effective_id;
use crate::token::{GroupName, SessionId};

/// The byte that is locked.
const LOCK: u8 = 0;

/// The size limit: real files are much shorter.
const LONGEST: u64 = 8 * 1024;

/// The longest name of a file, less the length that a temporary name may add.
const LONGEST_NAME: usize = 250;

/// The file's contents, as a JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub group: String,
    /// The id of this node.
    pub client_id: String,
    /// The session that holds the token.
    pub session: String,
    /// The fencing token.
    pub fence: String,
}

impl Holder {
    fn text(&self) -> io::Result<Vec<u8>> {
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        Ok(text)
    }
}

/// An open runtime file.
#[derive(Debug)]
pub struct RuntimeFile(File);

impl RuntimeFile {
    /// Opens the file for its owner alone, and makes it if needed.
    ///
    /// # Errors
    /// Those of open(2); AlreadyExists if the file has other contents.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        options.custom_flags(NO_FOLLOW | NO_WAIT);
        match options.clone().create_new(true).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => {
                let file = made?;
                file.set_permissions(Permissions::from_mode(0o600))?;
                return Ok(Self(file));
            }
        }
        let mut file = options.open(path)?;
        let found = file.metadata()?;
        let is_own = found.uid() == effective_id() && found.nlink() == 1;
        if !found.is_file() || !is_own || contents(&mut file)? == Some(None) {
            let text = "it is something else; name a file of its own";
            return Err(io::Error::new(ErrorKind::AlreadyExists, text));
        }
        Ok(Self(file))
    }

    /// Takes the lock; false if another process has it.
    ///
    /// # Errors
    /// Those of fcntl(2).
    pub fn lock(&self) -> io::Result<bool> {
        match ofd::lock(self.0.as_fd(), LOCK) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes the file. To be called with the lock.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&mut self, contents: &Holder) -> io::Result<()> {
        self.0.set_len(0)?;
        io::Seek::rewind(&mut self.0)?;
        self.0.write_all(&contents.text()?)
    }

    /// True if this is the file at `path`.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn is_at(&self, path: &Path) -> io::Result<bool> {
        let own = self.0.metadata()?;
        match std::fs::symlink_metadata(path) {
            Ok(found) => Ok((found.dev(), found.ino()) == (own.dev(), own.ino())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// True if the file may still have these contents: the length matches.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn has(&self, contents: &Holder) -> io::Result<bool> {
        Ok(self.0.metadata()?.len() == contents.text()?.len() as u64)
    }

    /// The token is given up: from now on every check sees none. The contents stay: a write would
    /// wait for a file system that hangs, and without the lock they do not count.
    ///
    /// # Errors
    /// Those of fcntl(2). The lock ends with the process at the latest.
    pub fn give_up(&self) -> io::Result<()> {
        ofd::unlock(self.0.as_fd(), LOCK)
    }
}

/// The session in which the agent with this file holds its token; `None` without a token, or
/// without such a file.
///
/// # Errors
/// The file can't be read, or another user may have put it there.
pub fn held_session(path: &Path) -> io::Result<Option<SessionId>> {
    let mut options = OpenOptions::new();
    let opened = options
        .read(true)
        .custom_flags(NO_FOLLOW | NO_WAIT)
        .open(path);
    let mut file = match opened {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    if !is_believed(path, &file.metadata()?, effective_id()) {
        let text = "another user may have put it there, so it is not believed";
        return Err(io::Error::new(ErrorKind::PermissionDenied, text));
    }
    if !ofd::is_locked(file.as_fd(), LOCK)? {
        return Ok(None);
    }
    let held = contents(&mut file)?.flatten();
    Ok(held.and_then(|held| SessionId::new(&held.session).ok()))
}

/// True if a file is one of this user's agents (`me`), or of root's. Root also believes a user's file in a directory where
/// no other user may make one.
fn is_believed(path: &Path, found: &Metadata, me: u32) -> bool {
    let is_users_place = || {
        let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
        let directory = std::fs::metadata(directory.unwrap_or(Path::new(".")));
        let is_closed = |it: &Metadata| it.uid() == found.uid() && it.mode() & 0o022 == 0;
        directory.is_ok_and(|it| is_closed(&it))
    };
    found.is_file() && (is_own_of(me, found) || me == 0 && is_users_place())
}

/// The contents of a file: `None` if empty, `Some(None)` if they are not a runtime file's.
fn contents(file: &mut File) -> io::Result<Option<Option<Holder>>> {
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text)?;
    Ok((!text.is_empty()).then(|| serde_json::from_slice(&text).ok()))
}

/// The default path of a group's file. With `make` its directory is made if needed.
///
/// # Errors
/// There is no place for it, or the group's name is too long for a file name.
pub fn default_path(
    is_root: bool,
    runtime_directory: Option<&OsStr>,
    state: Option<PathBuf>,
    group: &GroupName,
) -> io::Result<PathBuf> {
    let users = runtime_directory
        .map(Path::new)
        .filter(|path| path.is_absolute())
        .map(|path| path.join("tokenrun"));
    let directory = match is_root {
        true => Some(PathBuf::from("/run/tokenrun")),
        false => users.or(state),
    };
    let name = file_name(group.as_str());
    match directory {
        Some(directory) if name.len() <= LONGEST_NAME => Ok(directory.join(name)),
        Some(_) => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "the group's name is too long for it",
        )),
        None => Err(io::Error::new(
            ErrorKind::NotFound,
            "neither XDG_RUNTIME_DIR nor HOME is set",
        )),
    }
}

/// Makes the directory of a default path, for its owner alone.
///
/// # Errors
/// Those of mkdir(2).
pub fn make_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

/// A group's name as a file name: special characters are escaped as in a URL.
fn file_name(group: &str) -> String {
    let mut name = String::new();
    for byte in group.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            b'.' if !name.is_empty() => name.push('.'),
            byte => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name + ".json"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held() -> Holder {
        Holder {
            group: "job".into(),
            client_id: "a".into(),
            session: SessionId::from_random(7).to_string(),
            fence: "12".into(),
        }
    }

    #[test]
    fn needs_root_another_users_file_is_not_believed() {
        use std::os::unix::fs::{chown, symlink};
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["job.json", "link"].map(|it| folder.path().join(it));
        let mode = |mode| std::fs::set_permissions(folder.path(), Permissions::from_mode(mode));
        let is_denied = |path: &Path| held_session(path).is_err();
        let mut file = RuntimeFile::open(&path).unwrap();
        file.write(&held()).unwrap();
        assert!(file.lock().unwrap());
        symlink(&path, &link).unwrap();
        assert!(held_session(&path).unwrap().is_some());
        assert!(is_denied(&link));
        chown(&path, Some(61_002), None).unwrap();
        assert!(RuntimeFile::open(&path).is_err());
        assert!(is_denied(&path), "in a directory of root's");
        chown(folder.path(), Some(61_002), None).unwrap();
        assert!(held_session(&path).unwrap().is_some(), "in one of its own");
        for open in [0o770, 0o1777] {
            mode(open).unwrap();
            assert!(is_denied(&path), "{open:o}");
        }
    }

    #[test]
    fn only_root_believes_another_users_file_in_a_place_of_that_user() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.json");
        drop(RuntimeFile::open(&path).unwrap());
        let found = std::fs::metadata(&path).unwrap();
        let me = effective_id();
        assert!(is_believed(&path, &found, me));
        assert!(is_believed(&path, &found, 0));
        assert_eq!(is_believed(&path, &found, 61_002), me == 0);
        if me == 0 {
            std::os::unix::fs::chown(&path, Some(61_003), None).unwrap();
            std::os::unix::fs::chown(folder.path(), Some(61_003), None).unwrap();
            let found = std::fs::metadata(&path).unwrap();
            assert!(!is_believed(&path, &found, 61_002));
        }
    }

    #[test]
    fn only_a_regular_file_with_one_name_is_a_runtime_file() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let [path, link, pipe] = ["job.json", "link", "pipe"].map(|it| folder.path().join(it));
        drop(RuntimeFile::open(&path).unwrap());
        symlink(&path, &link).unwrap();
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(RuntimeFile::open(&link).is_err());
        let refused = |path: &Path| RuntimeFile::open(path).unwrap_err().kind();
        assert_eq!(refused(&pipe), ErrorKind::AlreadyExists);
        let denied = held_session(&pipe).unwrap_err();
        assert_eq!(denied.kind(), ErrorKind::PermissionDenied);
        drop(RuntimeFile::open(&path).unwrap());
        std::fs::hard_link(&path, folder.path().join("second")).unwrap();
        assert_eq!(refused(&path), ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_runtime_file_is_a_line_of_json_whatever_was_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.json");
        let mut file = RuntimeFile::open(&path).unwrap();
        let long = Holder {
            client_id: "a".repeat(100),
            ..held()
        };
        file.write(&long).unwrap();
        assert!(file.has(&long).unwrap());
        file.write(&held()).unwrap();
        assert!(!file.has(&long).unwrap());
        assert!(file.has(&held()).unwrap());
        let text = std::fs::read_to_string(&path).unwrap();
        let line = serde_json::to_string(&held()).unwrap();
        assert_eq!(text, format!("{line}\n"));
    }

    #[test]
    fn a_runtime_file_counts_as_long_as_its_lock_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.json");
        assert_eq!(held_session(&path).unwrap(), None);
        let mut file = RuntimeFile::open(&path).unwrap();
        assert!(file.lock().unwrap());
        assert_eq!(held_session(&path).unwrap(), None, "nothing is in it yet");
        file.write(&held()).unwrap();
        assert_eq!(
            held_session(&path).unwrap(),
            Some(SessionId::from_random(7))
        );
        // The file is this user's, whatever others may do in the directory.
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
        assert!(held_session(&path).unwrap().is_some());
        let mut other = RuntimeFile::open(&path).unwrap();
        assert!(!other.lock().unwrap());
        // The process ends without releasing the lock.
        drop(file);
        assert_eq!(held_session(&path).unwrap(), None);
        assert!(other.lock().unwrap());
        other.write(&held()).unwrap();
        other.give_up().unwrap();
        assert_eq!(held_session(&path).unwrap(), None);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_with_other_contents_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        std::fs::write(&path, "mine").unwrap();
        assert!(RuntimeFile::open(&path).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("new"), &link).unwrap();
        assert!(RuntimeFile::open(&link).is_err());
        assert!(RuntimeFile::open(folder.path()).is_err());
    }

    #[test]
    fn every_group_has_a_file_of_its_own() {
        let path = |is_root, runtime: Option<&str>, group: &str| {
            let group = GroupName::new(group).unwrap();
            let state = Some(PathBuf::from("/home/u/state"));
            default_path(is_root, runtime.map(OsStr::new), state, &group)
        };
        let is =
            |found: io::Result<PathBuf>, path: &str| assert_eq!(found.unwrap(), Path::new(path));
        is(path(true, Some("/run/user/0"), "a"), "/run/tokenrun/a.json");
        is(
            path(false, Some("/run/user/1"), "a/b"),
            "/run/user/1/tokenrun/a%2Fb.json",
        );
        is(
            path(false, Some("relative"), ".."),
            "/home/u/state/%2E..json",
        );
        assert!(path(true, None, &"ä".repeat(200)).is_err());
        // Three characters for each byte of an umlaut, and five for the ending: 250 in all.
        let longest = "ä".repeat(40) + "aaaaa";
        assert!(path(true, None, &longest).is_ok());
        assert!(path(true, None, &(longest + "a")).is_err());
    }
}
