//! Connecting as the server's own client does: the same strings, files and variables, beside it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::server::{Database, Kind, Server};
use super::site::Site;
use crate::support::Line;

/// One case: tokenrun's string, what the client gets in its place, and whether they connect.
pub(crate) struct Case {
    pub(crate) url: String,
    pub(crate) words: Vec<String>,
    /// `None`: that depends on the option files of this host.
    pub(crate) connects: Option<bool>,
}

/// Compares both, with these variables, in a home with this option file.
pub(crate) fn compare(
    database: &Database<'_>,
    cases: &[Case],
    variables: &[(&str, &str)],
    file: &str,
) {
    let kind = database.server.kind();
    let home = match kind {
        Kind::Mariadb => tempfile::tempdir(),
        Kind::Mysql => tempfile::tempdir_in(kind.root().join("tmp")),
    };
    let home = home.unwrap();
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(home.path().join(".my.cnf"), file).unwrap();
    for case in cases {
        let site = Site::new(case.url.clone());
        let mut line: Line = site.short("a");
        line = line.env("HOME", home.path().to_str().unwrap());
        let mut client = kind.own_client();
        client.env("HOME", kind.seen(home.path()));
        for (name, value) in variables {
            line = line.env(name, value);
            // The same socket, in the client's root.
            let root = kind.root().display().to_string();
            let inner = value.strip_prefix(&root).filter(|_| root.len() > 1);
            client.env(name, inner.unwrap_or(value));
        }
        client
            .args(&case.words)
            .args(["-D", &database.name, "-e", "SELECT 1"]);
        let theirs = client.output().unwrap();
        let connects = theirs.status.success();
        let expected = case.connects.unwrap_or(connects);
        assert_eq!(connects, expected, "{:?}: {theirs:?}", case.words);
        let ended = line.end();
        assert_eq!(ended.code == Some(0), expected, "{}: {ended:?}", case.url);
    }
}

pub(crate) fn words(of: &[&str]) -> Vec<String> {
    of.iter().map(ToString::to_string).collect()
}

#[test]
fn the_same_strings_connect_or_fail_as_in_the_client() {
    let server = Server::shared();
    let database = server.database();
    let name = &database.name;
    let (user, port, socket) = (format!("u_{name}"), server.port(), server.socket());
    database.sql(&format!(
        "CREATE USER {user} IDENTIFIED BY 'p@ss/w?rd'; GRANT ALL ON {name}.* TO {user}"
    ));
    let socket = socket.display().to_string();
    let by_port = format!("-P{port}");
    let by_user = format!("-u{user}");
    let by_socket = format!("-S{socket}");
    let encoded = "p%40ss%2Fw%3Frd";
    let cases = [
        Case {
            url: format!("mysql://{user}:{encoded}@127.0.0.1:{port}/{name}"),
            words: words(&["-h127.0.0.1", &by_port, &by_user, "-pp@ss/w?rd"]),
            connects: Some(true),
        },
        Case {
            url: format!("mariadb://{user}@127.0.0.1:{port}/{name}?password={encoded}"),
            words: words(&["-h127.0.0.1", &by_port, &by_user, "-pp@ss/w?rd"]),
            connects: Some(true),
        },
        Case {
            url: format!("mysql://{user}:{encoded}@localhost/{name}?socket={socket}"),
            words: words(&[&by_socket, &by_user, "-pp@ss/w?rd"]),
            connects: Some(true),
        },
        Case {
            url: format!("mysql://{user}:wrong@127.0.0.1:{port}/{name}"),
            words: words(&["-h127.0.0.1", &by_port, &by_user, "-pwrong"]),
            connects: Some(false),
        },
        Case {
            url: format!("mysql://{user}@127.0.0.1:{port}/{name}"),
            words: words(&["-h127.0.0.1", &by_port, &by_user]),
            connects: Some(false),
        },
        Case {
            url: format!("mysql://{user}:{encoded}@127.0.0.1:{port}/{name}?ssl-mode=REQUIRED"),
            words: words(&[
                "-h127.0.0.1",
                &by_port,
                &by_user,
                "-pp@ss/w?rd",
                "--ssl",
                "--ssl-verify-server-cert",
            ]),
            // MariaDB 11.4 and newer has TLS without any setting.
            connects: None,
        },
        Case {
            url: format!("mysql://{user}:{encoded}@127.0.0.1:1/{name}"),
            words: words(&["-h127.0.0.1", "-P1", &by_user, "-pp@ss/w?rd"]),
            connects: Some(false),
        },
    ];
    compare(&database, &cases, &[], "");

    let of_file = format!("[client]\nuser = {user}\npassword = 'p@ss/w?rd' # it\n");
    let tcp = [Case {
        url: format!("mysql://127.0.0.1:{port}/{name}"),
        words: words(&["-h127.0.0.1", &by_port]),
        connects: Some(true),
    }];
    compare(&database, &tcp, &[], &of_file);

    let port = port.to_string();
    let variables = [("MYSQL_PWD", "p@ss/w?rd"), ("MYSQL_TCP_PORT", &*port)];
    let by_variables = [Case {
        url: format!("mysql://{user}@127.0.0.1/{name}"),
        words: words(&["-h127.0.0.1", &by_user]),
        connects: Some(true),
    }];
    compare(&database, &by_variables, &variables, "");
    let variables = [("MYSQL_PWD", "p@ss/w?rd"), ("MYSQL_UNIX_PORT", &*socket)];
    let by_socket = [Case {
        url: format!("mysql://{user}@localhost/{name}"),
        words: words(&["-hlocalhost", &by_user]),
        connects: None,
    }];
    compare(&database, &by_socket, &variables, "");
}

/// A file with a key and a certificate, signed by an authority of the test's own.
fn certificates(folder: &Path) -> PathBuf {
    let script = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.pem
        openssl req -newkey rsa:2048 -nodes -subj /CN=db -keyout server.key -out server.csr
        printf 'subjectAltName=DNS:localhost,IP:127.0.0.1' > names
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.pem
        chmod 644 *";
    let done = Command::new("sh")
        .args(["-ec", script])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    folder.join("ca.pem")
}

#[test]
fn tls_is_used_and_verified_as_the_string_says() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let ca = certificates(folder.path());
    let key = format!("ssl_key = {}/server.key", folder.path().display());
    let certificate = format!("ssl_cert = {}/server.pem", folder.path().display());
    let server = Server::start(&[&key, &certificate]);
    let database = server.database();
    // This user is let in with TLS alone.
    database.sql(&format!(
        "CREATE USER s REQUIRE SSL; GRANT ALL ON {}.* TO s",
        database.name
    ));
    let url = database.tcp_url().replace("root@", "s@");
    let ca = ca.display();
    for (options, code) in [
        (String::new(), 0),
        ("?ssl-mode=REQUIRED".into(), 0),
        (format!("?ssl-mode=VERIFY_CA&ssl-ca={ca}"), 0),
        (format!("?ssl-mode=VERIFY_IDENTITY&ssl-ca={ca}"), 0),
        (format!("?ssl-verify-server-cert=1&ssl-ca={ca}"), 0),
        ("?ssl-mode=DISABLED".into(), 77),
        ("?ssl-mode=VERIFY_IDENTITY".into(), 78),
        ("?ssl-ca=/nowhere".into(), 78),
    ] {
        let site = Site::new(format!("{url}{options}"));
        let ended = site.short("a").end();
        assert_eq!(ended.code, Some(code), "{options}: {ended:?}");
    }
}

/// ed25519 proves the password without sending it.
#[test]
fn each_plugin_of_the_server_lets_in() {
    let plugin = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/target/tools/mariadb/usr/lib/mysql/plugin/auth_ed25519.so"
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let copied = std::fs::copy(plugin, folder.path().join("auth_ed25519.so"));
    copied.expect("MariaDB's plugins are missing: tests/run-all fetches them");
    let plugins = format!("plugin_dir = {}", folder.path().display());
    let server = Server::start(&[&plugins, "plugin_load_add = auth_ed25519"]);
    let database = server.database();
    database.sql(&format!(
        "CREATE USER e IDENTIFIED VIA ed25519 USING PASSWORD('secret');
         CREATE USER n IDENTIFIED VIA mysql_native_password USING PASSWORD('secret');
         GRANT ALL ON {0}.* TO e; GRANT ALL ON {0}.* TO n",
        database.name
    ));
    for user in ["e", "n"] {
        for password in ["secret", "wrong"] {
            let url = database
                .tcp_url()
                .replace("root@", &format!("{user}:{password}@"));
            let ended = Site::new(url).short("a").end();
            let code = if password == "secret" { 0 } else { 77 };
            assert_eq!(ended.code, Some(code), "{user} {password}: {ended:?}");
        }
    }
}

#[test]
fn a_password_is_never_shown() {
    let database = Server::shared().database();
    let url = database.tcp_url().replace("root@", "nobody:s3cr3t@");
    let site = Site::new(url);
    let ended = site.short("a").with(&["-v"]).end().with_code(77);
    assert!(!ended.stderr.contains("s3cr3t"), "{ended:?}");
    let ended = site.verb(&["doctor"]).end();
    let all = format!("{}{}", ended.stdout, ended.stderr);
    assert!(!all.contains("s3cr3t"), "{ended:?}");
}

/// What a password or an administrator must change is no fault of the settings, and no server to wait for.
fn an_account_that_must_be_let_in_again(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let user = format!("late_{}", database.name);
    database.sql(&format!(
        "CREATE USER {user}; GRANT ALL ON {}.* TO {user}",
        database.name
    ));
    let site = Site::new(database.url().replace("root@", &format!("{user}@")));
    site.short("a").end().with_code(0);
    for change in ["PASSWORD EXPIRE", "ACCOUNT LOCK"] {
        database.sql(&format!("ALTER USER {user} {change}"));
        site.short("a").end().with_code(77);
    }
}

on_both!(an_account_that_must_be_let_in_again);
