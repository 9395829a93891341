use proptest::prelude::*;

use super::*;
use crate::mutated::mutated_text;
use crate::store::net::address::tests::{BAD, GOOD};

fn sqlite(path: &str) -> Result<StoreUrl, UrlError> {
    Ok(StoreUrl::Sqlite(PathBuf::from(path)))
}

#[test]
fn a_sqlite_file_is_a_url_or_a_plain_path() {
    assert_eq!(
        StoreUrl::parse("sqlite:///var/lib/x.db"),
        sqlite("/var/lib/x.db")
    );
    assert_eq!(StoreUrl::parse("/var/lib/x.db"), sqlite("/var/lib/x.db"));
    assert_eq!(StoreUrl::parse("x.db"), sqlite("x.db"));
    assert_eq!(StoreUrl::parse("a=b.db"), sqlite("a=b.db"));
}

#[test]
fn a_likely_typing_error_is_no_path() {
    for text in [
        "sqlite:/var/lib/x.db",
        "sqlite:x.db",
        "postgres:/host/database",
        "file:/var/lib/x.db",
        ":memory:",
        "localhost:5432/jobs",
        "etl:secret@host/jobs",
        "etl@host/jobs",
        "HOST=db.example.org USER=etl PASSWORD=S3cr3t",
        "~/x.db",
        "$HOME/x.db",
        " /var/lib/x.db",
        "x.db\n",
    ] {
        let error = StoreUrl::parse(text).unwrap_err();
        assert!(matches!(error, UrlError::Unlikely(_)), "{text:?}");
        let shown = error.to_string();
        assert!(
            !shown.contains("secret") && !shown.contains("S3cr3t"),
            "{shown}"
        );
    }
    for text in [
        "./a:b.db",
        "/srv/a@b/c:d.db",
        "./~x",
        "a/b:c.db",
        "a $b.db",
        "a=b.db",
        "./host=x",
    ] {
        assert_eq!(StoreUrl::parse(text), sqlite(text));
    }
}

#[test]
fn other_schemes_are_refused_without_repeating_what_may_be_a_password() {
    for (text, says) in [
        ("ftp://:secret@h/", "unknown scheme"),
        ("mongodb://:secret@h/", "does not support mongodb:// stores"),
        ("redis://:secret@h/x", "no number of a database"),
    ] {
        let message = StoreUrl::parse(text).unwrap_err().to_string();
        assert!(message.contains(says), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }
    assert_eq!(
        StoreUrl::parse("sqlite://x.db"),
        Err(UrlError::NotAbsolute("sqlite://x.db".into()))
    );
    let secret = StoreUrl::parse("sqlite://etl:S3cr3t@h/j").unwrap_err();
    assert!(!secret.to_string().contains("S3cr3t"), "{secret}");
    assert_eq!(StoreUrl::parse("  "), Err(UrlError::Empty));
}

#[test]
fn a_postgres_database_is_a_url_or_pairs() {
    for text in [
        "postgres://u:p@h/d",
        "postgresql:///d",
        "host=db user=u",
        "service = x",
        "application_name='a b' host=h",
    ] {
        let store = StoreUrl::parse(text).unwrap();
        assert_eq!(store, StoreUrl::Postgres(Secret(text.into())));
        assert_eq!(format!("{store:?}"), "Postgres(…)");
    }
}

#[test]
fn a_database_of_mysql_or_mariadb_is_a_url() {
    for text in ["mysql://u:p@h/d", "mariadb:///d"] {
        let store = StoreUrl::parse(text).unwrap();
        assert_eq!(store, StoreUrl::Mysql(Secret(text.into())));
        assert_eq!(format!("{store:?}"), "Mysql(…)");
    }
}

#[test]
fn the_default_is_in_the_state_directory() {
    let root = NodeEnvironment {
        is_root: true,
        ..NodeEnvironment::default()
    };
    assert_eq!(
        StoreUrl::default_for(&root),
        sqlite("/var/lib/tokenrun/tokenrun.db")
    );
    let user = NodeEnvironment {
        home: Some("/home/u".into()),
        ..NodeEnvironment::default()
    };
    assert_eq!(
        StoreUrl::default_for(&user),
        sqlite("/home/u/.local/state/tokenrun/tokenrun.db")
    );
    let xdg = NodeEnvironment {
        xdg_state_home: Some("/state".into()),
        ..user
    };
    assert_eq!(
        StoreUrl::default_for(&xdg),
        sqlite("/state/tokenrun/tokenrun.db")
    );
    assert_eq!(
        StoreUrl::default_for(&NodeEnvironment::default()),
        Err(UrlError::NoHome)
    );
}

#[test]
fn there_is_no_default_where_a_private_file_excludes_no_other_node() {
    for environment in [
        NodeEnvironment {
            is_pid_1: true,
            is_root: true,
            ..NodeEnvironment::default()
        },
        NodeEnvironment {
            in_kubernetes: true,
            is_root: true,
            ..NodeEnvironment::default()
        },
    ] {
        assert!(matches!(
            StoreUrl::default_for(&environment),
            Err(UrlError::NoDefaultHere(_))
        ));
    }
}

#[test]
fn a_url_is_shown_as_it_can_be_written() {
    let url = StoreUrl::parse("/var/x.db").unwrap();
    assert_eq!(url.shown(), "sqlite:///var/x.db");
    assert_eq!(url.file(), Some(Path::new("/var/x.db")));
    let url = StoreUrl::parse("host=db password=secret").unwrap();
    assert!(!url.shown().contains("secret"));
    assert_eq!(url.file(), None);
}

#[test]
fn a_store_is_shown_without_its_password() {
    for (store, shown) in [
        ("/var/x.db", "/var/x.db"),
        ("postgres://etl@db/jobs", "postgres://etl@db/jobs"),
        (
            "postgres://etl:s%40cret@db/jobs",
            "user=etl password=*** host=db dbname=jobs",
        ),
        ("password=secret host=db", "password=*** host=db"),
        ("rediss://etl:s%40cret@db/3", "rediss://etl@db:6379/3"),
    ] {
        let text = without_password(store);
        assert!(!text.contains("cret"), "{text}");
        let sorted = |text: &str| {
            let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            words.sort_unstable();
            words.retain(|word| !word.starts_with("port="));
            words
        };
        assert_eq!(sorted(&text), sorted(shown));
    }
    for unreadable in [
        "postgres://u:secret@[h/d",
        "mysql://u:secret@h/d?secret",
        "password='secret",
    ] {
        assert!(
            !without_password(unreadable).contains("secret"),
            "{unreadable}"
        );
    }
}

#[test]
fn a_password_is_found_and_has_a_place_of_its_own() {
    let pgpass = Some("~/.pgpass");
    for (scheme, place) in [
        ("postgres", pgpass),
        ("mysql", Some("~/.my.cnf")),
        ("redis", Some("REDISCLI_AUTH")),
        ("etcd", Some("ETCDCTL_PASSWORD")),
        ("zk", None),
    ] {
        let text = format!("{scheme}://etl:secret@h/4");
        assert!(has_password(&text), "{text}");
        assert_eq!(password_place(&text), place, "{text}");
        assert!(without_password(&text).contains("etl"), "{text}");
        assert!(!has_password(&format!("{scheme}://etl@h/4")), "{scheme}");
    }
    let of_key = "postgres://h/d?sslpassword=secret";
    assert!(has_password(of_key));
    assert!(!without_password(of_key).contains("secret"));
    for none in ["/var/x.db", "redis://u:secret@h/x"] {
        assert!(!has_password(none), "{none}");
    }
}

#[test]
fn a_file_of_the_store_is_known_by_every_path() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real");
    std::fs::create_dir_all(real.join("x.db-locks")).unwrap();
    std::fs::create_dir(folder.path().join("other")).unwrap();
    std::os::unix::fs::symlink(&real, folder.path().join("link")).unwrap();
    let store = StoreUrl::Sqlite(real.join("x.db"));
    for (name, is_its) in [
        ("real/x.db", true),
        ("link/x.db", true),
        ("other/../real/x.db", true),
        ("real/x.db-wal", true),
        ("link/x.db-journal", true),
        ("real/x.db-locks/a", true),
        ("link/x.db-locks/a", true),
        ("real/y.db", false),
        ("real/y.db-wal", false),
        ("real/x.db-locks/a/b", false),
        ("other/x.db", false),
        ("other/x.db-wal", false),
    ] {
        let path = folder.path().join(name);
        assert_eq!(store.has_file(&path), is_its, "{name}");
        let server = StoreUrl::parse("redis://h").unwrap();
        assert!(!server.has_file(&path), "{name}");
    }
    let missing = Path::new("/missing-of-tokenrun/x.db");
    assert!(is_same_name(missing, missing));
    // A directory that is mounted twice has two paths without links.
    let one = real.join("x.db");
    for (name, is_same) in [
        ("link/x.db", true),
        ("link/y.db", false),
        ("other/x.db", false),
        ("missing/x.db", false),
    ] {
        let other = folder.path().join(name);
        assert_eq!(is_same_name(&one, &other), is_same, "{name}");
    }
}

/// What one store refuses no other one sends to some server.
#[test]
fn all_schemes_refuse_the_same_urls() {
    for scheme in [
        "postgres",
        "postgresql",
        "mysql",
        "mariadb",
        "redis",
        "valkeys",
        "etcd",
        "etcds",
        "zk",
        "zks",
    ] {
        for (bad, says) in BAD {
            let error = check(&format!("{scheme}://{bad}")).unwrap_err();
            assert!(error.contains(says), "{scheme}://{bad}: {error}");
            assert!(!error.contains("secret"), "{scheme}://{bad}: {error}");
        }
        for (good, _) in GOOD {
            let found = check(&format!("{scheme}://{good}"));
            assert_eq!(found, Ok(None), "{scheme}://{good}");
        }
    }
}

#[test]
fn a_text_names_a_file_a_server_or_nothing() {
    assert_eq!(check("/var/x.db"), Ok(Some(PathBuf::from("/var/x.db"))));
    assert_eq!(check("postgres://etl@db/jobs"), Ok(None));
    assert_eq!(check("host=db dbname=jobs"), Ok(None));
    assert_eq!(check("redis://u:secret@h"), Ok(None));
    let unknown = check("mongodb://u:secret@h").unwrap_err();
    assert!(unknown.starts_with("is not good: "), "{unknown}");
    assert!(!unknown.contains("secret"), "{unknown}");
    assert!(check("postgres://h/d?hots=x").unwrap_err().contains("hots"));
}

proptest! {
    #[test]
    fn no_text_panics(text in mutated_text(&[
        "postgres://etl:pw@h1,h2:5433/jobs?sslmode=verify-full",
        "host=h dbname=jobs password='a b'",
        "mysql://u:p@h:3306/d?ssl-mode=required",
        "sqlite:///var/lib/jobs.db",
        "./jobs.db",
        "redis://a,b,c/0?quorum",
    ]), any in ".{0,60}") {
        for text in [text, any] {
            let parsed = StoreUrl::parse(&text);
            let said = parsed.map_or_else(|error| error.to_string(), |url| format!("{url:?}"));
            prop_assert!(!said.contains('\n'), "{said:?}");
        }
    }
}
