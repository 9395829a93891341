//! A command line that asks for nothing that can be done: 64, and a line that helps.

use crate::support::Store;

#[test]
fn errors_of_a_command_line_are_one_line() {
    let store = Store::new();
    let job = ["--", "true"];
    let cases: [(&[&str], &[&str]); 24] = [
        (&["-g", ""], &["--group", "empty"]),
        (&["-g", "a\nb"], &["--group", "control character"]),
        (&[], &["no group"]),
        (&["-g", "x", "--client-id", ""], &["--client-id", "empty"]),
        (&["-g", "x", "--expected", ""], &["--expected", "empty"]),
        (&["-g", "x", "--keep", "5M"], &["--keep", "months", "5m"]),
        (&["-g", "x", "--keep", "1y"], &["--keep", "year"]),
        (&["-g", "x", "--keep", "soon"], &["--keep"]),
        (&["-g", "x", "--keep=-1"], &["--keep"]),
        (&["-g", "x", "--heartbeat", "0"], &["--heartbeat"]),
        (&["-g", "x", "--takeover-after", "0"], &["--takeover-after"]),
        (
            &["-g", "x", "--takeover-after", "25h"],
            &["--takeover-after", "24h"],
        ),
        (
            &["-g", "x", "--takeover-after", "20s"],
            &["--takeover-after 29s or more"],
        ),
        (&["-g", "x", "--store-timeout", "0"], &["--store-timeout"]),
        (&["-g", "x", "--timeout", "0"], &["--timeout", "too short"]),
        (&["-g", "x", "--leftovers", "eat"], &["--leftovers"]),
        (&["-g", "x", "--log-format", "xml"], &["--log-format"]),
        (&["-g", "x", "-E", "256"], &["256"]),
        (&["-g", "x", "-q", "-v"], &["--quiet", "--verbose"]),
        (
            &["-g", "x", "--hartbeat", "1s"],
            &["--hartbeat", "--heartbeat"],
        ),
        (
            &["-g", "x", "--label", "a\tb"],
            &["--label", "control character"],
        ),
        (&["-g", "x", "-g", "y"], &["--group"]),
        (&["-g", "x", "--once="], &["--once", "empty"]),
        (
            &["-g", "x", "--once=$(JOB_NAME)"],
            &["$(JOB_NAME)", "expanded"],
        ),
    ];
    for (words, says) in cases {
        let ended = store.bare(words).with(&job).end().with_code(64);
        ended.says(says);
        assert_eq!(ended.stdout, "");
    }
    for (words, says) in [
        (&["-g", "x"][..], &["no command"][..]),
        (&["-g", "x", "--"], &["no command"]),
        (&["-g", "x", "--", ""], &["no command"]),
        (&["-g", "x", "echo", "hi"], &["\"echo\"", "goes after --"]),
        (&["statsu"], &["status"]),
        (&["-g", "x", "--wait", "5m"], &["--wait=5m", "equals sign"]),
        (
            &["-g", "x", "--hold", "--", "true"],
            &["unknown option --hold; tokenrun --help"],
        ),
        (&["status", "-g", ""], &["--group", "empty"]),
        (&["history", "-n", "many"], &["many"]),
        (&["completions", "cmd.exe"], &["cmd.exe"]),
    ] {
        store.bare(words).end().with_code(64).says(says);
    }
    assert!(!store.database().exists());
}

#[test]
fn a_name_that_is_too_long_is_refused_and_one_that_just_fits_is_not() {
    let store = Store::new();
    let database = store.database();
    let run = |length: usize| {
        let group = "ä".repeat(length);
        let line = store.bare(&["-s", database.to_str().unwrap(), "-g", &group]);
        line.job(&["true"]).end()
    };
    run(200).with_code(0);
    run(201).with_code(64).says(&["--group", "201"]);
}

/// Two names that look equal would be two jobs.
#[test]
fn a_name_with_something_invisible_in_it_is_refused_wherever_it_is_given() {
    let store = Store::new();
    let hidden = "night\u{200b}ly";
    let backwards = "--client-id=\u{202e}b-edon";
    let lines: [&[&str]; 10] = [
        &["-g", hidden, "--", "true"],
        &["-g", "x", backwards, "--", "true"],
        &["-g", "x", "--expected=node\u{a0}b", "--", "true"],
        &["-g", "x", "--once=2026\u{ad}11", "--", "true"],
        &["hold", "-g", hidden],
        &["move", "--when-idle", "-g", "x", "--to", "b\u{feff}"],
        &["expect", "-g", "x", "b\u{2066}"],
        &["once", "forget", "-g", "x", "key\u{fe0f}"],
        &["fence", "advance", "file\u{2060}", "7"],
        &["explain", "-g", "x", "--client-id", "b\u{3164}"],
    ];
    for words in lines {
        let ended = store.bare(words).end().with_code(64);
        ended.says(&["has an invisible character (U+"]);
    }
    let run = store.bare(&["-g", "x"]).job(&["true"]);
    let ended = run.clone().env("CLIENT_ID", hidden).end().with_code(78);
    ended.says(&["the variable CLIENT_ID", "invisible", "--client-id"]);
    let file = store.file("config.toml");
    for text in [
        format!("[groups.\"{hidden}\"]\n"),
        format!("[defaults]\nexpected = \"{hidden}\"\n"),
    ] {
        std::fs::write(&file, text).unwrap();
        let line = run.clone().with(&["--config", file.to_str().unwrap()]);
        line.end().with_code(78).says(&["config.toml", "invisible"]);
    }
    assert!(!store.database().exists());
}

/// A quote too many or a line that was read with its end makes two jobs of one, too.
#[test]
fn a_name_with_a_blank_at_an_end_is_refused_wherever_it_is_given() {
    let store = Store::new();
    let lines: [&[&str]; 10] = [
        &["-g", "nightly ", "--", "true"],
        &["-g", " nightly", "--", "true"],
        &["-g", "nightly\u{a0}", "--", "true"],
        &["-g", "x", "--client-id=\u{3000}node-a", "--", "true"],
        &["-g", "x", "--expected=node-a ", "--", "true"],
        &["-g", "x", "--once= 2026-11-22", "--", "true"],
        &["move", "--when-idle", "-g", "x", "--to", "node-b "],
        &["once", "forget", "-g", "x", "key "],
        &["fence", "advance", " file", "7"],
        &["explain", "-g", "x", "--client-id", "b "],
    ];
    for words in lines {
        let ended = store.bare(words).end().with_code(64);
        ended.says(&["begins or ends with a blank"]);
    }
    let run = store.bare(&["-g", "x"]).job(&["true"]);
    let given = run.clone().env("TOKENRUN_CLIENT_ID", "node-a ").end();
    given.with_code(64).says(&["a blank", "TOKENRUN_CLIENT_ID"]);
    let ended = run.clone().env("CLIENT_ID", " node-a").end();
    ended
        .with_code(78)
        .says(&["the variable CLIENT_ID", "a blank", "--client-id"]);
    let file = store.file("config.toml");
    for text in [
        "[groups.\"nightly \"]\n",
        "[defaults]\nclient-id = \" node-a\"\n",
    ] {
        std::fs::write(&file, text).unwrap();
        let line = run.clone().with(&["--config", file.to_str().unwrap()]);
        line.end().with_code(78).says(&["config.toml", "a blank"]);
    }
    assert!(!store.database().exists());
    // In the middle it is a part of the name.
    let words = ["-s", "tokens.db", "-g", "month end"];
    store.bare(&words).job(&["true"]).end().with_code(0);
}

#[test]
fn options_may_stand_before_the_verb_and_help_is_a_verb_too() {
    let store = Store::new();
    store.free_run("node-a").job(&["true"]).end().with_code(0);
    let database = store.database();
    let database = database.to_str().unwrap();
    let status = store.bare(&["-s", database, "--json", "status"]).end();
    assert_eq!(status.with_code(0).json()[0]["group"], "job");
    for (words, says) in [
        (&["help"][..], "Exit codes: "),
        (&["help", "once", "forget"], "Usage: tokenrun once forget"),
        (&["version"], "tokenrun "),
    ] {
        let help = store.bare(words).end().with_code(0);
        assert!(help.stdout.contains(says), "{words:?}: {}", help.stdout);
    }
}

#[test]
fn a_store_of_another_kind_is_named_as_unsupported() {
    let store = Store::new();
    let run = store.bare(&["-g", "x", "-s", "mongodb://etl:secret@db/jobs"]);
    let ended = run.job(&["true"]).end().with_code(78);
    ended.says(&[
        "does not support mongodb:// stores",
        "postgres://",
        "redis://",
    ]);
    assert!(!ended.stderr.contains("secret"), "{}", ended.stderr);
}

#[test]
fn a_missing_program_is_shown_as_given_and_a_line_of_a_shell_gets_a_hint() {
    let store = Store::new();
    let missing = |word: &str| store.free_run("node-a").job(&[word]).end().with_code(127);
    missing("/opt/nope/run.sh").says(&["/opt/nope/run.sh: command not found"]);
    missing("cd /tmp && ls").says(&["cd /tmp && ls: command not found", "write sh -c before it"]);
}

#[test]
fn values_that_would_harm_are_usage_errors() {
    let store = Store::new();
    for (option, words) in [
        (
            "--heartbeat=1ns",
            "--heartbeat 1ns is too short; give at least 100ms",
        ),
        ("--heartbeat=99ms", "give at least 100ms"),
        (
            "--timeout=1ns",
            "--timeout 1ns is too short; give at least 100ms",
        ),
        ("--timeout=0", "or leave it out for no limit"),
        (
            "--at-least=3654d",
            "'--at-least <DURATION>': is longer than ten years",
        ),
        (
            "--keep=100000000000",
            "'--keep <DURATION>': is longer than ten years",
        ),
        ("--wait=18446744073709551615", "is longer than ten years"),
        ("--once-retain=40000d", "is longer than ten years"),
        (
            "-Eabc",
            "'--conflict-exit-code <N>': is not a whole number from 0 to 255",
        ),
        (
            "--done-exit-code=256",
            "is not a whole number from 0 to 255",
        ),
    ] {
        let line = store
            .free_run("node-a")
            .with(&[option])
            .job(&["touch", "ran"]);
        line.end().with_code(64).says(&[words]);
    }
    let pause = store.verb(&["pause", "-g", "job", "--for=4000d"]);
    pause
        .end()
        .with_code(64)
        .says(&["is longer than ten years"]);
    let config = store.file("config.toml");
    std::fs::write(&config, "[defaults]\nat-least = \"4000d\"\n").unwrap();
    let line = store
        .free_run("node-a")
        .with(&["--config", config.to_str().unwrap()]);
    line.job(&["touch", "ran"])
        .end()
        .with_code(78)
        .says(&["is longer than ten years"]);
    assert!(!store.file("ran").exists());
}

#[test]
fn help_and_version_are_printed_on_demand() {
    let store = Store::new();
    let help = store.bare(&["--help"]).end().with_code(0);
    for word in [
        "--group",
        "--takeover-after",
        "status",
        "Exit codes: ",
        "124",
    ] {
        assert!(help.stdout.contains(word), "{word}: {}", help.stdout);
    }
    assert_eq!(help.stderr, "");
    let version = store.bare(&["--version"]).end().with_code(0);
    let wanted = concat!("tokenrun ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(version.stdout, wanted);
    // By the way that other words take.
    let version = store.bare(&["-q", "--version"]).end().with_code(0);
    assert_eq!(version.stdout, wanted);
}
