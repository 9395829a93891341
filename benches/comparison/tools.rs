//! The compared tools, and their commands.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::common::Folder;
use crate::common::etcd::Etcd;
use crate::common::init;
use crate::server::{Server, program};

/// How long a dead holder is believed to live, where that is how it is found out.
pub(crate) const LEASE: Duration = Duration::from_secs(5);

/// tokenrun's, for this lease.
const DURATIONS: [&str; 6] = [
    "--takeover-after=5s",
    "--heartbeat=1s",
    "--kill-grace=300ms",
    "--store-timeout=500ms",
    "--head-start=100ms",
    "--keep=0",
];

/// When the job is to be run.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Turn {
    /// Now, without competition.
    First,
    /// Now or not at all.
    Now,
    /// When it is its turn.
    Wait,
}

/// What can be frozen.
pub(crate) enum Store {
    /// Only a file: nothing can.
    Lock,
    /// A database in this file: a process keeps it locked.
    Sqlite(PathBuf),
    /// A server: its first process.
    Server(u32),
}

type Words = Box<dyn Fn(&str, Turn, &[&str]) -> Option<Command>>;

/// Something that keeps jobs apart.
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) store: Store,
    words: Words,
}

impl Tool {
    /// The command that runs this job. None, if the tool can only wait.
    pub(crate) fn command(&self, group: &str, turn: Turn, job: &[&str]) -> Option<Command> {
        (self.words)(group, turn, job)
    }
}

fn tool(
    name: &str,
    store: Store,
    words: impl Fn(&str, Turn, &[&str]) -> Option<Command> + 'static,
) -> Tool {
    Tool {
        name: name.to_owned(),
        store,
        words: Box::new(words),
    }
}

/// All that are installed.
pub(crate) fn tools(folder: &Folder, server: &Server, etcd: Option<&Etcd>) -> Vec<Tool> {
    let database = server.database().url();
    let pid = u32::try_from(server.pid()).expect("a pid");
    let file = folder.file("tokens.db");
    let sqlite = file.to_str().expect("a path").to_owned();
    let mut tools = vec![
        tool(
            "tokenrun, SQLite",
            Store::Sqlite(file),
            tokenrun(folder, sqlite),
        ),
        tool(
            "tokenrun, PostgreSQL",
            Store::Server(pid),
            tokenrun(folder, database.clone()),
        ),
        tool("flock", Store::Lock, by_file(folder, "flock")),
        tool(
            "psql, advisory lock",
            Store::Server(pid),
            psql(folder, database),
        ),
    ];
    if is_installed("setlock") {
        tools.push(tool("setlock", Store::Lock, by_file(folder, "setlock")));
    }
    if let Some(etcd) = etcd {
        let (client, url) = (etcd.client(), etcd.url());
        init(folder, &url);
        let store = Store::Server(etcd.pid());
        let ours = tool("tokenrun, etcd", store, tokenrun(folder, url));
        tools.insert(2, ours);
        tools.push(tool(
            "etcdctl lock",
            Store::Server(etcd.pid()),
            move |group, turn, job| {
                let mut command = client.lock(group, LEASE);
                command.args(job);
                (turn != Turn::Now).then_some(command)
            },
        ));
    }
    tools
}

fn tokenrun(
    folder: &Folder,
    store: String,
) -> impl Fn(&str, Turn, &[&str]) -> Option<Command> + 'static {
    let program = folder.tokenrun();
    move |group, turn, job| {
        let mut command = Command::new(&program);
        command.args(["-q", "-s", &store, "-g", group]);
        match turn {
            Turn::First => {}
            // The same client would get another answer.
            Turn::Now => drop(command.args(["--client-id", "another"])),
            Turn::Wait => drop(command.args(DURATIONS).arg("--wait")),
        }
        command.arg("--").args(job);
        Some(command)
    }
}

/// Those that lock a file: with -n they do not wait.
fn by_file(
    folder: &Folder,
    program: &'static str,
) -> impl Fn(&str, Turn, &[&str]) -> Option<Command> + 'static {
    let locks = folder.path().to_owned();
    move |group, turn, job| {
        let mut command = Command::new(program);
        if turn != Turn::Wait {
            command.arg("-n");
        }
        command
            .arg(locks.join(format!("{program}-{group}")))
            .args(job);
        Some(command)
    }
}

/// A lock that lasts as long as psql's connection, in which psql runs the job.
fn psql(
    folder: &Folder,
    database: String,
) -> impl Fn(&str, Turn, &[&str]) -> Option<Command> + 'static {
    let scripts = [
        ("try", "pg_try_advisory_lock"),
        ("wait", "pg_advisory_lock"),
    ];
    let [now, wait] = scripts.map(|(name, function)| {
        let file = folder.file(&format!("{name}.sql"));
        let got = match name {
            "try" => "",
            _ => " is not null",
        };
        let script = format!(
            "select {function}(hashtext(:'token')){got} as got \\gset\n\
             \\if :got\n\\! eval \"exec $JOB\"\n\\else\nselect 1/0;\n\\endif\n"
        );
        std::fs::write(&file, script).expect("a script");
        file
    });
    let program = program("psql");
    move |group, turn, job| {
        let quoted = job
            .iter()
            .map(|word| format!("'{}'", word.replace('\'', "'\\''")));
        let script = if turn == Turn::Wait { &wait } else { &now };
        let mut command = Command::new(&program);
        command
            .args(["-Xq", "-v", "ON_ERROR_STOP=1", "-v"])
            .arg(format!("token={group}"))
            .arg("-f")
            .arg(script)
            .arg(&database)
            .env("JOB", quoted.collect::<Vec<_>>().join(" "));
        Some(command)
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}
