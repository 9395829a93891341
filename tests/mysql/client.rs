//! A session of MariaDB's own client, which stays open between two statements.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::server::{Database, program};

/// What marks the end of an answer.
const END: &str = "end of the answer";

pub(crate) struct Client {
    child: Child,
    statements: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Client {
    /// A session as this user, without a password.
    pub(crate) fn of(database: &Database<'_>, user: &str) -> Self {
        let client = program("mariadb").display().to_string();
        let words = format!(
            "exec {client} --no-defaults -N -B --unbuffered --force --socket={} -u {user} -D {} 2>&1",
            database.server.socket().display(),
            database.name
        );
        let mut child = Command::new("sh")
            .args(["-c", &words])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            statements: child.stdin.take().unwrap(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// The answers to some statements, or their errors.
    pub(crate) fn say(&mut self, statements: &str) -> String {
        writeln!(self.statements, "{statements};\nSELECT '{END}';").unwrap();
        let mut answer = String::new();
        for line in (&mut self.answers).lines() {
            let line = line.unwrap();
            if line == END {
                return answer.trim().to_owned();
            }
            answer.push_str(&line);
            answer.push('\n');
        }
        panic!("the client has ended: {answer}");
    }

    /// The id of its session.
    pub(crate) fn id(&mut self) -> String {
        self.say("SELECT CONNECTION_ID()")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
