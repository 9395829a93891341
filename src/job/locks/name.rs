//! A lock file's name, which identifies its run and the file.

use std::fmt;
use std::io;
use std::os::fd::AsFd;

use crate::sys::file::{Device, Inode};

/// The prefix of a file's name before it is locked.
pub(super) const DRAFT: &str = "new-";

const LOCKED: &str = "run-";
const NOT_INHERITED: &str = "-closed";

/// The number of hexadecimal digits of 128 random bits.
const DIGITS: usize = 32;

/// The name of a lock file that is complete: `run-`, 128 random bits, device, inode and
/// time of birth, and `-closed` if the job does not inherit its lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockName {
    text: String,
    identity: String,
    inherited: bool,
}

impl LockName {
    pub(super) fn new(bits: u128, identity: &Identity, inherited: bool) -> Self {
        let identity = identity.to_string();
        let end = if inherited { "" } else { NOT_INHERITED };
        Self {
            text: format!("{LOCKED}{bits:0DIGITS$x}-{identity}{end}"),
            identity,
            inherited,
        }
    }

    /// Parses the name in a row. `None` for any other text, so it is never a path.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(LOCKED)?;
        let (rest, inherited) = match rest.strip_suffix(NOT_INHERITED) {
            Some(rest) => (rest, false),
            None => (rest, true),
        };
        let is_plain = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b'.' | b'-');
        let (bits, identity) = rest.split_once('-')?;
        (bits.len() == DIGITS && rest.bytes().all(is_plain)).then(|| Self {
            text: text.to_owned(),
            identity: identity.to_owned(),
            inherited,
        })
    }

    /// True if the job inherits its lock. If not, a free lock proves nothing.
    pub const fn is_inherited(&self) -> bool {
        self.inherited
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// True if the name was given to the file with this identity.
    pub(super) fn is_of(&self, identity: &Identity) -> bool {
        self.identity == identity.to_string()
    }
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What separates a file from its copy: device, inode, and the time of its birth, where the file
/// system keeps that; no process can set it.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) inode: Inode,
}

impl Identity {
    /// The identity of an open file.
    pub(super) fn of(file: impl AsFd) -> io::Result<Self> {
        Ok(Self {
            inode: Inode::of(file)?,
        })
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Device { major, minor } = self.inode.device;
        let born = self.inode.born.unwrap_or_default();
        write!(f, "{major:x}.{minor:x}-{:x}-", self.inode.number)?;
        write!(f, "{:x}.{:x}", born.seconds.cast_unsigned(), born.nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    #[test]
    fn a_name_contains_what_it_was_made_of() {
        let file = tempfile::tempfile().unwrap();
        let identity = Identity::of(&file).unwrap();
        for inherited in [true, false] {
            let name = LockName::new(7, &identity, inherited);
            assert_eq!(LockName::parse(name.as_str()).as_ref(), Some(&name));
            assert_eq!(name.is_inherited(), inherited);
            assert!(name.is_of(&identity));
        }
    }

    #[test]
    fn a_parsed_name_is_never_a_path() {
        let bits = "0".repeat(DIGITS);
        assert!(LockName::parse(&format!("run-{bits}-1.2-3-4.5")).is_some());
        for bad in [
            String::new(),
            "lock".to_owned(),
            "run-".to_owned(),
            format!("new-{bits}-1.2-3-4.5"),
            format!("run-{bits}"),
            format!("run-{bits}-../../etc/passwd"),
            format!("run-{bits}-1.2-3-4.5/x"),
            format!("../run-{bits}-1.2-3-4.5"),
            format!("run-{bits}-1.2-3-4.5\0"),
            format!("run-{bits}0-1.2-3-4.5"),
        ] {
            assert_eq!(LockName::parse(&bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_copy_is_another_file_and_a_new_name_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let [one, moved, copy] = ["one", "moved", "copy"].map(|name| folder.path().join(name));
        let file = File::create_new(&one).unwrap();
        let name = LockName::new(7, &Identity::of(&file).unwrap(), true);
        fs::rename(&one, &moved).unwrap();
        fs::copy(&moved, &copy).unwrap();
        let is_of = |path| name.is_of(&Identity::of(File::open(path).unwrap()).unwrap());
        assert!(is_of(&moved));
        assert!(!is_of(&copy));
    }
}
