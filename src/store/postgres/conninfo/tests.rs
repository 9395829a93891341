use std::time::Duration;

use proptest::prelude::*;

use super::options::ALL;
use super::resolve::resolve;
use super::settings::{Settings, SslMode};
use super::text::{is_conninfo, parse};
use super::{passfile, service};
use crate::store::net::host::{Host, PROBES, Settings as _};
use crate::store::net::options::tests::Around;
use crate::store::net::options::{BadSettings, Fate};
use crate::store::net::secret::Secret;
use crate::store::net::tls::Roots;
use crate::sys::socket::Keepalive;

impl Around {
    fn settings(&self, text: &str) -> Result<Settings, BadSettings> {
        resolve(parse(text)?, self, "tokenrun:g")
    }

    fn refusal(&self, text: &str) -> String {
        self.settings(text).unwrap_err().to_string()
    }
}

fn settings(text: &str) -> Settings {
    Around::default().settings(text).unwrap()
}

fn refusal(text: &str) -> String {
    Around::default().refusal(text)
}

#[test]
fn urls_and_pairs_are_equivalent() {
    for text in [
        "postgres://me:p%40ss@db.example:5433/tokens?sslmode=disable&connect_timeout=7",
        "postgresql://me:p%40ss@db.example:5433/tokens?sslmode=disable&connect_timeout=7",
        "host=db.example port=5433 user=me password=p@ss dbname=tokens sslmode=disable connect_timeout=7",
        " host = 'db.example' port=5433 user='me'  password='p@s\\s' dbname=tok\\ens sslmode=disable connect_timeout=7 ",
    ] {
        let found = settings(text);
        assert_eq!(
            found.name(),
            "postgres://me@db.example:5433/tokens",
            "{text}"
        );
        assert_eq!(found.servers.hosts[0].password, Some(Secret("p@ss".into())));
        assert_eq!(found.tls.mode, SslMode::Disable);
        assert_eq!(found.servers.connect_timeout, Some(Duration::from_secs(7)));
    }
}

#[test]
fn defaults_are_those_of_libpq() {
    let found = settings("postgres://");
    assert_eq!(found.servers.hosts, [Host::unix("/tmp/.s.PGSQL.5432")]);
    assert_eq!(found.user, "os");
    assert_eq!(found.dbname, "os");
    assert_eq!(found.application_name, "tokenrun:g");
    assert_eq!(found.tls.mode, SslMode::Prefer);
    assert_eq!(found.schema, "tokenrun");
    assert_eq!(found.servers.keepalive, Some(PROBES));
}

#[test]
fn several_hosts_ipv6_and_sockets() {
    let found = settings("postgres://a:1,[::1]:2,%2Frun%2Fpg/d");
    let shown: Vec<String> = found
        .servers
        .hosts
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(shown, ["a:1", "[::1]:2", "/run/pg/.s.PGSQL.5432"]);
    assert_eq!(found.name(), "postgres://os@a:1,[::1]:2,/run/pg:5432/d");
    let found = settings("host=a,b hostaddr=10.0.0.1,10.0.0.2 port=7");
    let shown: Vec<String> = found
        .servers
        .hosts
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(shown, ["a (10.0.0.1):7", "b (10.0.0.2):7"]);
    assert!(refusal("host=a,b port=1,2,3").contains("port"));
    assert!(refusal("host=a hostaddr=10.0.0.1,10.0.0.2").contains("hostaddr"));
    assert!(refusal("hostaddr=example").contains("IP address"));
}

#[test]
fn the_string_precedes_the_service_and_the_service_precedes_variables() {
    let around = Around::default()
        .set("PGHOST", "from-variable")
        .set("PGUSER", "from-variable")
        .set("PGPORT", "7001")
        .set("PGSERVICE", "s")
        .set("PGAPPNAME", "named")
        .file(
            "/home/os/.pg_service.conf",
            "# ours\n[other]\nhost=no\n[s]\nhost=from-service\nuser=from-service\n",
            0o644,
        );
    let found = around.settings("user=from-string").unwrap();
    assert_eq!(
        found.name(),
        "postgres://from-string@from-service:7001/from-string"
    );
    assert_eq!(found.application_name, "named");
    assert!(around.refusal("service=none").contains("\"none\""));
    let from_system = Around::default().file(
        "/etc/postgresql-common/pg_service.conf",
        "[s]\nhost=h",
        0o644,
    );
    assert_eq!(
        from_system.settings("service=s").unwrap().servers.hosts[0].to_string(),
        "h:5432"
    );
}

#[test]
fn an_error_in_a_service_file_names_its_line() {
    let wrong = |text| service::find(text, "s", "f").unwrap_err().to_string();
    assert!(wrong("[s]\nhost").contains("f, line 2"));
    assert!(wrong("[s]\nhots=x").contains("\"hots\""));
    assert!(wrong("[s]\nservice=t").contains("another"));
    assert_eq!(service::find("[a]\nbroken", "s", "f"), Ok(None));
}

#[test]
fn a_password_comes_from_a_file_that_others_can_not_read() {
    let lines =
        "h:1:d:u:no\n# comment\nlocalhost:*:*:os:local\nh:5432:*:u\\:x:a\\:b\\\\c:d\n*:*:*:*:any";
    let around = Around::default().file("/home/os/.pgpass", lines, 0o600);
    let password = |text| {
        let found = around.settings(text).unwrap();
        assert_eq!(found.warnings, [""; 0]);
        found.servers.hosts[0]
            .password
            .clone()
            .map(|secret| secret.0)
    };
    assert_eq!(password("dbname=d"), Some("local".into()));
    assert_eq!(password("host=h user=u:x"), Some("a:b\\c:d".into()));
    assert_eq!(password("host=other"), Some("any".into()));
    assert_eq!(password("host=other password=x"), Some("x".into()));
    let open = Around::default().file("/home/os/.pgpass", lines, 0o644);
    let found = open.settings("host=h").unwrap();
    assert_eq!(found.servers.hosts[0].password, None);
    assert!(
        found.warnings[0].contains("chmod 600"),
        "{:?}",
        found.warnings
    );
    let named = Around::default()
        .set("PGPASSFILE", "/secret")
        .file("/secret", "*:*:*:*:s", 0o600);
    let found = named.settings("host=a,b").unwrap();
    assert!(
        found
            .servers
            .hosts
            .iter()
            .all(|host| host.password == Some(Secret("s".into())))
    );
}

#[test]
fn unsupported_options_are_refused_by_name() {
    for option in ALL.iter().filter(|option| option.fate == Fate::Refused) {
        let text = format!("{}=x", option.name);
        assert!(refusal(&text).contains(option.name), "{text}");
        if !option.variable.is_empty() {
            let around = Around::default().set(option.variable, "x");
            assert!(around.refusal("host=h").contains(option.name), "{text}");
        }
    }
    for (text, word) in [
        ("hots=x", "\"hots\""),
        ("postgres://h/d?hots=x", "\"hots\""),
        ("sslmode=on", "verify-full"),
        ("target_session_attrs=standby", "target_session_attrs"),
        ("gssencmode=require", "gssencmode"),
        ("load_balance_hosts=random", "load_balance_hosts"),
        ("ssl_max_protocol_version=TLSv1.1", "TLSv1.2"),
        ("port=0", "port"),
        ("connect_timeout=soon", "connect_timeout"),
        ("host=h user", "="),
        ("host='h", "'"),
        ("postgres://h/%zz", "%25"),
        ("postgres://[::1/d", "]"),
    ] {
        let text_of_refusal = refusal(text);
        assert!(text_of_refusal.contains(word), "{text}: {text_of_refusal}");
    }
}

#[test]
fn units_are_those_of_libpq() {
    let found = settings("tcp_user_timeout=1500 keepalives_idle=9 connect_timeout=1");
    assert_eq!(
        found.servers.user_timeout,
        Some(Duration::from_millis(1500))
    );
    let probes = Keepalive {
        idle: Some(9),
        ..PROBES
    };
    assert_eq!(found.servers.keepalive, Some(probes));
    assert_eq!(found.servers.connect_timeout, Some(Duration::from_secs(2)));
    assert_eq!(settings("connect_timeout=0").servers.connect_timeout, None);
    assert_eq!(settings("keepalives=0").servers.keepalive, None);
}

#[test]
fn certificates_are_where_libpq_looks() {
    let around = Around::default()
        .file("/home/os/.postgresql/root.crt", "", 0o644)
        .file("/home/os/.postgresql/postgresql.crt", "", 0o644)
        .file("/home/os/.postgresql/postgresql.key", "", 0o600)
        .file("/open.key", "", 0o644);
    let tls = around.settings("sslmode=require").unwrap().tls;
    assert_eq!(
        tls.roots,
        Some(Roots::File("/home/os/.postgresql/root.crt".into()))
    );
    assert!(tls.client.is_some());
    assert!(around.refusal("sslkey=/open.key").contains("chmod 600"));
    assert!(around.refusal("sslkey=/none.key").contains("/none.key"));
    assert!(refusal("sslmode=verify-ca").contains("root.crt"));
    assert!(refusal("sslmode=verify-full sslrootcert=/none").contains("/none"));
    let system = settings("sslrootcert=system").tls;
    assert_eq!(
        (system.mode, system.roots),
        (SslMode::VerifyFull, Some(Roots::System))
    );
    assert!(refusal("sslrootcert=system sslmode=require").contains("verify-full"));
}

#[test]
fn a_connection_string_is_distinguished_from_a_file() {
    assert!(is_conninfo("postgres://h") && is_conninfo("service=x"));
    for path in ["a=b.db", "/x/host=1", "sqlite:///x", "tokens.db", ""] {
        assert!(!is_conninfo(path), "{path}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,60}", hosts in "[a\\[\\]:,/@%0?=&']{0,30}") {
        for text in [text.clone(), format!("postgres://{text}"), format!("postgres://{hosts}"), format!("host={hosts}")] {
            if let Ok(pairs) = parse(&text) {
                let _ = resolve(pairs, &Around::default(), "x");
            }
        }
        let _ = passfile::find(&text, "h", "1", "d", "u");
        let _ = service::find(&text, "s", "f");
    }

    #[test]
    fn a_password_survives_both_ways_of_writing(password in "[^\\x00]{1,20}") {
        let quoted = password.replace('\\', "\\\\").replace('\'', "\\'");
        let encoded: String = password.bytes().map(|byte| format!("%{byte:02x}")).collect();
        for text in [format!("password='{quoted}'"), format!("postgres://u:{encoded}@h")] {
            let found = settings(&text);
            prop_assert_eq!(&found.servers.hosts[0].password, &Some(Secret(password.clone())));
            let shown = format!("{:?}", found.servers.hosts[0].password);
            prop_assert_eq!(shown, "Some(…)");
        }
    }

    #[test]
    fn no_error_repeats_a_password(password in "[a-z]{8,12}") {
        for text in [
            format!("password='{password}"),
            format!("host=h password=x {password}"),
            format!("postgres://u:{password}%zz@h"),
            format!("postgres://u:{password}@h/d?x"),
        ] {
            prop_assert!(!refusal(&text).contains(&password), "{}", text);
        }
    }
}
