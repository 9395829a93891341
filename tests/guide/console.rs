//! The `console` blocks are typed into one bash, a command at a time: the next is
//! typed when the lines that are shown have come.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::blocks::{By, Page, matches, pages};

const PATIENCE: Duration = Duration::from_secs(60);

/// What is left of a picture when its times and lengths are taken out: a run of the same
/// characters is one of them, all digits are the same, and dots are nothing.
fn shape(line: &str) -> String {
    let mut shape: Vec<char> = line
        .chars()
        .map(|it| if it.is_ascii_digit() { '0' } else { it })
        .filter(|it| *it != '.')
        .collect();
    shape.dedup();
    shape.into_iter().collect()
}

/// A picture is shown as it came out once.
fn is_as_shown(command: &str, shown: &str, line: &str) -> bool {
    if command.ends_with(" --timeline") {
        return shape(shown) == shape(line);
    }
    matches(shown, line)
}

struct Shell {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Shell {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new("bash")
            .args(["-c", "exec 2>&1; exec bash"])
            .current_dir(folder)
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
            .env("XDG_STATE_HOME", folder)
            .env("TOKENRUN_STORE", folder.join("first.db"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash starts");
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take().unwrap();
        Self {
            child,
            input,
            lines,
        }
    }

    fn run(&mut self, page: &str, command: &str, lines: &[&str]) {
        writeln!(self.input, "{command}").unwrap();
        for shown in lines {
            let line = self
                .lines
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("{page}\n$ {command}\nnever printed: {shown}"));
            assert!(
                is_as_shown(command, shown, &line),
                "{page}\n$ {command}\nshown:   {shown}\nprinted: {line}"
            );
        }
    }

    fn finish(mut self, page: &str) {
        drop(self.input);
        let status = self.child.wait().unwrap();
        assert!(
            status.success(),
            "{page}: the last command failed: {status}"
        );
        let more: Vec<String> = self.lines.iter().collect();
        assert!(more.is_empty(), "{page} does not show: {more:?}");
    }
}

/// Types a page's blocks into a shell of its own. Returns how many there are.
fn type_in(page: &Page) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let binary = env!("CARGO_BIN_EXE_tokenrun");
    std::os::unix::fs::symlink(binary, folder.path().join("tokenrun")).unwrap();
    let mut blocks = page.blocks();
    blocks.retain(|block| block.by == By::Console);
    if blocks.is_empty() {
        return 0;
    }
    let mut shell = Shell::start(folder.path());
    for (command, lines) in blocks.iter().flat_map(|block| block.steps()) {
        // It has been built already: these are the same command but for the build.
        let command = command.replace("cargo run --release -- ", "tokenrun ");
        shell.run(&page.name, &command, &lines);
    }
    shell.finish(&page.name);
    blocks.len()
}

#[test]
fn every_console_block_prints_what_its_page_shows() {
    let pages = pages();
    let typed: usize = std::thread::scope(|scope| {
        let shells: Vec<_> = pages
            .iter()
            .map(|page| scope.spawn(|| type_in(page)))
            .collect();
        shells.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert!(typed > 6);
}

#[test]
fn shown_lines_match_as_they_should() {
    assert!(matches("a … c", "a   b c"));
    assert!(matches("a …", "a b c"));
    assert!(!matches("a", "a b"));
    assert!(!matches("a … d", "a b c"));
    let picture = "history --timeline";
    assert!(is_as_shown(picture, "a  ==..x..", "a  ====x.."));
    assert!(is_as_shown(picture, "12.5s", "3s"));
    assert!(!is_as_shown(picture, "a  ==..x..", "a  ==....."));
    assert!(!is_as_shown("history", "12", "13"));
}
