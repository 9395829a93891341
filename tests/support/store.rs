//! A store of a test's own, and the job whose life is written down beside it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use rusqlite::Connection;
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use tempfile::TempDir;

use super::commits::Commits;
use super::processes::{kill_marked, until_stopped};
use super::{Line, Run, until};

/// The group of every test.
pub(crate) const GROUP: &str = "job";

/// Holds a lock as long as one of its processes lives, logs its begin and its end, and ends with
/// the given status when the test orders it.
pub(crate) const PROVING: &str = r#"
exec 9>>lock
flock -n 9 || echo "overlap $TOKENRUN_CLIENT_ID" >> log
echo "begin $TOKENRUN_CLIENT_ID $TOKENRUN_GRANT $$" >> log
until read -r status < go; do :; done
echo "end $TOKENRUN_CLIENT_ID" >> log
exit "$status"
"#;

/// A folder with a store in it.
pub(crate) struct Store {
    folder: TempDir,
    /// Both ends of the pipe that jobs read, so that opening it never blocks.
    go: File,
}

impl Store {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let go = folder.path().join("go");
        mkfifo(&go, Mode::from_bits_truncate(0o666)).unwrap();
        let go = OpenOptions::new().read(true).write(true).open(go).unwrap();
        Self { folder, go }
    }

    /// A file of the test's.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The database.
    pub(crate) fn database(&self) -> PathBuf {
        self.file("state/tokens.db")
    }

    /// The directory of the locks of its runs.
    pub(crate) fn locks(&self) -> PathBuf {
        self.file("state/tokens.db-locks")
    }

    /// The mark of this user's last sweep of it.
    #[allow(dead_code)] // not every program of tests asks
    pub(crate) fn mark(&self) -> PathBuf {
        let user = rustix::process::geteuid().as_raw();
        self.locks().join(format!("swept-{user}"))
    }

    /// The files in it that runs have made, temporary ones too.
    pub(crate) fn lock_files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.locks()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.starts_with("swept")).collect()
    }

    /// tokenrun with these words and nothing else.
    pub(crate) fn bare(&self, words: &[&str]) -> Line {
        Line::new(self.folder.path()).with(words)
    }

    /// A run as this client with the job that proves when it was alive. What takes
    /// long by default is short.
    pub(crate) fn run(&self, client: &str) -> Line {
        let database = self.database();
        self.bare(&["-s", database.to_str().unwrap(), "-g", GROUP])
            .with(&["--client-id", client, "--head-start=100ms"])
            .script(PROVING)
    }

    /// As [`Self::run`], and the token is free as soon as the run has ended.
    pub(crate) fn free_run(&self, client: &str) -> Line {
        self.run(client).with(&["--keep=0"])
    }

    /// Another verb on this store.
    pub(crate) fn verb(&self, words: &[&str]) -> Line {
        self.bare(words)
            .with(&["-s", self.database().to_str().unwrap()])
    }

    /// Lets one job end with this status.
    pub(crate) fn go(&self, status: u8) {
        writeln!(&self.go, "{status}").unwrap();
    }

    /// What the jobs wrote down.
    pub(crate) fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.file("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until the log has a line that begins like this, and gives it.
    pub(crate) fn until_logged(&self, begin: &str) -> String {
        until(&format!("the jobs log {begin:?}"), || {
            let log = self.log();
            let found = log.iter().find(|line| line.starts_with(begin));
            found.cloned().ok_or(format!("{log:?}"))
        })
    }

    /// Waits until this client's job has begun, and gives its pid.
    pub(crate) fn until_begun(&self, client: &str) -> i32 {
        let line = self.until_logged(&format!("begin {client} "));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Whether anything of a proving job lives.
    pub(crate) fn is_job_alive(&self) -> bool {
        let lock = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.file("lock"))
            .unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err()
    }

    /// Waits until nothing of a proving job lives.
    pub(crate) fn until_job_gone(&self) {
        until("the job is gone", || {
            if self.is_job_alive() {
                Err(format!("{:?}", self.log()))
            } else {
                Ok(())
            }
        });
    }

    #[track_caller]
    pub(crate) fn assert_no_overlap(&self) {
        let log = self.log();
        assert!(
            !log.iter().any(|line| line.starts_with("overlap")),
            "{log:?}"
        );
    }

    /// A connection of the test's own, as an administrator has.
    pub(crate) fn sql(&self) -> Connection {
        let connection = Connection::open(self.database()).unwrap();
        connection.busy_timeout(Duration::from_secs(30)).unwrap();
        connection
    }

    /// Stops a run between its writes. A process that is stopped while it writes to a SQLite file locks all
    /// others out until it continues.
    #[allow(dead_code)] // not every program of tests has use for it
    pub(crate) fn suspend(&self, run: &Run) {
        until("the run is stopped and the store is not locked", || {
            run.signal(Signal::SIGSTOP);
            until_stopped(run.pid());
            self.begin_a_write().map_err(|error| {
                run.signal(Signal::SIGCONT);
                error.to_string()
            })
        });
    }

    /// Begins a write and takes it back, if the store is a SQLite file at all.
    #[allow(dead_code)] // as above
    fn begin_a_write(&self) -> rusqlite::Result<()> {
        if !self.database().exists() {
            return Ok(());
        }
        let connection = self.sql();
        connection.busy_timeout(Duration::ZERO)?;
        connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK")
    }

    /// Changes the group's row.
    #[track_caller]
    pub(crate) fn edit(&self, assignments: &str) {
        let sql = format!("UPDATE tokens SET {assignments} WHERE token_group = '{GROUP}'");
        assert_eq!(self.sql().execute(&sql, []).unwrap(), 1, "{sql}");
    }

    /// Sets fields of the group's document, each to a JSON text; of `null` it is removed. `then`:
    /// columns besides.
    pub(crate) fn set(&self, fields: &[(&str, &str)], then: &[&str]) {
        let mut document = "document".to_owned();
        for (field, json) in fields {
            let json = json.replace('\'', "''");
            document = match json.as_str() {
                "null" => format!("json_remove({document}, '$.{field}')"),
                json => format!("json_set({document}, '$.{field}', json('{json}'))"),
            };
        }
        let mut all = vec![format!("document = {document}")];
        all.extend(then.iter().map(ToString::to_string));
        self.edit(&all.join(", "));
    }

    /// A cell of the group's row: a column, or an expression of columns.
    pub(crate) fn cell<T: rusqlite::types::FromSql>(&self, column: &str) -> T {
        let sql = format!("SELECT {column} FROM tokens WHERE token_group = '{GROUP}'");
        self.sql().query_row(&sql, [], |row| row.get(0)).unwrap()
    }

    /// A field of the group's document, by its path.
    pub(crate) fn field<T: rusqlite::types::FromSql>(&self, path: &str) -> T {
        self.cell(&format!("document ->> '$.{path}'"))
    }

    /// The commits from now on.
    pub(crate) fn commits(&self) -> Commits {
        Commits::from_now(self.database(), self.sql())
    }

    /// The swaps of the group's row among them: from which version, to which state. The note of a
    /// pruning is none.
    pub(crate) fn swaps(&self, commits: &Commits) -> Vec<(i64, String)> {
        let sql = format!("SELECT version, state FROM tokens WHERE token_group = '{GROUP}'");
        let rows = commits.rows(&sql, |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        });
        let pairs = rows.windows(2).filter(|pair| pair[0].0 != pair[1].0);
        pairs.map(|pair| (pair[0].0, pair[1].1.clone())).collect()
    }

    /// Waits until a file of the test's is a whole line, and gives it.
    pub(crate) fn until_line(&self, name: &str) -> String {
        until(&format!("{name} has a line"), || {
            let text = fs::read_to_string(self.file(name)).unwrap_or_default();
            if text.ends_with('\n') {
                Ok(text)
            } else {
                Err(text)
            }
        })
    }

    /// What `status --json` says of the group.
    pub(crate) fn status(&self) -> Value {
        let ended = self.verb(&["status", "--json", "-g", GROUP]).end();
        ended.with_code(0).json()[0].take()
    }

    /// Waits until `status` says that the group is in this state.
    pub(crate) fn until_state(&self, state: &str) {
        until(&format!("the group is {state}"), || {
            let status = self.status();
            if status["state"] == state {
                Ok(())
            } else {
                Err(status.to_string())
            }
        });
    }

    /// What `history --json` says, the newest run first.
    pub(crate) fn history(&self) -> Vec<Value> {
        let ended = self.verb(&["history", "--json"]).end().with_code(0);
        ended.json().as_array().unwrap().clone()
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        kill_marked(self.folder.path());
    }
}
