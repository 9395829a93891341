//! Lines as people write them, and as the parser reads them.

use super::*;
use crate::verbs::command;

fn line(text: &str) -> Option<String> {
    let words: Vec<OsString> = text.split(' ').map(OsString::from).collect();
    let rewritten = rewritten(&words, command)?;
    let words: Vec<_> = rewritten
        .iter()
        .map(|word| word.to_str().unwrap())
        .collect();
    Some(words.join(" "))
}

#[test]
fn options_may_stand_before_the_verb() {
    for (written, read) in [
        ("tokenrun -s a.db status", "tokenrun status -s a.db"),
        (
            "tokenrun --store=a.db status -g x",
            "tokenrun status --store=a.db -g x",
        ),
        (
            "tokenrun -q -g x fence verify --fence=7",
            "tokenrun fence verify -q -g x --fence=7",
        ),
        ("tokenrun --json status", "tokenrun status --json"),
    ] {
        assert_eq!(line(written).as_deref(), Some(read));
    }
    for read in [
        "tokenrun status -s a.db",
        "tokenrun -g status -- job",
        "tokenrun -g x -- status",
        "tokenrun -g x nothing",
        "tokenrun -s status",
        "tokenrun --wait",
        "tokenrun --version status",
    ] {
        assert_eq!(line(read), None, "{read}");
    }
}

#[test]
fn help_and_version_are_words_too() {
    assert_eq!(line("tokenrun help").unwrap(), "tokenrun --help");
    assert_eq!(
        line("tokenrun help once list").unwrap(),
        "tokenrun once list --help"
    );
    assert_eq!(line("tokenrun help json"), None);
    assert_eq!(line("tokenrun version").unwrap(), "tokenrun --version");
}
