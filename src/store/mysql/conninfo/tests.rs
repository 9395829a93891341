//! What strings, files and variables mean.

use std::time::Duration;

use super::Settings;
use super::resolve::resolve;
use super::text::{parse, without_password};
use crate::store::net::host::Secret;
use crate::store::net::host::{Host, Settings as _};
use crate::store::net::options::tests::Around;
use crate::store::net::tls::{Roots, SslMode};

/// This user's option file.
const MINE: &str = "/home/os/.my.cnf";

fn settings(text: &str, world: &Around) -> Settings {
    resolve(parse(text).unwrap(), world, "test").unwrap()
}

fn plain(text: &str) -> Settings {
    settings(text, &Around::default())
}

fn password(of: &Settings) -> Option<Secret> {
    of.servers.hosts[0].password.clone()
}

fn hosts(of: &Settings) -> Vec<String> {
    of.servers.hosts.iter().map(ToString::to_string).collect()
}

#[test]
fn a_url_has_a_user_hosts_a_database_and_options() {
    let found = plain("mysql://etl:p%40ss@db1,db2:3307,[::1]:3308/jobs?connect_timeout=3");
    assert_eq!(found.user, "etl");
    assert_eq!(password(&found), Some(Secret("p@ss".into())));
    assert_eq!(hosts(&found), ["db1:3306", "db2:3307", "[::1]:3308"]);
    assert_eq!(found.database, "jobs");
    assert_eq!(found.servers.connect_timeout, Some(Duration::from_secs(3)));
    assert_eq!(
        found.name(),
        "mysql://etl@db1:3306,db2:3307,[::1]:3308/jobs"
    );
    assert_eq!(plain("mariadb://h/d").user, "os");
}

#[test]
fn the_name_localhost_means_the_socket_unless_a_port_is_given() {
    let default = Host::unix("/run/mysqld/mysqld.sock");
    assert_eq!(plain("mysql://localhost/d").servers.hosts[0], default);
    assert_eq!(plain("mysql:///d").servers.hosts[0], default);
    for text in [
        "mysql://localhost:3306/d",
        "mysql://localhost/d?protocol=tcp",
        "mysql://127.0.0.1/d",
    ] {
        let host = &plain(text).servers.hosts[0];
        assert!(!host.is_unix(), "{text}");
    }
    let own = plain("mysql://x@h/d?socket=/tmp/s").servers.hosts;
    assert_eq!(own, [Host::unix("/tmp/s")]);
    assert_eq!(
        plain("mysql://x@%2Ftmp%2Fs/d").servers.hosts,
        [Host::unix("/tmp/s")]
    );
}

#[test]
fn the_string_counts_before_files_and_files_before_variables() {
    let world = Around::default()
        .set("MYSQL_HOST", "of-variable")
        .set("MYSQL_TCP_PORT", "1")
        .set("MYSQL_PWD", "of-variable")
        .set("MYSQL_UNIX_PORT", "/of/variable");
    let found = settings("mysql:///d", &world);
    assert_eq!(hosts(&found), ["of-variable:1"]);
    assert_eq!(password(&found), Some(Secret("of-variable".into())));
    let socket = settings("mysql://localhost/d", &world);
    assert_eq!(hosts(&socket), ["/of/variable"]);
    let world = world
        .file(
            "/etc/mysql/my.cnf",
            "[client]\nhost=first\nport=2\nuser=first\n!includedir /etc/mysql/d\n",
            0o644,
        )
        .file(
            "/etc/mysql/d/a.cnf",
            "[mysqld]\nport=9\n[client-mariadb]\nhost=second",
            0o644,
        )
        .file("/etc/mysql/d/b.txt", "[client]\nhost=no", 0o644)
        .file(MINE, "[tokenrun]\npassword='of file'", 0o600);
    let found = settings("mysql:///d", &world);
    assert_eq!(hosts(&found), ["second:2"]);
    assert_eq!(found.user, "first");
    assert_eq!(password(&found), Some(Secret("of file".into())));
    let found = settings("mysql://you:mine@third:4/d", &world);
    assert_eq!(hosts(&found), ["third:4"]);
    assert_eq!(found.user, "you");
    assert_eq!(password(&found), Some(Secret("mine".into())));
}

#[test]
fn a_file_that_everybody_may_write_is_left_out() {
    let world = Around::default().file(MINE, "[client]\nuser=evil", 0o606);
    let found = settings("mysql://h/d", &world);
    assert_eq!(found.user, "os");
    assert_eq!(
        found.servers.warnings.len(),
        1,
        "{:?}",
        found.servers.warnings
    );
}

#[test]
fn a_file_counts_although_a_comment_is_not_utf_8_and_a_value_that_counts_must_be() {
    let with = |text: &[u8]| Around::default().file(MINE, text, 0o600);
    let found = settings("mysql://h/d", &with(b"# f\xffr\n[client]\nuser=etl\n"));
    assert_eq!(found.user, "etl");
    for text in [&b"[client]\nuser=\xff"[..], b"[client", b"user=x\n"] {
        let error = resolve(parse("mysql://h/d").unwrap(), &with(text), "test");
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("the option file /home/os/.my.cnf: "),
            "{error}"
        );
    }
}

#[test]
fn tls_is_not_verified_and_left_out_at_once() {
    let given = parse("mysql://h/d?skip-ssl=1&ssl-verify-server-cert=1").unwrap();
    assert!(resolve(given, &Around::default(), "test").is_err());
}

#[test]
fn tls_follows_the_words_of_both_clients() {
    for (options, mode, roots) in [
        ("", SslMode::Prefer, None),
        ("?ssl-mode=DISABLED", SslMode::Disable, None),
        ("?ssl_mode=required", SslMode::Require, None),
        ("?ssl=1", SslMode::Require, None),
        ("?ssl=0", SslMode::Disable, None),
        (
            "?ssl-ca=/ca",
            SslMode::VerifyCa,
            Some(Roots::File("/ca".into())),
        ),
        (
            "?ssl-mode=VERIFY_IDENTITY",
            SslMode::VerifyFull,
            Some(Roots::System),
        ),
        (
            "?ssl-verify-server-cert=1&ssl-ca=/ca",
            SslMode::VerifyFull,
            Some(Roots::File("/ca".into())),
        ),
        (
            "?ssl-mode=REQUIRED&ssl-ca=/ca",
            SslMode::VerifyCa,
            Some(Roots::File("/ca".into())),
        ),
        (
            "?ssl-mode=PREFERRED&ssl-verify-server-cert=1",
            SslMode::VerifyFull,
            Some(Roots::System),
        ),
        ("?ssl-mode=DISABLED&ssl=1", SslMode::Require, None),
    ] {
        let tls = plain(&format!("mysql://h/d{options}")).tls;
        assert_eq!((tls.mode, tls.roots), (mode, roots), "{options}");
    }
}

/// A file of this user's with these lines.
fn with_file(text: &str) -> Around {
    Around::default().file(MINE, text, 0o600)
}

#[test]
fn no_option_file_weakens_the_tls_of_the_string() {
    for (options, file, mode) in [
        ("ssl-ca=/ca", "skip-ssl", SslMode::VerifyCa),
        ("ssl-ca=/ca", "ssl-mode=DISABLED", SslMode::VerifyCa),
        ("ssl-verify-server-cert=1", "skip-ssl", SslMode::VerifyFull),
        (
            "ssl-verify-server-cert=1",
            "ssl-mode=DISABLED",
            SslMode::VerifyFull,
        ),
        (
            "ssl-verify-server-cert=1",
            "ssl-mode=REQUIRED",
            SslMode::VerifyFull,
        ),
        ("ssl=1", "ssl=0", SslMode::Require),
        ("ssl=1", "skip-ssl", SslMode::Require),
        ("ssl=1", "disable-ssl", SslMode::Require),
        ("ssl-ca=/ca", "loose_skip_ssl", SslMode::VerifyCa),
        (
            "ssl-verify-server-cert=1",
            "disable-ssl-verify-server-cert",
            SslMode::VerifyFull,
        ),
        (
            "ssl-ca=/ca",
            "enable-ssl-verify-server-cert",
            SslMode::VerifyFull,
        ),
        // A stricter file counts.
        ("ssl=1", "ssl-ca=/of/file", SslMode::VerifyCa),
        (
            "ssl-ca=/ca",
            "ssl-mode=VERIFY_IDENTITY",
            SslMode::VerifyFull,
        ),
        ("ssl-ca=/ca", "ssl-verify-server-cert", SslMode::VerifyFull),
        // The string names the mode itself.
        (
            "ssl-mode=REQUIRED",
            "ssl-verify-server-cert",
            SslMode::Require,
        ),
        ("ssl-mode=VERIFY_CA", "ssl-mode=DISABLED", SslMode::VerifyCa),
        ("skip-ssl=1", "ssl-mode=VERIFY_CA", SslMode::Disable),
        (
            "ssl-verify-server-cert=0",
            "ssl-verify-server-cert",
            SslMode::Prefer,
        ),
        // The string says nothing of it.
        ("connect-timeout=1", "skip-ssl", SslMode::Disable),
        (
            "connect-timeout=1",
            "skip-ssl\nssl-ca=/of/file",
            SslMode::VerifyCa,
        ),
        ("connect-timeout=1", "ssl-ca=/of/file", SslMode::VerifyCa),
    ] {
        let text = format!("[client]\n{file}\n");
        let world = with_file(text.leak());
        let found = settings(&format!("mysql://h/d?{options}"), &world);
        assert_eq!(found.tls.mode, mode, "{options}, {file}");
    }
    let world = with_file("[client]\nssl-ca=/of/file\n");
    let roots = |text| settings(text, &world).tls.roots;
    assert_eq!(
        roots("mysql://h/d?ssl-ca=/ca"),
        Some(Roots::File("/ca".into()))
    );
    assert_eq!(
        roots("mysql://h/d?ssl-mode=VERIFY_IDENTITY"),
        Some(Roots::File("/of/file".into()))
    );
}

#[test]
fn an_option_that_names_an_empty_file_is_an_error() {
    let world = Around::default();
    for text in [
        "?ssl-ca=",
        "?ssl-mode=REQUIRED&ssl-ca=",
        "?ssl-cert=&ssl-key=",
    ] {
        let found = resolve(
            parse(&format!("mysql://h/d{text}")).unwrap(),
            &world,
            "test",
        );
        let error = found.unwrap_err().to_string();
        assert!(error.contains("names no file"), "{text}: {error}");
    }
    let world = with_file("[client]\nssl-ca\n");
    assert!(resolve(parse("mysql://h/d").unwrap(), &world, "test").is_err());
}

#[test]
fn another_database_is_named_by_an_option() {
    assert_eq!(plain("mysql://h/d?tokenrun_schema=t").database, "t");
}

#[test]
fn an_error_repeats_no_value() {
    for text in [
        "mysql://u:secret@h:x/d",
        "mysql://u:secret%zz@h/d",
        "mysql://u:secret@h/d?hots=x",
        "mysql://u:secret@h/d?secret",
        "mysql://u:secret@[h/d",
        "mysql://u:secret@h",
        "mysql://u:secret@h/d?ssl-cert=x",
        "mysql://u:secret@h/d?connect-timeout=soon",
    ] {
        let found = parse(text).and_then(|given| resolve(given, &Around::default(), "test"));
        let error = found.unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn a_password_is_not_shown() {
    for (text, shown) in [
        ("mysql://u:secret@h/d", "mysql://u:***@h/d"),
        (
            "mariadb://u@h/d?password=secret&ssl=1",
            "mariadb://u@h/d?password=***&ssl=1",
        ),
        ("mysql://u@h,i/d", "mysql://u@h,i/d"),
        ("mysql://u:secret%@h/d", "(what can't be read is not shown)"),
    ] {
        assert_eq!(without_password(text), shown);
    }
}
