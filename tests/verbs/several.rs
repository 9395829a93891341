//! Acts of operators on several groups, and what is asked before.

use serde_json::Value;

use crate::site::{GROUP, Site};
use crate::support::{Ended, Line, Terminal};

stories!(
    several_groups_are_acted_on_one_after_the_other,
    an_unknown_name_keeps_the_others_from_being_changed,
    all_and_patterns_need_yes_where_no_person_can_be_asked,
    a_person_is_asked_before_an_act_on_several_groups,
    a_client_that_was_never_seen_is_warned_of,
    a_person_is_asked_before_a_token_goes_to_a_stranger,
    the_clients_of_the_store_are_listed_for_a_shell,
    a_longer_pause_stays,
    ;
    about tables:
    other_operators_pauses_stay,
    a_group_whose_row_can_not_be_read_is_not_said_to_be_paused,
    the_exit_status_is_the_worst,
);

/// A site with these groups, each of which has run on node "b".
fn with_groups(site: &Site, groups: &[&str]) {
    for group in groups {
        site.short_in(group).end().with_code(0);
    }
}

fn verb(site: &Site, line: &str) -> Line {
    site.verb(&line.split(' ').collect::<Vec<_>>())
}

fn ended(site: &Site, line: &str) -> Ended {
    verb(site, line).end()
}

/// The groups that are paused.
fn paused(site: &Site) -> Vec<String> {
    let listed = ended(site, "status --json").with_code(0).json();
    let all = listed.as_array().unwrap().iter();
    let paused = all.filter(|token| token["paused_by"] != Value::Null);
    let names = paused.map(|token| token["group"].as_str().unwrap().to_owned());
    names.collect()
}

/// The groups and the words of acts, as `--json` shows them.
fn performed(ended: &Ended) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let acts = ended.json();
    let acts = acts.as_array().unwrap().iter();
    acts.map(|act| (text(&act["group"]), text(&act["act"])))
        .collect()
}

fn several_groups_are_acted_on_one_after_the_other(site: &Site) {
    with_groups(site, &["etl-1", "etl-2", "web"]);
    let pause = ended(site, "pause -g web -g etl-2 --json").with_code(0);
    pause.tells(&["\"etl-2\"", "\"web\"", "is paused until tokenrun resume"]);
    let acts = [("etl-2", "pause"), ("web", "pause")].map(|(g, a)| (g.to_owned(), a.to_owned()));
    assert_eq!(performed(&pause), acts);
    assert_eq!(paused(site), ["etl-2", "web"]);
    ended(site, "resume -g etl-* --yes").with_code(0);
    assert_eq!(paused(site), ["web"]);
    // A group that is named twice is acted on once.
    let twice = ended(site, "pause -g etl-1 -g etl-? --yes --json").with_code(0);
    assert_eq!(performed(&twice).len(), 2);
    ended(site, "resume --all -y").with_code(0);
    assert_eq!(paused(site), Vec::<String>::new());
}

fn a_longer_pause_stays(site: &Site) {
    with_groups(site, &["etl-1", "web"]);
    ended(site, "pause -g web --for 2h --reason disk").with_code(0);
    let all = ended(site, "pause --all --yes --for 1h --json").with_code(0);
    all.tells(&[
        "\"web\"",
        "stays paused by",
        "(disk)",
        "nothing was changed",
    ]);
    assert_eq!(performed(&all), [("etl-1".to_owned(), "pause".to_owned())]);
    let longer = ended(site, "pause -g web --json").with_code(0);
    longer.tells(&["\"web\"", "is paused until tokenrun resume"]);
    ended(site, "resume --all --yes").with_code(0);
    assert_eq!(paused(site), Vec::<String>::new());
}

fn other_operators_pauses_stay(site: &Site) {
    with_groups(site, &["etl-1", "web", "www"]);
    ended(site, "pause --all --yes --reason upgrade").with_code(0);
    for group in ["web", "www"] {
        let condition = format!("token_group = '{group}'");
        site.set_in_document("tokens", "pause.by", "\"eve\"", &condition);
    }
    let resume = ended(site, "resume --all --yes --json").with_code(0);
    resume.tells(&[
        "\"web\"",
        "stays paused by eve (upgrade)",
        "tokenrun resume -g \"web\"",
    ]);
    assert_eq!(
        performed(&resume),
        [("etl-1".to_owned(), "resume".to_owned())]
    );
    assert_eq!(paused(site), ["web", "www"]);
    // One group is no slip.
    ended(site, "resume -g web").with_code(0);
    assert_eq!(paused(site), ["www"]);
    ended(site, "resume --all --yes --force").with_code(0);
    assert_eq!(paused(site), Vec::<String>::new());
}

fn a_group_whose_row_can_not_be_read_is_not_said_to_be_paused(site: &Site) {
    with_groups(site, &["a", "z"]);
    site.set_in_document("tokens", "keep_ms", "-1", "token_group = 'a'");
    let pause = ended(site, "pause --all --yes --json").with_code(78);
    pause.tells(&["keep_ms", "-1"]);
    assert_eq!(performed(&pause), [("z".to_owned(), "pause".to_owned())]);
}

fn an_unknown_name_keeps_the_others_from_being_changed(site: &Site) {
    with_groups(site, &["etl-1", "web"]);
    for (line, words) in [
        ("pause -g etl-1 -g wep", "has no group \"wep\""),
        ("pause -g etl-1 -g x* --yes", "matches \"x*\""),
        (
            "move --when-idle -g etl-1 -g wep --to b",
            "has no group \"wep\"",
        ),
    ] {
        ended(site, line)
            .with_code(78)
            .tells(&[words, "tokenrun status"]);
    }
    assert_eq!(paused(site), Vec::<String>::new());
    let history = ended(site, "history --json").with_code(0).json();
    let acts = history.as_array().unwrap().iter();
    assert_eq!(acts.filter(|it| it.get("act").is_some()).count(), 0);
}

fn all_and_patterns_need_yes_where_no_person_can_be_asked(site: &Site) {
    with_groups(site, &["etl-1"]);
    for (line, broad) in [
        ("pause --all", "--all"),
        ("resume -g etl-*", "--group \"etl-*\""),
        ("release --all --force", "--all"),
        ("revoke -g etl-1 -g ?", "--group \"?\""),
        ("move --when-idle --all --to b", "--all"),
        ("move --all --to b", "--all"),
    ] {
        let ended = ended(site, line).with_code(64);
        let groups = line.find(" --all").or_else(|| line.find(" -g"));
        let verb = &line[..groups.unwrap()];
        ended.tells(&[&format!("as in tokenrun {verb} {broad} --yes")]);
    }
    assert_eq!(paused(site), Vec::<String>::new());
}

#[test]
fn a_group_whose_entry_in_redis_can_not_be_read_is_not_said_to_be_paused() {
    crate::on_redis(|site| {
        with_groups(site, &["a", "z"]);
        let (_, prefix) = site.url.split_once("?prefix=").unwrap();
        let key = format!("{{{prefix}}}:token:a");
        let server = crate::RedisServer::shared();
        assert_eq!(server.cli(&["HSET", &key, "document", "{"]), "0");
        let pause = ended(site, "pause --all --yes --json").with_code(78);
        pause.tells(&["token:a", "document"]);
        assert_eq!(performed(&pause), [("z".to_owned(), "pause".to_owned())]);
    });
}

fn the_exit_status_is_the_worst(site: &Site) {
    with_groups(site, &["a", "z"]);
    let held = site.run("node-a").start();
    site.store.until_begun("node-a");
    let release = ended(site, "release --all --yes --json").with_code(75);
    release.tells(&["\"job\"", "is running on node-a and was not freed"]);
    assert_eq!(release.json().as_array().unwrap().len(), 0);
    // One that can't be acted on does not keep the others from it.
    site.set_in_document("tokens", "reader", "99", "token_group = 'a'");
    let pause = ended(site, "pause --all --yes --json").with_code(78);
    pause.tells(&["install a newer tokenrun"]);
    assert_eq!(performed(&pause).len(), 2);
    // An error counts more than a token that is held.
    let release = ended(site, "release --all --yes").with_code(78);
    release.tells(&["is running on node-a and was not freed"]);
    site.store.go(0);
    held.end().with_code(0);
}

fn a_person_is_asked_before_an_act_on_several_groups(site: &Site) {
    with_groups(site, &["etl-1", "etl-2"]);
    let mut terminal = Terminal::new(&site.store, &site.verb(&[]));
    for no in ["n\n", "\n", "\u{4}"] {
        terminal.line("t pause --all");
        terminal.until("pause 2 groups in ");
        terminal.until("\"etl-1\", \"etl-2\"? [y/N] ");
        terminal.keys(no);
        terminal.until("nothing was changed");
        terminal.prompt();
        assert_eq!(terminal.status(), 75);
    }
    assert_eq!(paused(site), Vec::<String>::new());
    terminal.line("t pause -g 'etl*'");
    terminal.until("[y/N] ");
    terminal.line("y");
    terminal.prompt();
    assert_eq!(terminal.status(), 0);
    assert_eq!(paused(site), ["etl-1", "etl-2"]);
    // Names need no question, and neither does one group.
    for line in [
        "resume -g etl-1 -g etl-2",
        "pause -g '*-1'",
        "resume --all -y",
    ] {
        let shown = terminal.run(&format!("t {line}"));
        assert!(!shown.contains("[y/N]"), "{shown}");
        assert_eq!(terminal.status(), 0, "{line}");
    }
    assert_eq!(paused(site), Vec::<String>::new());
}

fn a_client_that_was_never_seen_is_warned_of(site: &Site) {
    site.short("node-a").end().with_code(0);
    let slip = ended(site, "move --when-idle -g job --to node-bb").with_code(0);
    slip.tells(&["\"node-bb\" was never seen in ", "goes to node-bb"]);
    // The hand-off does not make it known.
    let again = ended(site, "move -g job --to node-bb").with_code(0);
    again.tells(&["\"node-bb\" was never seen in "]);
    let known = |line: &str| {
        let ended = ended(site, line).with_code(0);
        assert!(!ended.stderr.contains("never seen"), "{ended:?}");
    };
    ended(site, "expect -g job node-e").with_code(0);
    known("move --when-idle -g job --to node-e");
    // One that has run in whichever group is known by history.
    with_groups(site, &["other"]);
    known("move --when-idle -g job --to b");
}

fn a_person_is_asked_before_a_token_goes_to_a_stranger(site: &Site) {
    site.short("node-a").end().with_code(0);
    let mut terminal = Terminal::new(&site.store, &site.verb(&[]));
    let handoff = || {
        let listed = ended(site, "status --json").with_code(0).json();
        listed[0]["handoff_to"].clone()
    };
    terminal.line(&format!("t move --when-idle -g {GROUP} --to node-x"));
    terminal.until("\"node-x\" was never seen in ");
    terminal.until("[y/N] ");
    terminal.line("no");
    terminal.prompt();
    assert_eq!(terminal.status(), 75);
    assert_eq!(handoff(), Value::Null);
    terminal.line(&format!("t move --when-idle -g {GROUP} --to node-x"));
    terminal.until("[y/N] ");
    terminal.line("yes");
    terminal.prompt();
    assert_eq!(terminal.status(), 0);
    assert_eq!(handoff(), "node-x");
    let shown = terminal.run(&format!("t move --when-idle -g {GROUP} --to node-a"));
    assert!(!shown.contains("[y/N]"), "{shown}");
    assert_eq!(handoff(), "node-a");
}

fn the_clients_of_the_store_are_listed_for_a_shell(site: &Site) {
    site.short("node-a").end().with_code(0);
    site.short("node-b").end().with_code(0);
    ended(site, "expect -g job node-e").with_code(0);
    let line = ["clients", "--", "move", "-s", site.url.as_str(), "--to"];
    let listed = site.store.bare(&line).end().with_code(0);
    assert_eq!(listed.stdout, "node-a\nnode-b\nnode-e\n");
}
