//! A folder, a store's connection string, and tokenrun with both.

use std::path::PathBuf;

use crate::support::{Line, PROVING, Store};

/// The group of every test.
pub(crate) const GROUP: &str = "job";

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
        if self.url.starts_with("postgres:") {
            let path = field.replace('.', ",");
            format!("jsonb_set({document}, '{{{path}}}', '{json}')")
        } else {
            format!("json_set({document}, '$.{field}', json('{json}'))")
        }
    }

    /// A cell of the group's token, as a text.
    #[allow(dead_code)] // as above
    pub(crate) fn cell(&self, column: &str) -> String {
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

    /// A file of the test's.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.store.file(name)
    }
}
