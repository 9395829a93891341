//! Parsed command lines, and the errors of bad ones.

use std::time::Duration;

use super::*;
use crate::exit;
use crate::verbs::acts::Ordering as _;
use crate::verbs::acts::several::{Order, Patience};

fn words(line: &[&str]) -> Vec<OsString> {
    line.iter().map(OsString::from).collect()
}

fn parsed(line: &[&str]) -> Result<Line, Unusable> {
    parse(&words(line))
}

fn refused(line: &[&str]) -> String {
    let error = parsed(line).err().unwrap();
    assert_eq!(error.code, exit::USAGE);
    assert!(!error.text.trim_end().contains('\n'), "{}", error.text);
    error.text
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn a_run_is_understood() {
    let line = words(&[
        "tokenrun",
        "-g",
        "nightly",
        "--takeover-after",
        "2h 30m",
        "--keep=0",
        "-E",
        "3",
        "--",
        "job",
        "--heartbeat",
        "x",
    ]);
    let run = cli::read::<PlainRun>(&line, settable)
        .ok()
        .unwrap()
        .options
        .run;
    let plan = run.plan().unwrap();
    assert_eq!(plan.group.as_str(), "nightly");
    assert_eq!(plan.timing.takeover_after, Duration::from_secs(9_000));
    assert_eq!(plan.timing.keep, Duration::ZERO);
    assert_eq!(plan.codes.not_now, 3);
    assert_eq!(plan.command, ["job", "--heartbeat", "x"]);
}

#[test]
fn bad_input_gets_one_line_that_says_what_to_write() {
    for (line, words) in [
        (vec!["tokenrun", "--", "job"], vec!["no group"]),
        (vec!["tokenrun", "-g", "x"], vec!["no command", "--"]),
        (vec!["tokenrun", "-g", "x", "--"], vec!["no command"]),
        (vec!["tokenrun", "-g", "x", "--", ""], vec!["no command"]),
        (
            vec!["tokenrun", "-g", "x", "echo", "hi"],
            vec!["\"echo\"", "goes after --"],
        ),
        (
            vec!["tokenrun", "-g", "x", "--hartbeat", "3s", "--", "job"],
            vec![
                "unknown option --hartbeat",
                "did you mean --heartbeat DURATION?",
                "tokenrun --group nightly --",
            ],
        ),
        (
            vec!["tokenrun", "-g", "x", "--keep", "5M", "--", "job"],
            vec!["--keep", "months", "5m"],
        ),
        (
            vec!["tokenrun", "-g", "x", "--keep", "soon", "--", "job"],
            vec!["--keep", "2h 30m"],
        ),
        (
            vec![
                "tokenrun",
                "-g",
                "x",
                "--takeover-after",
                "20s",
                "--",
                "job",
            ],
            vec!["--takeover-after 29s or more"],
        ),
        (
            vec!["tokenrun", "-g", "a\nb", "--", "job"],
            vec!["--group", "control character"],
        ),
        (
            vec!["tokenrun", "-g", "", "--", "job"],
            vec!["--group", "empty"],
        ),
        (
            vec!["tokenrun", "-g", "x", "--client-id", "", "--", "job"],
            vec!["--client-id", "empty"],
        ),
        (
            vec!["tokenrun", "statsu"],
            vec!["did you mean tokenrun status?", "--group nightly -- statsu"],
        ),
        (
            vec!["tokenrun", "status", "--gruop", "x"],
            vec![
                "did you mean --group NAME?",
                "as in tokenrun status --group nightly",
            ],
        ),
        (
            vec!["tokenrun", "status", "xyzzy"],
            vec![
                "unexpected \"xyzzy\"",
                "as in tokenrun status --group nightly",
            ],
        ),
        (
            vec!["tokenrun", "status", "--xyzzy"],
            vec!["unknown option --xyzzy", "tokenrun status --help"],
        ),
        (
            vec!["tokenrun", "fence", "verfy"],
            vec![
                "did you mean tokenrun fence verify?",
                "verify, advance, raise",
            ],
        ),
        (
            vec!["tokenrun", "handoff", "-g", "x", "--to", "b"],
            vec!["tokenrun move --group nightly --to node-b --when-idle"],
        ),
        (
            vec!["tokenrun", "-g", "x", "handoff", "--to", "b"],
            vec!["tokenrun move --group nightly --to node-b --when-idle"],
        ),
        (
            vec!["tokenrun", "move", "-g", "x"],
            vec!["--to", "as in tokenrun move --group nightly --to node-b"],
        ),
        (
            vec!["tokenrun", "move", "-g", "x", "--to", "b", "--wait=soon"],
            vec!["--wait", "'soon'", "2h 30m"],
        ),
        (
            vec!["tokenrun", "move", "-g", "x", "--to", "b", "--wait", "5m"],
            vec!["--wait=5m"],
        ),
        (
            vec![
                "tokenrun",
                "move",
                "-g",
                "x",
                "--to",
                "b",
                "--wait",
                "--when-idle",
            ],
            vec!["--when-idle", "cannot be used with", "--wait"],
        ),
        (
            vec!["tokenrun", "revoke", "-g", "x", "--wait=1M"],
            vec!["--wait", "months"],
        ),
        (
            vec!["tokenrun", "pause"],
            vec!["--group", "as in tokenrun pause --group nightly"],
        ),
        (
            vec!["tokenrun", "pause", "-g", "x", "--all"],
            vec!["--group", "cannot be used with", "--all"],
        ),
        (
            vec!["tokenrun", "pause", "-g", "x", "-g", ""],
            vec!["--group", "empty"],
        ),
        (
            vec!["tokenrun", "expect", "-g", "x", "-g", "y", "node-b"],
            vec!["--group", "multiple times"],
        ),
        (
            vec!["tokenrun", "expect", "-g", "x"],
            vec!["as in tokenrun expect --group nightly node-b"],
        ),
        (
            vec!["tokenrun", "history", "--outcome", "lots"],
            vec!["'lots'", "lost", "as in tokenrun history --group nightly"],
        ),
        (
            vec!["tokenrun", "completions", "csh"],
            vec!["csh", "as in tokenrun completions bash"],
        ),
        (
            vec!["tokenrun", "fence"],
            vec!["as in tokenrun fence verify"],
        ),
    ] {
        let text = refused(&line);
        for word in words {
            assert!(text.contains(word), "{line:?}: {text}");
        }
    }
    let long = "x".repeat(201);
    assert!(refused(&["tokenrun", "-g", &long, "--", "job"]).contains("201"));
}

#[test]
fn a_word_of_another_tool_gets_the_whole_line_to_type() {
    for (line, meant) in [
        ("stop -g x", "tokenrun revoke -g x"),
        ("stop x", "tokenrun revoke -g x"),
        (
            "kill -g x -g y* --yes",
            "tokenrun revoke -g x -g 'y*' --yes",
        ),
        ("kill -9 x", "tokenrun revoke --group nightly"),
        ("cancel --all", "tokenrun revoke --all"),
        ("ps", "tokenrun status"),
        ("ps aux", "tokenrun status -g aux"),
        ("ls --json", "tokenrun status --json"),
        ("logs x", "tokenrun output -g x"),
        ("logs -f x", "tokenrun output --group nightly"),
        ("drain node-a", "tokenrun move --from node-a --any"),
        ("drain -g x --to b", "tokenrun move -g x --to b"),
        ("unlock -g x --force", "tokenrun release -g x --force"),
        (
            "stop -s postgres://me:secret@db/jobs -g x",
            "tokenrun revoke -s … -g x",
        ),
        ("-n -g x -- job -n", "tokenrun -g x -- job -n"),
        ("-g x -n 3 -- job", "tokenrun -g x -- job"),
        ("-g x -n=1 -- job", "tokenrun -g x -- job"),
        ("-g x --nonblock -- job", "tokenrun -g x -- job"),
        (
            "-g x -w 10 -- job -w 9",
            "tokenrun -g x --wait=10s -- job -w 9",
        ),
        ("-g x -w10 -- job", "tokenrun -g x --wait=10s -- job"),
        ("-w 2m -g x -- job", "tokenrun -g x --wait=2m -- job"),
        ("-w -g x -- job", "tokenrun -g x --wait -- job"),
        (
            "-w 5 /tmp/lock job",
            "tokenrun --group nightly --wait=5s -- /opt/etl/run.sh",
        ),
        (
            "-n /tmp/lock job",
            "tokenrun --group nightly -- /opt/etl/run.sh",
        ),
    ] {
        let line: Vec<&str> = ["tokenrun"].into_iter().chain(line.split(' ')).collect();
        let text = refused(&line);
        let said = text.split_once("; did you mean: ").map(|(_, line)| line);
        assert_eq!(said, Some(meant), "{line:?}: {text}");
        // It can be typed, and is understood.
        if !meant.contains('…') {
            let meant = meant.replace('\'', "");
            let meant: Vec<&str> = meant.split(' ').collect();
            assert!(parsed(&meant).is_ok(), "{meant:?}");
        }
    }
    // After options it is rather a job without its --.
    let text = refused(&["tokenrun", "-g", "x", "ls", "-l"]);
    assert!(
        text.contains("did you mean tokenrun status? a job goes after --"),
        "{text}"
    );
    // A verb has its own options.
    let text = refused(&["tokenrun", "status", "-n"]);
    assert!(
        text.starts_with("unknown option -n; tokenrun status --help"),
        "{text}"
    );
}

/// What an act's line orders.
fn ordered<T>(line: &str, look: impl FnOnce(&Order<'_>) -> T) -> T {
    let words: Vec<&str> = line.split(' ').collect();
    match Cli::try_parse_from(words).unwrap().verb {
        Some(Verb::Pause(it)) => look(&it.order()),
        Some(Verb::Resume(it)) => look(&it.order()),
        Some(Verb::Move(it)) => look(&it.order()),
        Some(Verb::Revoke(it)) => look(&it.order()),
        Some(Verb::Release(it)) => look(&it.order()),
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn an_act_is_about_one_group_or_several() {
    let broad = |line: &str| ordered(line, |it| it.broad());
    let single = ordered("tokenrun pause -g x", |it| it.on.single().cloned());
    assert_eq!(single.unwrap().as_str(), "x");
    assert_eq!(broad("tokenrun pause -g x -g y"), None);
    let shown = broad("tokenrun resume -g x -g y*");
    assert_eq!(shown.as_deref(), Some("--group \"y*\""));
    let all = broad("tokenrun release --all --yes");
    assert_eq!(all.as_deref(), Some("--all"));
    let yes = |line: &str| ordered(line, |it| it.yes);
    assert!(yes("tokenrun release --all --yes") && !yes("tokenrun release -g x"));
}

#[test]
fn a_move_waits_on_a_terminal_unless_the_line_says() {
    use crate::run::machine::Wait;
    let patience = |line: &str| ordered(line, |it| it.patience);
    let moved = "tokenrun move -g x --to b";
    assert_eq!(patience(moved), Patience::OnTerminal);
    for (option, wait) in [
        ("--wait", Wait::Forever),
        ("--wait=5m", Wait::For(Duration::from_mins(5))),
        ("--when-idle", Wait::No),
    ] {
        let line = format!("{moved} {option}");
        assert_eq!(patience(&line), Patience::Given(wait));
    }
    assert_eq!(patience("tokenrun revoke -g x"), Patience::Given(Wait::No));
    let line = "tokenrun revoke -g x --wait";
    assert_eq!(patience(line), Patience::Given(Wait::Forever));
}

#[test]
fn a_file_and_a_line_take_the_same_words() {
    use crate::config::{Key, Keys as _, Value};
    let keys = cli::Options::new(None, settable);
    let read = |name: &str, value| {
        let key: Key = keys.find(name).unwrap();
        keys.read(&key, value)
    };
    for name in keys.names() {
        let odd = read(&name, Value::Other).unwrap_err();
        assert!(odd.starts_with("must be "), "{name} {odd}");
    }
    let waits = read("wait", Value::Switch(true)).unwrap();
    assert_eq!(read("wait", Value::Text("forever")).unwrap(), waits);
    assert_eq!(keys.find("quiet").unwrap().instead_of.unwrap(), "verbose");
    assert_eq!(
        keys.find("store").unwrap().instead_of.unwrap(),
        "store-file"
    );
    for name in ["group", "once", "report", "config", "json", "color"] {
        assert_eq!(keys.find(name), None, "{name}");
    }
    for name in ["on-change", "runtime-file", "on-refused", "label"] {
        assert!(keys.find(name).is_some(), "{name}");
    }
}

#[test]
fn help_is_a_screen_and_all_of_it_a_word_away() {
    let asked = |line: &[&str]| {
        let error = parsed(line).err().unwrap();
        assert!(error.asked_for && error.code == 0, "{line:?}");
        error.text
    };
    let short = asked(&["tokenrun", "-h"]);
    assert!(short.lines().count() <= 24, "{}", short.lines().count());
    for line in short.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let command = Cli::command();
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        assert!(short.contains(verb.get_name()), "{}", verb.get_name());
    }
    let is_option = |word: &str| {
        let mut options = command.get_arguments();
        word == "help" || options.any(|option| option.get_long() == Some(word))
    };
    for word in short.split([' ', '[', '\n', ';', ',']) {
        if let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty()) {
            assert!(is_option(long), "{word}");
        }
    }
    assert_eq!(short, asked(&["tokenrun", "-g", "x", "-h"]));
    assert!(asked(&["tokenrun", "status", "-h"]).contains("--watch"));
    let long = asked(&["tokenrun", "--help"]);
    let mut rest = long.as_str();
    for heading in [
        "Everyday options:",
        "Lease and timing:",
        "The job:",
        "Hooks:",
        "Reports and messages:",
        "Identity:",
        "Configuration:",
    ] {
        let at = rest
            .find(heading)
            .unwrap_or_else(|| panic!("{heading}: {long}"));
        rest = &rest[at..];
    }
    let nothing = parsed(&["tokenrun"]).err().unwrap();
    assert_eq!(nothing.code, exit::USAGE);
    assert!(nothing.is_page && nothing.text.contains(&short));
}

/// What the full help says of each option: its default, its variable and its reason.
#[test]
fn each_option_tells_its_default_its_variable_and_its_reason() {
    for option in Cli::command().get_arguments() {
        let Some(long) = option.get_long().filter(|long| *long != "group") else {
            continue;
        };
        let variable = format!("TOKENRUN_{}", long.to_uppercase().replace('-', "_"));
        let env = option
            .get_env()
            .map(|name| name.to_string_lossy().into_owned());
        assert_eq!(env.as_ref(), Some(&variable));
        let help = option.get_long_help().map(ToString::to_string);
        let help = help.unwrap_or_else(|| panic!("--{long} has no reason"));
        assert!(help.contains("\n\n"), "--{long} has no reason: {help}");
        let has_default = help.to_lowercase().contains("default")
            || !option.get_action().takes_values()
            || !option.get_default_values().is_empty();
        assert!(has_default, "--{long} has no default: {help}");
    }
}

#[test]
fn a_page_is_loaded_again_no_sooner_than_after_a_second() {
    assert!(parsed(&["tokenrun", "page", "--output=-", "--refresh=5m", "--utc"]).is_ok());
    assert!(refused(&["tokenrun", "page", "--output="]).contains("--output"));
    assert!(refused(&["tokenrun", "page", "-o", "-", "--refresh=0"]).contains("60s"));
}

#[test]
fn a_group_that_could_be_a_pattern_is_refused_where_one_is_meant() {
    for name in ["etl-*", "a?c", "*"] {
        for line in [
            &["tokenrun", "-g", name, "--", "x"][..],
            &["tokenrun", "hold", "-g", name],
            &["tokenrun", "once", "forget", "-g", name, "key"],
        ] {
            assert!(refused(line).contains("a group's name has none"));
        }
        for verb in ["pause", "check"] {
            assert!(parsed(&["tokenrun", verb, "-g", name]).is_ok());
        }
    }
}

#[test]
fn a_text_that_is_stored_has_a_limit() {
    let (fits, long) = ("\u{e9}".repeat(1_000), "x".repeat(1_001));
    assert!(parsed(&["tokenrun", "pause", "-g", "g", "--reason", &fits]).is_ok());
    for line in [
        &["tokenrun", "pause", "-g", "g", "--reason", &long][..],
        &["tokenrun", "distrust", "--reason", &long],
        &["tokenrun", "-g", "g", "--label", &long, "--", "x"],
    ] {
        assert!(refused(line).contains("has 1001 characters; at most 1000"));
    }
}
