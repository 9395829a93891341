//! The same connection string connects, or fails, in psql and in tokenrun.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::server::{Server, program};
use super::site::Site;

/// A server that wants passwords and certificates over TCP, in several ways.
pub(super) struct Secured {
    pub(super) server: Server,
    pub(super) site: Site,
    /// Certificates: ca.crt, server.crt, other-ca.crt, client.crt, client.key.
    pub(super) folder: PathBuf,
}

fn openssl(folder: &std::path::Path, words: &str) {
    let output = Command::new("openssl")
        .args(words.split(' '))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("openssl is missing: install it (tests/run-all does)");
    assert!(output.status.success(), "{words}: {output:?}");
}

/// A connection string, variables, and whether it connects.
type Case = (String, Vec<(&'static str, &'static str)>, bool);

impl Secured {
    pub(super) fn start() -> Self {
        let site = Site::new("");
        let folder = site.file("certificates");
        std::fs::create_dir(&folder).unwrap();
        for ca in ["ca", "other-ca"] {
            openssl(
                &folder,
                &format!(
                    "req -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN={ca} -keyout {ca}.key -out {ca}.crt"
                ),
            );
        }
        for (name, subject, alt) in [
            ("server", "db", "DNS:localhost"),
            ("client", "certified", "DNS:client"),
        ] {
            std::fs::write(folder.join("ext"), format!("subjectAltName={alt}\n")).unwrap();
            openssl(
                &folder,
                &format!(
                    "req -newkey rsa:2048 -nodes -subj /CN={subject} -keyout {name}.key -out {name}.csr"
                ),
            );
            openssl(
                &folder,
                &format!(
                    "x509 -req -days 9 -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile ext -out {name}.crt"
                ),
            );
        }
        let server = Server::start(&[
            "password_encryption = scram-sha-256",
            "listen_addresses = '127.0.0.1, ::1'",
        ]);
        server.sql(
            "postgres",
            "CREATE ROLE scram LOGIN SUPERUSER PASSWORD 'it''s a: p@ss'; CREATE ROLE certified LOGIN SUPERUSER; CREATE ROLE plain LOGIN SUPERUSER; CREATE ROLE tls LOGIN SUPERUSER; CREATE ROLE nobody_else LOGIN",
        );
        server.sql("postgres", "CREATE DATABASE scram");
        let hba = "local all all trust\n\
            hostnossl all plain 127.0.0.1/32 trust\n\
            hostssl all tls 127.0.0.1/32 trust\n\
            hostssl all certified 127.0.0.1/32 cert\n\
            host all scram 127.0.0.1/32 scram-sha-256\n\
            host all postgres 127.0.0.1/32 trust\n\
            host all postgres ::1/128 trust\n";
        std::fs::write(server.data().join("pg_hba.conf"), hba).unwrap();
        let install = |from: &str, to: &str| {
            let done = Server::command(std::path::Path::new("cp"))
                .arg(folder.join(from))
                .arg(server.data().join(to))
                .status();
            assert!(done.unwrap().success());
        };
        // The server's user copies them, so that they are its own.
        for file in [
            "server.crt",
            "server.key",
            "ca.crt",
            "ca.key",
            "other-ca.key",
            "client.key",
        ] {
            std::fs::set_permissions(
                folder.join(file),
                std::os::unix::fs::PermissionsExt::from_mode(0o644),
            )
            .unwrap();
        }
        for name in ["server.crt", "server.key", "ca.crt"] {
            install(name, name);
        }
        let key = server.data().join("server.key");
        std::fs::set_permissions(key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::set_permissions(
            folder.join("client.key"),
            std::os::unix::fs::PermissionsExt::from_mode(0o600),
        )
        .unwrap();
        server.sql("postgres", "ALTER SYSTEM SET ssl = on");
        server.sql("postgres", "ALTER SYSTEM SET ssl_ca_file = 'ca.crt'");
        server.ctl(&["-w", "restart"]);
        Self {
            server,
            site,
            folder,
        }
    }

    fn filled(&self, text: &str) -> String {
        text.replace("PORT", &self.server.port().to_string())
            .replace("CERTS", self.folder.to_str().unwrap())
            .replace(
                "SOCKETESC",
                &self
                    .server
                    .socket()
                    .display()
                    .to_string()
                    .replace('/', "%2F"),
            )
            .replace("SOCKET", self.server.socket().to_str().unwrap())
            .replace("HOME", self.site.store.path().to_str().unwrap())
    }

    /// Whether psql connects.
    fn psql(&self, text: &str, variables: &[(&str, String)]) -> bool {
        let mut psql = Command::new(program("psql"));
        psql.env_clear()
            .env("HOME", self.site.store.path())
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .args(["-Xw", "-d", text, "-c", "SELECT 1"]);
        let output = psql.stdin(Stdio::null()).output().unwrap();
        output.status.success()
    }

    fn compare(&self, text: &str, variables: &[(&str, &str)], connects: bool) -> Option<String> {
        let text = self.filled(text);
        let variables: Vec<(&str, String)> = variables
            .iter()
            .map(|(name, value)| (*name, self.filled(value)))
            .collect();
        let theirs = self.psql(&text, &variables);
        let mut line = self
            .site
            .store
            .bare(&["-s", &text, "-g", "g", "--keep=0"])
            .job(&["true"]);
        for (name, value) in &variables {
            line = line.env(name, value);
        }
        let ended = line.end();
        let ours = ended.code == Some(0);
        (ours != theirs || ours != connects).then(|| {
            format!("{text} {variables:?}: psql {theirs}, tokenrun {ended:?}, expected {connects}")
        })
    }
}

#[test]
fn connection_strings_connect_or_fail_as_in_psql() {
    let secured = Secured::start();
    let home = secured.site.store.path().to_owned();
    let secret = |name: &str, text: &str| {
        let path = home.join(name);
        std::fs::write(&path, secured.filled(text)).unwrap();
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .unwrap();
    };
    secret("pass", "127.0.0.1:PORT:*:scram:it's a\\: p@ss\n");
    secret("open-pass", "*:*:*:*:it's a\\: p@ss\n");
    std::fs::set_permissions(
        home.join("open-pass"),
        std::os::unix::fs::PermissionsExt::from_mode(0o644),
    )
    .unwrap();
    secret(
        "services",
        "[s]\nhost=127.0.0.1\nport=PORT\nuser=postgres\nsslmode=disable\n",
    );
    let p = "hostaddr=127.0.0.1 host=localhost port=PORT dbname=postgres";
    let with = |rest: &str| format!("{p} {rest}");
    let cases: Vec<Case> = vec![
        ("postgres://postgres@127.0.0.1:PORT/postgres".into(), vec![], true),
        ("postgres://postgres@SOCKETESC:PORT/postgres".into(), vec![], true),
        ("host=SOCKET port=PORT user=postgres sslmode=require".into(), vec![], true),
        ("host=SOCKET port=PORT user=postgres sslmode=verify-full sslrootcert=CERTS/ca.crt".into(), vec![], true),
        ("host=SOCKET port=PORT user=absent".into(), vec![], false),
        ("host=SOCKET port=PORT user=postgres dbname=absent".into(), vec![], false),
        ("postgres://scram:it%27s%20a%3A%20p%40ss@127.0.0.1:PORT".into(), vec![], true),
        ("postgres://scram:wrong@127.0.0.1:PORT".into(), vec![], false),
        ("postgres://scram@127.0.0.1:PORT".into(), vec![], false),
        ("postgres://scram@127.0.0.1:PORT".into(), vec![("PGPASSWORD", "it's a: p@ss")], true),
        ("postgres://scram@127.0.0.1:PORT".into(), vec![("PGPASSFILE", "HOME/pass")], true),
        ("postgres://scram@127.0.0.1:PORT?passfile=HOME/pass".into(), vec![], true),
        ("postgres://scram@127.0.0.1:PORT".into(), vec![("PGPASSFILE", "HOME/open-pass")], false),
        ("host=127.0.0.1 port=PORT user=scram password='it\\'s a: p@ss'".into(), vec![], true),
        ("service=s".into(), vec![("PGSERVICEFILE", "HOME/services")], true),
        ("postgres:///?service=s".into(), vec![("PGSERVICEFILE", "HOME/services")], true),
        ("service=t".into(), vec![("PGSERVICEFILE", "HOME/services")], false),
        ("postgres://".into(), vec![("PGHOST", "127.0.0.1"), ("PGPORT", "PORT"), ("PGUSER", "postgres")], true),
        ("postgres://127.0.0.1:1,127.0.0.1:PORT/?user=postgres".into(), vec![], true),
        ("host=127.0.0.1,127.0.0.1 port=1,PORT user=postgres target_session_attrs=read-write".into(), vec![], true),
        ("host=127.0.0.1,127.0.0.1 port=PORT,1,2 user=postgres".into(), vec![], false),
        ("postgres://postgres@127.0.0.1:PORT/postgres?hots=x".into(), vec![], false),
        ("postgres://postgres@127.0.0.1:PORT/%zz".into(), vec![], false),
        ("postgres://postgres@[::1]:1/postgres".into(), vec![], false),
        ("postgres://postgres@[::1]:PORT/postgres".into(), vec![], true),
        ("hostaddr=::1 port=PORT user=postgres".into(), vec![], true),
        ("hostaddr=localhost port=PORT user=postgres".into(), vec![], false),
        (with("user=postgres target_session_attrs=primary"), vec![], true),
        (with("user=postgres target_session_attrs=bogus"), vec![], false),
        (with("user=postgres sslmode=bogus"), vec![], false),
        (with("user=postgres keepalives_idle=soon"), vec![], false),
        (with("user=postgres connect_timeout=soon"), vec![], false),
        (with("user=postgres connect_timeout=5 keepalives_count=2 tcp_user_timeout=9000"), vec![], true),
        (with("user=postgres options='-c statement_timeout=9s'"), vec![], true),
        (with("user=postgres options='-c nonsense=9s'"), vec![], false),
        (with("user=postgres ssl_min_protocol_version=TLSv9"), vec![], false),
        (with("user=postgres port=99999"), vec![], false),
        (with("user=plain sslmode=disable"), vec![], true),
        (with("user=plain sslmode=allow"), vec![], true),
        (with("user=plain sslmode=prefer"), vec![], true),
        (with("user=plain sslmode=require"), vec![], false),
        (with("user=tls sslmode=disable"), vec![], false),
        (with("user=tls sslmode=allow"), vec![], true),
        (with("user=tls sslmode=prefer"), vec![], true),
        (with("user=tls sslmode=require"), vec![], true),
        (with("user=tls sslmode=require sslrootcert=CERTS/ca.crt"), vec![], true),
        (with("user=tls sslmode=require sslrootcert=CERTS/other-ca.crt"), vec![], false),
        (with("user=tls sslmode=prefer sslrootcert=CERTS/other-ca.crt"), vec![], false),
        (with("user=postgres sslmode=prefer sslrootcert=CERTS/other-ca.crt"), vec![], true),
        (with("user=tls sslmode=require sslrootcert=CERTS/absent.crt"), vec![], true),
        (with("user=tls sslmode=verify-ca"), vec![], false),
        (with("user=tls sslmode=verify-ca sslrootcert=CERTS/ca.crt"), vec![], true),
        (with("user=tls sslmode=verify-ca sslrootcert=CERTS/other-ca.crt"), vec![], false),
        (with("user=tls sslmode=verify-full sslrootcert=CERTS/ca.crt"), vec![], true),
        ("hostaddr=127.0.0.1 host=elsewhere port=PORT dbname=postgres user=tls sslmode=verify-full sslrootcert=CERTS/ca.crt".into(), vec![], false),
        ("hostaddr=127.0.0.1 host=elsewhere port=PORT dbname=postgres user=tls sslmode=verify-ca sslrootcert=CERTS/ca.crt".into(), vec![], true),
        ("hostaddr=127.0.0.1 port=PORT dbname=postgres user=tls sslmode=require".into(), vec![], true),
        ("hostaddr=127.0.0.1 port=PORT dbname=postgres user=tls sslmode=verify-full sslrootcert=CERTS/ca.crt".into(), vec![], false),
        (with("user=tls sslmode=verify-full sslrootcert=CERTS/server.crt"), vec![], false),
        (with("user=certified sslmode=require sslcert=CERTS/client.crt sslkey=CERTS/client.key"), vec![], true),
        (with("user=certified sslmode=require"), vec![], false),
        (with("user=tls sslmode=require ssl_min_protocol_version=TLSv1.3"), vec![], true),
        (with("user=tls sslmode=require ssl_max_protocol_version=TLSv1.2"), vec![], true),
        ("postgres://scram:it%27s%20a%3A%20p%40ss@127.0.0.1:PORT?sslmode=require&channel_binding=require".into(), vec![], true),
        ("postgres://scram:it%27s%20a%3A%20p%40ss@127.0.0.1:PORT?sslmode=disable&channel_binding=require".into(), vec![], false),
    ];
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(text, variables, connects)| secured.compare(text, variables, *connects))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

#[test]
fn the_server_shows_the_group_as_the_applications_name() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    let run = site.run("a").start();
    site.store.until_begun("a");
    let name = database.sql("SELECT application_name FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'tokenrun%'");
    assert_eq!(name, "tokenrun:job");
    site.store.go(0);
    run.end().with_code(0);
}
