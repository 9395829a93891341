//! Executing a program as a shell would find it.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsStr, OsString, c_char};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use nix::errno::Errno;
use nix::libc;
use nix::sys::stat::{SFlag, stat};
use nix::unistd::{AccessFlags, access};

const SHELL: &CStr = c"/bin/sh";

/// Where a program is looked for without a PATH; glibc's `confstr(_CS_PATH)`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// A program with its arguments, ready to take this process's place.
#[derive(Debug)]
pub struct Program {
    /// The files to try, in order.
    candidates: Vec<CString>,
    /// True if there are several places where it may be.
    searched: bool,
    arguments: Vec<CString>,
    /// `NAME=value`, in place of variables of the same name.
    variables: Vec<CString>,
}

impl Program {
    /// Prepares `argv` to run with this process's environment.
    ///
    /// # Errors
    /// EINVAL if there is no program, or if a string can't be passed on: it contains a null byte.
    pub fn new(argv: &[OsString]) -> io::Result<Self> {
        let name = argv.first().ok_or(Errno::EINVAL)?;
        let path = std::env::var_os("PATH");
        let path = path.as_deref().unwrap_or(OsStr::new(DEFAULT_PATH));
        let searched = !name.as_bytes().contains(&b'/');
        let candidates = if searched {
            places(name, path)
        } else {
            vec![name.as_bytes().to_vec()]
        };
        Ok(Self {
            candidates: c_strings(candidates)?,
            searched,
            arguments: c_strings(argv.iter().map(|arg| arg.as_bytes().to_vec()))?,
            variables: Vec::new(),
        })
    }

    /// Sets these variables in the program's environment.
    ///
    /// # Errors
    /// EINVAL if one can't be passed on: its name is empty or contains a `=`, or there is a null
    /// byte.
    pub fn with(mut self, variables: &[(String, String)]) -> io::Result<Self> {
        let variables = variables.iter().map(variable);
        self.variables = variables.collect::<io::Result<_>>()?;
        Ok(self)
    }

    /// Takes the program from this file, whatever the first argument calls it.
    pub fn from_file(mut self, file: &CStr) -> Self {
        self.candidates = vec![file.to_owned()];
        self.searched = false;
        self
    }

    /// Looks for its file, without executing it. The kernel may still refuse to execute it: its
    /// interpreter may be missing.
    ///
    /// # Errors
    /// As [`Self::exec`], if there is no such file, or if it is not executable.
    pub fn find(&self) -> io::Result<()> {
        let mut denied = false;
        for file in &self.candidates {
            match usable(file) {
                Err(errno @ (Errno::EACCES | Errno::ENOENT | Errno::ENOTDIR)) if !self.searched => {
                    return Err(errno.into());
                }
                Err(Errno::EACCES) => denied = true,
                Err(Errno::ENOENT | Errno::ENOTDIR) => {}
                // Another error is for the kernel to judge.
                Ok(()) | Err(_) => return Ok(()),
            }
        }
        Err(not_found(denied))
    }

    /// Executes it. Returns only if that is impossible, with the reason: ENOENT if
    /// there is no such program.
    pub fn exec(&self) -> io::Error {
        let arguments = pointers(self.arguments.iter().map(|arg| arg.as_ptr()));
        let environment = self.environment();
        let mut denied = false;
        for file in &self.candidates {
            let mut errno = execute(file, &arguments, &environment);
            if errno == Errno::ENOEXEC {
                // The file has no #! in its first line: do what execvp(3) does.
                errno = execute(SHELL, &self.shell_arguments(file), &environment);
            }
            match errno {
                Errno::EACCES if self.searched => denied = true,
                Errno::ENOENT | Errno::ENOTDIR | Errno::ESTALE | Errno::ENODEV if self.searched => {
                }
                errno => return errno.into(),
            }
        }
        not_found(denied)
    }

    fn shell_arguments(&self, file: &CStr) -> Vec<*const c_char> {
        let rest = self.arguments.iter().skip(1).map(|arg| arg.as_ptr());
        pointers([SHELL.as_ptr(), file.as_ptr()].into_iter().chain(rest))
    }

    /// This process's environment, entry by entry as inherited (strings without a `=` and
    /// duplicates too), with the given variables in place of their namesakes.
    fn environment(&self) -> Vec<*const c_char> {
        let mut all = Vec::new();
        for entry in given_environment() {
            // SAFETY: the entries of environ(7) are null-terminated strings, and they do not
            // change: this process has one thread.
            let bytes = unsafe { CStr::from_ptr(entry) }.to_bytes();
            let replaced = self.variables.iter().any(|variable| {
                let name = variable.to_bytes().split_inclusive(|byte| *byte == b'=');
                name.take(1).any(|name| bytes.starts_with(name))
            });
            if !replaced {
                all.push(entry);
            }
        }
        all.extend(self.variables.iter().map(|variable| variable.as_ptr()));
        pointers(all)
    }
}

/// The error after all places were tried. `denied`: one of them has a file that is not executable.
fn not_found(denied: bool) -> io::Error {
    match denied {
        true => Errno::EACCES.into(),
        false => Errno::ENOENT.into(),
    }
}

/// Checks if the kernel would execute this file, by its kind and its rights.
fn usable(file: &CStr) -> Result<(), Errno> {
    access(file, AccessFlags::X_OK)?;
    let kind = SFlag::from_bits_truncate(stat(file)?.st_mode) & SFlag::S_IFMT;
    match kind {
        SFlag::S_IFREG => Ok(()),
        _ => Err(Errno::EACCES),
    }
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

fn given_environment() -> Vec<*const c_char> {
    let mut entries = Vec::new();
    // SAFETY: environ(7) is null, or a null-terminated array that does not change now: this process
    // has one thread.
    unsafe {
        let mut next = environ;
        while !next.is_null() && !(*next).is_null() {
            entries.push(*next);
            next = next.add(1);
        }
    }
    entries
}

fn execute(file: &CStr, arguments: &[*const c_char], environment: &[*const c_char]) -> Errno {
    // SAFETY: both arrays end with a null pointer (`pointers` sees to it), their
    // strings are null-terminated and live until after the call.
    unsafe { libc::execve(file.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    Errno::last()
}

fn pointers(strings: impl IntoIterator<Item = *const c_char>) -> Vec<*const c_char> {
    strings.into_iter().chain([ptr::null()]).collect()
}

fn c_strings(strings: impl IntoIterator<Item = Vec<u8>>) -> io::Result<Vec<CString>> {
    let invalid = |_| io::Error::from(Errno::EINVAL);
    let strings = strings.into_iter();
    strings.map(|s| CString::new(s).map_err(invalid)).collect()
}

fn variable((name, value): &(String, String)) -> io::Result<CString> {
    if name.is_empty() || name.contains('=') {
        return Err(Errno::EINVAL.into());
    }
    CString::new(format!("{name}={value}")).map_err(|_| Errno::EINVAL.into())
}

/// The files that `name` may mean, in the order of `path`. An empty entry is the
/// current directory.
fn places(name: &OsStr, path: &OsStr) -> Vec<Vec<u8>> {
    if name.is_empty() {
        return Vec::new();
    }
    let folders = path.as_bytes().split(|byte| *byte == b':');
    let file = |folder: &[u8]| match folder {
        [] => name.as_bytes().to_vec(),
        folder => [folder, b"/", name.as_bytes()].concat(),
    };
    folders.map(file).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn places_of(name: &str, path: &str) -> Vec<String> {
        let places = places(OsStr::new(name), OsStr::new(path));
        let text = |place| String::from_utf8(place).unwrap();
        places.into_iter().map(text).collect()
    }

    #[test]
    fn a_program_is_looked_for_along_the_path() {
        assert_eq!(places_of("x", "/a:/b/"), ["/a/x", "/b//x"]);
        assert_eq!(places_of("x", "/a::"), ["/a/x", "x", "x"]);
        assert_eq!(places_of("x", ""), ["x"]);
        assert_eq!(places_of("", "/a"), [""; 0]);
    }

    #[test]
    fn strings_that_cannot_be_passed_on_are_refused() {
        let argv = |arg: &str| [OsString::from("true"), OsString::from(arg)];
        let extra = |name: &str| [(name.to_owned(), "1".to_owned())];
        let with = |name| Program::new(&argv("a")).unwrap().with(&extra(name));
        assert!(with("A").is_ok());
        assert!(Program::new(&[]).is_err());
        assert!(Program::new(&argv("a\0")).is_err());
        assert!(with("A=B").is_err());
        assert!(with("").is_err());
    }

    #[test]
    fn variables_take_the_place_of_their_namesakes() {
        let argv = [OsString::from("true")];
        let extra = [("PATH".to_owned(), "/ours".to_owned())];
        let program = Program::new(&argv).unwrap().with(&extra).unwrap();
        let environment = program.environment();
        let (end, entries) = environment.split_last().unwrap();
        assert!(end.is_null());
        // SAFETY: every entry is a string of the environment or of the program.
        let text = |entry: &*const c_char| unsafe { CStr::from_ptr(*entry) };
        let paths = entries.iter().map(text);
        let paths = paths.filter(|entry| entry.to_bytes().starts_with(b"PATH="));
        assert_eq!(paths.collect::<Vec<_>>(), [c"PATH=/ours"]);
    }

    #[test]
    fn a_program_that_is_not_there_is_enoent_everywhere() {
        for name in ["/nowhere/at/all", "no-such-program-anywhere", ""] {
            let program = Program::new(&[OsString::from(name)]).unwrap();
            for err in [program.find().unwrap_err(), program.exec()] {
                assert_eq!(err.raw_os_error(), Some(libc::ENOENT), "{name:?}");
            }
        }
    }

    #[test]
    fn a_file_that_is_not_executable_is_eacces() {
        for name in ["/", "/proc/self/status"] {
            let program = Program::new(&[OsString::from(name)]).unwrap();
            for err in [program.find().unwrap_err(), program.exec()] {
                assert_eq!(err.raw_os_error(), Some(libc::EACCES), "{name}");
            }
        }
        let below_a_file = Program::new(&["/proc/self/status/x".into()]).unwrap();
        for err in [below_a_file.find().unwrap_err(), below_a_file.exec()] {
            assert_eq!(err.raw_os_error(), Some(libc::ENOTDIR));
        }
    }

    #[test]
    fn a_program_is_found_in_the_first_place_that_has_one() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str, mode: u32| {
            let file = folder.path().join(name);
            std::fs::write(&file, "#!/nowhere/interpreter\n").unwrap();
            std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            CString::new(file.as_os_str().as_bytes()).unwrap()
        };
        let (plain, program) = (place("plain", 0o644), place("program", 0o755));
        let nothing = c"/nowhere/at/all".to_owned();
        let found = |candidates: &[&CString]| {
            let program = Program {
                candidates: candidates.iter().map(|it| (*it).clone()).collect(),
                searched: true,
                arguments: Vec::new(),
                variables: Vec::new(),
            };
            program.find().map_err(|error| error.raw_os_error())
        };
        assert_eq!(found(&[&nothing, &plain, &program]), Ok(()));
        assert_eq!(found(&[&plain, &nothing]), Err(Some(libc::EACCES)));
        assert_eq!(found(&[&nothing]), Err(Some(libc::ENOENT)));
    }
}
