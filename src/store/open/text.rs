//! What the text of a store's URL says by itself: whether it names a store, and its password.

use std::path::{Path, PathBuf};

use crate::store::mysql::conninfo::text as mysql;
use crate::store::net::host::Settings as _;
use crate::store::net::options::Pairs;
use crate::store::postgres::conninfo::text::parse;
use crate::store::redis::settings as redis;
use crate::store::url::StoreUrl;

/// What is shown of a text that names no store.
const UNREADABLE: &str = "(what can't be read is not shown)";

/// Checks that a text names a store, as far as the text alone shows. Returns the file, if the store is one.
///
/// # Errors
/// What is wrong with it; reads after its name.
pub fn check(text: &str) -> Result<Option<PathBuf>, String> {
    let read = match StoreUrl::parse(text) {
        Ok(StoreUrl::Postgres(text)) => parse(&text.0).map(drop),
        Ok(StoreUrl::Mysql(text)) => mysql::parse(&text.0).map(drop),
        Ok(url) => return Ok(url.file().map(Path::to_owned)),
        Err(error) => return Err(format!("is not good: {error}")),
    };
    read.map(|()| None).map_err(|error| error.to_string())
}

/// True if a store's URL holds a password.
pub fn has_password(text: &str) -> bool {
    match StoreUrl::parse(text) {
        Ok(StoreUrl::Postgres(text)) => parse(&text.0).is_ok_and(|pairs| has_secret(&pairs)),
        Ok(StoreUrl::Mysql(text)) => mysql::has_password(&text.0),
        Ok(StoreUrl::Redis(text)) => redis::parse(&text.0).is_ok_and(|it| it.has_password()),
        Ok(StoreUrl::Sqlite(_)) | Err(_) => false,
    }
}

/// Where the password of this store's URL may be kept instead.
pub fn password_place(text: &str) -> &'static str {
    match StoreUrl::parse(text) {
        Ok(StoreUrl::Mysql(_)) => "~/.my.cnf",
        Ok(StoreUrl::Redis(_)) => "REDISCLI_AUTH",
        _ => "~/.pgpass",
    }
}

fn is_secret(name: &str) -> bool {
    name == "password" || name == "sslpassword"
}

fn has_secret(pairs: &Pairs) -> bool {
    pairs.iter().any(|(name, _)| is_secret(name))
}

/// A store's URL without its password.
pub fn without_password(text: &str) -> String {
    let pairs = match StoreUrl::parse(text) {
        Ok(StoreUrl::Sqlite(_)) => return text.to_owned(),
        Ok(StoreUrl::Mysql(url)) => return mysql::without_password(&url.0),
        Ok(StoreUrl::Redis(url)) => {
            return redis::parse(&url.0).map_or_else(|_| UNREADABLE.into(), |it| it.name());
        }
        Ok(StoreUrl::Postgres(url)) => parse(&url.0),
        Err(_) => return UNREADABLE.to_owned(),
    };
    match pairs {
        Err(_) => UNREADABLE.to_owned(),
        Ok(pairs) if !has_secret(&pairs) => text.to_owned(),
        Ok(pairs) => {
            let shown = pairs.iter().map(|(name, value)| match is_secret(name) {
                true => format!("{name}=***"),
                false => format!("{name}={value}"),
            });
            shown.collect::<Vec<_>>().join(" ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::net::address::tests::{BAD, GOOD};

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
}
