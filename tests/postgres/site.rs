//! A folder, a store's connection string, and tokenrun with both.

use std::path::PathBuf;
use std::process::Command;

use crate::support::{Line, PROVING, Store};

/// The group of every test.
pub(crate) const GROUP: &str = "job";

/// As on another host, where the locks of this one say nothing.
pub(crate) const ELSEWHERE: [&str; 5] = [
    "unshare",
    "-rm",
    "sh",
    "-ec",
    "mount -t tmpfs none /var/lib; exec \"$0\" \"$@\"",
];

/// Where tokenrun runs, and against which store.
pub(crate) struct Site {
    pub(crate) store: Store,
    pub(crate) url: String,
}

impl Site {
    pub(crate) fn new(url: impl Into<String>) -> Self {
        let url = url.into();
        let store = Store::new();
        Self { store, url }
    }

    /// A run as this client with the job that proves when it was alive.
    pub(crate) fn run(&self, client: &str) -> Line {
        self.store
            .bare(&["-s", &self.url, "-g", GROUP])
            .with(&["--client-id", client, "--head-start=100ms", "--keep=0"])
            .script(PROVING)
    }

    /// The same with a short lease and a wait for the store: one that has just elected its
    /// leader is slow to answer on a busy machine.
    #[allow(dead_code)] // not every program of tests has use for it
    pub(crate) fn patient(&self, client: &str) -> Line {
        self.run(client).hasty().with(&["--wait=30s"])
    }

    /// The same job with `true`.
    pub(crate) fn short(&self, client: &str) -> Line {
        self.run(client).job(&["true"])
    }

    /// As this client in another group.
    pub(crate) fn in_group(&self, group: &str, client: &str) -> Line {
        let line = self.store.bare(&["-s", &self.url, "-g", group]);
        line.with(&["--client-id", client, "--head-start=100ms", "--keep=0"])
    }

    /// `true` in another group.
    pub(crate) fn short_in(&self, group: &str) -> Line {
        self.in_group(group, "b").job(&["true"])
    }

    /// Another verb on this store.
    pub(crate) fn verb(&self, words: &[&str]) -> Line {
        self.store.bare(words).with(&["-s", &self.url])
    }

    /// Has an administrator change the tables.
    #[allow(dead_code)] // not every program of tests has use for it
    pub(crate) fn sql(&self, statement: &str) {
        if self.is_mysql() {
            self.in_mysql(&in_words_of_mysql(statement));
            return;
        }
        if !self.url.starts_with("postgres:") {
            self.store.sql().execute_batch(statement).unwrap();
            return;
        }
        let url = format!("{}?options=-csearch_path%3Dtokenrun", self.url);
        let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
        client.batch_execute(statement).unwrap();
    }

    /// Has an administrator change a field of the documents of the tokens for which a condition
    /// holds, to this JSON.
    #[allow(dead_code)] // as above
    pub(crate) fn set_in_document(&self, table: &str, field: &str, json: &str, condition: &str) {
        let new = self.with_field("document", field, json);
        self.sql(&format!(
            "UPDATE {table} SET document = {new} WHERE {condition}"
        ));
    }

    /// A document with a field set to this JSON, in SQL.
    #[allow(dead_code)] // as above
    pub(crate) fn with_field(&self, document: &str, field: &str, json: &str) -> String {
        let json = json.replace('\'', "''");
        if self.is_mysql() {
            format!("JSON_SET({document}, '$.{field}', JSON_EXTRACT('{json}', '$'))")
        } else if self.url.starts_with("postgres:") {
            let path = field.replace('.', ",");
            format!("jsonb_set({document}, '{{{path}}}', '{json}')")
        } else {
            format!("json_set({document}, '$.{field}', json('{json}'))")
        }
    }

    /// A cell of the group's token, as a text.
    #[allow(dead_code)] // as above
    pub(crate) fn cell(&self, column: &str) -> String {
        if self.is_mysql() {
            let sql = format!("SELECT {column} FROM tokens WHERE token_group = '{GROUP}'");
            return self.in_mysql(&in_words_of_mysql(&sql));
        }
        let sql =
            format!("SELECT CAST({column} AS TEXT) FROM tokens WHERE token_group = '{GROUP}'");
        if !self.url.starts_with("postgres:") {
            return self
                .store
                .sql()
                .query_row(&sql, [], |row| row.get(0))
                .unwrap();
        }
        let url = format!("{}?options=-csearch_path%3Dtokenrun", self.url);
        let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
        client.query_one(&sql, &[]).unwrap().get(0)
    }

    /// Makes the tables, if there are none: on a busy machine that takes longer than the calls of a hasty run
    /// may.
    #[allow(dead_code)] // as above
    pub(crate) fn made(&self) -> &Self {
        self.verb(&["init"]).end().with_code(0);
        self
    }

    pub(crate) fn is_mysql(&self) -> bool {
        self.url.starts_with("mysql:")
    }

    /// MariaDB's client as its administrator, for the database of the store.
    #[allow(dead_code)] // as above
    pub(crate) fn mysql_client(&self) -> Command {
        let (place, socket) = self.url.split_once("?socket=").unwrap();
        let database = place.rsplit('/').next().unwrap();
        let mut client = Command::new("mariadb");
        client.args(["--no-defaults", "-N", "-B", "-r", "-u", "root"]);
        client.args([
            "--default-character-set=utf8mb4",
            "-S",
            socket,
            "-D",
            database,
        ]);
        client
    }

    /// Runs a statement there.
    #[allow(dead_code)] // as above
    pub(crate) fn in_mysql(&self, statement: &str) -> String {
        // As in the other databases, a backslash is nothing special.
        let statement = format!("SET sql_mode = 'NO_BACKSLASH_ESCAPES'; {statement}");
        let done = self.mysql_client().args(["-e", &statement]).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{statement}: {done:?}");
        let text = String::from_utf8(done.stdout).unwrap();
        text.trim_end_matches('\n').to_owned()
    }

    /// A file of the test's.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.store.file(name)
    }
}

/// A statement on tables of the store, with the names that they have in MySQL.
fn in_words_of_mysql(statement: &str) -> String {
    const TABLES: [&str; 7] = [
        "tokens",
        "runs",
        "acts",
        "refusals",
        "done_keys",
        "outputs",
        "waiters",
    ];
    let mut last = String::new();
    let words = statement.split(' ').map(|word| {
        let is_table = ["UPDATE", "FROM", "TABLE", "TO"].contains(&last.as_str());
        word.trim().clone_into(&mut last);
        match TABLES.contains(&word) && is_table {
            true => format!("tokenrun_{word}"),
            false => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}
