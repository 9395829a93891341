//! The first use of a database, and who may make its tables.

use super::server::Server;
use super::site::Site;
use crate::support::until;

#[test]
fn a_run_makes_the_tables_and_leaves_its_history() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    let ended = site
        .short("a")
        .job(&["sh", "-c", "echo $TOKENRUN_FENCE; exit 3"])
        .end();
    let fence = ended.with_code(3).stdout;
    let row = database.sql("SELECT state, fence, last_outcome FROM tokenrun.token_status");
    assert_eq!(row, format!("free|{}|failed", fence.trim()));
    let history = site.verb(&["history", "--json"]).end().with_code(0).json();
    assert_eq!(history[0]["outcome"], "failed");
    let status = site.verb(&["status", "--json"]).end().with_code(0).json();
    assert_eq!(status[0]["state"], "free");
}

/// A crash empties such a table, and two nodes would run the job.
#[test]
fn a_table_of_tokens_that_is_not_logged_grants_nothing_and_a_holder_goes_on() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    let run = site.run("a").start();
    site.store.until_begun("a");
    database.sql("ALTER TABLE tokenrun.tokens SET UNLOGGED");
    for client in ["a", "b"] {
        let refused = site.short(client).end().with_code(78);
        refused.says(&["table tokens is not logged", "SET LOGGED"]);
    }
    site.store.go(0);
    run.end().with_code(0);
    site.short("a").end().with_code(78);
    database.sql("ALTER TABLE tokenrun.tokens SET LOGGED");
    site.short("a").end().with_code(0);
}

#[test]
fn listings_make_no_tables() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    site.verb(&["status"])
        .end()
        .with_code(78)
        .says(&["tokenrun", "nothing has run"]);
    assert_eq!(
        database.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'tokenrun'"),
        "0"
    );
}

#[test]
fn fifty_first_runs_at_once_are_one_run_and_refusals() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    let mut runs: Vec<_> = (0..50)
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

#[test]
fn the_schema_is_the_users_choice() {
    let database = Server::shared().database();
    let site = Site::new(format!("{}?tokenrun_schema=My%20\"own\"", database.url()));
    site.short("a").end().with_code(0);
    assert_eq!(
        database.sql("SELECT count(*) FROM \"My \"\"own\"\"\".tokens"),
        "1"
    );
}

/// No time ends what a missing right causes, so no run waits for it.
#[test]
fn a_role_that_may_not_ask_which_server_it_is_learns_the_right() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    database.sql(
        "CREATE ROLE unasked LOGIN;
         GRANT USAGE ON SCHEMA tokenrun TO unasked;
         GRANT ALL ON ALL TABLES IN SCHEMA tokenrun TO unasked;
         REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC;
         UPDATE tokenrun.meta SET note = NULL, note_version = NULL",
    );
    let poor = Site::new(database.url().replace("postgres@", "unasked@"));
    let right = "EXECUTE ON FUNCTION pg_control_system()";
    poor.run("b")
        .with(&["--wait"])
        .end()
        .with_code(77)
        .says(&[right]);
    poor.verb(&["distrust", "--yes"])
        .end()
        .with_code(77)
        .says(&[right]);
    let explain = ["explain", "-g", "job", "--client-id", "b"];
    let shown = poor.verb(&explain).end().with_code(0).stdout;
    assert!(
        shown.contains("nothing is granted until it does"),
        "{shown}"
    );
    assert!(!shown.contains("That changes"), "{shown}");
    let doctor = poor.verb(&["doctor"]).end().with_code(77);
    assert!(
        doctor.stdout.contains("EXECUTE on pg_control_system()"),
        "{doctor:?}"
    );
    database.sql("GRANT EXECUTE ON FUNCTION pg_control_system() TO unasked");
    poor.verb(&["distrust", "--yes"]).end().with_code(0);
}

/// The SQL that is printed makes the tables, and a role that tokenrun runs as and that
/// can do nothing else.
#[test]
fn a_role_with_the_least_rights_is_enough() {
    let server = Server::start(&[]);
    let database = server.database();
    let site = Site::new(database.url());
    let printed = site
        .verb(&["init", "--print-sql"])
        .end()
        .with_code(0)
        .stdout;
    database.sql(&printed);
    database.sql("CREATE ROLE etl LOGIN IN ROLE tokenrun");
    let poor = Site::new(database.url().replace("postgres@", "etl@"));
    poor.short("a").end().with_code(0);
    poor.short("b")
        .job(&["sh", "-c", "exit 9"])
        .end()
        .with_code(9);
    poor.verb(&["status"]).end().with_code(0);
    poor.verb(&["history"]).end().with_code(0);
    poor.verb(&["init"]).end().with_code(0);
    poor.verb(&["move", "--when-idle", "-g", "job", "--to", "c"])
        .end()
        .with_code(0);
    // The first leaves the note that the second goes by.
    for key in ["k", "l"] {
        let slow = poor
            .run("c")
            .with(&["--once", key, "--history-retain=500ms"]);
        slow.script("sleep 1.2").end().with_code(0);
    }
    crate::support::until("the old ones are gone", || {
        let left = database.sql("SELECT count(*) FROM tokenrun.runs");
        if left == "1" { Ok(()) } else { Err(left) }
    });
    poor.verb(&["once", "forget", "-g", "job", "k"])
        .end()
        .with_code(0);
    poor.verb(&["history"]).end().with_code(0);
    for forbidden in [
        "DELETE FROM tokenrun.tokens",
        "TRUNCATE tokenrun.runs",
        "UPDATE tokenrun.meta SET oldest_reader = '9'",
        "CREATE TABLE tokenrun.x ()",
    ] {
        let tried = format!(
            "SET ROLE etl; DO $$ BEGIN {forbidden}; RAISE 'it could'; EXCEPTION WHEN insufficient_privilege THEN NULL; END $$"
        );
        database.sql(&tried);
    }
}

#[test]
fn a_role_that_may_not_make_the_tables_gets_the_commands() {
    let server = Server::start(&[]);
    let database = server.database();
    database.sql("CREATE ROLE poor LOGIN");
    let site = Site::new(database.url().replace("postgres@", "poor@"));
    site.short("a")
        .end()
        .with_code(77)
        .says(&["tokenrun init --print-sql", "was not started"]);
}

#[test]
fn a_jobs_open_transaction_holds_a_takeover_off() {
    let database = Server::shared().database();
    let site = Site::new(database.url());
    site.short("a").end().with_code(0);
    let mut psql = std::process::Command::new(super::server::program("psql"));
    psql.env_clear()
        .args(["-XAtq", "-U", "postgres", "-h"])
        .arg(database.server.socket());
    psql.args([
        "-p",
        &database.server.port().to_string(),
        "-d",
        &database.name,
    ]);
    psql.args(["-c", "BEGIN; UPDATE tokenrun.tokens SET state = 'free' RETURNING pg_backend_pid(); SELECT pg_sleep(600)"]);
    let mut holder = psql.stdout(std::process::Stdio::null()).spawn().unwrap();
    let pid = until("the row is locked", || {
        let pid = database.sql("SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()");
        if pid.is_empty() { Err(pid) } else { Ok(pid) }
    });
    site.short("b")
        .end()
        .with_code(75)
        .says(&["held by a transaction of the earlier run", &pid]);
    holder.kill().unwrap();
    holder.wait().unwrap();
}
