//! Where a path leads, past no other user's symbolic link.
//!
//! In a directory that others may write to, a name can lead elsewhere from one call to the next. So a
//! path is followed once, to a directory that is open from then on. What is done there is done with
//! names of that directory, none of which is followed.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, readlinkat, renameat,
    unlinkat,
};
use rustix::process::umask;

use super::errno::Errno;
use super::filesystem::FileSystem;
use super::sharing::{Sharing, is_own};

/// As many as the kernel follows.
const MOST_LINKS: usize = 40;

/// A file or directory of whatever kind, and nothing done to it yet. Closing this drops no lock.
const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Whatever file lies there: no link is followed, no pipe waited for, no terminal acquired.
const PLAIN: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    file: File,
    /// Absolute and without symbolic links, for messages and for libraries that take a path.
    path: PathBuf,
}

/// Where a path leads.
#[derive(Debug)]
pub struct Place {
    /// The last directory on the way that exists.
    pub directory: Directory,
    /// What follows: a file, or what is missing. Nothing if the path leads to a directory.
    pub names: VecDeque<OsString>,
    /// The missing part is the target of a symbolic link: probably a file system is not mounted.
    pub is_dangling: bool,
}

impl Place {
    /// Follows a path. A symbolic link is followed if it is root's, this user's, or the owner's of the
    /// directory that it lies in: the kernel's `protected_symlinks`, in every directory.
    ///
    /// # Errors
    /// Those of open(2) and getcwd(2), and a link of another user.
    pub fn find(path: &Path) -> io::Result<Self> {
        let names = names_of(&std::path::absolute(path)?);
        match Self::without_links(&names) {
            Some(place) => Ok(place),
            None => Self::follow(names),
        }
    }

    /// The place, if all directories on the way exist and none is a symbolic link: the kernel says so in one
    /// call, where following the names takes three for each.
    fn without_links(names: &VecDeque<OsString>) -> Option<Self> {
        let name = names.back()?;
        if names.iter().any(|name| name == "..") {
            return None;
        }
        let mut above = PathBuf::from("/");
        above.extend(names.iter().take(names.len() - 1));
        let flags = LOOK | OFlags::DIRECTORY;
        let file = openat2(CWD, &above, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?;
        let directory = Directory {
            file: file.into(),
            path: above,
        };
        let (directory, names) = match directory.look(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (directory, VecDeque::from([name.clone()]))
            }
            found => {
                let found = found.ok()?;
                match found.metadata().ok()?.file_type() {
                    kind if kind.is_dir() => (directory.followed_by(name, found), VecDeque::new()),
                    kind if kind.is_symlink() => return None,
                    _ => (directory, VecDeque::from([name.clone()])),
                }
            }
        };
        Some(Self {
            directory,
            names,
            is_dangling: false,
        })
    }

    /// Follows the names, one after the other.
    fn follow(mut names: VecDeque<OsString>) -> io::Result<Self> {
        let mut directory = Directory::root()?;
        let mut links = 0;
        // How many names are left when the target of the outermost link is done.
        let mut after_link = None;
        while let Some(name) = names.pop_front() {
            after_link = after_link.filter(|after| names.len() >= *after);
            let found = match directory.look(&name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    names.push_front(name);
                    let is_dangling = after_link.is_some();
                    return Ok(Self {
                        directory,
                        names,
                        is_dangling,
                    });
                }
                found => found?,
            };
            let metadata = found.metadata()?;
            if metadata.is_dir() {
                directory = directory.followed_by(&name, found);
                continue;
            }
            let target = match metadata.is_symlink() {
                true => directory.target(&name, &found, &metadata)?,
                false => None,
            };
            let Some(target) = target else {
                names.push_front(name);
                break;
            };
            links += 1;
            if links > MOST_LINKS {
                return Err(Errno::ELOOP.into());
            }
            after_link = after_link.or(Some(names.len()));
            if target.is_absolute() {
                directory = Directory::root()?;
            }
            let mut all = names_of(&target);
            all.append(&mut names);
            names = all;
        }
        Ok(Self {
            directory,
            names,
            is_dangling: false,
        })
    }

    /// The directory and the name in it of a file, which may be missing; `None` if the path leads to a
    /// directory.
    ///
    /// # Errors
    /// If the file's directory is missing or is none.
    pub fn of_file(self) -> io::Result<Option<(Directory, OsString)>> {
        let (directory, mut names) = (self.directory, self.names.into_iter());
        let Some(name) = names.next() else {
            return Ok(None);
        };
        if names.next().is_some() {
            let there = directory.look(&name).and_then(|there| there.metadata());
            return Err(there.map_or_else(|error| error, |_| Errno::ENOTDIR.into()));
        }
        Ok(Some((directory, name)))
    }

    /// The whole path without symbolic links.
    pub fn path(&self) -> PathBuf {
        let mut path = self.directory.path.clone();
        path.extend(&self.names);
        path
    }
}

fn names_of(path: &Path) -> VecDeque<OsString> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    names.collect()
}

impl Directory {
    fn root() -> io::Result<Self> {
        let file = openat(CWD, "/", LOOK | OFlags::DIRECTORY, Mode::empty())?;
        let (file, path) = (File::from(file), PathBuf::from("/"));
        Ok(Self { file, path })
    }

    /// The directory with this path.
    ///
    /// # Errors
    /// Those of [`Place::find`], and `NotFound`.
    pub fn open(path: &Path) -> io::Result<Self> {
        let place = Place::find(path)?;
        match place.names.front() {
            None => Ok(place.directory),
            Some(name) => place.directory.enter(name),
        }
    }

    /// Makes the directory with this path, and those that are missing on the way to it. Each is shared
    /// like the one that it is made in.
    ///
    /// # Errors
    /// Those of [`Place::find`] and mkdir(2). A dangling link is `NotFound`.
    pub fn make(path: &Path) -> io::Result<Self> {
        Self::make_and(path, |_| Ok(()))
    }

    /// Makes directories as [`Self::make`] does, which survive a power cut.
    ///
    /// # Errors
    /// As [`Self::make`], and those of fsync(2).
    pub fn make_durable(path: &Path) -> io::Result<Self> {
        Self::make_and(path, Self::sync)
    }

    fn make_and(path: &Path, in_parent: impl Fn(&Self) -> io::Result<()>) -> io::Result<Self> {
        let place = Place::find(path)?;
        if place.is_dangling {
            return Err(Errno::ENOENT.into());
        }
        let mut directory = place.directory;
        for name in place.names {
            let mode = Mode::from_raw_mode(directory.sharing()?.directory_mode());
            // The mode is right from the beginning: what has the name later may be another directory.
            match without_umask(|| mkdirat(&directory.file, &name, mode)) {
                Ok(()) => in_parent(&directory)?,
                // Another process was quicker.
                Err(errno) if errno == rustix::io::Errno::EXIST => {}
                Err(errno) => return Err(errno.into()),
            }
            directory = directory.enter(&name)?;
        }
        Ok(directory)
    }

    /// The path, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// How it is shared.
    pub fn sharing(&self) -> io::Result<Sharing> {
        Ok(Sharing::of(&self.metadata()?))
    }

    /// Makes its entries survive a power cut.
    ///
    /// # Errors
    /// Those of fsync(2), and no right to read it.
    pub fn sync(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = openat(&self.file, ".", flags, Mode::empty())?;
        File::from(open).sync_all()
    }

    /// What has this name, for its metadata.
    pub fn look(&self, name: &OsStr) -> io::Result<File> {
        Ok(openat(&self.file, name, LOOK, Mode::empty())?.into())
    }

    fn enter(&self, name: &OsStr) -> io::Result<Self> {
        let found = openat(&self.file, name, LOOK | OFlags::DIRECTORY, Mode::empty())?;
        Ok(Self {
            file: found.into(),
            path: self.path.join(name),
        })
    }

    fn followed_by(&self, name: &OsStr, file: File) -> Self {
        let path = match name == ".." {
            true => self.path.parent().unwrap_or(Path::new("/")).to_owned(),
            false => self.path.join(name),
        };
        Self { file, path }
    }

    /// Opens a file for reading, and for writing too.
    ///
    /// # Errors
    /// Those of open(2): ELOOP for a symbolic link.
    pub fn open_file(&self, name: &OsStr, writes: bool) -> io::Result<File> {
        let access = if writes { OFlags::RDWR } else { OFlags::RDONLY };
        Ok(openat(&self.file, name, access | PLAIN, Mode::empty())?.into())
    }

    /// Opens what is there for writing only: a pipe or a device. In /proc the kernel's own links are
    /// followed, which have no other path.
    ///
    /// # Errors
    /// Those of open(2), and what another user has put into a directory that others may write to.
    pub fn open_special(&self, name: &OsStr) -> io::Result<File> {
        let mut flags = OFlags::WRONLY | PLAIN;
        flags.set(
            OFlags::NOFOLLOW,
            !FileSystem::of_file(&self.file)?.is_procfs(),
        );
        let file = File::from(openat(&self.file, name, flags, Mode::empty())?);
        let (found, directory) = (file.metadata()?, self.metadata()?);
        if !is_own(&found) && found.uid() != directory.uid() && directory.mode() & 0o022 != 0 {
            return Err(self.foreign(name, "is", &found));
        }
        Ok(file)
    }

    /// Makes a file that was not there, with these permissions less those of the umask.
    pub fn create(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | PLAIN;
        Ok(openat(&self.file, name, flags, Mode::from_raw_mode(mode))?.into())
    }

    /// Makes a file that was not there, with exactly these permissions.
    ///
    /// # Errors
    /// Those of open(2) and fchmod(2).
    pub fn create_exactly(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let file = self.create(name, mode)?;
        if file.metadata()?.mode() & 0o7777 != mode {
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        Ok(file)
    }

    /// Gives a file another name, in the place of what has it.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.file, from, &self.file, to)?)
    }

    /// Removes a file, if it is there.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        match unlinkat(&self.file, name, AtFlags::empty()) {
            Err(errno) if errno != rustix::io::Errno::NOENT => Err(errno.into()),
            _ => Ok(()),
        }
    }

    /// Where a symbolic link leads; `None` if only the kernel can follow it.
    fn target(&self, name: &OsStr, link: &File, found: &Metadata) -> io::Result<Option<PathBuf>> {
        if FileSystem::of_file(link)?.is_procfs() {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let open = File::from(openat(&self.file, name, flags, Mode::empty())?).metadata()?;
            if !(open.is_file() || open.is_dir()) || open.nlink() == 0 {
                return Ok(None);
            }
        } else if !is_own(found) && found.uid() != self.metadata()?.uid() {
            return Err(self.foreign(name, "is a symbolic link", found));
        }
        let target = readlinkat(link, "", Vec::new())?;
        Ok(Some(OsString::from_vec(target.into_bytes()).into()))
    }

    fn foreign(&self, name: &OsStr, what: &str, found: &Metadata) -> io::Error {
        let (path, uid) = (self.path.join(name), found.uid());
        let text = format!(
            "{} {what} of another user (uid {uid}), in a directory that others may write to: it is not used",
            path.display()
        );
        io::Error::new(io::ErrorKind::PermissionDenied, text)
    }
}

/// Carries it out with no umask. All threads have one umask, so two of these must not overlap.
fn without_umask<T>(work: impl FnOnce() -> T) -> T {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = umask(Mode::empty());
    let done = work();
    umask(before);
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn canonical(path: &Path) -> PathBuf {
        fs::canonicalize(path).unwrap()
    }

    #[test]
    fn a_path_leads_where_the_kernel_says() {
        let folder = tempfile::tempdir().unwrap();
        let inside = |name: &str| folder.path().join(name);
        fs::create_dir_all(inside("a/b")).unwrap();
        fs::write(inside("a/file"), "x").unwrap();
        symlink("a/b", inside("relative")).unwrap();
        symlink(inside("relative"), inside("absolute")).unwrap();
        symlink("../file", inside("a/b/up")).unwrap();
        for path in ["a/file", "a/b/../file", "absolute/up", "relative/../b/./up"] {
            let place = Place::find(&inside(path)).unwrap();
            assert_eq!(place.path(), canonical(&inside(path)), "{path}");
            assert_eq!(place.names, ["file"], "{path}");
        }
        let place = Place::find(&inside("absolute")).unwrap();
        assert_eq!(place.path(), canonical(&inside("a/b")));
        assert!(place.names.is_empty());
        let place = Place::find(&inside("relative/none/../x")).unwrap();
        assert_eq!((place.names.len(), place.is_dangling), (3, false));
        symlink("loop", inside("loop")).unwrap();
        let error = Place::find(&inside("loop")).unwrap_err();
        assert_eq!(Errno::of(&error), Some(Errno::ELOOP));
    }

    #[test]
    fn a_path_without_links_leads_to_the_same_place_in_one_call() {
        let folder = tempfile::tempdir().unwrap();
        let real = canonical(folder.path());
        fs::create_dir_all(real.join("a/b")).unwrap();
        fs::write(real.join("a/file"), "x").unwrap();
        symlink("a", real.join("link")).unwrap();
        symlink("file", real.join("a/last")).unwrap();
        for (path, is_direct) in [
            ("a", true),
            ("a/b", true),
            ("a/file", true),
            ("a/none", true),
            // What these lead to is found name by name.
            ("a/none/deep", false),
            ("a/b/../file", false),
            ("link/file", false),
            ("a/last", false),
        ] {
            let names = names_of(&real.join(path));
            let direct = Place::without_links(&names);
            assert_eq!(direct.is_some(), is_direct, "{path}");
            let followed = Place::follow(names).unwrap();
            if let Some(direct) = direct {
                assert_eq!(direct.path(), followed.path(), "{path}");
                assert_eq!(direct.names, followed.names, "{path}");
                let inode = |place: &Place| place.directory.metadata().unwrap().ino();
                assert_eq!(inode(&direct), inode(&followed), "{path}");
            }
        }
    }

    #[test]
    fn a_link_to_what_is_missing_is_told_from_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let inside = |name: &str| folder.path().join(name);
        fs::create_dir(inside("there")).unwrap();
        symlink("there", inside("good")).unwrap();
        symlink("none/deep", inside("bad")).unwrap();
        symlink("bad", inside("second")).unwrap();
        for (path, is_dangling) in [
            ("good/new", false),
            ("bad", true),
            ("bad/new", true),
            ("second/new", true),
        ] {
            let place = Place::find(&inside(path)).unwrap();
            assert_eq!(place.is_dangling, is_dangling, "{path}");
        }
        let error = Directory::make(&inside("second/new")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!inside("none").exists());
    }

    #[test]
    fn a_directory_is_made_like_its_parent_whatever_the_umask_is() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        for (parent, made) in [
            (0o700, 0o700),
            (0o755, 0o700),
            (0o2770, 0o3770),
            (0o3770, 0o3770),
        ] {
            let parent_path = folder.path().join(format!("{parent:o}"));
            fs::create_dir(&parent_path).unwrap();
            fs::set_permissions(&parent_path, Permissions::from_mode(parent)).unwrap();
            let path = parent_path.join("made/within");
            for _ in 0..2 {
                assert_eq!(Directory::make(&path).unwrap().path(), canonical(&path));
                assert_eq!(mode(&path), made);
                assert_eq!(mode(&parent_path.join("made")), made);
            }
        }
    }

    #[test]
    fn no_name_in_an_open_directory_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::open(folder.path()).unwrap();
        symlink("target", folder.path().join("link")).unwrap();
        let link = OsStr::new("link");
        let refused = directory.create(link, 0o600).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        fs::write(folder.path().join("target"), "x").unwrap();
        for refused in [
            directory.open_file(link, true),
            directory.open_special(link),
        ] {
            assert_eq!(Errno::of(&refused.unwrap_err()), Some(Errno::ELOOP));
        }
        assert!(
            directory
                .look(link)
                .unwrap()
                .metadata()
                .unwrap()
                .is_symlink()
        );
        assert_eq!(
            Errno::of(&directory.enter(link).unwrap_err()),
            Some(Errno::ENOTDIR)
        );
        fs::create_dir(folder.path().join("real")).unwrap();
        let way = OsStr::new("way");
        symlink("real", folder.path().join(way)).unwrap();
        assert!(directory.enter(way).is_err());
        directory.remove(link).unwrap();
        directory.remove(link).unwrap();
        assert!(folder.path().join("target").exists());
    }

    #[test]
    fn what_the_kernel_alone_can_follow_is_left_to_it() {
        use std::os::fd::AsRawFd as _;
        let (_reader, writer) = std::io::pipe().unwrap();
        let place =
            Place::find(Path::new(&format!("/proc/self/fd/{}", writer.as_raw_fd()))).unwrap();
        assert_eq!(place.names, [writer.as_raw_fd().to_string().as_str()]);
        place.directory.open_special(&place.names[0]).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let descriptor = format!("/proc/self/fd/{}", file.as_file().as_raw_fd());
        let place = Place::find(Path::new(&descriptor)).unwrap();
        assert_eq!(place.path(), canonical(file.path()));
    }
}
