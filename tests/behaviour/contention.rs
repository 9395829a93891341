//! Many processes at once on a store that does not exist yet.

use crate::support::{Run, Store, until};

const PROCESSES: usize = 200;

/// All of them have to get their turn at the store: where other programs have most of the processors, that takes 20 s.
const PATIENT: [&str; 2] = ["--store-timeout=55s", "--takeover-after=10m"];

#[test]
fn of_many_that_start_at_once_one_runs_and_the_others_are_refused() {
    let store = Store::new();
    let gate = store.file("gate");
    let wait = "until [ -e gate ]; do sleep 0.05; done; exec \"$@\"";
    let mut runs: Vec<Run> = (0..PROCESSES)
        .map(|number| {
            let line = store.free_run(&format!("node-{number}"));
            line.with(&PATIENT).under(&["sh", "-c", wait, "sh"]).start()
        })
        .collect();
    std::fs::write(gate, "").unwrap();

    let mut refused = Vec::new();
    until("all but one have ended", || {
        for index in (0..runs.len()).rev() {
            if runs[index].has_ended() {
                refused.push(runs.remove(index).end());
            }
        }
        (runs.len() <= 1)
            .then_some(())
            .ok_or(format!("{} are left", runs.len()))
    });
    for ended in refused {
        let ended = ended.with_code(75);
        ended.says(&["\"job\" is held by node-"]);
    }
    let winner = runs.pop().unwrap();
    store.until_logged("begin");
    store.go(0);
    winner.end().with_code(0);

    store.assert_no_overlap();
    assert_eq!(store.log().len(), 2, "{:?}", store.log());
    assert_eq!(store.history().len(), 1);
    let sql = "PRAGMA integrity_check";
    let check: String = store.sql().query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}

#[test]
fn many_short_runs_in_turn_never_overlap() {
    let store = Store::new();
    let script = r#"
        exec 9>>lock
        flock -n 9 || echo overlap >> log
        echo ran >> log
    "#;
    // Each node tries until it has run.
    let retry = "until \"$@\"; do [ $? = 75 ] || exit 1; sleep 0.02; done";
    let runs: Vec<Run> = (0..20)
        .map(|number| {
            let line = store.free_run(&format!("node-{number}")).script(script);
            line.with(&["-q"]).under(&["sh", "-c", retry, "sh"]).start()
        })
        .collect();
    for run in runs {
        assert_eq!(run.end().with_code(0).stderr, "");
    }
    assert_eq!(store.log(), ["ran"; 20]);
    let history = store.history();
    assert_eq!(history.len(), 20);
    assert!(history.iter().all(|run| run["outcome"] == "succeeded"));
}
