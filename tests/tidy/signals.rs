//! The signals that the tests and their programs ignore: none, although their caller may.

use std::fs;
use std::path::Path;
use std::process::Command;

/// What nohup, or a shell without job control, makes what it starts in the background ignore: HUP, INT and QUIT.
const IGNORED: u64 = 0b111;

fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    u64::from_str_radix(line.unwrap().trim(), 16).unwrap() & IGNORED
}

/// The program by which Cargo starts each suite.
fn runner() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(".cargo/config.toml");
    let config = fs::read_to_string(path).unwrap();
    let mut lines = config.lines();
    let words = lines.find_map(|line| line.strip_prefix("runner = "));
    serde_json::from_str(words.unwrap()).unwrap()
}

#[test]
fn a_suite_ignores_no_signal_although_its_caller_does() {
    let own = fs::read_to_string("/proc/self/status").unwrap();
    assert_eq!(
        ignored(&own),
        0,
        "Cargo starts the tests by way of `runner`"
    );
    let started = |by: &[String]| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' HUP INT QUIT; exec \"$@\"", "sh"]);
        let output = shell.args(by).args(["cat", "/proc/self/status"]).output();
        ignored(&String::from_utf8(output.unwrap().stdout).unwrap())
    };
    assert_eq!(started(&[]), IGNORED);
    assert_eq!(started(&runner()), 0);
}
