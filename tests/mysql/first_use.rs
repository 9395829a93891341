//! The first use of a database, and who may make its tables.

use super::server::{Kind, Server};
use super::site::Site;
use crate::support::until;

on_both!(
    a_run_makes_the_tables_and_leaves_its_history,
    listings_make_no_tables,
    procedures_that_a_dump_left_out_are_made_by_init,
    tables_with_tokens_that_are_completed_again_are_not_new,
    thirty_first_runs_at_once_are_one_run_and_refusals,
    the_database_of_the_tables_is_the_users_choice_and_is_made,
    a_user_with_the_least_rights_runs_on_what_an_administrator_made,
    two_groups_that_differ_in_case_accents_or_blanks_are_two,
);

fn a_run_makes_the_tables_and_leaves_its_history(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    let ended = site
        .short("a")
        .job(&["sh", "-c", "echo $TOKENRUN_FENCE; exit 3"])
        .end();
    let fence = ended.with_code(3).stdout;
    let row = database.sql("SELECT state, fence, last_outcome FROM tokenrun_status");
    assert_eq!(row, format!("free\t{}\tfailed", fence.trim()));
    let history = site.verb(&["history", "--json"]).end().with_code(0).json();
    assert_eq!(history[0]["outcome"], "failed");
    let status = site.verb(&["status", "--json"]).end().with_code(0).json();
    assert_eq!(status[0]["state"], "free");
}

fn listings_make_no_tables(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    site.verb(&["status"])
        .end()
        .with_code(78)
        .says(&[&database.name, "nothing has run"]);
    assert_eq!(database.sql("SHOW TABLES"), "");
}

fn procedures_that_a_dump_left_out_are_made_by_init(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    database.sql("DROP PROCEDURE tokenrun_write_run_unusual; DROP PROCEDURE tokenrun_swap");
    let advice = "run tokenrun init, which makes the procedures that are missing";
    site.short("a").end().with_code(78).says(&[advice]);
    let checked = site.verb(&["doctor"]).end().with_code(77);
    assert!(
        checked.stdout.contains("tokenrun_write_run_unusual"),
        "{checked:?}"
    );
    site.verb(&["init"]).end().with_code(0);
    site.verb(&["doctor"]).end().with_code(0);
    site.short("a").end().with_code(0);
    let history = site.verb(&["history", "--json"]).end().with_code(0).json();
    assert_eq!(history.as_array().unwrap().len(), 2, "{history}");
}

/// The last row of the tables was lost, and with it what was known of the store's past.
fn tables_with_tokens_that_are_completed_again_are_not_new(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    let served = || database.sql("SELECT JSON_EXTRACT(note, '$.served') FROM tokenrun_meta");
    site.verb(&["init"]).end().with_code(0);
    assert_eq!(served(), "\"everything\"");
    site.short("a").end().with_code(0);
    database.sql("DELETE FROM tokenrun_meta");
    site.verb(&["init"]).end().with_code(0);
    assert_eq!(served(), "0");
}

fn thirty_first_runs_at_once_are_one_run_and_refusals(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    let mut runs: Vec<_> = (0..30)
        .map(|n| site.run(&format!("c{n}")).start())
        .collect();
    site.store.until_logged("begin ");
    until("all but one have ended", || {
        let left = runs
            .iter_mut()
            .filter_map(|run| (!run.has_ended()).then_some(()));
        match left.count() {
            1 => Ok(()),
            count => Err(format!("{count} are left")),
        }
    });
    site.store.go(0);
    let mut codes: Vec<_> = runs
        .into_iter()
        .map(|run| run.end().code.unwrap())
        .collect();
    codes.retain(|code| *code != 75);
    assert_eq!(codes, [0]);
    site.store.assert_no_overlap();
}

fn the_database_of_the_tables_is_the_users_choice_and_is_made(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let own = format!("{}_own", database.name);
    let site = Site::new(format!("{}&tokenrun_schema={own}", database.url()));
    site.short("a").end().with_code(0);
    let count = format!("SELECT count(*) FROM {own}.tokenrun_tokens");
    assert_eq!(database.sql(&count), "1");
    assert_eq!(database.sql("SHOW TABLES"), "");
}

/// The script serves the client, and its rights are all that a run needs.
fn a_user_with_the_least_rights_runs_on_what_an_administrator_made(kind: Kind) {
    let server = Server::shared_of(kind);
    let database = server.database();
    let user = format!("least_{}", database.name);
    database.sql(&format!(
        "CREATE USER {user}; GRANT SELECT ON {}.* TO {user}",
        database.name
    ));
    let site = Site::new(database.url().replace("root@", &format!("{user}@")));
    let refused = site.short("a").end().with_code(77);
    refused.says(&["may not make them", "tokenrun init --print-sql"]);

    let script = site
        .verb(&["init", "--print-sql"])
        .end()
        .with_code(0)
        .stdout;
    let file = site.file("script.sql");
    std::fs::write(&file, &script).unwrap();
    let mut client = server.client();
    client.args(["-D", &database.name]);
    client.stdin(std::fs::File::open(&file).unwrap());
    assert!(client.status().unwrap().success());
    let grant = script
        .lines()
        .find_map(|line| line.strip_prefix("-- GRANT SELECT"))
        .unwrap();
    let grant = grant.replace("DATABASE", &database.name);
    let grant = grant.replace("'etl'@'%'", &user);
    database.sql(&format!("GRANT SELECT{}", grant.trim_end_matches(';')));

    let key = ["--once", "key", "--capture=1k"];
    site.short("a").with(&key).end().with_code(0);
    site.short("a").with(&["--once", "key"]).end().with_code(0);
    site.verb(&["pause", "-g", "job"]).end().with_code(0);
    site.short("a").end().with_code(75);
    site.verb(&["resume", "-g", "job"]).end().with_code(0);
    let advanced = ["fence", "advance", "r", "7"];
    site.verb(&advanced).end().with_code(0);
    site.verb(&["doctor"]).end().with_code(0);
    database.sql(&format!("REVOKE DELETE ON {}.* FROM {user}", database.name));
    let lacks = site.verb(&["doctor"]).end().with_code(77);
    assert!(
        lacks.stdout.contains("DELETE on tokenrun_runs"),
        "{lacks:?}"
    );
}

fn two_groups_that_differ_in_case_accents_or_blanks_are_two(kind: Kind) {
    let database = Server::shared_of(kind).database();
    let site = Site::new(database.url());
    let names = ["a", "A", "ä", "a\u{308}", "a b", "a  b", "å", "aa"];
    for name in names {
        site.short_in(name).end().with_code(0);
    }
    let count = database.sql("SELECT count(*) FROM tokenrun_tokens");
    assert_eq!(count, names.len().to_string());
    // So are keys, and an administrator's name with a blank at its end.
    for name in names {
        let once = ["--once", name, "--capture=1k"];
        let ended = site.short("keys").with(&once).end().with_code(0);
        assert!(!ended.stderr.contains("is done already"), "{ended:?}");
    }
    let count = database.sql("SELECT count(*) FROM tokenrun_done_keys");
    assert_eq!(count, names.len().to_string());
    database.sql(
        "INSERT INTO tokenrun_resources VALUES ('r', 1, UTC_TIMESTAMP()), ('r ', 1, UTC_TIMESTAMP())",
    );
}
