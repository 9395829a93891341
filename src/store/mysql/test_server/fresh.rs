//! A server's first data. To make them takes a server several seconds, to copy them takes none.

use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin};
use std::sync::OnceLock;

use super::kind::Kind;
use super::{Server, done};

/// The data of a server that has never run.
pub(super) struct Fresh {
    folder: PathBuf,
    kind: Kind,
    /// When its other end sees the end of this pipe, the folder is removed.
    _lifeline: ChildStdin,
    _keeper: Child,
}

impl Fresh {
    /// Those of this kind, which the process makes once.
    pub(super) fn of(kind: Kind) -> &'static Self {
        static MARIADB: OnceLock<Fresh> = OnceLock::new();
        static MYSQL: OnceLock<Fresh> = OnceLock::new();
        let known = match kind {
            Kind::Mariadb => &MARIADB,
            Kind::Mysql => &MYSQL,
        };
        known.get_or_init(|| Self::made(kind))
    }

    fn made(kind: Kind) -> Self {
        let folder = Server::folder_of(kind);
        let script = format!("read line; rm -rf '{}'", kind.seen(&folder));
        let (keeper, lifeline) = kind.keeper(&script);
        let data = format!("--datadir={}", kind.seen(&folder.join("data")));
        // A server removes the temporary files of others.
        let temporary = format!("--tmpdir={}", kind.seen(&folder));
        match kind {
            Kind::Mariadb => done(
                kind.command("mariadb-install-db")
                    .args(["--no-defaults", &data, &temporary])
                    .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
                    .arg("--innodb-log-file-size=16M"),
            ),
            Kind::Mysql => done(
                kind.command("/usr/sbin/mysqld")
                    .args(["--no-defaults", "--initialize-insecure"])
                    .args([&data, &temporary, "--secure-file-priv=NULL"])
                    .args([
                        "--innodb-flush-method=nosync",
                        "--innodb-redo-log-capacity=16M",
                    ]),
            ),
        };
        if kind == Kind::Mysql {
            // The id of the server: one that finds none draws its own.
            std::fs::remove_file(folder.join("data/auto.cnf")).unwrap();
        }
        Self {
            folder,
            kind,
            _lifeline: lifeline,
            _keeper: keeper,
        }
    }

    /// Copies them into a server's folder.
    pub(super) fn copy_to(&self, folder: &Path) {
        let mut copy = self.kind.command("/bin/cp");
        copy.arg("-R");
        for folder in [&self.folder, folder] {
            copy.arg(self.kind.seen(&folder.join("data")));
        }
        done(&mut copy);
    }
}
