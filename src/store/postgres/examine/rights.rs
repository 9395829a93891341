//! The rights of the role, and whether the tables serve this program.

use super::server::{Over, Server, flag, list};
use crate::store::Trouble;
use crate::store::checkup::Check;
use crate::store::postgres::conninfo::settings::Settings;
use crate::store::postgres::schema;
use crate::store::postgres::statements::sql;

/// The rights according to the catalogue.
#[derive(Debug, Clone, Default)]
pub(super) struct Rights {
    is_super: bool,
    /// Whether it may create a schema in this database.
    may_create: bool,
    /// Whether the schema exists.
    there: bool,
    usage: bool,
    /// Whether it may create tables in the schema.
    may_add: bool,
    /// Tables that do not exist.
    absent: Vec<String>,
    /// Missing rights on existing tables.
    missing: Vec<String>,
    /// Tables that a crash would empty.
    unlogged: Vec<String>,
    /// Tables of which row security shows the role only a part.
    filtered: Vec<String>,
}

/// Checks rights and schema, and whether tokens can be read.
pub(super) fn examine(server: &mut Server<'_, '_>, settings: &Settings) -> Result<bool, Over> {
    let Some(row) = server.ask("rights", &server.statements.doctor_rights())? else {
        return Ok(false);
    };
    let rights = Rights {
        is_super: flag(&row, "super"),
        may_create: flag(&row, "may_create"),
        there: flag(&row, "there"),
        usage: flag(&row, "usage"),
        may_add: flag(&row, "may_add"),
        absent: list(&row, "absent"),
        missing: list(&row, "missing"),
        unlogged: list(&row, "unlogged"),
        filtered: list(&row, "filtered"),
    };
    server.tell(of_role(&rights, &settings.user, &settings.schema));
    let has = |name: &str| !rights.absent.iter().any(|absent| absent == name);
    let may = |right: &str| !rights.missing.iter().any(|missing| missing == right);
    let is_known = rights.there && rights.usage && has("meta") && may("SELECT on meta");
    if !is_known {
        server.tell(of_schema(&rights, &settings.schema, None));
        return Ok(false);
    }
    if let Some(row) = server.ask("schema", sql!("schema_version"))? {
        let cell = |at: usize| row.try_get::<_, Option<String>>(at).ok().flatten();
        let versions = Versions {
            own: cell(0),
            oldest_reader: cell(1),
        };
        let check = of_schema(&rights, &settings.schema, Some(versions));
        let serves = !matches!(check.verdict, crate::store::checkup::Verdict::Fail(_));
        server.tell(check);
        return Ok(serves
            && has("tokens")
            && has("waiters")
            && may("SELECT on tokens")
            && may("SELECT on waiters"));
    }
    Ok(false)
}

fn of_role(rights: &Rights, user: &str, schema: &str) -> Check {
    const STEP: &str = "rights";
    let denied = |found: String| {
        Check::fail(
            STEP,
            Trouble::Denied,
            found,
            format!(
                "ask a database administrator to run what tokenrun init --print-sql prints, and then \
                 GRANT tokenrun TO {}",
                quoted(user)
            ),
        )
    };
    if rights.is_super {
        return Check::warn(
            STEP,
            format!("{user} is a superuser: it may do all that tokenrun does, and everything else"),
            "use a role of its own: tokenrun init --print-sql prints one with the least rights",
        );
    }
    if !rights.there {
        return if rights.may_create {
            Check::fine(STEP, format!("{user} may make the schema {schema:?}"))
        } else {
            denied(format!(
                "there is no schema {schema:?}, and {user} may not make it"
            ))
        };
    }
    if !rights.usage {
        return denied(format!("{user} may not use the schema {schema:?}"));
    }
    if !rights.missing.is_empty() {
        let missing = rights.missing.join(", ");
        return denied(format!("{user} lacks {missing} in the schema {schema:?}"));
    }
    if !rights.filtered.is_empty() {
        let tables = rights.filtered.join(", ");
        return Check::fail(
            STEP,
            Trouble::Misconfigured,
            format!(
                "row security hides rows from {user} in {tables}: it may see a free token that is held"
            ),
            "ALTER TABLE … DISABLE ROW LEVEL SECURITY",
        );
    }
    Check::fine(
        STEP,
        format!("{user} may do all that tokenrun does with the tables"),
    )
}

/// A name as an SQL identifier.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.is_empty()
        && name.chars().all(plain)
        && !name.starts_with(|c: char| c.is_ascii_digit())
    {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// What the table meta says of the schema.
struct Versions {
    own: Option<String>,
    /// The oldest version of a program that it serves.
    oldest_reader: Option<String>,
}

fn of_schema(rights: &Rights, schema: &str, versions: Option<Versions>) -> Check {
    const STEP: &str = "schema";
    let Some(versions) = versions else {
        return without_versions(rights, schema);
    };
    let misconfigured = Trouble::Misconfigured;
    match versions.oldest_reader.map(|text| text.parse::<i64>()) {
        Some(Ok(oldest)) if oldest <= schema::VERSION => {}
        Some(Ok(oldest)) => {
            let knows = schema::VERSION;
            let found = format!(
                "{schema:?} is for programs that know version {oldest} or later, and this tokenrun \
                 knows {knows}"
            );
            return Check::fail(STEP, misconfigured, found, "install a newer tokenrun");
        }
        Some(Err(_)) | None => {
            let found =
                format!("the table meta in {schema:?} does not say which programs it is for");
            let remedy = "put a backup back, or name another schema with tokenrun_schema";
            return Check::fail(STEP, misconfigured, found, remedy);
        }
    }
    let version = versions.own.unwrap_or_default();
    let found = format!(
        "{schema:?} has version {version}, and this tokenrun knows {}",
        schema::VERSION
    );
    if !rights.unlogged.is_empty() {
        return Check::fail(
            STEP,
            Trouble::Misconfigured,
            format!(
                "{found}; not logged: {}. A crash of the server would empty them",
                rights.unlogged.join(", ")
            ),
            "ALTER TABLE … SET LOGGED",
        );
    }
    if rights.absent.is_empty() {
        return Check::fine(STEP, found);
    }
    let found = format!("{found}; not there: {}", rights.absent.join(", "));
    let remedy = "put a backup back, or name another schema with tokenrun_schema";
    Check::fail(STEP, Trouble::Misconfigured, found, remedy)
}

fn without_versions(rights: &Rights, schema: &str) -> Check {
    const STEP: &str = "schema";
    let misconfigured = Trouble::Misconfigured;
    if !rights.there {
        return if rights.may_create || rights.is_super {
            let found = format!("there is none named {schema:?} yet: the first run makes it");
            Check::fine(STEP, found)
        } else {
            Check::fail(
                STEP,
                misconfigured,
                format!("there is none named {schema:?}"),
                "ask an administrator to make it, or name another with tokenrun_schema",
            )
        };
    }
    if !rights.absent.iter().any(|name| name == "meta") {
        let found = format!("{schema:?} is there, but its version can't be read");
        return Check::fail(
            STEP,
            Trouble::Denied,
            found,
            "give the role the rights that it lacks",
        );
    }
    if rights.absent.iter().any(|name| name == "tokens") && rights.may_add {
        let found =
            format!("{schema:?} is there without tokenrun's tables: the first run makes them");
        return Check::fine(STEP, found);
    }
    Check::fail(
        STEP,
        misconfigured,
        format!("{schema:?} is there, but not tokenrun's table meta"),
        "ask an administrator to run what tokenrun init --print-sql prints, or name another schema with tokenrun_schema",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::checkup::Verdict;

    fn whole() -> Rights {
        Rights {
            there: true,
            usage: true,
            ..Rights::default()
        }
    }

    fn known(version: &str, oldest: &str) -> Option<Versions> {
        Some(Versions {
            own: Some(version.into()),
            oldest_reader: Some(oldest.into()),
        })
    }

    const DENIED: Verdict = Verdict::Fail(Trouble::Denied);
    const WRONG: Verdict = Verdict::Fail(Trouble::Misconfigured);

    #[test]
    fn a_role_with_the_least_rights_is_fine_and_a_superuser_is_too_much() {
        assert_eq!(of_role(&whole(), "etl", "s").verdict, Verdict::Fine);
        let all = Rights {
            is_super: true,
            ..whole()
        };
        assert_eq!(of_role(&all, "etl", "s").verdict, Verdict::Warn);
    }

    #[test]
    fn missing_rights_are_named_with_their_role() {
        let poor = Rights {
            missing: vec!["DELETE on once".into()],
            ..whole()
        };
        let said = of_role(&poor, "It's \"me\"", "s");
        assert_eq!(said.verdict, DENIED);
        assert!(said.found.contains("DELETE on once"), "{said:?}");
        let remedy = said.remedy.unwrap();
        assert!(remedy.ends_with("TO \"It's \"\"me\"\"\""), "{remedy}");
    }

    #[test]
    fn a_missing_schema_is_a_failure_only_if_the_role_may_not_make_it() {
        let none = Rights::default();
        assert_eq!(of_role(&none, "etl", "s").verdict, DENIED);
        let may = Rights {
            may_create: true,
            ..none
        };
        assert_eq!(of_role(&may, "etl", "s").verdict, Verdict::Fine);
        assert_eq!(of_schema(&may, "s", None).verdict, Verdict::Fine);
    }

    #[test]
    fn versions_are_judged_by_their_oldest_reader() {
        assert_eq!(
            of_schema(&whole(), "s", known("1", "1")).verdict,
            Verdict::Fine
        );
        assert_eq!(
            of_schema(&whole(), "s", known("99", "1")).verdict,
            Verdict::Fine
        );
        let future = of_schema(&whole(), "s", known("99", "99"));
        assert_eq!(future.verdict, WRONG);
        assert!(future.found.contains("99"), "{future:?}");
        assert_eq!(future.remedy.as_deref(), Some("install a newer tokenrun"));
        assert_eq!(of_schema(&whole(), "s", known("2", "many")).verdict, WRONG);
        let silent = Some(Versions {
            own: None,
            oldest_reader: None,
        });
        assert_eq!(of_schema(&whole(), "s", silent).verdict, WRONG);
    }

    #[test]
    fn a_table_that_is_not_there_is_a_failure() {
        let broken = Rights {
            absent: vec!["done_keys".into()],
            ..whole()
        };
        let check = of_schema(&broken, "s", known("1", "1"));
        assert_eq!(check.verdict, WRONG);
        assert!(check.found.contains("done_keys"), "{check:?}");
    }
}
