//! Whose server it is, where its programs are, and as which user they run.

use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use nix::unistd::{User, geteuid};

// Two servers have it, in two crates.
#[allow(clippy::duplicate_mod)]
#[path = "../../test_server/libraries.rs"]
mod libraries;

use self::libraries::unsynced;

/// Whose server it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// MariaDB, of this host.
    Mariadb,
    /// MySQL, in a root of its own, where a newer system's package is unpacked.
    Mysql,
}

impl Kind {
    /// The kind of the tests that need only one: MariaDB, unless `TOKENRUN_TEST_SERVER` is `mysql`.
    pub(crate) fn usual() -> Self {
        match std::env::var("TOKENRUN_TEST_SERVER").as_deref() {
            Ok("mysql") => Self::Mysql,
            _ => Self::Mariadb,
        }
    }

    /// The root that the server sees.
    pub(crate) fn root(self) -> PathBuf {
        match self {
            Self::Mariadb => PathBuf::from("/"),
            Self::Mysql => {
                let root = concat!(env!("CARGO_MANIFEST_DIR"), "/target/tools/mysql");
                let root = std::env::var_os("TOKENRUN_TEST_MYSQL").unwrap_or(root.into());
                let root = PathBuf::from(root);
                assert!(
                    root.join("usr/sbin/mysqld").exists(),
                    "MySQL is missing: tests/run-all unpacks it into {}",
                    root.display()
                );
                root
            }
        }
    }

    /// A command as the server's user, in the server's root.
    pub(super) fn command(self, name: &str) -> Command {
        match self {
            Self::Mariadb => server_command(&program(name)),
            Self::Mysql => {
                let mut command = Command::new("chroot");
                command.arg("--userspec=65534:65534").arg(self.root());
                command.arg(name).env("LC_ALL", "C").stdin(Stdio::null());
                if let Some(library) = unsynced() {
                    command.env("LD_PRELOAD", self.with_library(library));
                }
                command
            }
        }
    }

    /// A process in the server's root that runs this script, which reads a line first: it reads the end of
    /// the pipe when this process ends.
    pub(super) fn keeper(self, script: &str) -> (Child, ChildStdin) {
        let mut keeper = self.command("/bin/sh");
        let mut keeper = keeper
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lifeline = keeper.stdin.take().unwrap();
        (keeper, lifeline)
    }

    /// A library of this host, which is in the server's root under the same name.
    fn with_library(self, library: &Path) -> &Path {
        let there = self.root().join(library.strip_prefix("/").unwrap());
        if !there.exists() {
            std::fs::create_dir_all(there.parent().unwrap()).unwrap();
            // Another process may do the same.
            let made = there.with_extension(std::process::id().to_string());
            std::fs::copy(library, &made).unwrap();
            std::fs::rename(made, there).unwrap();
        }
        library
    }

    /// The server's own client, with nothing set.
    pub(crate) fn own_client(self) -> Command {
        let mut client = match self {
            Self::Mariadb => Command::new(program("mariadb")),
            Self::Mysql => self.command("mysql"),
        };
        client
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        client
    }

    /// A path as the server sees it.
    pub(crate) fn seen(self, path: &Path) -> String {
        let path = path.strip_prefix(self.root()).unwrap();
        format!("/{}", path.display())
    }
}

/// A program of MariaDB's: on the PATH, or where Debian has it.
pub(crate) fn program(name: &str) -> PathBuf {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&on_path);
    let folders = folders.chain([PathBuf::from("/usr/sbin"), PathBuf::from("/usr/bin")]);
    folders
        .map(|folder| folder.join(name))
        .find(|path| path.exists())
        .unwrap_or_else(|| {
            panic!("{name} is missing: install MariaDB 10.6 or newer (tests/run-all does)")
        })
}

/// The user that the server runs as, where this is root.
pub(super) fn servant() -> Option<User> {
    if !geteuid().is_root() {
        return None;
    }
    // It is in each host's file: the search for a name that is not crashes a static program.
    User::from_name("nobody").ok().flatten()
}

/// A command as that user.
fn server_command(program: &Path) -> Command {
    let mut command = match servant() {
        None => Command::new(program),
        Some(user) => {
            let mut command = Command::new("setpriv");
            command
                .arg(format!("--reuid={}", user.uid))
                .arg(format!("--regid={}", user.gid))
                .arg("--clear-groups")
                .arg(program);
            command
        }
    };
    command
        .current_dir("/")
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    if let Some(library) = unsynced() {
        command.env("LD_PRELOAD", library);
    }
    command
}
