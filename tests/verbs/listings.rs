//! `history` and `status`: what is asked for, and nothing else.

use serde_json::Value;

use crate::site::{GROUP, Site};
use crate::support::until;

stories!(
    history_is_filtered_by_client_outcome_and_time,
    a_group_is_shown_in_detail,
    status_is_shown_anew_until_it_is_interrupted,
    a_run_that_vanished_is_found_as_unknown_and_not_as_running,
    groups_are_chosen_by_patterns_and_states,
    history_has_several_outcomes_and_an_end,
    waiters_are_listed_in_their_order,
    the_last_success_is_shown_and_the_exit_code_tells_of_trouble,
    a_killed_run_is_called_so_everywhere,
    ;
    about tables:
    a_row_that_can_not_be_read_hides_no_other,
);

fn history(site: &Site, words: &[&str]) -> Vec<Value> {
    let line = site.verb(&["history", "--json"]).with(words);
    let json = line.end().with_code(0).json();
    json.as_array().unwrap().clone()
}

fn history_is_filtered_by_client_outcome_and_time(site: &Site) {
    for (client, code) in [("node-a", 0), ("node-b", 3), ("node-a", 4)] {
        let line = site.run(client).script(&format!("exit {code}"));
        line.end().with_code(code);
    }
    let clients = |words: &[&str]| {
        let found = history(site, words);
        let names = found.iter().map(|run| run["client"].as_str().unwrap());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(clients(&[]), "node-a node-b node-a");
    assert_eq!(clients(&["--client", "node-a"]), "node-a node-a");
    assert_eq!(clients(&["--outcome", "failed"]), "node-a node-b");
    assert_eq!(clients(&["--outcome", "failed", "--limit", "1"]), "node-a");
    assert_eq!(
        clients(&["--outcome", "failed", "--client", "node-b"]),
        "node-b"
    );
    assert_eq!(clients(&["--outcome", "timed_out"]), "");
    assert_eq!(
        clients(&["--since", "1h", "-g", GROUP]),
        "node-a node-b node-a"
    );
    assert_eq!(clients(&["--since", "0"]), "");
    let wrong = site
        .verb(&["history", "--outcome", "fine"])
        .end()
        .with_code(64);
    wrong.says(&["--outcome", "fine", "timed_out"]);
    // Another client's run shows whose token it was.
    let kept = site.run("node-a").with(&["--keep=1ms"]).job(&["true"]);
    kept.end().with_code(0);
    until("node-b has it", || {
        let ended = site.short("node-b").end();
        (ended.code == Some(0)).then_some(()).ok_or(ended.stderr)
    });
    let last = &history(site, &["--limit", "1"])[0];
    assert_eq!(last["grant"], "takeover");
    assert_eq!(last["previous_client"], "node-a");
}

fn a_run_that_vanished_is_found_as_unknown_and_not_as_running(site: &Site) {
    let run = site.run("node-a").start();
    site.store.until_begun("node-a");
    assert_eq!(history(site, &["--outcome", "running"]).len(), 1);
    assert_eq!(history(site, &["--outcome", "unknown"]).len(), 0);
    let release = site.verb(&["release", "--force", "-g", GROUP]);
    release.end().with_code(0);
    assert_eq!(history(site, &["--outcome", "running"]).len(), 0);
    assert_eq!(history(site, &["--outcome", "unknown"]).len(), 1);
    drop(run);
}

fn a_row_that_can_not_be_read_hides_no_other(site: &Site) {
    for group in ["good", "spoilt"] {
        let line = site.short("node-a").without(&["-g", GROUP]);
        line.with(&["-g", group]).end().with_code(0);
    }
    site.set_in_document("tokens", "keep_ms", "-1", "token_group = 'spoilt'");
    let ended = site.verb(&["status", "--json"]).end().with_code(78);
    ended.says(&["keep_ms", "-1"]);
    let groups = ended.json();
    assert_eq!(groups[0]["group"], "good");
    assert_eq!(groups[0]["state"], "free");
    assert_eq!(groups[1]["group"], "spoilt");
    assert_eq!(groups[1]["state"], "unreadable");
    assert!(groups[1]["error"].as_str().unwrap().contains("keep_ms"));
    let table = site.verb(&["status"]).end().with_code(78).stdout;
    assert!(
        table.contains("good ") && table.contains("unreadable"),
        "{table}"
    );
    let good = site.verb(&["status", "-g", "good"]).end().with_code(0);
    assert_eq!(good.stderr, "");
    site.verb(&["status", "-g", "spoilt"]).end().with_code(78);
    site.verb(&["pause", "-g", "spoilt"]).end().with_code(78);
}

fn a_group_is_shown_in_detail(site: &Site) {
    let run = site.run("node-a").with(&["--label", "the label"]).start();
    site.store.until_begun("node-a");
    let pause = ["pause", "-g", GROUP, "--reason", "a migration"];
    site.verb(&pause).end().with_code(0);
    let text = site
        .verb(&["status", "-g", GROUP])
        .end()
        .with_code(0)
        .stdout;
    let line = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("{name}: {text}")).to_owned()
    };
    assert!(line("state").ends_with("running, paused"), "{text}");
    assert!(
        [
            "state/tokens.db",
            "postgres",
            "mysql",
            "redis",
            "etcd",
            "zk"
        ]
        .iter()
        .any(|it| line("store").contains(it)),
        "{text}"
    );
    assert!(line("client").ends_with("node-a"), "{text}");
    assert!(line("label").ends_with("the label"), "{text}");
    assert!(
        line("host").ends_with(&format!("pid {}", run.pid())),
        "{text}"
    );
    assert!(line("paused").contains("a migration"), "{text}");
    assert!(line("terms").contains("takeover-after 5m"), "{text}");
    assert!(line("so far").contains("1 run, 0 failures"), "{text}");
    site.store.go(0);
    run.end().with_code(0);
}

fn status_is_shown_anew_until_it_is_interrupted(site: &Site) {
    let run = site.run("node-a").start();
    site.store.until_begun("node-a");
    let watch = site.verb(&["status", "--watch=100ms"]).start();
    let shown = |word: &str| {
        until(&format!("the watch shows {word}"), || {
            let text = watch.stdout();
            let last = text.trim_end().rsplit("\n\n").next().unwrap_or_default();
            last.contains(word).then_some(()).ok_or(text.clone())
        });
    };
    shown("running");
    site.store.go(0);
    run.end().with_code(0);
    shown("free");
    assert!(
        !watch.stdout().contains('\u{1b}'),
        "no terminal, no escapes"
    );
    watch.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(watch.end().signal, Some(15));
}

fn groups_are_chosen_by_patterns_and_states(site: &Site) {
    for (group, code) in [("etl-a", 0), ("etl-b", 3), ("report", 0)] {
        let line = site.run("node-a").without(&["-g", GROUP]);
        let line = line.with(&["-g", group, "--keep=0"]);
        line.script(&format!("exit {code}")).end().with_code(code);
    }
    site.verb(&["pause", "-g", "report"]).end().with_code(0);
    let groups = |words: &[&str]| {
        let ended = site.verb(&["status", "--json"]).with(words).end();
        let output = ended.with_code(0).json();
        let output = output.as_array().unwrap().iter();
        let names = output.map(|it| it["group"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(groups(&["-g", "etl-*"]), "etl-a etl-b");
    assert_eq!(
        groups(&["-g", "etl-?", "-g", "report"]),
        "etl-a etl-b report"
    );
    assert_eq!(groups(&["-g", "no-*"]), "");
    assert_eq!(groups(&["--state", "failed"]), "etl-b");
    assert_eq!(groups(&["--state", "failed,paused"]), "etl-b report");
    assert_eq!(groups(&["--state=free", "-g", "etl-*"]), "etl-a etl-b");
    let both = ["status", "-g", "etl-*", "-g", "nigthly"];
    let unknown = site.verb(&both).end().with_code(78);
    unknown.says(&["has no group \"nigthly\""]);
    let wrong = site.verb(&["status", "--state", "ill"]).end().with_code(64);
    wrong.says(&["--state", "ill", "failed"]);
    // Trouble first: the failed one, the paused one, the others.
    let table = site.verb(&["status"]).end().with_code(0).stdout;
    let first = table.lines().skip(1).take(3);
    let first: Vec<&str> = first.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(first, ["etl-b", "report", "etl-a"], "{table}");
    assert_eq!(history(site, &["-g", "etl-*"]).len(), 2);
    assert_eq!(
        history(site, &["-g", "etl-*", "-n", "1"])[0]["group"],
        "etl-b"
    );
}

fn history_has_several_outcomes_and_an_end(site: &Site) {
    for code in [0, 3, 0, 4] {
        let line = site.run("node-a").with(&["--keep=0"]);
        line.script(&format!("exit {code}")).end().with_code(code);
    }
    let all = history(site, &[]);
    let codes = |words: &[&str]| {
        let found = history(site, words);
        let codes = found.iter().map(|run| run["exit_code"].to_string());
        codes.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(codes(&["--outcome", "failed,succeeded"]), "4 0 3 0");
    assert_eq!(codes(&["--outcome", "failed,lost,failed"]), "4 3");
    assert_eq!(
        codes(&["--outcome", "failed", "--outcome", "succeeded", "-n3"]),
        "4 0 3"
    );
    let second = all[1]["started_at"].as_str().unwrap();
    let first = all[2]["started_at"].as_str().unwrap();
    assert_eq!(codes(&["--until", second]), "3 0");
    assert_eq!(codes(&["--until", second, "-n", "1"]), "3");
    assert_eq!(codes(&["--since", first, "--until", second]), "3");
    assert_eq!(codes(&["--until", "2000-01-01"]), "");
    assert_eq!(
        codes(&["--since", "yesterday", "--until", "now"]),
        "4 0 3 0"
    );
    for option in ["--since", "--until"] {
        let wrong = site.verb(&["history", option, "soon"]).end().with_code(64);
        wrong.says(&[option, "soon", "2026-11-21 02:00"]);
    }
}

fn waiters_are_listed_in_their_order(site: &Site) {
    let run = site.run("node-a").start();
    site.store.until_begun("node-a");
    let (mut waiting, mut queue) = (Vec::new(), serde_json::Value::Null);
    for (count, client) in (1..).zip(["node-b", "node-c"]) {
        waiting.push(site.run(client).with(&["--wait"]).start());
        // On a busy machine a waiter may be late with its heartbeat, and out of the queue for a moment.
        queue = until("it waits", || {
            let mut output = site.verb(&["status", "--json"]).end().with_code(0).json();
            match output[0]["waiters"] == count {
                true => Ok(output[0]["queue"].take()),
                false => Err(output.to_string()),
            }
        });
    }
    assert_eq!(queue[0]["client"], "node-b", "{queue:?}");
    assert_eq!(queue[1]["client"], "node-c", "{queue:?}");
    until("the table has both", || {
        let table = site.verb(&["status"]).end().with_code(0).stdout;
        table.contains("2 waiting").then_some(()).ok_or(table)
    });
    until("the details have both, in their order", || {
        let details = site.verb(&["status", "-g", GROUP]).end().with_code(0);
        let line = details.stdout.lines().find(|it| it.starts_with("waiting"));
        let place = |of: &str| line.and_then(|line| line.find(of));
        match place("node-b").zip(place("node-c")) {
            Some((first, second)) => {
                assert!(first < second, "{line:?}");
                Ok(())
            }
            None => Err(details.stdout),
        }
    });
    for waiter in waiting {
        waiter.signal(nix::sys::signal::Signal::SIGTERM);
        waiter.end();
    }
    site.store.go(0);
    run.end().with_code(0);
}

fn the_last_success_is_shown_and_the_exit_code_tells_of_trouble(site: &Site) {
    let status = |words: &[&str]| site.verb(&["status"]).with(words).end();
    site.short("node-a").end().with_code(0);
    let json = |words: &[&str]| status(words).with_code(0).json()[0].take();
    let well = json(&["--json", "--exit-code"]);
    let last = well["last_success_at"].clone();
    assert_eq!(last, well["last_run"]["ended_at"]);
    site.run("node-a").job(&["false"]).end().with_code(1);
    assert_eq!(json(&["-o", "json"])["last_success_at"], last);
    let wide = status(&["-o", "wide"]).with_code(0).stdout;
    assert!(wide.contains("LAST SUCCESS"), "{wide}");
    status(&["--exit-code"]).with_code(1);
    // Other groups are not asked about.
    site.in_group("other", "node-a")
        .job(&["true"])
        .end()
        .with_code(0);
    status(&["--exit-code", "-g", "other"]).with_code(0);
    status(&["-o", "yaml"]).with_code(64);
    status(&["-o", "wide", "--json"]).with_code(64);
    // A narrow history has what `output --run` takes.
    let narrow = site
        .verb(&["history", "-g", GROUP])
        .env("COLUMNS", "80")
        .end();
    let narrow = narrow.with_code(0).stdout;
    let fence = history(site, &["-g", GROUP])[0]["fence"].to_string();
    assert!(narrow.contains(&fence), "{narrow}");
    let wide = site
        .verb(&["history", "-o", "wide", "-g", GROUP])
        .env("COLUMNS", "40")
        .end();
    assert!(wide.with_code(0).stdout.contains("GRANT"));
}

fn a_killed_run_is_called_so_everywhere(site: &Site) {
    let killed = site
        .run("node-a")
        .script("kill -SEGV $$")
        .end()
        .with_code(139);
    killed.tells(&["was killed by SIGSEGV"]);
    let run = history(site, &["--outcome", "killed"]);
    assert_eq!(
        (&run[0]["outcome"], &run[0]["signal"]),
        (&"killed".into(), &11.into())
    );
    let verb = |words: &[&str]| site.verb(words).end().with_code(0).stdout;
    assert!(verb(&["history"]).contains("killed (SIGSEGV)"));
    assert!(verb(&["status"]).contains("killed (SIGSEGV) "));
    assert!(verb(&["status", "--json"]).contains("\"last_outcome\":\"killed\""));
    assert!(verb(&["metrics"]).contains("outcome=\"killed\"} 1\n"));
    assert!(verb(&["explain", "-g", GROUP, "--since", "1h"]).contains("was killed by SIGSEGV"));
    let page = verb(&["page", "--output", "-"]);
    assert!(
        page.contains("its last run was killed by SIGSEGV "),
        "{page}"
    );
}
